package tools

import (
	"reflect"
	"slices"
	"strings"
)

// keys returns the keys of an object in the order in which jq would have them, as far as that is known: that of the input, or of the program where it writes
// just such an object; else what the input has first, then what the program names.
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
	slices.SortStableFunc(keys, func(a, b string) int { return q.place(a) - q.place(b) })
	return keys
}

func (q *querier) place(key string) int {
	if i, ok := q.rank[key]; ok {
		return i
	}
	if i, ok := q.texts[key]; ok {
		return 1<<30 + i
	}
	return 1 << 31
}

// study finds the objects that the program writes, for the order of their keys.
func (q *querier) study(src string) {
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
			for i < len(src) && (src[i] == '_' || src[i] == '$' || src[i] == ':' && i+2 < len(src) && src[i+1] == ':' || src[i]|0x20 >= 'a' && src[i]|0x20 <= 'z' || src[i] >= '0' && src[i] <= '9') {
				i++
			}
			note(strings.TrimPrefix(src[start:i], "$"))
			i--
		}
	}
}
