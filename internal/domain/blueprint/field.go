package blueprint

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Type is the type of a field's value.
type Type string

// The types of values.
const (
	Object Type = "object" // with Fields
	Text   Type = "text"
	Number Type = "number" // a whole one
	Truth  Type = "truth"
	Money  Type = "money"
	List   Type = "list"  // of texts
	Table  Type = "table" // from texts to texts
)

// Field describes one key of a blueprint.
type Field struct {
	Name    string
	Doc     string
	Type    Type
	Need    bool
	Enum    []string
	Pattern *regexp.Regexp
	Like    string // what Pattern means, in words
	Keys    *regexp.Regexp
	Unit    string
	Min     int
	Max     int  // of a number; of a text, a list or a table it is the size, and 0 means none
	Each    int  // bytes of one entry of a list or table
	Repeats bool // a list may have an entry twice, as a command may
	Fields  []Field
	index   int
}

// Fields returns the keys of a blueprint, in the order of its documentation.
func Fields() []Field { return fields(reflect.TypeFor[Blueprint]()) }

// NameField returns the field of a blueprint's name.
func NameField() Field {
	for _, f := range Fields() {
		if f.Name == "name" {
			return f
		}
	}
	return Field{}
}

func fields(t reflect.Type) []Field {
	out := make([]Field, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		number := func(tag string) int {
			n, err := strconv.Atoi(f.Tag.Get(tag))
			if err != nil {
				return 0
			}
			return n
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, Field{
			Name: name, Doc: f.Tag.Get("doc"), Type: typeOf(f.Type), Need: f.Tag.Get("need") != "", Enum: words(f.Tag.Get("enum")),
			Pattern: pattern(f.Tag.Get("pattern")), Like: f.Tag.Get("like"), Keys: pattern(f.Tag.Get("keys")), Unit: f.Tag.Get("unit"),
			Min: number("min"), Max: number("max"), Each: number("each"),
			Repeats: f.Tag.Get("repeats") != "", index: i,
		})
		if out[i].Type == Object {
			out[i].Fields = fields(f.Type)
		}
	}
	return out
}

func typeOf(t reflect.Type) Type {
	if t == reflect.TypeFor[Amount]() {
		return Money
	}
	return map[reflect.Kind]Type{
		reflect.Struct: Object, reflect.String: Text, reflect.Int: Number, reflect.Bool: Truth, reflect.Slice: List, reflect.Map: Table,
	}[t.Kind()]
}

func words(tag string) []string {
	if tag == "" {
		return nil
	}
	return strings.Split(tag, ",")
}

func pattern(tag string) *regexp.Regexp {
	if tag == "" {
		return nil
	}
	return regexp.MustCompile(tag)
}

// Text returns the problem with a text as the field's value, or as an entry of its list or table; "" for none.
func (f Field) Text(value string) string {
	limit := f.Each
	if f.Type == Text && f.Max > 0 {
		limit = f.Max
	}
	switch {
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return "is not text in UTF-8"
	case f.Enum != nil && !slices.Contains(f.Enum, value):
		return "must be one of " + strings.Join(f.Enum, ", ")
	case f.Pattern != nil && !f.Pattern.MatchString(value):
		return "must be " + f.Like
	case limit > 0 && len(value) > limit:
		return fmt.Sprintf("has %d bytes; the limit is %d", len(value), limit)
	case f.Type == List && value == "":
		return "must not be empty"
	}
	return ""
}

// Number returns the problem with a number as the field's value; "" for none.
func (f Field) Number(value int) string {
	if value < f.Min || value > f.Max {
		unit := ""
		if f.Unit != "" {
			unit = " " + f.Unit
		}
		return fmt.Sprintf("must be a whole number from %d to %d%s", f.Min, f.Max, unit)
	}
	return ""
}

// Size returns the problem with the number of entries of a list or table; "" for none.
func (f Field) Size(entries int) string {
	if f.Max > 0 && entries > f.Max {
		return fmt.Sprintf("has %d entries; the limit is %d", entries, f.Max)
	}
	return ""
}

// Key returns the problem with a key of a table; "" for none.
func (f Field) Key(key string) string {
	if f.Keys != nil && !f.Keys.MatchString(key) {
		return fmt.Sprintf("has the key %.64q, which does not match %s", key, f.Keys)
	}
	return ""
}
