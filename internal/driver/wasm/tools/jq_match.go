package tools

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"agentbox/internal/driver/wasm/posix"
)

// match is _match, which all functions of regular expressions are made of. Errors and what is no text are the library's.
func (q *querier) match(v any, args []any) any {
	s, ok := v.(string)
	expr, isText := args[0].(string)
	flags, _ := args[1].(string)
	if _, isFlags := args[1].(string); !ok || !isText || args[1] != nil && !isFlags || strings.Trim(flags, "gim") != "" {
		return nil
	}
	key := flags + "/" + expr
	m, known := q.regexps[key]
	if !known {
		source := expr
		if strings.Contains(flags, "i") {
			source = "(?i)" + source
		}
		if strings.Contains(flags, "m") {
			source = "(?s)" + source
		}
		var err error
		if m, err = posix.NewMachine(source, false, charge(q.p)); errors.Is(err, posix.ErrTooBig) {
			return fmt.Errorf("invalid regular expression %q: it is too big", expr)
		}
		if err != nil {
			return nil
		}
		if len(q.regexps) >= 256 {
			clear(q.regexps)
		}
		q.regexps[key] = m
	}
	if args[2] == true {
		found, err := m.MatchString(s)
		q.p.Check(err)
		return found
	}
	n := 1
	if strings.Contains(flags, "g") {
		n = -1
	}
	found, err := m.FindAllString(s, n)
	q.p.Check(err)
	return q.matches(m, s, found, n != 1)
}

// matches are the objects that jq makes of matches, with their places counted in characters.
func (q *querier) matches(m *posix.Machine, s string, found [][]int, all bool) any {
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
		for j := 1; j < len(x)/2; j++ {
			var name any
			if names[j] != "" {
				name = names[j]
			}
			if x[2*j] < 0 {
				captures = append(captures, map[string]any{"name": name, "offset": -1, "length": 0, "string": nil})
				continue
			}
			text := s[x[2*j]:x[2*j+1]]
			captures = append(captures, map[string]any{"name": name, "offset": place(x[2*j]), "length": utf8.RuneCountInString(text), "string": text})
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
