package jq

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/posix"
)

// match is _match, which all functions of regular expressions are made of. Errors and what is not a text are the library's.
func (q *querier) match(v any, args []any) any {
	s, ok := v.(string)
	expr, isText := args[0].(string)
	flags, isFlags := args[1].(string)
	if args[1] != nil && !isFlags {
		return nil
	}
	if !ok || !isText || strings.Trim(flags, "gimxslpn") != "" {
		return nil
	}
	key := flags + "/" + expr
	m, known := q.regexps[key]
	if !known {
		var err error
		if m, err = compileExpression(q, expr, flags); err != nil {
			return err
		}
		if m == nil {
			return nil
		}
		if len(q.regexps) >= 256 {
			clear(q.regexps)
		}
		q.regexps[key] = m
	}
	nonEmpty := strings.Contains(flags, "n")
	if args[2] == true && !nonEmpty {
		found, err := m.MatchString(s)
		q.p.Check(err)
		return found
	}
	n := 1
	if strings.Contains(flags, "g") || nonEmpty {
		n = -1
	}
	found, err := m.FindAllString(s, n)
	q.p.Check(err)
	if err != nil {
		return err
	}
	if nonEmpty {
		found = slices.DeleteFunc(found, func(x []int) bool { return x[0] == x[1] })
		if !strings.Contains(flags, "g") {
			found = found[:min(1, len(found))]
		}
	}
	if args[2] == true {
		return len(found) > 0
	}
	return matchesOf(q, m, s, found, n != 1 && !nonEmpty)
}

// jqExpression is an expression of jq that is compiled.
type jqExpression interface {
	MatchString(text string) (bool, error)
	FindAllString(text string, n int) ([][]int, error)
	EmptyAt(text string, at int) ([]int, error)
	Names() []string
}

// compileExpression compiles an expression. Lookaround and back references need the backtracking engine.
func compileExpression(q *querier, expr, flags string) (jqExpression, error) {
	source := expr
	if strings.Contains(flags, "x") {
		source = withoutBlanks(source)
	}
	if strings.ContainsAny(flags, "mp") {
		source = "(?s)" + source
	}
	if strings.Contains(flags, "i") {
		source = "(?i)" + source
	}
	m, err := posix.NewMachine(source, false, gnu.Charger(q.p))
	if err == nil {
		m.Bound(q.p.Room)
		return m, nil
	}
	if errors.Is(err, posix.ErrTooBig) {
		return nil, fmt.Errorf("invalid regular expression %q: it is too big", expr)
	}
	kind := posix.Perl
	if strings.Contains(flags, "i") {
		kind |= posix.IgnoreCase
		source = strings.TrimPrefix(source, "(?i)")
	}
	re, err := posix.Compile(source, kind, gnu.Charger(q.p))
	if err != nil {
		return nil, nil // the library says what is wrong
	}
	re.Bound(q.p.Room)
	return &lookingAround{re, groupNames(source)}, nil
}

// lookingAround is an expression with look-ahead, look-behind or references.
type lookingAround struct {
	*posix.Regexp
	names []string
}

// Names returns the names of the groups; the first is that of the whole.
func (l *lookingAround) Names() []string { return l.names }

// EmptyAt finds nothing: this engine finds all empty matches itself.
func (l *lookingAround) EmptyAt(string, int) ([]int, error) { return nil, nil }

// groupNames returns the names of the groups of an expression, "" for those without one.
func groupNames(s string) []string {
	names := []string{""}
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == '[':
			if end := strings.IndexByte(s[min(i+2, len(s)):], ']'); end >= 0 {
				i += 2 + end
			}
		case s[i] != '(':
		case !strings.HasPrefix(s[i:], "(?"):
			names = append(names, "")
		default:
			rest := strings.TrimPrefix(s[i+2:], "P")
			if end := strings.IndexByte(rest, '>'); strings.HasPrefix(rest, "<") && end > 1 && rest[1] != '=' && rest[1] != '!' {
				names = append(names, rest[1:end])
			}
		}
	}
	return names
}

// withoutBlanks takes blanks and comments out of an expression, as the flag x means.
func withoutBlanks(s string) string {
	var b strings.Builder
	class := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			b.WriteString(s[i : i+2])
			i++
			continue
		case c == '[':
			class = true
		case c == ']':
			class = false
		case !class && strings.IndexByte(" \t\n\r\v\f", c) >= 0:
			continue
		case !class && c == '#':
			if end := strings.IndexByte(s[i:], '\n'); end >= 0 {
				i += end
				continue
			}
			return b.String()
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// matchesOf are the objects that jq makes of matches, with their places counted in characters.
func matchesOf(q *querier, m jqExpression, s string, found [][]int, all bool) any {
	at, chars := 0, 0 // of the last match
	place := func(from int) int {
		if from < at { // a group that matched before, as none does in Go
			return utf8.RuneCountInString(s[:from])
		}
		return chars + utf8.RuneCountInString(s[at:from])
	}
	names := m.Names()
	res := make([]any, 0, len(found))
	object := func(x []int) map[string]any {
		captures := make([]any, 0, len(names))
		for j := 1; j < len(x)/2 && j < len(names); j++ {
			var name any
			if names[j] != "" {
				name = names[j]
			}
			if x[2*j] < 0 {
				captures = append(captures, map[string]any{"name": name, "offset": -1, "length": 0, "string": nil})
				continue
			}
			text := s[x[2*j]:x[2*j+1]]
			captures = append(captures, map[string]any{"name": name, "offset": place(x[2*j]), "length": utf8.RuneCountInString(text),
				"string": text})
		}
		text := s[x[0]:x[1]]
		return map[string]any{"offset": place(x[0]), "length": utf8.RuneCountInString(text), "string": text, "captures": captures}
	}
	w := work{q: q}
	for i, x := range found {
		chars, at = chars+utf8.RuneCountInString(s[at:x[0]]), x[0]
		w.step(20 + 10*len(names) + (x[1]-x[0])/16)
		q.fits(len(res) * 8 * entryBytes)
		res = append(res, object(x))
		if !all || x[0] == x[1] || i+1 < len(found) && found[i+1][0] == x[1] {
			continue
		}
		// An empty match right behind one that is not empty counts here.
		y, err := m.EmptyAt(s, x[1])
		q.p.Check(err)
		if y != nil {
			res = append(res, object(y))
		}
	}
	w.end()
	return res
}
