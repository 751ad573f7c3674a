package layout

import (
	"bytes"
	"errors"
	"slices"
	"sort"
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
)

// maxPtxWidth bounds the lines and gaps of ptx, in characters.
const maxPtxWidth = 1 << 20

// index is a ptx that runs: it writes each word of its input in the middle of what stands around it.
type index struct {
	p   *program.Process
	out *program.Output

	gnu, autoRefs, inputRefs, rightRefs, fold bool
	gap, width                                int
	truncation, macro                         string
	format                                    byte // 'd', or 'r' and 't' for what typesetters read
	sentenceText                              string
	sentence, word                            *posix.Regexp
	letter                                    [256]bool // of words, where there is no expression for them
	ignore, only                              map[string]bool

	files   []indexed
	found   program.List[occurrence]
	longest int // of all words
	lines   int // of all files before
	refMost int // the width of references

	half, beforeMost, keyMost int
}

// indexed is one input.
type indexed struct {
	name string
	text []byte
	line int // how many lines the inputs before it have
}

// occurrence is one word at its place: positions in the text of its file.
type occurrence struct {
	file        int
	key, end    int
	left, right int
	ref         int // the line, or where the reference stands
}

// stretch is a part of a text.
type stretch struct{ from, to int }

// ptx writes a permuted index.
func ptx(p *program.Process) int {
	opts, operands := p.Options(1, "AF:GM:ORS:TW:b:i:fg:o:trw:", "auto-reference A", "break-file b", "flag-truncation F", "ignore-case f",
		"gap-size g", "ignore-file i", "macro-name M",
		"only-file o", "references r", "right-side-refs R", "format=", "sentence-regexp S", "traditional G", "typeset-mode t", "width w",
		"word-regexp W")
	x := &index{p: p, out: p.Out(), gnu: true, gap: 3, width: 72, truncation: "/", macro: "xx", format: 'd'}
	sentence, word, breaks, ignore, only := "", "", "", "", ""
	hasSentence := false
	for _, o := range opts {
		switch o.Name {
		case "A":
			x.autoRefs = true
		case "F":
			x.truncation = unescape(o.Value)
		case "G":
			x.gnu, x.format = false, 'r'
		case "M":
			x.macro = o.Value
		case "O":
			x.format = 'r'
		case "T":
			x.format = 't'
		case "format":
			switch {
			case o.Value != "" && strings.HasPrefix("roff", o.Value):
				x.format = 'r'
			case o.Value != "" && strings.HasPrefix("tex", o.Value):
				x.format = 't'
			default:
				p.Errorf("invalid argument %s for %s\nValid arguments are:\n  - %s\n  - %s", gnu.Quote(o.Value),
					gnu.Quote("--format"), gnu.Quote("roff"),
					gnu.Quote("tex"))
				p.Stderrf("Try '%s --help' for more information.\n", p.Name())
				return 1
			}
		case "R":
			x.rightRefs = true
		case "S":
			sentence, hasSentence = unescape(o.Value), true
		case "W":
			word = unescape(o.Value)
		case "b":
			breaks = o.Value
		case "f":
			x.fold = true
		case "g":
			x.gap = x.number(o.Value, "gap width")
		case "i":
			ignore = o.Value
		case "o":
			only = o.Value
		case "r":
			x.inputRefs = true
		case "w":
			x.width = x.number(o.Value, "line width")
		}
	}
	if !x.gnu && len(operands) > 2 {
		return gnu.WrongUsage(p, "extra operand %s", gnu.Quote(operands[2]))
	}
	if !x.gnu && len(operands) == 2 {
		_, out, err := gnu.Create(p, operands[1])
		if err != nil {
			p.Errorf("%s: %s", gnu.BareOrQuoted(operands[1]), program.Message(err))
			return 1
		}
		x.out, operands = out, operands[:1]
	}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	if !hasSentence {
		if sentence = "\n"; x.gnu && !x.inputRefs {
			sentence = "[.?!][]\"')}]*\\($\\|\t\\|  \\)[ \t\n]*"
		}
	}
	x.sentence, x.sentenceText = x.expression(sentence), sentence
	x.word = x.expression(word)
	x.setLetters(breaks)
	x.ignore, x.only = x.list(ignore), x.list(only)
	for i, name := range operands {
		text, err := gnu.ReadWhole(p, name)
		if err != nil {
			p.Errorf("%s: %s", gnu.BareOrQuoted(name), program.Message(err))
			return 1
		}
		if name == "-" {
			name = ""
		}
		x.files = append(x.files, indexed{name: name, text: text, line: x.lines})
		x.read(i)
		x.lines++
	}
	x.measure()
	for _, o := range x.sorted() {
		x.write(o)
	}
	x.out.Flush()
	return 0
}

