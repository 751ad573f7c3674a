package posix

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxRepeat is the largest number in braces, which is that of Go's expressions.
const maxRepeat = 1000

// maxGroups bounds how deep parentheses nest.
const maxGroups = 200

func itoa(n int) string { return strconv.Itoa(n) }

// parser reads an expression.
type parser struct {
	src    string
	at     int
	flags  Flags
	groups int
	open   int
	closed [10]bool // which groups may be referred to
	odd    bool     // only the backtracker can match it
}

func (p *parser) extended() bool { return p.flags&Extended != 0 }

func (p *parser) more() bool { return p.at < len(p.src) }

// has reports whether the given text comes next.
func (p *parser) has(s string) bool { return strings.HasPrefix(p.src[p.at:], s) }

// token returns s as the dialect writes an operator.
func (p *parser) token(s string) string {
	if p.extended() {
		return s
	}
	return `\` + s
}

func (p *parser) parse() (*node, error) {
	n, err := p.alternate()
	if err == nil && p.more() {
		return nil, ErrClose
	}
	return n, err
}

func (p *parser) alternate() (*node, error) {
	var all []*node
	for {
		n, err := p.concat()
		if err != nil {
			return nil, err
		}
		all = append(all, n)
		if !p.has(p.token("|")) {
			break
		}
		p.at += len(p.token("|"))
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return &node{op: opAlternate, subs: all}, nil
}

func (p *parser) concat() (*node, error) {
	n := &node{op: opConcat}
	for p.more() && !p.has(p.token("|")) {
		if p.has(p.token(")")) {
			if p.open > 0 {
				break
			}
			if !p.extended() || p.flags&Awk != 0 {
				return nil, ErrClose
			}
			p.at++ // alone, it is a character
			n.subs = append(n.subs, &node{op: opRune, r: ')'})
			continue
		}
		x, err := p.atom(len(n.subs) == 0)
		if err != nil {
			return nil, err
		}
		if x, err = p.repeats(x); err != nil {
			return nil, err
		}
		n.subs = append(n.subs, x)
	}
	for i, x := range n.subs {
		switch x.op {
		case opWordStart:
			if i+1 == len(n.subs) || !n.subs[i+1].wordy(true) {
				p.odd = true
			}
		case opWordEnd:
			if i == 0 || !n.subs[i-1].wordy(false) {
				p.odd = true
			}
		}
	}
	return n, nil
}

// wordy reports whether what the node matches surely begins, or ends, with a letter of ASCII or the like, so that an edge there is that
// of a word.
func (n *node) wordy(first bool) bool {
	switch n.op {
	case opRune:
		return n.r == '_' || n.r >= '0' && n.r <= '9' || n.r >= 'a' && n.r <= 'z' || n.r >= 'A' && n.r <= 'Z'
	case opSet:
		inside := strings.TrimSuffix(strings.TrimPrefix(n.class, "["), "]")
		switch inside {
		case "a-z", "A-Z", "a-zA-Z", "A-Za-z", "0-9", "a-z0-9", "a-zA-Z0-9", "A-Za-z0-9", "a-zA-Z0-9_", "A-Za-z0-9_", "a-zA-Z_", "A-Za-z_",
			`_\p{L}\p{Nl}\p{Nd}`:
			return true
		}
	case opGroup:
		return n.subs[0].wordy(first)
	case opConcat:
		if len(n.subs) == 0 {
			return false
		}
		if first {
			return n.subs[0].wordy(true)
		}
		return n.subs[len(n.subs)-1].wordy(false)
	case opAlternate:
		for _, s := range n.subs {
			if !s.wordy(first) {
				return false
			}
		}
		return true
	case opRepeat:
		return n.min > 0 && n.subs[0].wordy(first)
	}
	return false
}

// atom reads one thing that can be repeated.
func (p *parser) atom(first bool) (*node, error) {
	c := p.src[p.at]
	switch {
	case p.has(p.token("(")):
		p.at += len(p.token("("))
		if p.open++; p.open > maxGroups {
			return nil, ErrTooBig
		}
		p.groups++
		g := p.groups
		n, err := p.alternate()
		if err != nil {
			return nil, err
		}
		if !p.has(p.token(")")) {
			return nil, ErrOpen
		}
		p.at += len(p.token(")"))
		p.open--
		if g < len(p.closed) {
			p.closed[g] = true
		}
		return &node{op: opGroup, subs: []*node{n}, group: g}, nil
	case c == '[':
		return p.bracket()
	case c == '.':
		p.at++
		return &node{op: opAny}, nil
	case c == '^' && (p.extended() || first):
		p.at++
		return &node{op: opLineStart}, nil
	case c == '$' && (p.extended() || p.at+1 == len(p.src) || strings.HasPrefix(p.src[p.at+1:], `\)`) || strings.HasPrefix(p.src[p.at+1:],
		`\|`)):
		p.at++
		return &node{op: opLineEnd}, nil
	case c == '\\':
		return p.escape()
	case first && p.extended() && p.flags&Awk == 0 && (c == '*' || c == '+' || c == '?'):
		p.at++ // with nothing before it, it says nothing
		return &node{op: opEmpty}, nil
	}
	return p.rune(), nil
}

func (p *parser) rune() *node {
	r, size := utf8.DecodeRuneInString(p.src[p.at:])
	p.at += size
	return &node{op: opRune, r: r}
}

// escape reads what stands behind a backslash.
func (p *parser) escape() (*node, error) {
	if p.at+1 >= len(p.src) {
		return nil, ErrBackslash
	}
	c := p.src[p.at+1]
	if c >= '1' && c <= '9' && p.flags&Awk == 0 {
		p.at += 2
		if !p.closed[c-'0'] {
			return nil, ErrReference
		}
		p.odd = true
		return &node{op: opReference, group: int(c - '0')}, nil
	}
	if p.flags&(Escapes|Awk) != 0 && !(c == 'b' && p.flags&Awk == 0) {
		if r, size := character(p.src[p.at+1:], p.flags&Awk != 0); size > 0 {
			p.at += 1 + size
			return &node{op: opRune, r: r}, nil
		}
	}
	p.at += 2
	switch c {
	case 'w':
		return &node{op: opSet, class: wordClass}, nil
	case 'W':
		return &node{op: opSet, class: "[^" + wordClass[1:]}, nil
	case 's':
		return &node{op: opSet, class: `[\s\v]`}, nil
	case 'S':
		return &node{op: opSet, class: `[^\s\v]`}, nil
	case 'b':
		return &node{op: opEdge}, nil
	case 'y':
		if p.flags&Awk != 0 {
			return &node{op: opEdge}, nil
		}
	case 'B':
		return &node{op: opNotEdge}, nil
	case '<':
		return &node{op: opWordStart}, nil
	case '>':
		return &node{op: opWordEnd}, nil
	case '`':
		return &node{op: opTextStart}, nil
	case '\'':
		return &node{op: opTextEnd}, nil
	case '{':
		if !p.extended() {
			return nil, ErrRepeat
		}
	}
	p.at--
	return p.rune(), nil
}

