package posix

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrPerl says that an expression of Perl uses what is not known here.
const ErrPerl Error = "this regular expression of Perl is not supported here: write it as an extended one (-E)"

// perl reads the expressions of Perl that Go does not know: with looks ahead and behind, references, \K and \h. They are matched by the
// backtracker.
type perl struct {
	parser
	names map[string]int
}

func (p *perl) all() (n *node, err error) {
	p.odd = true
	for strings.HasPrefix(p.src, "(?") {
		end := strings.IndexByte(p.src, ')')
		if end < 3 || strings.Trim(p.src[2:end], "ims") != "" {
			break
		}
		if strings.Contains(p.src[:end], "i") {
			p.flags |= IgnoreCase
		}
		p.src = p.src[end+1:]
	}
	n, err = p.alternatives()
	if err == nil && p.more() {
		err = ErrPerl
	}
	return n, err
}

func (p *perl) alternatives() (*node, error) {
	if p.open++; p.open > maxGroups {
		return nil, ErrTooBig
	}
	defer func() { p.open-- }()
	var all []*node
	for {
		n := &node{op: opConcat}
		for p.more() && !p.has("|") && !p.has(")") {
			x, err := p.piece()
			if err != nil {
				return nil, err
			}
			n.subs = append(n.subs, x)
		}
		all = append(all, n)
		if !p.has("|") {
			break
		}
		p.at++
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return &node{op: opAlternate, subs: all}, nil
}

func (p *perl) piece() (*node, error) {
	x, err := p.single()
	if err != nil {
		return nil, err
	}
	for p.more() {
		low, high, size := 0, -1, 1
		switch p.src[p.at] {
		case '*':
		case '+':
			low = 1
		case '?':
			high = 1
		case '{':
			if low, high, size, err = p.braces(); err != nil || size == 0 {
				return x, err
			}
		default:
			return x, nil
		}
		p.at += size
		x = &node{op: opRepeat, subs: []*node{x}, min: low, max: high}
		if p.has("?") {
			p.at++
			x.lazy = true
		} else if p.has("+") {
			p.at++
			x = &node{op: opAtomic, subs: []*node{x}}
		}
	}
	return x, nil
}

func (p *perl) single() (*node, error) {
	switch c := p.src[p.at]; c {
	case '(':
		return p.group()
	case '[':
		return p.class()
	case '.':
		p.at++
		return &node{op: opSet, class: `[^\n]`}, nil
	case '^':
		p.at++
		return &node{op: opLineStart}, nil
	case '$':
		p.at++
		return &node{op: opLineEnd}, nil
	case '\\':
		return p.escaped()
	case '*', '+', '?':
		return nil, Error("quantifier does not follow a repeatable item")
	}
	return p.rune(), nil
}

func (p *perl) group() (*node, error) {
	p.at++
	n := &node{op: opGroup, group: -1}
	switch {
	case p.has("?:"):
		p.at += 2
	case p.has("?="), p.has("?!"):
		n.op, n.not = opAhead, p.src[p.at+1] == '!'
		p.at += 2
	case p.has("?<="), p.has("?<!"):
		n.op, n.not = opBehind, p.src[p.at+2] == '!'
		p.at += 3
	case p.has("?>"):
		n.op = opAtomic
		p.at += 2
	case p.has("?#"):
		end := strings.IndexByte(p.src[p.at:], ')')
		if end < 0 {
			return nil, ErrOpen
		}
		p.at += end + 1
		return &node{op: opEmpty}, nil
	case p.has("?<"), p.has("?P<"), p.has("?'"):
		start := p.at + strings.IndexAny(p.src[p.at:], "<'") + 1
		end := strings.IndexAny(p.src[start:], ">'")
		if end < 0 {
			return nil, ErrPerl
		}
		p.groups++
		n.group = p.groups
		p.names[p.src[start:start+end]] = n.group
		p.at = start + end + 1
	case p.has("?"), p.has("*"):
		return nil, ErrPerl
	default:
		p.groups++
		n.group = p.groups
	}
	x, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if !p.has(")") {
		return nil, Error("missing closing parenthesis")
	}
	p.at++
	n.subs = []*node{x}
	return n, nil
}

// shorthand returns the set that a letter behind a backslash means.
func shorthand(c byte) string {
	switch c {
	case 'd':
		return "0-9"
	case 'w':
		return "0-9A-Za-z_"
	case 's':
		return `\s\v`
	case 'h':
		return ` \t`
	case 'v':
		return `\n\v\f\r`
	}
	return ""
}

func (p *perl) escaped() (*node, error) {
	if p.at+1 >= len(p.src) {
		return nil, ErrBackslash
	}
	c := p.src[p.at+1]
	if set := shorthand(c | 0x20); set != "" && (c|0x20 != 'v' && c|0x20 != 'h' || true) {
		p.at += 2
		if c < 'a' {
			return &node{op: opSet, class: "[^" + set + "]"}, nil
		}
		return &node{op: opSet, class: "[" + set + "]"}, nil
	}
	switch c {
	case 'b', 'B', 'A', 'z', 'Z', 'K', 'R', 'Q':
		p.at += 2
		switch c {
		case 'b':
			return &node{op: opEdge}, nil
		case 'B':
			return &node{op: opNotEdge}, nil
		case 'A':
			return &node{op: opTextStart}, nil
		case 'K':
			return &node{op: opKeep}, nil
		case 'R':
			return &node{op: opSet, class: `[\n\r]`}, nil
		case 'Q':
			s, _, ok := strings.Cut(p.src[p.at:], `\E`)
			p.at += len(s)
			if ok {
				p.at += 2
			}
			return literal(s), nil
		}
		return &node{op: opTextEnd}, nil
	case 'k', 'g':
		start := p.at + 2
		end := strings.IndexAny(p.src[start:], ">'}")
		if end < 1 {
			return nil, ErrPerl
		}
		name := p.src[start+1 : start+end]
		p.at = start + end + 1
		g, ok := p.names[name]
		if !ok {
			n, err := strconv.Atoi(name)
			if g = n; err != nil || n < 1 || n > p.groups {
				return nil, ErrReference
			}
		}
		return &node{op: opReference, group: g}, nil
	}
	if c >= '1' && c <= '9' {
		p.at += 2
		if int(c-'0') > p.groups {
			return nil, ErrReference
		}
		return &node{op: opReference, group: int(c - '0')}, nil
	}
	r, size, err := p.char(p.at)
	p.at += size
	return &node{op: opRune, r: r}, err
}

// char reads an escaped character.
func (p *perl) char(i int) (rune, int, error) {
	s := p.src[i+1:]
	if strings.HasPrefix(s, "x{") {
		end := strings.IndexByte(s, '}')
		if end < 0 {
			return 0, 0, ErrPerl
		}
		v, err := strconv.ParseUint(s[2:end], 16, 21)
		if err != nil {
			return 0, 0, ErrPerl
		}
		return rune(v), end + 2, nil
	}
	if s[0] == 'e' {
		return 27, 2, nil
	}
	if s[0] != 'o' && s[0] != 'd' {
		if r, size := character(s, false); size > 0 {
			return r, 1 + size, nil
		}
	}
	r, size := utf8.DecodeRuneInString(s)
	if r < utf8.RuneSelf && (r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9') {
		return 0, 0, ErrPerl
	}
	return r, 1 + size, nil
}

func (p *perl) class() (*node, error) {
	s := p.src
	i := p.at + 1
	var b strings.Builder
	b.WriteByte('[')
	if i < len(s) && s[i] == '^' {
		b.WriteByte('^')
		i++
	}
	one := func() (rune, error) {
		if s[i] == '\\' && i+1 < len(s) {
			if s[i+1] == 'b' {
				i += 2
				return '\b', nil
			}
			r, size, err := p.char(i)
			i += size
			return r, err
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		return r, nil
	}
	for first := true; ; first = false {
		switch {
		case i >= len(s):
			return nil, Error("missing terminating ] for character class")
		case s[i] == ']' && !first:
			p.at = i + 1
			b.WriteByte(']')
			return &node{op: opSet, class: b.String()}, nil
		case strings.HasPrefix(s[i:], "[:"):
			name, _, ok := strings.Cut(s[i+2:], ":]")
			class := classes[name]
			if !ok || class == "" {
				return nil, ErrClass
			}
			b.WriteString(class)
			i += len(name) + 4
			continue
		case s[i] == '\\' && i+1 < len(s) && shorthand(s[i+1]) != "":
			b.WriteString(shorthand(s[i+1]))
			i += 2
			continue
		case s[i] == '\\' && i+1 < len(s) && strings.IndexByte("DWS", s[i+1]) >= 0:
			b.WriteString(s[i : i+2])
			i += 2
			continue
		}
		low, err := one()
		if err != nil {
			return nil, err
		}
		high := low
		if i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			i++
			if high, err = one(); err != nil {
				return nil, err
			}
			if high < low {
				return nil, ErrRange
			}
		}
		quote(&b, low)
		if high != low {
			b.WriteByte('-')
			quote(&b, high)
		}
	}
}