func (x *index) number(s, what string) int {
	n, err := gnu.ParseSize(s)
	if err != nil || n < 1 || strings.Trim(s, "0123456789") != "" {
		x.p.Errorf("invalid %s: %s", what, gnu.Quote(s))
		x.p.Exit(1)
	}
	return int(min(n, maxPtxWidth))
}

// unescape reads the escapes of C.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		digits := func(most int, base int, from int) (int, int) {
			end := from
			for end < len(s) && end-from < most && strings.IndexByte("0123456789abcdefABCDEF"[:map[int]int{8: 8, 16: 22}[base]], s[end]) >= 0 {
				end++
			}
			n, _ := strconv.ParseInt(s[from:end], base, 32)
			return int(n), end - from
		}
		if at := strings.IndexByte("abfnrtv", s[i]); at >= 0 {
			b.WriteByte("\a\b\f\n\r\t\v"[at])
			continue
		}
		switch s[i] {
		case 'x':
			n, used := digits(3, 16, i+1)
			if used == 0 {
				b.WriteString(`\x`)
				break
			}
			b.WriteByte(byte(n))
			i += used
		case '0':
			n, used := digits(3, 8, i+1)
			b.WriteByte(byte(n))
			i += used
		default:
			b.WriteByte('\\')
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// expression compiles an expression as Emacs writes them: + and ? repeat, and \( \| \) group. It returns nil for an empty one.
func (x *index) expression(s string) *posix.Regexp {
	if s == "" {
		return nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			if strings.IndexByte("(|)", s[i]) < 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(s[i])
		case strings.IndexByte("(|){}", c) >= 0:
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '[':
			end := i + 1
			if end < len(s) && s[end] == '^' {
				end++
			}
			if end < len(s) && s[end] == ']' {
				end++
			}
			for end < len(s) && s[end] != ']' {
				end++
			}
			end = min(end, len(s)-1)
			b.WriteString(s[i : end+1])
			i = end
		default:
			b.WriteByte(c)
		}
	}
	flags := posix.Extended | posix.Lines
	if x.fold {
		flags |= posix.IgnoreCase
	}
	re, err := posix.Compile(b.String(), flags, gnu.Charger(x.p))
	if err != nil {
		what := err.Error()
		if errors.Is(err, posix.ErrBracket) {
			what = "Invalid regular expression"
		}
		x.p.Errorf("%s (for regexp %s)", what, gnu.Quote(s))
		x.p.Exit(1)
	}
	return re
}

// search finds an expression in a part of a text; to is -1 where there is none.
func (x *index) search(re *posix.Regexp, text []byte, from, to int) (stretch, bool) {
	m, err := re.Find(text[from:to])
	gnu.Check(x.p, 1, err)
	if m == nil {
		return stretch{-1, -1}, false
	}
	return stretch{from + m[0], from + m[1]}, true
}

// setLetters says what words are made of, where no expression does.
func (x *index) setLetters(breaks string) {
	if breaks == "" {
		for c := range x.letter {
			if x.gnu {
				x.letter[c] = c|0x20 >= 'a' && c|0x20 <= 'z'
			} else {
				x.letter[c] = c != ' ' && c != '\t' && c != '\n'
			}
		}
		return
	}
	for c := range x.letter {
		x.letter[c] = true
	}
	for _, c := range x.file(breaks) {
		x.letter[c] = false
	}
	if !x.gnu {
		x.letter[' '], x.letter['\t'], x.letter['\n'] = false, false, false
	}
}

func (x *index) file(name string) []byte {
	b, err := gnu.ReadWhole(x.p, name)
	if err != nil {
		x.p.Errorf("%s: %s", gnu.BareOrQuoted(name), program.Message(err))
		x.p.Exit(1)
	}
	return b
}

// list reads a file of words, one in a line; nil where there is no name.
func (x *index) list(name string) map[string]bool {
	if name == "" {
		return nil
	}
	words := map[string]bool{}
	for line := range bytes.SplitSeq(x.file(name), []byte("\n")) {
		if len(line) > 0 {
			x.p.Charge(50)
			x.p.Hold(len(line) + 48)
			words[x.sortKey(line)] = true
		}
	}
	return words
}

// sortKey is a word as it is compared.
func (x *index) sortKey(word []byte) string {
	if !x.fold {
		return string(word)
	}
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		return c
	}, string(word))
}

func blank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func skipWhite(text []byte, at, end int) int {
	for at < end && blank(text[at]) {
		at++
	}
	return at
}

func skipBlack(text []byte, at, end int) int {
	for at < end && !blank(text[at]) {
		at++
	}
	return at
}

