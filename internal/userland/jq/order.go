package jq

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// unsortedKeysOf is keys_unsorted.
func unsortedKeysOf(q *querier, v any) any {
	switch v := v.(type) {
	case map[string]any:
		q.p.Charge(len(v) * gasPerElement * 4)
		keys := q.keys(v)
		list := make([]any, len(keys))
		for i, k := range keys {
			list[i] = k
		}
		return list
	case []any:
		q.p.Charge(len(v) * gasPerElement)
		list := make([]any, len(v))
		for i := range v {
			list[i] = i
		}
		return list
	}
	text := textOf(q, v)
	if len(text) > 14 {
		text = text[:11] + "..."
	}
	return fmt.Errorf("%s (%s) has no keys", gojq.TypeOf(v), text)
}

// unorderedFunction reports whether a value is an object that the library would go through in another order than jq.
func unorderedFunction(q *querier, v any) any {
	m, ok := v.(map[string]any)
	if !ok || len(m) < 2 || q.sorted {
		return false
	}
	q.p.Charge(len(m) * gasPerElement * 4)
	return !slices.IsSorted(q.keys(m))
}

// orderedFunction gives an object the order of a list of objects of which it was put together.
func orderedFunction(q *querier, v any, args []any) any {
	m, isMap := v.(map[string]any)
	list, isList := args[0].([]any)
	if !isMap || !isList || len(m) == 0 {
		return v
	}
	q.p.Charge((len(list) + len(m)) * gasPerElement)
	seen := make(map[string]bool, len(m))
	keys := make([]string, 0, len(m))
	for _, x := range list {
		part, _ := x.(map[string]any)
		for k := range part {
			if !seen[k] {
				seen[k] = true
				keys = append(keys, k)
			}
		}
	}
	if len(keys) == len(m) {
		q.p.Hold(len(m) * elementBytes)
		q.order[reflect.ValueOf(m).Pointer()] = keys
		q.keep = append(q.keep, m)
	}
	return v
}

// The keys whose order is remembered that way: so many at most, and none that is longer.
const (
	maxRanked = 1 << 16
	maxRank   = 256 // bytes
)

// came notes the order in which keys have come into objects.
func (q *querier) came(k string) {
	if q.rank == nil || len(q.rank) >= maxRanked || len(k) > maxRank {
		return
	}
	if _, known := q.rank[k]; known {
		return
	}
	if _, written := q.texts[k]; !written {
		q.rank[k] = len(q.rank)
	}
}

// inOrder has a program go through objects in their order: T[] becomes (T | _each).
func inOrder(query *gojq.Query) { iterate(reflect.ValueOf(query), 0) }

func iterate(v reflect.Value, depth int) {
	if depth > maxNested {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		iterate(v.Elem(), depth+1)
		if t, ok := v.Interface().(*gojq.Term); ok {
			for i := slices.IndexFunc(t.SuffixList, isIteration); i >= 0; i = slices.IndexFunc(t.SuffixList, isIteration) {
				before := *t
				before.SuffixList = t.SuffixList[:i:i]
				each := &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: "_each"}}}
				*t = gojq.Term{Type: gojq.TermTypeQuery, Query: &gojq.Query{Left: &gojq.Query{Term: &before}, Op: gojq.OpPipe, Right: each},
					SuffixList: t.SuffixList[i+1:]}
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				iterate(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			iterate(v.Index(i), depth+1)
		}
	}
}

func isIteration(s *gojq.Suffix) bool { return s.Iter }

// groupName is the name of a part of a regular expression, of which capture makes a key.
var groupName = regexp.MustCompile(`\(\?<([A-Za-z_][A-Za-z0-9_]*)>`)

// keys returns the keys of an object in the order in which jq would have them, as far as that is known: that of the input, or of the
// program where it writes just such an object; else what the input has first, then what the program names.
func (q *querier) keys(v map[string]any) []string {
	if !q.sorted {
		if keys, ok := q.order[reflect.ValueOf(v).Pointer()]; ok && len(keys) == len(v) {
			return keys
		}
	}
	keys := make([]string, 0, len(v))
	for k := range v {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	if q.sorted {
		return keys
	}
	if shape, ok := q.shapes[strings.Join(keys, "\x00")]; ok {
		return shape
	}
	slices.SortStableFunc(keys, func(a, b string) int { return placeOf(q, a) - placeOf(q, b) })
	return keys
}

// noteShape remembers the keys of an object of the input, where their order is not that in which they were first seen: for an object of the
// same keys that the program makes of it.
func noteShape(q *querier, keys []string) {
	if slices.IsSortedFunc(keys, func(a, b string) int { return q.rank[a] - q.rank[b] }) {
		return
	}
	sorted := slices.Clone(keys)
	slices.Sort(sorted)
	if name := strings.Join(sorted, "\x00"); q.shapes[name] == nil {
		q.shapes[name] = keys
	}
}

func placeOf(q *querier, key string) int {
	if i, ok := q.rank[key]; ok {
		return i
	}
	if i, ok := q.texts[key]; ok {
		return 1<<30 + i
	}
	return 1 << 31
}

// studyKeys finds the objects that the program writes, for the order of their keys.
func studyKeys(q *querier, src string) {
	type open struct {
		brace bool
		keys  []string
		key   bool // a key comes next
	}
	var stack []open
	note := func(key string) {
		if _, ok := q.texts[key]; !ok {
			q.texts[key] = len(q.texts)
		}
		if n := len(stack); n > 0 && stack[n-1].brace && stack[n-1].key {
			stack[n-1].keys = append(stack[n-1].keys, key)
			stack[n-1].key = false
		}
	}
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch {
		case c == '#':
			for i < len(src) && src[i] != '\n' {
				i++
			}
		case c == '"':
			start := i + 1
			for i++; i < len(src) && src[i] != '"'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
			if i < len(src) {
				for _, m := range groupName.FindAllStringSubmatch(src[start:i], -1) {
					note(m[1])
				}
				note(src[start:i])
			}
		case c == '{' || c == '[' || c == '(':
			stack = append(stack, open{brace: c == '{', key: c == '{'})
		case c == '}' || c == ']' || c == ')':
			if n := len(stack); n > 0 {
				if top := stack[n-1]; top.brace && c == '}' && len(top.keys) > 0 {
					sorted := slices.Clone(top.keys)
					slices.Sort(sorted)
					if name := strings.Join(sorted, "\x00"); q.shapes[name] == nil {
						q.shapes[name] = top.keys
					}
				}
				stack = stack[:n-1]
			}
		case c == ',':
			if n := len(stack); n > 0 {
				stack[n-1].key = stack[n-1].brace
			}
		case c == '_' || c == '$' || c|0x20 >= 'a' && c|0x20 <= 'z':
			start := i
			i = endOfName(src, i)
			note(strings.TrimPrefix(src[start:i], "$"))
			i--
		}
	}
}

// endOfName returns where a name ends, with its module and the $ of a variable.
func endOfName(src string, i int) int {
	for i < len(src) && (src[i] == '_' || src[i] == '$' || src[i] == ':' && i+2 < len(src) && src[i+1] == ':' || src[i]|0x20 >= 'a' &&
		src[i]|0x20 <= 'z' || src[i] >= '0' && src[i] <= '9') {
		i++
	}
	return i
}
