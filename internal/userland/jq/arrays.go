package jq

import (
	"errors"
	"math"
	"slices"

	"github.com/itchyny/gojq"
)

// ordered is what becomes of a list that was put in order.
type ordered uint8

const (
	sorted  ordered = iota
	unique          // the first of those that are the same
	grouped         // lists of them
)

// sorts puts a list in order, by itself or by keys. The library would not be stopped while it does.
func (q *querier) sorts(as ordered) native {
	return func(v any, args []any) any {
		list, ok := v.([]any)
		keys := list
		if ok && len(args) > 0 {
			keys, ok = args[0].([]any)
		}
		if !ok || len(keys) != len(list) {
			return nil
		}
		q.fits(len(list) * 4 * elementBytes)
		w := work{q: q}
		defer w.end()
		order := make([]int, len(list))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { // as the library does, so that it is the same for what has no order
			w.step(2)
			return q.compare(keys[a], keys[b], &w)
		})
		all := make([]any, 0, len(list))
		for i, at := range order {
			w.step(1)
			switch {
			case as == sorted:
				all = append(all, list[at])
			case i > 0 && q.compare(keys[order[i-1]], keys[at], &w) == 0:
				if as == grouped {
					all[len(all)-1] = append(all[len(all)-1].([]any), list[at])
				}
			case as == grouped:
				all = append(all, []any{list[at]})
			default:
				all = append(all, list[at])
			}
		}
		return all
	}
}

// reverse turns a list around.
func (q *querier) reverse(v any, _ []any) any {
	list, ok := v.([]any)
	if !ok {
		return nil
	}
	q.fits(len(list) * elementBytes)
	w := work{q: q}
	defer w.end()
	all := make([]any, 0, len(list))
	for _, x := range slices.Backward(list) {
		w.step(1)
		all = append(all, x)
	}
	return all
}

// set refuses an index so far away that no memory would hold the array.
func (q *querier) set(_ any, args []any) any {
	path, _ := args[0].([]any)
	for _, p := range path {
		if k, isText := p.(string); isText {
			q.came(k)
			continue
		}
		if n, ok := gojq.ToFloat64(p); ok && (n > 1024 || n != n) {
			if _, isText := p.(string); !isText {
				if n != n {
					return errNaN
				}
				if n > maxArray {
					return errIndex
				}
				q.fits(int(n) * elementBytes)
			}
		}
	}
	return nil
}

// maxArray is the largest index of an array of jq.
const maxArray = 1<<29 - 1

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

// flatten puts into one array what is in arrays: parts that a value has twice are there twice then, and their parts again.
func (q *querier) flatten(v any, args []any) any {
	depth := -1. // to the end, as the library counts
	if len(args) > 0 {
		var ok bool
		if depth, ok = number(args[0]); !ok || !(depth >= 0) {
			return nil
		}
	}
	w := work{q: q}
	defer w.end()
	all := []any{}
	var add func(list []any, depth float64)
	add = func(list []any, depth float64) {
		for _, x := range list {
			w.step(1)
			if list, ok := x.([]any); ok && depth != 0 {
				add(list, depth-1)
			} else if all = append(all, x); len(all)%4096 == 0 {
				q.fits(len(all) * 2 * elementBytes)
			}
		}
	}
	switch v := v.(type) {
	case []any:
		add(v, depth)
	case map[string]any:
		for _, k := range sortedKeys(v, &w) {
			add([]any{v[k]}, depth)
		}
	default:
		return nil
	}
	return all
}

var (
	errNaN   = errors.New("Cannot set array element at NaN index") //nolint:staticcheck // the words of jq
	errIndex = errors.New("Array index too large")                 //nolint:staticcheck // the words of jq
)
