package event

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Decode reads the event's data into a value of its type. Unknown fields are kept out of the way: a newer writer may have added them.
func Decode[T any](e Event) (T, error) {
	var v T
	if plainly(e.Data, reflect.ValueOf(&v).Elem()) {
		return v, nil
	}
	v = *new(T)
	if err := json.Unmarshal(e.Data, &v); err != nil {
		return v, fmt.Errorf("read the data of %s %s: %w", e.Type, e.ID, err)
	}
	return v, nil
}

// Every fold of every event begins with a decoding. Most data is plain: texts without escapes, integers, booleans, and lists and objects of
// them, with the names and the order of the type's fields, as json.Marshal writes them. This file decodes plain data in half of the time
// that encoding/json takes. It leaves every other type and every other text to encoding/json, which decides what it means. A fuzz test
// compares the two.

// plainly reads data into v, which is zero; false where anything is not plain, and v may then hold anything.
func plainly(data []byte, v reflect.Value) bool {
	r := plainReader{rest: data}
	return v.Kind() == reflect.Struct && r.value(v) && len(r.rest) == 0
}

// plainName returns the name of a field in JSON; false for one with any peculiarity.
func plainName(f *reflect.StructField) (string, bool) {
	name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, name != "" && name != "-" && (option == "" || option == "omitempty" || option == "omitzero") && f.IsExported() && !f.Anonymous
}

// plainReader is the unread rest of JSON without space between its parts, as json.Marshal writes it.
type plainReader struct{ rest []byte }

func (r *plainReader) next(want byte) bool {
	if len(r.rest) == 0 || r.rest[0] != want {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

// text takes a string without escapes.
func (r *plainReader) text() ([]byte, bool) {
	if !r.next('"') {
		return nil, false
	}
	ascii := true
	for i, c := range r.rest {
		switch {
		case c == '"':
			text := r.rest[:i]
			r.rest = r.rest[i+1:]
			return text, ascii || utf8.Valid(text)
		case c < ' ' || c == '\\':
			return nil, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, false
}

func (r *plainReader) word(want string) bool {
	if len(r.rest) < len(want) || string(r.rest[:len(want)]) != want {
		return false
	}
	r.rest = r.rest[len(want):]
	return true
}

// digits takes an integer without leading zeros, "" where there is none.
func (r *plainReader) digits() string {
	n := 0
	if n < len(r.rest) && r.rest[n] == '-' {
		n++
	}
	first := n
	for n < len(r.rest) && r.rest[n] >= '0' && r.rest[n] <= '9' {
		n++
	}
	if n == first || r.rest[first] == '0' && n > 1 {
		return ""
	}
	text := string(r.rest[:n])
	r.rest = r.rest[n:]
	return text
}

func (r *plainReader) value(v reflect.Value) bool {
	t := v.Type()
	if t.PkgPath() != "" || t.Name() == "" { // else it has no methods
		switch own := v.Addr().Interface().(type) {
		case *time.Time: // it reads its JSON as it reads its text
			text, ok := r.text()
			return ok && own.UnmarshalText(text) == nil
		case json.Unmarshaler:
			return false
		case encoding.TextUnmarshaler:
			text, ok := r.text()
			return ok && own.UnmarshalText(text) == nil
		}
	}
	switch t.Kind() {
	case reflect.Struct:
		return r.object(v)
	case reflect.Slice:
		return t.Elem().Kind() != reflect.Uint8 && r.list(v) // bytes are base64 in JSON
	case reflect.String:
		text, ok := r.text()
		if ok {
			v.SetString(string(text))
		}
		return ok
	case reflect.Bool:
		is := len(r.rest) > 0 && r.rest[0] == 't'
		v.SetBool(is)
		return is && r.word("true") || r.word("false")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(r.digits(), 10, 64)
		v.SetInt(n)
		return err == nil && !v.OverflowInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := strconv.ParseUint(r.digits(), 10, 64)
		v.SetUint(n)
		return err == nil && !v.OverflowUint(n)
	}
	return false
}

func (r *plainReader) object(v reflect.Value) bool {
	if !r.next('{') {
		return false
	}
	if r.next('}') {
		return true
	}
	t := v.Type()
	for i := 0; ; i++ {
		name, ok := r.text()
		if !ok || !r.next(':') {
			return false
		}
		for ; ; i++ {
			if i == t.NumField() {
				return false
			}
			f := t.Field(i)
			if known, plain := plainName(&f); plain && known == string(name) {
				break
			}
		}
		if !r.value(v.Field(i)) {
			return false
		}
		if r.next('}') {
			return true
		}
		if !r.next(',') {
			return false
		}
	}
}

func (r *plainReader) list(v reflect.Value) bool {
	if !r.next('[') {
		return false
	}
	list := reflect.MakeSlice(v.Type(), 0, 0)
	for n := 0; ; n++ {
		if n == 0 && r.next(']') {
			break
		}
		list = reflect.Append(list, reflect.Zero(v.Type().Elem()))
		if !r.value(list.Index(n)) {
			return false
		}
		if r.next(']') {
			break
		}
		if !r.next(',') {
			return false
		}
	}
	v.Set(list)
	return true
}
