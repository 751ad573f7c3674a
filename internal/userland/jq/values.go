package jq

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// doubles is arithmetic as jq has it: a literal keeps its digits, and what is computed of it is a double.
func doubles(f native) native {
	return func(v any, args []any) any {
		for i, a := range args {
			if d, ok := inexact(a); ok {
				args = slices.Clone(args)
				args[i] = d
			}
		}
		result := f(v, args)
		if d, ok := inexact(result); ok {
			return d
		}
		return result
	}
}

// inexact returns a whole number that a double may not hold, as one.
func inexact(v any) (float64, bool) {
	switch n := v.(type) {
	case int:
		return float64(n), n > 1<<53 || n < -1<<53
	case *big.Int, json.Number:
		return gojq.ToFloat64(n)
	}
	return 0, false
}

// fromJSON reads one value, which may be NaN.
func (q *querier) fromJSON(v any, _ []any) any {
	s, ok := v.(string)
	if !ok {
		return nil
	}
	all, err := everyValue(&jsonReader{q: q, data: []byte(s), loose: true})
	switch {
	case err != nil:
		text := err.Error()
		if strings.HasPrefix(text, "Unfinished") || strings.HasPrefix(text, "Invalid literal") && len(s) < 16 {
			text = strings.Replace(text, " at line", " at EOF at line", 1)
			text = strings.Replace(text, " at EOF at EOF", " at EOF", 1)
		}
		return fmt.Errorf("%s (while parsing '%s')", text, s)
	case len(all) == 0:
		return answer{nil}
	case len(all) > 1:
		return fmt.Errorf("Unexpected extra JSON values (while parsing '%s')", s)
	}
	return answer{all[0]}
}

// getPath is the library's, and names the key of an object where something else is.
func (q *querier) getPath(f native) native {
	return func(v any, args []any) any {
		result := f(v, args)
		path, ok := args[0].([]any)
		if !isError(result) || !ok {
			return answer{result}
		}
		for _, key := range path {
			name, isName := key.(string)
			switch at := v.(type) {
			case map[string]any:
				if !isName {
					return answer{result}
				}
				v = at[name]
			case []any:
				i, ok := key.(int)
				if isName {
					return fmt.Errorf("Cannot index array with string \"%s\"", name)
				}
				if !ok || i < -len(at) || i >= len(at) {
					return answer{result}
				}
				v = at[(i+len(at))%len(at)]
			default:
				if isName && v != nil {
					return fmt.Errorf("Cannot index %s with string \"%s\"", gojq.TypeOf(v), name)
				}
				return answer{result}
			}
		}
		return answer{result}
	}
}
