package tools

import (
	"math"
	"slices"

	"github.com/itchyny/gojq"
)

// sorts gives the library what is in order already: it would not be stopped while it sorts.
func (q *querier) sorts(v any, args []any) any {
	list, ok := v.([]any)
	if !ok || len(list) < 64 {
		return nil
	}
	keys := list
	if len(args) > 0 {
		if keys, ok = args[0].([]any); !ok || len(keys) != len(list) {
			return nil
		}
	}
	q.fits(len(list) * 4 * elementBytes)
	w := work{q: q}
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		w.step(4)
		if c := gojq.Compare(keys[a], keys[b]); c != 0 {
			return c
		}
		return a - b
	})
	w.step(len(list))
	w.end()
	values := make([]any, len(list))
	for i, at := range order {
		values[i] = list[at]
	}
	if len(args) == 0 {
		return replaced{v: values}
	}
	sorted := make([]any, len(list))
	for i, at := range order {
		sorted[i] = keys[at]
	}
	return replaced{v: values, args: []any{sorted}}
}

// set refuses an index so far away that no memory would hold the array.
func (q *querier) set(_ any, args []any) any {
	path, _ := args[0].([]any)
	for _, p := range path {
		if n, ok := gojq.ToFloat64(p); ok && n > 1024 && n < 1<<31 {
			if _, isText := p.(string); !isText {
				q.fits(int(n) * elementBytes)
			}
		}
	}
	return nil
}

// transpose refuses what no memory would hold: every row becomes as long as there are rows, however short they are.
func (q *querier) transpose(v any, _ []any) any {
	rows, _ := v.([]any)
	longest := 0
	for _, row := range rows {
		if row, ok := row.([]any); ok {
			longest = max(longest, len(row))
		}
	}
	if size := float64(len(rows)) * float64(longest); size < math.MaxInt32 {
		q.fits(int(size) * elementBytes)
		q.p.Charge(int(size) * gasPerElement / 4)
	} else {
		q.p.Hold(math.MaxInt32 * elementBytes)
	}
	return nil
}

// flatten counts what the library is about to put into one array: parts that a value has twice are there twice then, and their parts again.
func (q *querier) flatten(v any, args []any) any {
	depth := -1. // to the end, as the library counts
	if len(args) > 0 {
		if depth, _ = number(args[0]); !(depth >= 0) {
			return nil
		}
	}
	n, w := 0, work{q: q}
	var count func(list []any, depth float64)
	count = func(list []any, depth float64) {
		for _, x := range list {
			w.step(1)
			if x, ok := x.([]any); ok && depth != 0 {
				count(x, depth-1)
			} else if n++; n%4096 == 0 {
				q.fits(n * 2 * elementBytes)
			}
		}
	}
	switch v := v.(type) {
	case []any:
		count(v, depth)
	case map[string]any:
		for _, x := range v {
			count([]any{x}, depth)
		}
	}
	w.end()
	return nil
}
