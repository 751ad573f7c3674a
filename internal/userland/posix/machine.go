package posix

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// Limits of an expression in Go's syntax, and of its engines.
const (
	maxProgram  = 20_000  // instructions: what is compiled takes some milliseconds
	shortWork   = 1 << 18 // instructions times bytes: below, Go's own engines end within two milliseconds
	stepsAtOnce = 4096    // between two charges of the machine
	gasPerThing = 8       // of a step of the machine
	gasToBuild  = 400     // of an instruction of a program
)

// Machine is a regular expression in Go's words, whose work is charged while it is done. Texts that are short for it are matched by Go's
// engines, which cannot be stopped; what could take longer, by a machine of threads as theirs is, that charges its steps. It may be used
// by one fiber at a time.
type Machine struct {
	re      *regexp.Regexp
	prog    *syntax.Prog
	longest bool
	charge  func(int64) error
	room    func(bytes int) error // nil where the list of matches has no bound

	prefix  string    // with which every match begins
	literal bool      // it is all that there is
	begins  bool      // it matches at the beginning of the text only
	first   [256]bool // with which bytes a match may begin
	empty   bool      // a match may be of nothing
	here    bool      // only a match at the place where it begins to look counts

	run, next threads
	pool      []*thread
	found     []int
	matched   bool
	steps     int64
	err       error
}

// NewMachine compiles an expression in Go's words. A match is the leftmost one, and of those the longest, or the one that is preferred.
func NewMachine(expr string, longest bool, charge func(int64) error) (*Machine, error) {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := instructions(parsed)
	if size > maxProgram {
		return nil, ErrTooBig
	}
	if err := charge(int64(size) * gasToBuild); err != nil {
		return nil, err
	}
	m := &Machine{longest: longest, charge: charge}
	if m.re, err = regexp.Compile(expr); err != nil {
		return nil, err
	}
	if longest {
		m.re.Longest()
	}
	if m.prog, err = syntax.Compile(parsed.Simplify()); err != nil {
		return nil, err
	}
	m.prefix, m.literal = m.prog.Prefix()
	m.literal = m.literal && m.prefix != ""
	m.begins = m.prog.StartCond()&syntax.EmptyBeginText != 0
	m.reach(uint32(m.prog.Start), map[uint32]bool{})
	return m, nil
}

// instructions is about how many an expression is compiled to.
func instructions(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n = min(n+instructions(sub), maxProgram+1)
	}
	if re.Op == syntax.OpRepeat {
		n = min(n*max(re.Max, re.Min, 1), maxProgram+1)
	}
	return n
}

// reach notes with which bytes a match may begin.
func (m *Machine) reach(pc uint32, seen map[uint32]bool) {
	for !seen[pc] {
		seen[pc] = true
		i := &m.prog.Inst[pc]
		switch i.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			m.reach(i.Out, seen)
			pc = i.Arg
			continue
		case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
			pc = i.Out
			continue
		case syntax.InstMatch:
			m.empty = true
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			for c := range utf8.RuneSelf {
				m.first[c] = m.first[c] || i.MatchRune(rune(c))
			}
			for c := utf8.RuneSelf; c < 256; c++ {
				m.first[c] = true
			}
		}
		return
	}
}

// Groups returns how many groups the expression has.
func (m *Machine) Groups() int { return m.re.NumSubexp() }

// cost is the gas of Go's engines for so many bytes. A search for a literal text is fast.
func (m *Machine) cost(bytes int) int64 {
	if m.literal {
		return gasPerMatch + int64(bytes)/8
	}
	return gasPerMatch + int64(bytes)*gasPerByte
}

// short reports whether Go ends within some milliseconds.
func (m *Machine) short(text int) bool { return m.literal || text*len(m.prog.Inst) <= shortWork }

// Match reports whether the expression matches somewhere in the text.
func (m *Machine) Match(text []byte) (bool, error) {
	if m.short(len(text)) {
		return m.re.Match(text), m.charge(m.cost(len(text)))
	}
	return m.MatchString(string(text))
}

// MatchString is Match for a string.
func (m *Machine) MatchString(text string) (bool, error) {
	if m.short(len(text)) {
		return m.re.MatchString(text), m.charge(m.cost(len(text)))
	}
	found, err := m.find(text, 0, 0)
	return found != nil, err
}

// Find returns the begin and end of the first match and of each of its groups, -1 for those that took no part; nil for no match.
func (m *Machine) Find(text []byte) ([]int, error) {
	if m.short(len(text)) {
		found := m.re.FindSubmatchIndex(text)
		return found, m.charge(m.cost(reached(found, len(text))))
	}
	return m.FindString(string(text))
}

// FindString is Find for a string.
func (m *Machine) FindString(text string) ([]int, error) {
	if m.short(len(text)) {
		found := m.re.FindStringSubmatchIndex(text)
		return found, m.charge(m.cost(reached(found, len(text))))
	}
	return m.find(text, 0, m.prog.NumCap)
}

