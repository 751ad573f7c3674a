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

// The most parts of a schema and of a value that are held against each other, and the most within each other. A schema of somebody else may
// refer to itself without end, and a value may be one that takes long.
const (
	maxWork   = 2_000_000
	maxDepth  = 500
	maxAt     = 200 // characters of a place in a value, and of each of its steps
	maxDigits = 400 // of a number that is calculated with, and of its exponent: 1e999999 has six digits, and a million as an integer
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

// tooMuch counts work, and returns why there is no more of it.
func (f *fitting) tooMuch(work int) string {
	if f.work += work; f.work > maxWork || f.depth > maxDepth {
		f.work = maxWork + 1 // nothing else is tried
		return "the schema is too complicated"
	}
	return ""
}

func (f *fitting) fits(schema, v any, at string) string {
	f.depth++
	defer func() { f.depth-- }()
	if wrong := f.tooMuch(1); wrong != "" {
		return wrong
	}
	rules, ok := schema.(map[string]any)
	if !ok {
		if schema == false {
			return where(at) + " is not permitted"
		}
		return ""
	}
	if ref, ok := rules["$ref"].(string); ok {
		if wrong := f.tooMuch(len(ref) / 16); wrong != "" {
			return wrong
		}
		inner, found := f.find(ref)
		if !found {
			return "the schema refers to " + strconv.Quote(ref[:min(len(ref), maxAt)]) + ", which it does not have"
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

// below returns a place in the thing at another one. A long one is cut: a value chooses its names.
func below(at, step string) string {
	return at[:min(len(at), maxAt)] + step[:min(len(step), maxAt)]
}

func where(at string) string {
	if at == "" {
		return "the value"
	}
	return strings.ToValidUTF8(strings.TrimPrefix(at, "."), "")
}

// number returns a number to calculate with; false for one that is too long, or whose exponent is too large.
func number(n json.Number) (*big.Rat, bool) {
	text := n.String()
	if len(text) > maxDigits {
		return nil, false
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if exponent, err := strconv.Atoi(text[i+1:]); err != nil || exponent > maxDigits || exponent < -maxDigits {
			return nil, false
		}
	}
	return new(big.Rat).SetString(text)
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
		if n, ok := number(v); ok && n.IsInt() {
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
		if wrong := f.tooMuch(len(want)); wrong != "" {
			return wrong
		}
		if !slices.ContainsFunc(want, fits) {
			return fmt.Sprintf("%s must not be of the type %s", where(at), is)
		}
	}
	list, ok := rules["enum"].([]any)
	if wrong := f.tooMuch(len(list)); wrong != "" {
		return wrong
	}
	if ok && !slices.ContainsFunc(list, func(one any) bool { return equal(one, v) }) {
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
	if isNumber && both && x != y {
		m, okX := number(x)
		n, okY := number(y)
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
		if wrong := f.tooMuch(len(required)); wrong != "" {
			return wrong
		}
		for _, name := range required {
			if text, ok := name.(string); ok {
				if _, sent := fields[text]; !sent {
					return where(below(at, "."+text)) + " is missing"
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
	if wrong := f.tooMuch(len(fields)); wrong != "" {
		return wrong
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		schema, known := properties[name]
		if !known && (!bounded || patterns) {
			continue
		}
		if !known {
			schema = others
		}
		if wrong := f.fits(schema, fields[name], below(at, "."+name)); wrong != "" {
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
	if wrong := f.tooMuch(len(values)); wrong != "" {
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
		if wrong := f.fits(schema, one, below(at, "["+strconv.Itoa(i)+"]")); wrong != "" {
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
		if wrong := f.tooMuch(0); wrong != "" {
			return wrong
		}
		if fit == 0 {
			return first
		}
	}
	return ""
}
