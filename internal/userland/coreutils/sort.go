package coreutils

import (
	"bytes"
	"cmp"
	"crypto/md5" // as GNU's sort shuffles
	"io"
	"slices"
	"strconv"
	"strings"

	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// ordering is how keys are compared.
type ordering struct {
	numeric, general, human, version, month, random bool
	seed                                            []byte // of random
	reverse, fold, dictionary, printing             bool
	blanks                                          bool
}

// sortKey is one -k.
type sortKey struct {
	ordering
	set                   bool // it has options of its own
	from, fromChar        int
	to, toChar            int // 0 is the end of the line, or of the field
	blanksBegin, blanksTo bool
}

func (o *ordering) letter(c byte) bool {
	switch c {
	case 'n':
		o.numeric = true
	case 'g':
		o.general = true
	case 'h':
		o.human = true
	case 'V':
		o.version = true
	case 'M':
		o.month = true
	case 'R':
		o.random = true
	case 'r':
		o.reverse = true
	case 'f':
		o.fold = true
	case 'd':
		o.dictionary = true
	case 'i':
		o.printing = true
	case 'b':
		o.blanks = true
	default:
		return false
	}
	return true
}

// parseKey reads the operand of -k.
func parseKey(p *program.Process, spec string) sortKey {
	k := sortKey{fromChar: 1}
	bad := func(what, s string) {
		p.Errorf("%s at %s: invalid count at start of ‘%s’", "invalid number", what, s)
		p.Exit(2)
	}
	s := spec
	number := func(what string) int {
		end := 0
		for end < len(s) && s[end] >= '0' && s[end] <= '9' {
			end++
		}
		n, err := strconv.Atoi(s[:end])
		if err != nil {
			bad(what, s)
		}
		s = s[end:]
		return n
	}
	if k.from = number("field start"); k.from == 0 {
		p.Errorf("field number is zero: invalid field specification ‘%s’", spec)
		p.Exit(2)
	}
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		if k.fromChar = number("field start"); k.fromChar == 0 {
			p.Errorf("character offset is zero: invalid field specification ‘%s’", spec)
			p.Exit(2)
		}
	}
	letters := func(end bool) {
		for s != "" && s[0] != ',' {
			k.set = true
			switch {
			case s[0] == 'b' && end:
				k.blanksTo = true
			case s[0] == 'b':
				k.blanksBegin = true
			case !k.letter(s[0]):
				p.Errorf("stray character in field spec: invalid field specification ‘%s’", spec)
				p.Exit(2)
			}
			s = s[1:]
		}
	}
	letters(false)
	if strings.HasPrefix(s, ",") {
		s = s[1:]
		if k.to = number("field start after ‘,’"); k.to == 0 {
			p.Errorf("field number is zero: invalid field specification ‘%s’", spec)
			p.Exit(2)
		}
		if strings.HasPrefix(s, ".") {
			s = s[1:]
			k.toChar = number("character offset")
		}
		letters(true)
	}
	return k
}

// sorter compares lines.
type sorter struct {
	keys   []sortKey
	global ordering
	tab    int // the separator, -1 for blanks
	stable bool
	unique bool
	work   int
}