// FindAllString returns the first n matches that do not overlap, all of them for -1. An empty match right behind another one does not
// count.
func (m *Machine) FindAllString(text string, n int) ([][]int, error) {
	// Each match may look at all that is left.
	if size := len(text) * len(m.prog.Inst); size <= shortWork && (m.literal || m.begins || size*len(text) <= shortWork) {
		all := m.re.FindAllStringSubmatchIndex(text, n)
		return all, m.charge(gasPerMatch*int64(len(all)+1) + int64(len(text))*gasPerByte)
	}
	return m.each(text, n)
}

// each finds one match after the other by the machine.
func (m *Machine) each(text string, n int) ([][]int, error) {
	var all [][]int
	for at, last := 0, -1; at <= len(text) && (n < 0 || len(all) < n); {
		found, err := m.findFrom(text, at)
		if found == nil || err != nil {
			return all, err
		}
		accept := true
		if found[1] == at {
			accept = found[0] != last
			_, width := utf8.DecodeRuneInString(text[at:])
			at += max(width, 1)
		} else {
			at = found[1]
		}
		if last = found[1]; accept {
			all = append(all, found)
			if err := listed(m.room, len(all), len(found)); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// Memory of a list of matches: for each match, and for each end of a group.
const (
	matchBytes = 40
	endBytes   = 8
)

// listed asks now and then whether there is room for so many matches.
func listed(room func(bytes int) error, matches, ends int) error {
	if room == nil || matches%matchesAtOnce != 0 {
		return nil
	}
	return room(matches * (matchBytes + ends*endBytes))
}

// matchesAtOnce is how many matches are listed between two questions for room.
const matchesAtOnce = 4096

// Bound has room called while FindAllString lists matches, with the bytes that the list takes. Its error ends the search.
func (m *Machine) Bound(room func(bytes int) error) { m.room = room }

// findFrom returns the next match.
func (m *Machine) findFrom(text string, at int) ([]int, error) {
	if !m.literal || m.prog.NumCap > 2 {
		return m.find(text, at, m.prog.NumCap)
	}
	i := strings.Index(text[at:], m.prefix)
	if i < 0 {
		return nil, m.charge(int64(len(text)-at)/8 + gasPerMatch)
	}
	if err := m.charge(int64(i)/8 + gasPerMatch); err != nil {
		return nil, err
	}
	return []int{at + i, at + i + len(m.prefix)}, nil
}

// threads are those that wait for the next character, in the order of their preference.
type threads struct {
	sparse []uint32
	dense  []waiting
}

type waiting struct {
	pc uint32
	t  *thread
}

type thread struct {
	inst *syntax.Inst
	caps []int
}

// endOfText is the character behind the last one.
const endOfText rune = -1

// find returns the first match at or behind from, with caps ends of groups; with none, whether there is one at all.
func (m *Machine) find(text string, from, caps int) ([]int, error) {
	size := len(m.prog.Inst)
	if len(m.run.sparse) < size {
		m.run = threads{make([]uint32, size), make([]waiting, 0, size)}
		m.next = threads{make([]uint32, size), make([]waiting, 0, size)}
	}
	if len(m.found) != caps {
		m.found, m.pool = make([]int, caps), nil
	}
	for i := range m.found {
		m.found[i] = -1
	}
	m.matched, m.err = false, nil
	run, next := &m.run, &m.next
	run.dense, next.dense = run.dense[:0], next.dense[:0]
	before := endOfText
	if from > 0 {
		before, _ = utf8.DecodeLastRuneInString(text[:from])
	}
	c, width := runeAt(text, from)
	for at := from; m.err == nil; {
		if len(run.dense) == 0 {
			if m.matched || m.begins && at > 0 || m.here && at > from {
				break
			}
			skipped := m.skip(text[at:])
			if skipped < 0 {
				break
			}
			if skipped > 0 {
				at += skipped
				before, _ = utf8.DecodeLastRuneInString(text[:at])
				c, width = runeAt(text, at)
			}
		}
		if !m.matched && (!m.here || at == from) {
			if caps > 0 {
				m.found[0] = at
			}
			m.add(run, uint32(m.prog.Start), at, m.found, syntax.EmptyOpContext(before, c), nil)
		}
		after, afterWidth := endOfText, 0
		if width > 0 {
			after, afterWidth = runeAt(text, at+width)
		}
		m.step(run, next, at, at+width, c, syntax.EmptyOpContext(c, after))
		if width == 0 || caps == 0 && m.matched {
			break
		}
		at += width
		before, c, width = c, after, afterWidth
		run, next = next, run
	}
	m.flush()
	if m.err != nil || !m.matched {
		return nil, m.err
	}
	if caps == 0 {
		return []int{}, nil
	}
	return append([]int(nil), m.found...), nil
}

func runeAt(text string, at int) (rune, int) {
	if at >= len(text) {
		return endOfText, 0
	}
	if c := text[at]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(text[at:])
}

// skip returns how much of the text no match can begin in, or -1 for all of it.
func (m *Machine) skip(text string) int {
	n := 0
	switch {
	case m.begins:
	case m.prefix != "":
		if n = strings.Index(text, m.prefix); n < 0 {
			m.work(len(text) / 16)
			return -1
		}
		m.work(n / 16)
	case !m.empty:
		for n < len(text) && !m.first[text[n]] {
			if n++; n%stepsAtOnce == 0 && !m.work(stepsAtOnce/8) {
				return -1
			}
		}
		m.work(n % stepsAtOnce / 8)
		if n == len(text) {
			return -1
		}
	}
	return n
}

// work counts steps, and reports whether there may be more.
func (m *Machine) work(n int) bool {
	if m.steps += int64(n); m.steps >= stepsAtOnce {
		m.flush()
	}
	return m.err == nil
}

func (m *Machine) flush() {
	if m.err == nil {
		m.err = m.charge(m.steps * gasPerThing)
	}
	m.steps = 0
}

// step has every thread look at a character.
func (m *Machine) step(run, next *threads, at, end int, c rune, follows syntax.EmptyOp) {
	m.work(1 + len(run.dense))
	for j := 0; j < len(run.dense); j++ {
		t := run.dense[j].t
		if t == nil {
			continue
		}
		if m.longest && m.matched && len(t.caps) > 0 && m.found[0] < t.caps[0] {
			m.pool = append(m.pool, t)
			continue
		}
		goes := false
		switch t.inst.Op {
		case syntax.InstMatch:
			if len(t.caps) > 0 && (!m.longest || !m.matched || m.found[1] < at) {
				t.caps[1] = at
				copy(m.found, t.caps)
			}
			m.matched = true
			if !m.longest { // those behind it are not preferred
				for _, d := range run.dense[j+1:] {
					if d.t != nil {
						m.pool = append(m.pool, d.t)
					}
				}
				run.dense = run.dense[:0]
			}
		case syntax.InstRune1:
			goes = c == t.inst.Rune[0]
		case syntax.InstRuneAny:
			goes = c != endOfText
		case syntax.InstRuneAnyNotNL:
			goes = c != '\n' && c != endOfText
		default:
			goes = t.inst.MatchRune(c)
		}
		if goes {
			t = m.add(next, t.inst.Out, end, t.caps, follows, t)
		}
		if t != nil {
			m.pool = append(m.pool, t)
		}
	}
	run.dense = run.dense[:0]
}

// add puts the threads in which an instruction ends that looks at no character. t is one that may be used again; it is returned where it
// was not.
func (m *Machine) add(q *threads, pc uint32, at int, caps []int, here syntax.EmptyOp, t *thread) *thread {
	for {
		if j := q.sparse[pc]; j < uint32(len(q.dense)) && q.dense[j].pc == pc {
			return t
		}
		m.steps++
		q.sparse[pc] = uint32(len(q.dense))
		q.dense = append(q.dense, waiting{pc: pc})
		d := &q.dense[len(q.dense)-1]
		i := &m.prog.Inst[pc]
		switch i.Op {
		case syntax.InstFail:
			return t
		case syntax.InstAlt, syntax.InstAltMatch:
			t = m.add(q, i.Out, at, caps, here, t)
			pc = i.Arg
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(i.Arg)&^here != 0 {
				return t
			}
			pc = i.Out
		case syntax.InstNop:
			pc = i.Out
		case syntax.InstCapture:
			if int(i.Arg) < len(caps) {
				old := caps[i.Arg]
				caps[i.Arg] = at
				m.add(q, i.Out, at, caps, here, nil)
				caps[i.Arg] = old
				return t
			}
			pc = i.Out
		default:
			if t == nil {
				t = m.thread(i)
			} else {
				t.inst = i
			}
			if len(caps) > 0 && &t.caps[0] != &caps[0] {
				copy(t.caps, caps)
			}
			d.t = t
			return nil
		}
	}
}

func (m *Machine) thread(i *syntax.Inst) *thread {
	if n := len(m.pool); n > 0 {
		t := m.pool[n-1]
		m.pool = m.pool[:n-1]
		t.inst = i
		return t
	}
	return &thread{inst: i, caps: make([]int, len(m.found))}
}

// Names returns the names of the groups, "" for those that have none; the first is that of the whole.
func (m *Machine) Names() []string { return m.re.SubexpNames() }

// EmptyAt returns a match of nothing at a place, nil where there is none.
func (m *Machine) EmptyAt(text string, at int) ([]int, error) {
	if !m.empty {
		return nil, nil
	}
	m.here = true
	found, err := m.find(text, at, m.prog.NumCap)
	m.here = false
	if len(found) < 2 || found[0] != at || found[1] != at {
		return nil, err
	}
	return found, err
}