// character reads a character that is written as an escape, without the backslash, and returns how long it is.
func character(s string, awk bool) (rune, int) {
	switch s[0] {
	case 'n':
		return '\n', 1
	case 't':
		return '\t', 1
	case 'f':
		return '\f', 1
	case 'v':
		return '\v', 1
	case 'a':
		return '\a', 1
	case 'r':
		return '\r', 1
	case 'b':
		if awk {
			return '\b', 1
		}
	case 'x':
		return number(s, 1, 3, 16)
	case 'o':
		if !awk {
			return number(s, 1, 4, 8)
		}
	case 'd':
		if !awk {
			return number(s, 1, 4, 10)
		}
	case '0', '1', '2', '3', '4', '5', '6', '7':
		if awk {
			return number(s, 0, 3, 8)
		}
	}
	return 0, 0
}

func number(s string, from, to, base int) (rune, int) {
	end := from
	for end < len(s) && end < to {
		if _, err := strconv.ParseUint(s[end:end+1], base, 8); err != nil {
			break
		}
		end++
	}
	v, err := strconv.ParseUint(s[from:end], base, 16)
	if err != nil {
		return 0, 0
	}
	return rune(v), end
}

// repeats reads what stands behind an atom: *, +, ? and braces.
func (p *parser) repeats(x *node) (*node, error) {
	for p.more() {
		low, high, size := 0, -1, 1
		switch {
		case p.src[p.at] == '*':
			if !p.extended() && (x.op == opLineStart || x.op == opEmpty) {
				return x, nil
			}
		case p.has(p.token("+")):
			low, size = 1, len(p.token("+"))
		case p.has(p.token("?")):
			high, size = 1, len(p.token("?"))
		case p.has(p.token("{")):
			var err error
			if low, high, size, err = p.braces(); err != nil {
				return nil, err
			}
			if size == 0 {
				return x, nil // a character
			}
		default:
			return x, nil
		}
		p.at += size
		if low == 0 && x.op == opRepeat && x.min <= 1 && high == -1 && x.max == -1 {
			x.min = 0
			continue
		}
		switch x.op {
		case opLineStart, opLineEnd, opEmpty, opEdge, opNotEdge, opWordStart, opWordEnd, opTextStart, opTextEnd:
			if low == 0 {
				x = &node{op: opEmpty}
			}
			continue
		}
		x = &node{op: opRepeat, subs: []*node{x}, min: low, max: high}
	}
	return x, nil
}

