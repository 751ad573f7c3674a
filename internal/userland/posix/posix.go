// Package posix compiles the regular expressions of POSIX and GNU, basic and extended, to Go's, which match in linear time.
//
// Back references and word edges at odd places need a backtracker of its own, whose
// every step is charged.
package posix

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// Flags say how an expression is written and what it matches.
type Flags uint16

// The flags of Compile.
const (
	Extended   Flags = 1 << iota // ERE instead of BRE
	IgnoreCase                   // letters match in both cases
	Lines                        // ^ and $ match at each line; \` and \' at the ends of the text
	Escapes                      // \n, \t, \xHH and the like mean characters, in brackets too, as in sed
	Awk                          // a backslash escapes in brackets too, and \y is the edge of a word
	Literal                      // nothing is special: grep -F
	Whole                        // the whole text has to match: grep -x
	Perl                         // an expression of Perl: grep -P
)

// maxPattern bounds what is compiled, in bytes.
const maxPattern = 64 << 10

// Gas costs of matching: for each call, and for each byte that was read.
const (
	gasPerMatch = 60
	gasPerByte  = 6
)

// Error is what is wrong with an expression, in the words of the C library.
type Error string

func (e Error) Error() string { return string(e) }

// The errors of Compile.
const (
	ErrBracket   Error = "Unmatched [, [^, [:, [., or [="
	ErrOpen      Error = `Unmatched ( or \(`
	ErrClose     Error = `Unmatched ) or \)`
	ErrBrace     Error = `Unmatched { or \{`
	ErrContent   Error = `Invalid content of \{\}`
	ErrRange     Error = "Invalid range end"
	ErrBackslash Error = "Trailing backslash"
	ErrRepeat    Error = "Invalid preceding regular expression"
	ErrReference Error = "Invalid back reference"
	ErrClass     Error = "Invalid character class name"
	ErrTooBig    Error = "Regular expression too big"
	ErrComplex   Error = "the regular expression nests too deep for this text"
)

// Regexp is a compiled expression. It may be used by one fiber at a time.
type Regexp struct {
	re     *Machine // nil where the backtracker has to match
	tree   *node
	groups int
	fold   bool
	charge func(int64) error
	room   func(bytes int) error // nil where the list of matches has no bound
}

// Bound has room called while FindAll lists matches, with the bytes that the list takes. Its error ends the search.
func (r *Regexp) Bound(room func(bytes int) error) {
	if r.room = room; r.re != nil {
		r.re.Bound(room)
	}
}

// Compile compiles an expression. Matching calls charge with its cost, and ends with the error that charge returns.
func Compile(pattern string, flags Flags, charge func(int64) error) (*Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, ErrTooBig
	}
	if err := charge(int64(len(pattern)) * 200); err != nil {
		return nil, err
	}
	r := &Regexp{charge: charge, fold: flags&IgnoreCase != 0}
	if flags&Perl != 0 {
		if done, err := r.perl(pattern, flags); done || err != nil {
			return r, err
		}
	}
	p := &parser{src: pattern, flags: flags}
	var err error
	if flags&Perl != 0 {
		q := &perl{parser: *p, names: map[string]int{}}
		r.tree, err = q.all()
		if err != nil {
			return nil, err
		}
		*p = q.parser
		r.fold = p.flags&IgnoreCase != 0
	} else if flags&Literal != 0 {
		r.tree = literal(pattern)
	} else if r.tree, err = p.parse(); err != nil {
		return nil, err
	}
	if flags&Whole != 0 {
		r.tree = &node{op: opConcat, subs: []*node{{op: opTextStart}, {op: opGroup, subs: []*node{r.tree}, group: -1}, {op: opTextEnd}}}
	}
	r.groups = p.groups
	if !p.odd {
		prefix := "(?s"
		if r.fold {
			prefix += "i"
		}
		if flags&Lines != 0 {
			prefix += "m"
		}
		var b strings.Builder
		b.WriteString(prefix + ")")
		r.tree.emit(&b)
		if r.re, err = NewMachine(b.String(), true, charge); err != nil {
			return nil, tooBig(err)
		}
		return r, nil
	}
	return r, r.tree.prepare(r.fold, flags&Lines != 0)
}

// perl compiles an expression of Perl by Go's, and reports whether that is possible.
func (r *Regexp) perl(pattern string, flags Flags) (bool, error) {
	if flags&Whole != 0 {
		pattern = `\A(?:` + pattern + `)\z`
	}
	if r.fold {
		pattern = "(?i)" + pattern
	}
	var err error
	if r.re, err = NewMachine(pattern, false, r.charge); err != nil {
		r.re = nil
		if _, unknown := errors.AsType[*syntax.Error](err); unknown {
			err = nil
		}
		return false, err
	}
	r.groups = r.re.Groups()
	return true, nil
}

// tooBig is what an error of Go's compiler means here, or what has ended the execution.
func tooBig(err error) error {
	if _, syntactic := errors.AsType[*syntax.Error](err); syntactic {
		return ErrTooBig
	}
	return err
}

// Groups returns how many groups the expression has.
func (r *Regexp) Groups() int { return r.groups }

// Match reports whether the expression matches somewhere in the text.
func (r *Regexp) Match(text []byte) (bool, error) {
	if r.re == nil {
		return r.MatchString(string(text))
	}
	return r.re.Match(text)
}

// MatchString is Match for a string.
func (r *Regexp) MatchString(text string) (bool, error) {
	if r.re == nil {
		m, err := r.backtrack(text, 0)
		return m != nil, err
	}
	return r.re.MatchString(text)
}

