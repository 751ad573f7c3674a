package jq

import (
	"errors"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"agentbox/internal/userland/bound"
)

// answer is what a function comes to, nil included.
type answer struct{ v any }

// compare is the order of jq. The library's own would not be stopped, and two arrays whose parts are shared hold far more than they take.
func (q *querier) compare(l, r any, w *work) int {
	w.step(1)
	switch l := l.(type) {
	case string:
		if r, ok := r.(string); ok {
			w.step(min(len(l), len(r)) / 256)
			return strings.Compare(l, r)
		}
	case []any:
		if r, ok := r.([]any); ok {
			for i := range min(len(l), len(r)) {
				if c := q.compare(l[i], r[i], w); c != 0 {
					return c
				}
			}
			return len(l) - len(r)
		}
	case map[string]any:
		if r, ok := r.(map[string]any); ok {
			keys := sortedKeys(l, w)
			if c := slices.CompareFunc(keys, sortedKeys(r, w), strings.Compare); c != 0 {
				return c
			}
			for _, k := range keys {
				if c := q.compare(l[k], r[k], w); c != 0 {
					return c
				}
			}
			return 0
		}
	}
	return gojq.Compare(l, r) // numbers, and what is of two kinds
}

// sortedKeys returns the keys of an object in order.
func sortedKeys(v map[string]any, w *work) []string {
	w.q.fits(len(v) * entryBytes)
	keys := make([]string, 0, len(v))
	for k := range v {
		keys = append(keys, k)
		w.step(1)
	}
	slices.SortFunc(keys, func(a, b string) int {
		w.step(1)
		return strings.Compare(a, b)
	})
	return keys
}

// compares is an operator that compares.
func (q *querier) compares(is func(order int) bool) native {
	return func(_ any, args []any) any {
		w := work{q: q}
		defer w.end()
		return answer{is(q.compare(args[0], args[1], &w))}
	}
}

// keys are the keys of an object in order.
func (q *querier) sortedKeys(v any, _ []any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	w := work{q: q}
	defer w.end()
	sorted := sortedKeys(m, &w)
	all := make([]any, len(sorted))
	for i, k := range sorted {
		all[i] = k
	}
	return all
}

// extreme is min and max: of those that are the same, the first and the last.
func (q *querier) extreme(least bool) native {
	return func(v any, args []any) any {
		list, ok := v.([]any)
		keys := list
		if ok && len(args) > 0 {
			keys, ok = args[0].([]any)
		}
		if !ok || len(keys) != len(list) || len(list) == 0 {
			return nil
		}
		w := work{q: q}
		defer w.end()
		at := 0
		for i := 1; i < len(keys); i++ {
			if q.compare(keys[at], keys[i], &w) > 0 == least {
				at = i
			}
		}
		return answer{list[at]}
	}
}

// found is where a list lies in another.
type found uint8

const (
	everywhere found = iota
	first
	last
)

// indices finds a list in a list, or a text in a text, whose places are counted in characters.
func (q *querier) indices(which found) native {
	return func(v any, args []any) any { return q.places(v, args[0], which) }
}

// index finds where a list lies in another one: .[[1, 2]].
func (q *querier) index(_ any, args []any) any {
	l, isList := args[0].([]any)
	x, isPart := args[1].([]any)
	if !isList || !isPart {
		return nil
	}
	return q.places(l, x, everywhere)
}

func (q *querier) places(v, x any, which found) any {
	w := work{q: q}
	defer w.end()
	switch v := v.(type) {
	case string:
		part, ok := x.(string)
		if !ok {
			return nil
		}
		q.fits(4 * (len(v) + len(part)))
		in, of := []rune(v), []rune(part)
		w.step((len(in) + len(of)) / 4)
		return w.places(len(in), len(of), which, func(i, j int) bool { return in[i] == of[j] })
	case []any:
		part, ok := x.([]any)
		if !ok {
			part = []any{x}
		}
		return w.places(len(v), len(part), which, func(i, j int) bool { return q.compare(v[i], part[j], &w) == 0 })
	}
	return nil
}

func (w *work) places(size, part int, which found, same func(i, j int) bool) any {
	all := []any{}
	for n := range max(size-part+1, 0) {
		at := n
		if which == last {
			at = size - part - n
		}
		if part == 0 {
			break
		}
		j := 0
		for ; j < part && same(at+j, j); j++ {
			w.step(1)
		}
		if w.step(1); j < part {
			continue
		}
		if which != everywhere {
			return answer{at}
		}
		if all = append(all, at); len(all)%4096 == 0 {
			w.q.fits(len(all) * 2 * elementBytes)
		}
	}
	if which != everywhere {
		return answer{nil}
	}
	return all
}

// maxPath is how many parts a path may have that is deleted: the library puts paths in order.
const maxPath = 4096

var errPath = errors.New("a path to be deleted has more than 4096 parts")

// deletes refuses paths that would take long to compare.
func (q *querier) deletes(_ any, args []any) any {
	list, _ := args[0].([]any)
	w := work{q: q}
	defer w.end()
	for _, path := range list {
		if n := 0; partsOf(q, path, &n, maxPath, &w) {
			return errPath
		}
	}
	w.step(4 * len(list))
	return nil
}

// partsOf counts what a value has, up to a number; it reports whether it has more.
func partsOf(q *querier, v any, n *int, most int, w *work) bool {
	w.step(1)
	if *n++; *n > most {
		return true
	}
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			if partsOf(q, x, n, most, w) {
				return true
			}
		}
	case map[string]any:
		for _, x := range v {
			if partsOf(q, x, n, most, w) {
				return true
			}
		}
	}
	return false
}

// isLarge reports whether a value is so large that it is not written at once.
func isLarge(q *querier, v any, w *work) bool {
	n := 0
	return partsOf(q, v, &n, 256, w) || isLongText(v)
}

// isLongText reports whether there is a long text in a value of few parts.
func isLongText(v any) bool {
	switch v := v.(type) {
	case string:
		return len(v) > bound.Piece/8
	case []any:
		return slices.ContainsFunc(v, isLongText)
	case map[string]any:
		for k, x := range v {
			if len(k) > bound.Piece/8 || isLongText(x) {
				return true
			}
		}
	}
	return false
}