func (p *parser) braces() (low, high, size int, err error) {
	open, end := p.token("{"), p.token("}")
	rest := p.src[p.at+len(open):]
	stop := strings.Index(rest, end)
	if stop < 0 {
		if p.extended() {
			return 0, 0, 0, nil
		}
		return 0, 0, 0, ErrBrace
	}
	a, b, comma := strings.Cut(rest[:stop], ",")
	digits := func(s string) bool { return strings.Trim(s, "0123456789") == "" }
	if !digits(a) || !digits(b) || a == "" && !comma {
		if p.extended() {
			return 0, 0, 0, nil
		}
		return 0, 0, 0, ErrContent
	}
	size = len(open) + stop + len(end)
	if a != "" {
		if low, err = strconv.Atoi(a); err != nil {
			return 0, 0, 0, ErrTooBig
		}
	}
	high = low
	if comma {
		high = -1
		if b != "" {
			if high, err = strconv.Atoi(b); err != nil {
				return 0, 0, 0, ErrTooBig
			}
			if high < low {
				return 0, 0, 0, ErrContent
			}
		}
	}
	if low > maxRepeat || high > maxRepeat {
		return 0, 0, 0, ErrTooBig
	}
	return low, high, size, nil
}

// classes are the named ones, in Go's words.
var classes = map[string]string{
	"alpha": `\p{L}\p{Nl}`, "digit": "0-9", "alnum": `\p{L}\p{Nl}\p{Nd}`, "upper": `\p{Lu}`, "lower": `\p{Ll}`, "space": `\s\v`,
	"blank": ` \t`,
	"punct": "!-/:-@\\[-`{-~\u00a1-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7\u2010-\u2027\u2030-\u205e" +
		"\u20a0-\u20c0\u2190-\u2bff\u3001-\u3003\u3008-\u3020",
	"print": ` -~\p{L}\p{M}\p{N}\p{P}\p{S}`, "graph": `!-~\p{L}\p{M}\p{N}\p{P}\p{S}`, "cntrl": `\x00-\x1f\x7f`, "xdigit": "0-9A-Fa-f",
}

// bracket reads [...].
func (p *parser) bracket() (*node, error) {
	s := p.src
	i := p.at + 1
	var b strings.Builder
	b.WriteByte('[')
	if i < len(s) && s[i] == '^' {
		b.WriteByte('^')
		i++
	}
	for first := true; ; first = false {
		if i >= len(s) {
			return nil, ErrBracket
		}
		if s[i] == ']' && !first {
			p.at = i + 1
			break
		}
		if strings.HasPrefix(s[i:], "[:") {
			name, _, ok := strings.Cut(s[i+2:], ":]")
			if !ok {
				return nil, ErrBracket
			}
			class, ok := classes[name]
			if !ok {
				return nil, ErrClass
			}
			b.WriteString(class)
			i += len(name) + 4
			continue
		}
		if p.flags&Awk != 0 && s[i] == '\\' && i+1 < len(s) && strings.IndexByte("wWsS", s[i+1]) >= 0 {
			b.WriteString(map[byte]string{'w': `_\p{L}\p{Nl}\p{Nd}`, 's': `\s\v`, 'W': `\W`, 'S': `\S`}[s[i+1]])
			i += 2
			continue
		}
		low, size, err := p.element(i)
		if err != nil {
			return nil, err
		}
		i += size
		high := low
		if i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			if high, size, err = p.element(i + 1); err != nil {
				return nil, err
			}
			i += 1 + size
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
	b.WriteByte(']')
	return &node{op: opSet, class: b.String()}, nil
}

// element reads one character of a bracket.
func (p *parser) element(i int) (rune, int, error) {
	s := p.src[i:]
	if s == "" {
		return 0, 0, ErrBracket
	}
	if strings.HasPrefix(s, "[.") || strings.HasPrefix(s, "[=") {
		end := strings.Index(s[2:], s[1:2]+"]")
		if end < 0 {
			return 0, 0, ErrBracket
		}
		r, size := utf8.DecodeRuneInString(s[2:])
		if size != end {
			return 0, 0, Error("Invalid collation character")
		}
		return r, end + 4, nil
	}
	if s[0] == '\\' && len(s) > 1 && p.flags&(Escapes|Awk) != 0 {
		if r, size := character(s[1:], p.flags&Awk != 0); size > 0 {
			return r, 1 + size, nil
		}
		if p.flags&Awk != 0 {
			r, size := utf8.DecodeRuneInString(s[1:])
			return r, 1 + size, nil
		}
	}
	r, size := utf8.DecodeRuneInString(s)
	return r, size, nil
}

// quote writes a character as Go's bracket expressions do.
func quote(b *strings.Builder, r rune) {
	if strings.ContainsRune(`\]^-[`, r) {
		b.WriteByte('\\')
	}
	if r < ' ' || r == utf8.RuneError {
		b.WriteString(`\x{` + strconv.FormatInt(int64(r), 16) + `}`)
		return
	}
	b.WriteRune(r)
}