// Find returns the begin and end of the first match and of each of its groups, -1 for those that took no part; nil for no match.
func (r *Regexp) Find(text []byte) ([]int, error) {
	if r.re == nil {
		return r.backtrack(string(text), 0)
	}
	return r.re.Find(text)
}

// FindString is Find for a string.
func (r *Regexp) FindString(text string) ([]int, error) {
	if r.re == nil {
		return r.backtrack(text, 0)
	}
	return r.re.FindString(text)
}

// FindAll returns the first n matches that do not overlap, all of them for -1. An empty match right behind another one does not count.
func (r *Regexp) FindAll(text []byte, n int) ([][]int, error) {
	return r.FindAllString(string(text), n)
}

// FindAllString is FindAll for a string.
func (r *Regexp) FindAllString(text string, n int) ([][]int, error) {
	if r.re != nil {
		return r.re.FindAllString(text, n)
	}
	var all [][]int
	last := -1
	for at := 0; at <= len(text) && (n < 0 || len(all) < n); {
		m, err := r.backtrack(text, at)
		if m == nil || err != nil {
			return all, err
		}
		if m[1] == m[0] {
			at = m[1] + 1
			if m[1] < len(text) {
				_, size := utf8.DecodeRuneInString(text[m[1]:])
				at = m[1] + size
			}
			if m[0] == last {
				continue
			}
		} else {
			at = m[1]
		}
		all, last = append(all, m), m[1]
		if err := listed(r.room, len(all), len(m)); err != nil {
			return all, err
		}
	}
	return all, nil
}

func reached(m []int, size int) int {
	if m == nil {
		return size
	}
	return m[1]
}

type op uint8

const (
	opEmpty op = iota
	opRune
	opAny
	opSet
	opLineStart
	opLineEnd
	opTextStart
	opTextEnd
	opEdge    // \b
	opNotEdge // \B
	opWordStart
	opWordEnd
	opGroup
	opConcat
	opAlternate
	opRepeat
	opReference
	opAhead
	opBehind
	opAtomic
	opKeep // \K
)

// node is a part of an expression.
type node struct {
	op       op
	r        rune
	class    string // of a set, in Go's words
	ranges   []rune // of a set, for the backtracker
	subs     []*node
	min, max int // of a repeat; max -1 for any number
	group    int // of a group, -1 for one that is not counted; of a reference
	lines    bool
	lazy     bool // a repeat that takes as few as it can
	not      bool // a look that has to find nothing
}

func literal(s string) *node {
	n := &node{op: opConcat}
	for _, r := range s {
		n.subs = append(n.subs, &node{op: opRune, r: r})
	}
	return n
}

const wordClass = `[_\p{L}\p{Nl}\p{Nd}]`

// emit writes the node in Go's words.
func (n *node) emit(b *strings.Builder) {
	switch n.op {
	case opRune:
		b.WriteString(regexp.QuoteMeta(string(n.r)))
	case opAny:
		b.WriteByte('.')
	case opSet:
		b.WriteString(n.class)
	case opLineStart:
		b.WriteByte('^')
	case opLineEnd:
		b.WriteByte('$')
	case opTextStart:
		b.WriteString(`\A`)
	case opTextEnd:
		b.WriteString(`\z`)
	case opEdge, opWordStart, opWordEnd:
		b.WriteString(`\b`)
	case opNotEdge:
		b.WriteString(`\B`)
	case opGroup:
		if n.group < 0 {
			b.WriteString("(?:")
		} else {
			b.WriteByte('(')
		}
		n.subs[0].emit(b)
		b.WriteByte(')')
	case opConcat:
		for _, s := range n.subs {
			s.emit(b)
		}
	case opAlternate:
		for i, s := range n.subs {
			if i > 0 {
				b.WriteByte('|')
			}
			s.emit(b)
		}
	case opRepeat:
		b.WriteString("(?:")
		n.subs[0].emit(b)
		b.WriteByte(')')
		switch {
		case n.min == 0 && n.max == -1:
			b.WriteByte('*')
		case n.min == 1 && n.max == -1:
			b.WriteByte('+')
		case n.min == 0 && n.max == 1:
			b.WriteByte('?')
		default:
			b.WriteString("{" + itoa(n.min))
			if n.max == -1 {
				b.WriteByte(',')
			} else if n.max != n.min {
				b.WriteString("," + itoa(n.max))
			}
			b.WriteByte('}')
		}
	}
}

// prepare readies the node for the backtracker.
func (n *node) prepare(fold, lines bool) error {
	n.lines = lines
	if n.op == opSet {
		flags := syntax.Perl
		if fold {
			flags |= syntax.FoldCase
		}
		x, err := syntax.Parse(n.class, flags)
		if err != nil {
			return ErrRange
		}
		switch x.Op {
		case syntax.OpCharClass:
			n.ranges = x.Rune
		case syntax.OpLiteral:
			n.ranges = []rune{x.Rune[0], x.Rune[0]}
			if x.Flags&syntax.FoldCase != 0 {
				n.ranges = foldRanges(x.Rune[0])
			}
		case syntax.OpAnyChar:
			n.ranges = []rune{0, utf8.MaxRune}
		case syntax.OpNoMatch, syntax.OpEmptyMatch:
			n.ranges = nil
		default:
			return ErrRange
		}
	}
	for _, s := range n.subs {
		if err := s.prepare(fold, lines); err != nil {
			return err
		}
	}
	return nil
}