func backWhite(text []byte, at, start int) int {
	for at > start && blank(text[at-1]) {
		at--
	}
	return at
}

// skip goes over a word, or over one character that is in none.
func (x *index) skip(text []byte, at, end int) int {
	x.p.Charge(10)
	if x.word != nil {
		if m, ok := x.search(x.word, text, at, end); ok && m.from == at && m.to > at {
			return m.to
		}
		return at + 1
	}
	if at < end && x.letter[text[at]] {
		for at < end && x.letter[text[at]] {
			at++
		}
		return at
	}
	return at + 1
}

// nextWord returns the first word of a part of the text.
func (x *index) nextWord(text []byte, at, end int) (stretch, bool) {
	x.p.Charge(10)
	if x.word != nil {
		return x.search(x.word, text, at, end)
	}
	from := at
	for from < end && !x.letter[text[from]] {
		from++
	}
	to := from
	for to < end && x.letter[text[to]] {
		to++
	}
	x.p.Charge(to - at)
	return stretch{from, to}, from < end
}

// read finds the words of a file.
func (x *index) read(file int) {
	text := x.files[file].text
	lineStart, scan, refLen := 0, 0, 0
	if x.inputRefs {
		scan = skipBlack(text, 0, len(text))
		refLen = scan
		scan = skipWhite(text, scan, len(text))
	}
	newLine := func() {
		x.lines++
		scan++
		lineStart = scan
	}
	for cursor, next := 0, 0; cursor < len(text); cursor = next {
		start := cursor
		next = len(text)
		if x.sentence != nil {
			if m, ok := x.search(x.sentence, text, cursor, len(text)); ok {
				if m.from == m.to {
					x.p.Errorf("error: regular expression has a match of length zero: %s", gnu.Quote(x.sentenceText))
					x.p.Exit(1)
				}
				next = m.to
			}
		}
		right := backWhite(text, next, start)
		for cursor < right {
			w, ok := x.nextWord(text, cursor, right)
			if !ok {
				break
			}
			if cursor = w.to; w.from == w.to {
				cursor++
				continue
			}
			x.longest = max(x.longest, w.to-w.from)
			x.p.Charge(w.to - w.from)
			if x.inputRefs {
				for scan < w.from {
					if text[scan] != '\n' {
						scan++
						continue
					}
					newLine()
					scan = skipBlack(text, scan, len(text))
					refLen = scan - lineStart
				}
				if scan > w.from {
					continue
				}
			}
			key := x.sortKey(text[w.from:w.to])
			if x.ignore != nil && x.ignore[key] || x.only != nil && !x.only[key] {
				continue
			}
			o := occurrence{file: file, key: w.from, end: w.to}
			if x.autoRefs {
				for scan < w.from {
					if text[scan] != '\n' {
						scan++
						continue
					}
					newLine()
					scan = skipBlack(text, scan, len(text))
				}
				o.ref = x.lines
			} else if x.inputRefs {
				o.ref = lineStart
				x.refMost = max(x.refMost, refLen)
			}
			if x.inputRefs && lineStart == start {
				start = skipWhite(text, skipBlack(text, start, right), right)
			}
			o.left, o.right = start, right
			x.p.Hold(64)
			x.found.Append(o)
		}
	}
}

// measure decides the widths of the parts of a line.
func (x *index) measure() {
	if x.autoRefs {
		x.refMost = 0
		for i, f := range x.files {
			last := x.lines
			if i+1 < len(x.files) {
				last = x.files[i+1].line
			}
			x.refMost = max(x.refMost, len(strconv.Itoa(last-f.line+1))+len(f.name))
		}
		x.refMost++
	}
	if (x.autoRefs || x.inputRefs) && !x.rightRefs {
		x.width = max(x.width-x.refMost-x.gap, 0)
	}
	x.half = x.width / 2
	x.beforeMost, x.keyMost = x.half-x.gap, x.half
	if mark := 2 * len(x.truncation); x.gnu {
		x.beforeMost = max(x.beforeMost-mark, 0)
		x.keyMost -= mark
	} else {
		x.keyMost -= mark + 1
	}
}

// sorted returns the words in the order of the index.
func (x *index) sorted() []occurrence {
	all := slices.Concat(x.found.Blocks()...)
	x.p.Hold(len(all) * 64)
	word := func(o *occurrence) []byte { return x.files[o.file].text[o.key:o.end] }
	sort.SliceStable(all, func(i, j int) bool {
		a, b := word(&all[i]), word(&all[j])
		x.p.Charge(40 + min(len(a), len(b)))
		if x.fold {
			return x.sortKey(a) < x.sortKey(b)
		}
		return bytes.Compare(a, b) < 0
	})
	return all
}
