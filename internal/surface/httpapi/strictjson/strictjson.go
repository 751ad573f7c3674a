// Package strictjson reads requests: exactly one JSON value, of a known shape, without anything that two readers could understand
// differently.
package strictjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"agentbox/internal/domain/fault"
)

// MaxDepth is how deep arrays and objects may be nested.
const MaxDepth = 64

// The refusals, by code.
const (
	CodeMalformed = "invalid_json"    // not JSON, or more than one value
	CodeTooDeep   = "json_too_deep"   // nested deeper than MaxDepth
	CodeDuplicate = "duplicate_field" // an object names a field twice
	CodeUnknown   = "unknown_field"   // a field that the shape does not have
	CodeType      = "invalid_field"   // a value of another type than the field's
)

// Check reads data against the shape of a value of type t, which may be nil for any shape. It refuses anything but one JSON value in valid
// UTF-8, nesting beyond MaxDepth, a field named twice, half a surrogate pair, and a field that t does not have, letter for letter. In the
// last case it names the nearest field of t. A field whose type reads itself (json.Unmarshaler) has any shape.
func Check(data []byte, t reflect.Type) error {
	c := checker{data, jsontext.NewDecoder(bytes.NewReader(data))}
	if err := c.value(t, 0); err != nil {
		return err
	}
	if _, err := c.dec.ReadToken(); err != io.EOF {
		at := c.dec.InputOffset()
		return c.malformed("something after the value", int64(len(data)-len(bytes.TrimLeft(data[at:], " \t\r\n"))))
	}
	return nil
}

// Decode checks data against the type that v points to and reads it into v.
func Decode(data []byte, v any) error {
	if err := Check(data, reflect.TypeOf(v).Elem()); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fault.Wrap(err, fault.Invalid, CodeType, "a value does not have the type of its field: %s", plain(err))
	}
	return nil
}

// plain says a type error of encoding/json without the names of Go types.
func plain(err error) string {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("%q cannot be a JSON %s", t.Field, t.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// checker reads tokens and holds the names of objects against the shape of a type. The decoder refuses texts that are not JSON.
type checker struct {
	data []byte
	dec  *jsontext.Decoder
}

func (c *checker) value(t reflect.Type, depth int) error {
	token, err := c.dec.ReadToken()
	if err != nil {
		return c.refusal(err)
	}
	kind := token.Kind()
	if kind != jsontext.KindBeginObject && kind != jsontext.KindBeginArray {
		return nil
	}
	if depth++; depth > MaxDepth {
		return fault.New(fault.Invalid, CodeTooDeep, "JSON may be nested at most %d deep", MaxDepth)
	}
	shape := shapeOf(t)
	for next := c.dec.PeekKind(); next != jsontext.KindEndObject && next != jsontext.KindEndArray; next = c.dec.PeekKind() {
		element := shape.elem
		if kind == jsontext.KindBeginObject {
			if element, err = c.name(shape); err != nil {
				return err
			}
		}
		if err := c.value(element, depth); err != nil {
			return err
		}
	}
	if _, err := c.dec.ReadToken(); err != nil {
		return c.refusal(err)
	}
	return nil
}

// name reads the name of a field and returns the type of its value.
func (c *checker) name(shape shape) (reflect.Type, error) {
	raw, err := c.dec.ReadValue()
	if err != nil {
		return nil, c.refusal(err)
	}
	unquoted, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return nil, c.refusal(err)
	}
	name := string(unquoted)
	t, known := shape.field(name)
	if known {
		return t, nil
	}
	where := dotted(c.dec.StackPointer())
	e := fault.New(fault.Invalid, CodeUnknown, "there is no field %s (%s)", quote(where), c.place(c.dec.InputOffset()-int64(len(raw))))
	if near := Nearest(name, shape.order); near != "" {
		return nil, e.With(fmt.Sprintf("did you mean %s?", quote(strings.TrimSuffix(where, name)+near)))
	}
	return nil, e.With("the fields are " + strings.Join(shape.order, ", "))
}

// refusal says an error of the decoder in our words and with a place that people count.
func (c *checker) refusal(err error) error {
	at, where, what := c.dec.InputOffset(), "", err
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		at, where, what = s.ByteOffset, dotted(s.JSONPointer), s.Err
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fault.New(fault.Invalid, CodeDuplicate, "the field %s stands twice in one object (%s); name it once", quote(where), c.place(at))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return c.malformed("it ends too early", int64(len(c.data)))
	}
	return c.malformed(what.Error(), at)
}

func (c *checker) malformed(what string, at int64) error {
	return fault.New(fault.Invalid, CodeMalformed, "the body is not one JSON value: %s (%s)", what, c.place(at))
}

// place counts lines and columns from 1, columns in bytes.
func (c *checker) place(at int64) string {
	before := c.data[:at]
	return fmt.Sprintf("line %d, column %d", bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n'))
}

// dotted writes a JSON pointer as the API names fields: limits.memory_bytes, list.1.
func dotted(p jsontext.Pointer) string {
	return strings.Join(slices.Collect(p.Tokens()), ".")
}

// quote makes any text safe to show and short.
func quote(text string) string {
	if len(text) > 120 {
		text = strings.ToValidUTF8(text[:120], "") + "…"
	}
	return strconv.QuoteToGraphic(text)
}

// shape describes the permitted objects and lists of a type. The zero shape permits anything.
type shape struct {
	fields map[string]reflect.Type // of a struct
	order  []string
	elem   reflect.Type // of a map or list
	open   bool         // names are free
}

func (sh shape) field(name string) (reflect.Type, bool) {
	if sh.open {
		return sh.elem, true
	}
	t, ok := sh.fields[name]
	return t, ok
}

func shapeOf(t reflect.Type) shape {
	for t != nil && t.Kind() == reflect.Pointer && !readsItself(t) {
		t = t.Elem()
	}
	if t == nil || readsItself(t) {
		return shape{open: true}
	}
	switch t.Kind() {
	case reflect.Struct:
		sh := shape{fields: map[string]reflect.Type{}}
		sh.add(t)
		return sh
	case reflect.Map, reflect.Slice, reflect.Array:
		return shape{open: true, elem: t.Elem()}
	}
	return shape{open: true}
}

func (sh *shape) add(t reflect.Type) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				sh.add(inner)
				continue
			}
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if _, twice := sh.fields[name]; !twice {
			sh.order = append(sh.order, name)
		}
		sh.fields[name] = f.Type
	}
}

func readsItself(t reflect.Type) bool {
	for _, reader := range []reflect.Type{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()} {
		if t.Implements(reader) || reflect.PointerTo(t).Implements(reader) {
			return true
		}
	}
	return false
}
