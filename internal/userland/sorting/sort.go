package sorting

import (
	"bytes"
	"cmp"
	"crypto/md5" // as GNU's sort shuffles
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
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
		return gnu.CompareVersion(string(a), string(b))
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
		return o.dictionary && !gnu.ByteClass("alnum", c) && !isBlank(c) || o.printing && (c < 32 || c > 126)
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
