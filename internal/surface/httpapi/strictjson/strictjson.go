// Package strictjson reads requests: exactly one JSON value, of a known shape, without anything that two readers could understand differently.
package strictjson

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

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

// Check reads data against the shape of a value of type t, which may be nil for any shape. It refuses what is not one JSON value in valid
// UTF-8, nesting beyond MaxDepth, a field named twice, half a surrogate pair, and a field that t does not have, letter for letter; then it
// names the nearest field that t has. A field whose type reads itself (json.Unmarshaler) has any shape.
func Check(data []byte, t reflect.Type) error {
	s := scanner{data: data}
	if !utf8.Valid(data) {
		for s.pos < len(data) {
			r, n := utf8.DecodeRune(data[s.pos:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			s.pos += n
		}
		return s.malformed("a byte that is not UTF-8")
	}
	if err := s.value(t, 0); err != nil {
		return err
	}
	s.space()
	if s.pos < len(data) {
		return s.malformed("something after the value")
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

// scanner walks through the bytes once. It allocates for the names of the objects that it is inside of, and for nothing else.
type scanner struct {
	data []byte
	pos  int
	path []string
}

func (s *scanner) value(t reflect.Type, depth int) error {
	s.space()
	if s.pos >= len(s.data) {
		return s.malformed("the end")
	}
	switch c := s.data[s.pos]; {
	case c == '{':
		return s.object(t, depth+1)
	case c == '[':
		return s.array(t, depth+1)
	case c == '"':
		_, err := s.text()
		return err
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	}
	for _, word := range []string{"true", "false", "null"} {
		if strings.HasPrefix(string(s.data[s.pos:min(len(s.data), s.pos+len(word))]), word) {
			s.pos += len(word)
			return nil
		}
	}
	return s.malformed("something that is not a value")
}

func (s *scanner) object(t reflect.Type, depth int) error {
	if depth > MaxDepth {
		return tooDeep()
	}
	shape := shapeOf(t)
	seen := map[string]bool{}
	s.pos++
	s.space()
	if s.take('}') {
		return nil
	}
	for {
		s.space()
		at := s.pos
		if s.pos >= len(s.data) || s.data[s.pos] != '"' {
			return s.malformed("something that is not a field's name")
		}
		name, err := s.text()
		if err != nil {
			return err
		}
		if seen[name] {
			s.pos = at
			return fault.New(fault.Invalid, CodeDuplicate, "the field %s stands twice in one object (%s); name it once", quote(s.where(name)), s.place())
		}
		seen[name] = true
		next, known := shape.field(name)
		if !known {
			s.pos = at
			return s.unknown(name, shape)
		}
		s.space()
		if !s.take(':') {
			return s.malformed("no colon after a field's name")
		}
		s.path = append(s.path, name)
		if err := s.value(next, depth); err != nil {
			return err
		}
		s.path = s.path[:len(s.path)-1]
		s.space()
		if s.take('}') {
			return nil
		}
		if !s.take(',') {
			return s.malformed("neither a comma nor the end of the object")
		}
	}
}

func (s *scanner) array(t reflect.Type, depth int) error {
	if depth > MaxDepth {
		return tooDeep()
	}
	elem := shapeOf(t).elem
	s.pos++
	s.space()
	if s.take(']') {
		return nil
	}
	for i := 0; ; i++ {
		s.path = append(s.path, strconv.Itoa(i))
		if err := s.value(elem, depth); err != nil {
			return err
		}
		s.path = s.path[:len(s.path)-1]
		s.space()
		if s.take(']') {
			return nil
		}
		if !s.take(',') {
			return s.malformed("neither a comma nor the end of the list")
		}
	}
}

// text reads a string and returns what it says.
func (s *scanner) text() (string, error) {
	start := s.pos
	s.pos++
	escaped := false
	for ; s.pos < len(s.data); s.pos++ {
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			if !escaped {
				return string(s.data[start+1 : s.pos-1]), nil
			}
			var text string
			if err := json.Unmarshal(s.data[start:s.pos], &text); err != nil {
				s.pos = start
				return "", s.malformed("a string with an escape that does not exist")
			}
			return text, nil
		case c < 0x20:
			return "", s.malformed("a control character in a string")
		case c == '\\':
			escaped = true
			n, err := s.escape()
			if err != nil {
				return "", err
			}
			s.pos += n
		}
	}
	return "", s.malformed("a string without an end")
}

// escape looks at the escape sequence at pos and returns by how much it is longer than one byte.
func (s *scanner) escape() (int, error) {
	rest := s.data[s.pos:]
	if len(rest) < 2 {
		return 0, s.malformed("a string without an end")
	}
	if rest[1] != 'u' {
		return 1, nil
	}
	first, ok := hex4(rest)
	if !ok {
		return 0, s.malformed("an escape that does not exist")
	}
	switch {
	case first >= 0xdc00 && first < 0xe000:
		return 0, s.malformed("half a surrogate pair")
	case first >= 0xd800 && first < 0xdc00:
		second, ok := hex4(rest[6:])
		if !ok || second < 0xdc00 || second >= 0xe000 {
			return 0, s.malformed("half a surrogate pair")
		}
		return 11, nil
	}
	return 5, nil
}

// hex4 reads \uXXXX.
func hex4(b []byte) (uint64, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 32)
	return n, err == nil && b[2] != '+' && b[2] != '_'
}

func (s *scanner) number() error {
	s.take('-')
	if !s.take('0') && s.digits() == 0 {
		return s.malformed("a number without digits")
	}
	if s.take('.') && s.digits() == 0 {
		return s.malformed("a number without digits after its point")
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		if s.digits() == 0 {
			return s.malformed("a number without digits in its exponent")
		}
	}
	return nil
}

func (s *scanner) digits() int {
	start := s.pos
	for s.pos < len(s.data) && s.data[s.pos] >= '0' && s.data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos - start
}

func (s *scanner) space() {
	for s.pos < len(s.data) && strings.IndexByte(" \t\r\n", s.data[s.pos]) >= 0 {
		s.pos++
	}
}

func (s *scanner) take(c byte) bool {
	if s.pos < len(s.data) && s.data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) where(name string) string {
	return strings.Join(append(s.path[:len(s.path):len(s.path)], name), ".")
}

func (s *scanner) place() string {
	line, column := 1, 1
	for _, c := range s.data[:s.pos] {
		column++
		if c == '\n' {
			line, column = line+1, 1
		}
	}
	return fmt.Sprintf("line %d, column %d", line, column)
}

func (s *scanner) malformed(what string) error {
	return fault.New(fault.Invalid, CodeMalformed, "the body is not one JSON value: %s at %s", what, s.place())
}

func (s *scanner) unknown(name string, shape shape) error {
	e := fault.New(fault.Invalid, CodeUnknown, "there is no field %s (%s)", quote(s.where(name)), s.place())
	if near := Nearest(name, shape.names()); near != "" {
		return e.With(fmt.Sprintf("did you mean %s?", quote(s.where(near))))
	}
	return e.With("the fields are " + strings.Join(shape.names(), ", "))
}

func tooDeep() error {
	return fault.New(fault.Invalid, CodeTooDeep, "JSON may be nested at most %d deep", MaxDepth)
}

// quote makes any text safe to show and short.
func quote(text string) string {
	if len(text) > 120 {
		text = strings.ToValidUTF8(text[:120], "") + "…"
	}
	return strconv.QuoteToGraphic(text)
}

// shape is what the objects and lists of a type may hold. The zero shape takes anything.
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

func (sh shape) names() []string { return sh.order }

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