// field returns where the n-th field of a line begins (from 1) and where it ends.
func (s *sorter) field(line []byte, n int) (from, to int) {
	at := 0
	if s.tab >= 0 {
		for range n - 1 {
			i := bytes.IndexByte(line[at:], byte(s.tab))
			if i < 0 {
				return len(line), len(line)
			}
			at += i + 1
		}
		end := bytes.IndexByte(line[at:], byte(s.tab))
		if end < 0 {
			return at, len(line)
		}
		return at, at + end
	}
	for i := 0; ; i++ {
		from = at
		for at < len(line) && isBlank(line[at]) {
			at++
		}
		for at < len(line) && !isBlank(line[at]) {
			at++
		}
		if i == n-1 {
			return from, at
		}
		if at >= len(line) {
			return len(line), len(line)
		}
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func skipBlanks(line []byte, at int) int {
	for at < len(line) && isBlank(line[at]) {
		at++
	}
	return at
}

// key cuts a key out of a line.
func (s *sorter) key(line []byte, k *sortKey, o ordering) []byte {
	from, _ := s.field(line, k.from)
	if k.blanksBegin || !k.set && o.blanks {
		from = skipBlanks(line, from)
	}
	from = min(from+k.fromChar-1, len(line))
	end := len(line)
	if k.to > 0 {
		begin, stop := s.field(line, k.to)
		if end = stop; k.toChar > 0 {
			if k.blanksTo || !k.set && o.blanks {
				begin = skipBlanks(line, begin)
			}
			end = min(begin+k.toChar, len(line))
		}
	}
	if end < from {
		return nil
	}
	return line[from:end]
}

func (s *sorter) compare(a, b []byte) int {
	s.work += 20 + (len(a)+len(b))/4
	for i := range s.keys {
		k := &s.keys[i]
		o := k.ordering
		if !k.set {
			o = s.global
		}
		c := o.compare(s.key(a, k, o), s.key(b, k, o))
		if o.reverse {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	if len(s.keys) == 0 {
		x, y := a, b
		if s.global.blanks {
			x, y = x[skipBlanks(x, 0):], y[skipBlanks(y, 0):]
		}
		c := s.global.compare(x, y)
		if s.global.reverse {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	if s.stable || s.unique {
		return 0
	}
	c := bytes.Compare(a, b)
	if s.global.reverse {
		c = -c
	}
	return c
}

// compare compares two keys, without regard to reverse.
func (o ordering) compare(a, b []byte) int {
	switch {
	case o.numeric:
		return compareNumeric(a, b)
	case o.human:
		return compareHuman(a, b)
	case o.general:
		return compareGeneral(a, b)
	case o.month:
		return cmp.Compare(month(a), month(b))
	case o.version:
		return compareVersion(string(a), string(b))
	}
	if o.random {
		x, y := md5.Sum(append(bytes.Clone(o.seed), a...)), md5.Sum(append(bytes.Clone(o.seed), b...))
		if c := bytes.Compare(x[:], y[:]); c != 0 {
			return c
		}
	}
	if !o.fold && !o.dictionary && !o.printing {
		return bytes.Compare(a, b)
	}
	i, j := 0, 0
	skip := func(c byte) bool {
		return o.dictionary && !byteClass("alnum", c) && !isBlank(c) || o.printing && (c < 32 || c > 126)
	}
	for {
		for i < len(a) && skip(a[i]) {
			i++
		}
		for j < len(b) && skip(b[j]) {
			j++
		}
		if i == len(a) || j == len(b) {
			return cmp.Compare(len(a)-i, len(b)-j)
		}
		x, y := a[i], b[j]
		if o.fold {
			x, y = upper(x), upper(y)
		}
		if x != y {
			return cmp.Compare(x, y)
		}
		i, j = i+1, j+1
	}
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 32
	}
	return c
}

// cutNumber splits a number: its sign, its digits before and behind the point.
func cutNumber(s []byte) (negative bool, whole, fraction, rest []byte) {
	s = s[skipBlanks(s, 0):]
	if len(s) > 0 && s[0] == '-' {
		negative, s = true, s[1:]
	}
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	whole, s = bytes.TrimLeft(s[:i], "0"), s[i:]
	if len(s) > 0 && s[0] == '.' {
		i = 1
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		fraction, s = bytes.TrimRight(s[1:i], "0"), s[i:]
	}
	if len(whole) == 0 && len(fraction) == 0 {
		negative = false
	}
	return negative, whole, fraction, s
}

func compareNumeric(a, b []byte) int {
	na, wa, fa, _ := cutNumber(a)
	nb, wb, fb, _ := cutNumber(b)
	return compareCut(na, wa, fa, nb, wb, fb)
}

func compareCut(na bool, wa, fa []byte, nb bool, wb, fb []byte) int {
	if na != nb {
		if na {
			return -1
		}
		return 1
	}
	c := cmp.Or(cmp.Compare(len(wa), len(wb)), bytes.Compare(wa, wb), bytes.Compare(fa, fb))
	if na {
		return -c
	}
	return c
}

func compareHuman(a, b []byte) int {
	na, wa, fa, ra := cutNumber(a)
	nb, wb, fb, rb := cutNumber(b)
	order := func(rest, whole, fraction []byte) int {
		if len(rest) > 0 && len(whole)+len(fraction) > 0 {
			unit := rest[0]
			if unit == 'k' { // of the small letters only this one
				unit = 'K'
			}
			return strings.IndexByte("KMGTPEZYRQ", unit) + 1
		}
		return 0
	}
	x, y := order(ra, wa, fa), order(rb, wb, fb)
	if na {
		x = -x
	}
	if nb {
		y = -y
	}
	if na == nb && x != y {
		return cmp.Compare(x, y)
	}
	return compareCut(na, wa, fa, nb, wb, fb)
}

func compareGeneral(a, b []byte) int {
	x, okA := general(a)
	y, okB := general(b)
	if !okA || !okB {
		if okA == okB {
			return 0
		}
		if !okA {
			return -1
		}
		return 1
	}
	return cmp.Compare(x, y)
}

func general(s []byte) (float64, bool) {
	t := strings.TrimLeft(string(s), " \t")
	end := 0
	for end < len(t) && strings.IndexByte("+-.0123456789eEinfaINFAxX", t[end]) >= 0 {
		end++
	}
	for ; end > 0; end-- {
		if x, err := strconv.ParseFloat(t[:end], 64); err == nil {
			return x, true
		}
	}
	return 0, false
}

func month(s []byte) int {
	s = s[skipBlanks(s, 0):]
	if len(s) < 3 {
		return 0
	}
	return strings.Index("   JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC", strings.ToUpper(string(s[:3])))/3 + 0*len(s)
}

func sortCommand(p *program.Process) int {
	p.Args = withoutOldKeys(p.Args)
	opts, files := p.Options(2, "bdfghik:MnrRsVcCmo:S:t:T:uz", "ignore-leading-blanks b", "dictionary-order d", "ignore-case f",
		"general-numeric-sort g", "human-numeric-sort h",
		"ignore-nonprinting i", "key k", "month-sort M", "numeric-sort n", "reverse r", "random-sort R", "stable s", "version-sort V", "check=?",
		"merge m", "output o",
		"buffer-size S", "field-separator t", "temporary-directory T", "unique u", "zero-terminated z", "parallel=", "sort=", "debug",
		"batch-size=", "files0-from=", "random-source=", "compress-program=")
	s := sorter{tab: -1}
	source := ""
	list := ""
	delim, output, check, quiet := byte('\n'), "", false, false
	for _, o := range opts {
		switch o.Name {
		case "k":
			s.keys = append(s.keys, parseKey(p, o.Value))
		case "t":
			t := o.Value
			if t == "\\0" {
				t = "\x00"
			}
			if len(t) != 1 {
				if t == "" {
					p.Errorf("empty tab")
				} else {
					p.Errorf("multi-character tab %s", "‘"+t+"’")
				}
				return 2
			}
			s.tab = int(t[0])
		case "o":
			output = o.Value
		case "u":
			s.unique = true
		case "s":
			s.stable = true
		case "z":
			delim = 0
		case "c":
			check = true
		case "C":
			check, quiet = true, true
		case "check":
			check, quiet = true, o.Value == "quiet" || o.Value == "silent"
		case "sort":
			c, ok := map[string]byte{"general-numeric": 'g', "human-numeric": 'h', "month": 'M', "numeric": 'n', "random": 'R',
				"version": 'V'}[o.Value]
			if !ok {
				usage(p, 2, "invalid argument ‘%s’ for ‘--sort’", o.Value)
			}
			s.global.letter(c)
		case "files0-from":
			list = o.Value
		case "batch-size":
			if n, err := strconv.ParseUint(o.Value, 10, 64); err != nil || n < 2 {
				p.Errorf("invalid --batch-size argument ‘%s’", o.Value)
				p.Errorf("minimum --batch-size argument is ‘2’")
				return 2
			}
		case "random-source":
			source = o.Value
		case "m", "S", "T", "parallel", "compress-program":
		case "debug":
			p.Lack(program.LackOption, "--debug")
			usage(p, 2, "option '--debug' is not supported in a nano space")
		default:
			s.global.letter(o.Name[0])
		}
	}
	s.check1(p, s.global)
	random := s.global.random
	for _, k := range s.keys {
		s.check1(p, k.ordering)
		random = random || k.random
	}
	if random {
		seed := make([]byte, md5.Size)
		if source == "" {
			p.Account.Entropy(seed)
		} else if h, err := p.Open(source, vfs.Read); err != nil {
			p.Errorf("open failed: %s: %s", source, program.Message(err))
			return 2
		} else if n, _ := io.ReadFull(p.Reader(h), seed); n < len(seed) {
			p.Errorf("‘%s’: end of file", source)
			return 2
		}
		s.global.seed = seed
		for i := range s.keys {
			s.keys[i].seed = seed
		}
	}
	if list != "" {
		var wrong int
		if files, wrong = p.NamesFrom(2, list, files); wrong > 0 {
			return 2
		}
		if len(files) == 0 {
			p.Errorf("no input from ‘%s’", list)
			return 2
		}
	}
	if check {
		return s.check(p, orStdin(files)[0], delim, quiet)
	}
	var lines program.List[[]byte]
	for _, name := range orStdin(files) {
		in := p.Reader(p.Stdin)
		if name != "-" {
			h, err := p.Open(name, vfs.Read)
			if err != nil {
				p.Errorf("cannot read: %s: %s", name, program.Message(err))
				return 2
			}
			in = p.Reader(h)
		}
		for {
			line, _, ok := in.Line(delim)
			if !ok {
				break
			}
			p.Hold(len(line) + 24)
			lines.Append(bytes.Clone(line))
		}
		if err := in.Err(); err != nil {
			p.Errorf("read failed: %s: %s", name, program.Message(err))
			return 2
		}
	}
	for _, block := range lines.Blocks() {
		slices.SortStableFunc(block, s.charged(p))
	}
	out := p.Out()
	if output != "" && output != "-" {
		h, err := p.Open(output, vfs.Write|vfs.Create|vfs.Truncate)
		if err != nil {
			p.Errorf("open failed: %s: %s", output, program.Message(err))
			return 2
		}
		out = p.Writer(h)
	}
	var previous []byte
	first := true
	merge(lines.Blocks(), s.charged(p), func(line []byte) {
		if s.unique && !first && s.compare(previous, line) == 0 {
			return
		}
		previous, first = line, false
		writeLine(out, line, delim, true)
	})
	out.Flush()
	return 0
}

// check1 ends the program where the letters of a key do not go together.
func (s *sorter) check1(p *program.Process, o ordering) {
	n := 0
	for _, on := range []bool{o.numeric, o.general, o.human, o.month, o.version || o.random || o.dictionary || o.printing} {
		if on {
			n++
		}
	}
	if n < 2 && !(o.version && o.random) {
		return
	}
	letters := ""
	for _, x := range []struct {
		on bool
		c  string
	}{{o.dictionary, "d"}, {o.fold, "f"}, {o.general, "g"}, {o.human, "h"}, {o.printing && !o.dictionary, "i"}, {o.month, "M"},
		{o.numeric, "n"}, {o.random, "R"}, {o.version, "V"}} {
		if x.on {
			letters += x.c
		}
	}
	p.Errorf("options '-%s' are incompatible", letters)
	p.Exit(2)
}

// check says whether an input is sorted.
func (s *sorter) check(p *program.Process, name string, delim byte, quiet bool) int {
	in := input(p, name)
	if in == nil {
		return 2
	}
	var previous []byte
	for n := 1; ; n++ {
		line, _, ok := in.Line(delim)
		if !ok {
			return 0
		}
		if n > 1 {
			if c := s.compare(previous, line); c > 0 || c == 0 && s.unique {
				if !quiet {
					p.Errorf("%s:%d: disorder: %s", name, n, line)
				}
				return 1
			}
		}
		previous = append(previous[:0], line...)
	}
}
