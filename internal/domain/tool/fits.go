package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// The most parts of a schema that are held against a value, and the most within each other. A schema of somebody else may refer to itself
// without end.
const (
	maxWork  = 1_000_000
	maxDepth = 500
)

// Fits returns why a JSON value does not fit a JSON Schema; "" where it fits. It knows the words of draft 2020-12 that say of what type and
// shape a value is (type, enum, const, properties, required, additionalProperties, items, prefixItems, the bounds of sizes, allOf, anyOf,
// oneOf, and references within the schema). It ignores all others, so that it never refuses what the schema permits.
func Fits(schema, value json.RawMessage) string {
	whole, err := decode(schema)
	if err != nil {
		return "the schema is no JSON"
	}
	v, err := decode(value)
	if err != nil {
		return "the value is no JSON"
	}
	f := &fitting{root: whole}
	return f.fits(whole, v, "")
}

func decode(raw json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, fmt.Errorf("something follows the value")
	}
	return v, nil
}

// fitting is one comparison of a value with a schema.
type fitting struct {
	root        any
	work, depth int
}

func (f *fitting) fits(schema, v any, at string) string {
	f.depth++
	defer func() { f.depth-- }()
	if f.work++; f.work > maxWork || f.depth > maxDepth {
		f.work = maxWork + 1 // nothing else is tried
		return "the schema is too complicated"
	}
	rules, ok := schema.(map[string]any)
	if !ok {
		if schema == false {
			return where(at) + " is not permitted"
		}
		return ""
	}
	if ref, ok := rules["$ref"].(string); ok {
		inner, found := f.find(ref)
		if !found {
			return "the schema refers to " + strconv.Quote(ref) + ", which it does not have"
		}
		if wrong := f.fits(inner, v, at); wrong != "" {
			return wrong
		}
	}
	for _, check := range []func(map[string]any, any, string) string{f.typed, f.object, f.list, f.several} {
		if wrong := check(rules, v, at); wrong != "" {
			return wrong
		}
	}
	return ""
}

// find returns the part of the schema that a reference names. It reads nothing outside of it.
func (f *fitting) find(ref string) (any, bool) {
	path, within := strings.CutPrefix(ref, "#")
	if !within {
		return nil, false
	}
	now := f.root
	for _, key := range strings.Split(path, "/")[1:] {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		inside, ok := now.(map[string]any)
		if !ok {
			return nil, false
		}
		if now, ok = inside[key]; !ok {
			return nil, false
		}
	}
	return now, path == "" || strings.HasPrefix(path, "/")
}

func where(at string) string {
	if at == "" {
		return "the value"
	}
	return strings.TrimPrefix(at, ".")
}

// kind returns the type of a value as JSON Schema names it.
func kind(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if n, ok := new(big.Rat).SetString(v.String()); ok && len(v) < 400 && n.IsInt() {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

func (f *fitting) typed(rules map[string]any, v any, at string) string {
	is := kind(v)
	fits := func(name any) bool { return name == is || name == "number" && is == "integer" }
	switch want := rules["type"].(type) {
	case string:
		if !fits(want) {
			return fmt.Sprintf("%s must be of the type %s, not %s", where(at), want, is)
		}
	case []any:
		if !slices.ContainsFunc(want, fits) {
			return fmt.Sprintf("%s must not be of the type %s", where(at), is)
		}
	}
	if list, ok := rules["enum"].([]any); ok && !slices.ContainsFunc(list, func(one any) bool { return equal(one, v) }) {
		return where(at) + " must be one of the values that the schema lists"
	}
	if one, ok := rules["const"]; ok && !equal(one, v) {
		return where(at) + " must be the value that the schema names"
	}
	return ""
}

func equal(a, b any) bool {
	x, isNumber := a.(json.Number)
	y, both := b.(json.Number)
	if isNumber && both && len(x) < 400 && len(y) < 400 {
		m, okX := new(big.Rat).SetString(x.String())
		n, okY := new(big.Rat).SetString(y.String())
		return okX && okY && m.Cmp(n) == 0
	}
	return reflect.DeepEqual(a, b)
}

// sized checks how many parts a value has.
func sized(rules map[string]any, n int, least, most, at string) string {
	for word, wrong := range map[string]func(limit int) bool{least: func(limit int) bool { return n < limit },
		most: func(limit int) bool { return n > limit }} {
		number, ok := rules[word].(json.Number)
		if limit, err := strconv.Atoi(number.String()); ok && err == nil && wrong(limit) {
			return fmt.Sprintf("%s has %d parts, and %s is %d", where(at), n, word, limit)
		}
	}
	return ""
}

func (f *fitting) object(rules map[string]any, v any, at string) string {
	fields, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	if required, ok := rules["required"].([]any); ok {
		for _, name := range required {
			if text, ok := name.(string); ok {
				if _, sent := fields[text]; !sent {
					return where(at+"."+text) + " is missing"
				}
			}
		}
	}
	if wrong := sized(rules, len(fields), "minProperties", "maxProperties", at); wrong != "" {
		return wrong
	}
	properties, _ := rules["properties"].(map[string]any)
	others, bounded := rules["additionalProperties"]
	_, patterns := rules["patternProperties"]
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		schema, known := properties[name]
		if !known && (!bounded || patterns) {
			continue
		}
		if !known {
			schema = others
		}
		if wrong := f.fits(schema, fields[name], at+"."+name); wrong != "" {
			return wrong
		}
	}
	return ""
}

func (f *fitting) list(rules map[string]any, v any, at string) string {
	values, ok := v.([]any)
	if !ok {
		return ""
	}
	if wrong := sized(rules, len(values), "minItems", "maxItems", at); wrong != "" {
		return wrong
	}
	first, _ := rules["prefixItems"].([]any)
	for i, one := range values {
		schema, bounded := rules["items"]
		if i < len(first) {
			schema, bounded = first[i], true
		}
		if !bounded {
			continue
		}
		if wrong := f.fits(schema, one, at+"["+strconv.Itoa(i)+"]"); wrong != "" {
			return wrong
		}
	}
	return ""
}

func (f *fitting) several(rules map[string]any, v any, at string) string {
	all, _ := rules["allOf"].([]any)
	for _, schema := range all {
		if wrong := f.fits(schema, v, at); wrong != "" {
			return wrong
		}
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		list, ok := rules[word].([]any)
		if !ok || len(list) == 0 {
			continue
		}
		fit, first := 0, ""
		for _, schema := range list {
			if wrong := f.fits(schema, v, at); wrong == "" {
				fit++
			} else if first == "" {
				first = wrong
			}
		}
		if f.work > maxWork {
			return "the schema is too complicated"
		}
		if fit == 0 {
			return first
		}
	}
	return ""
}
