package jq

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

// where says what is read, for messages.
func (in *jqInput) where() string {
	if in.name == "" {
		return "<unknown>"
	}
	name := in.name
	if name == "-" {
		name = "<stdin>"
	}
	return name + ":" + strconv.Itoa(bytes.Count(in.data[:min(in.at+1, len(in.data))], []byte("\n")))
}

// open readies the next file.
func (in *jqInput) open() bool {
	for len(in.files) > 0 {
		in.name, in.files = in.files[0], in.files[1:]
		if in.data != nil {
			in.q.p.Drop(len(in.data))
		}
		data, err := gnu.ReadWhole(in.q.p, in.name)
		in.data, in.at = data, 0
		if err == nil {
			return true
		}
		in.q.p.Errorf("error: Could not open file %s: %s", in.name, program.Message(err))
		in.failed = 2
		in.data = nil
	}
	return false
}

// Next returns the next value of the input.
func (in *jqInput) Next() (any, bool) {
	if in.events != nil {
		if v, ok := in.events.next(); ok {
			return v, true
		}
		in.events = nil
	}
	v, ok := in.value()
	if _, failed := v.(error); !ok || failed || !in.stream || in.raw {
		return v, ok
	}
	in.events = eventsOf(in.q, v)
	return in.events.next()
}

// value returns the next value.
func (in *jqInput) value() (any, bool) {
	for {
		if in.data == nil || in.at >= len(in.data) {
			if !in.open() {
				return nil, false
			}
			continue
		}
		if in.raw {
			rest := in.data[in.at:]
			i := slices.Index(rest, '\n')
			if i < 0 {
				in.at = len(in.data)
				return string(rest), true
			}
			in.at += i + 1
			return string(rest[:i]), true
		}
		r := &jsonReader{q: in.q, data: in.data, at: in.at, paid: in.at, holds: true}
		v, err := r.next()
		r.pay()
		in.at = r.at
		if errors.Is(err, io.EOF) {
			in.at = len(in.data)
			continue
		}
		if err != nil {
			in.at = len(in.data)
			in.files = nil
			return err, true
		}
		return v, true
	}
}

// allValues reads every value of a text.
func allValues(q *querier, b []byte) ([]any, error) { return everyValue(&jsonReader{q: q, data: b}) }

// everyValue reads every value that a reader has.
func everyValue(r *jsonReader) ([]any, error) {
	defer r.pay()
	var all []any
	for {
		v, err := r.next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
}

// jsonReader reads JSON and notes the order of keys.
type jsonReader struct {
	q     *querier
	data  []byte
	at    int
	depth int
	paid  int  // up to where what was read is charged
	holds bool // and held, three times as large as it is written
	loose bool // the order of keys is not noted, so that nothing is kept of what was read
}

// pay charges what was read since.
func (r *jsonReader) pay() {
	n := r.at - r.paid
	r.paid = r.at
	if r.q.p.Charge(n * 4); r.holds {
		r.q.p.Hold(n * 3)
	}
}

func (r *jsonReader) blanks() {
	for r.at < len(r.data) && (r.data[r.at] == ' ' || r.data[r.at] == '\n' || r.data[r.at] == '\t' || r.data[r.at] == '\r' ||
		r.data[r.at] == 0x1e) {
		r.at++
	}
	if r.at == 0 && strings.HasPrefix(string(r.data[:min(3, len(r.data))]), "\ufeff") {
		r.at = 3
		r.blanks()
	}
}

func (r *jsonReader) fail(what string) error {
	line := 1
	column := 0
	for _, c := range r.data[:min(r.at+1, len(r.data))] {
		if column++; c == '\n' {
			line++
			column = 0
		}
	}
	return fmt.Errorf("%s at line %d, column %d", what, line, column)
}

func (r *jsonReader) next() (any, error) {
	r.blanks()
	if r.at >= len(r.data) {
		return nil, io.EOF
	}
	v, err := r.value()
	if errors.Is(err, io.EOF) {
		err = r.fail("Unfinished JSON term at EOF")
	}
	return v, err
}

func (r *jsonReader) value() (any, error) {
	if r.at-r.paid > 1<<14 {
		r.pay()
	}
	r.blanks()
	if r.at >= len(r.data) {
		return nil, io.EOF
	}
	if r.depth++; r.depth > 256 {
		return nil, r.fail("Exceeds depth limit for parsing")
	}
	defer func() { r.depth-- }()
	switch c := r.data[r.at]; {
	case c == '{':
		return r.object()
	case c == '[':
		r.at++
		list := []any{}
		for {
			r.blanks()
			if r.at < len(r.data) && r.data[r.at] == ']' && len(list) == 0 {
				r.at++
				return list, nil
			}
			v, err := r.value()
			if err != nil {
				return nil, err
			}
			list = append(list, v)
			r.blanks()
			if r.at >= len(r.data) {
				return nil, io.EOF
			}
			switch r.data[r.at] {
			case ',':
				r.at++
			case ']':
				r.at++
				return list, nil
			default:
				return nil, r.fail("Expected separator between values")
			}
		}
	case c == '"':
		return r.str()
	case c == '-' && r.at+1 < len(r.data) && r.data[r.at+1]|0x20 >= 'a' && r.data[r.at+1]|0x20 <= 'z':
		return r.word()
	case c == '-' || c >= '0' && c <= '9':
		return r.number()
	}
	return r.word()
}

// word reads a value that is a word.
func (r *jsonReader) word() (any, error) {
	start := r.at
	if r.data[r.at] == '-' {
		r.at++
	}
	for r.at < len(r.data) && r.data[r.at]|0x20 >= 'a' && r.data[r.at]|0x20 <= 'z' {
		r.at++
	}
	switch string(r.data[start:r.at]) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	case "nan", "NaN", "-nan", "-NaN":
		return math.NaN(), nil
	case "Infinity", "infinity":
		return math.Inf(1), nil
	case "-Infinity", "-infinity":
		return math.Inf(-1), nil
	}
	return nil, r.fail("Invalid literal")
}

func (r *jsonReader) object() (any, error) {
	r.at++
	m := map[string]any{}
	var keys []string
	for {
		r.blanks()
		if r.at >= len(r.data) {
			return nil, io.EOF
		}
		if r.data[r.at] == '}' && len(m) == 0 {
			r.at++
			return m, nil
		}
		if r.data[r.at] != '"' {
			return nil, r.fail("Object keys must be strings")
		}
		k, err := r.str()
		if err != nil {
			return nil, err
		}
		r.blanks()
		if r.at >= len(r.data) {
			return nil, io.EOF
		}
		if r.data[r.at] != ':' {
			return nil, r.fail("Objects must consist of key:value pairs")
		}
		r.at++
		if _, twice := m[k]; !twice {
			keys = append(keys, k)
			if _, known := r.q.rank[k]; !known && !r.loose {
				r.q.rank[k] = len(r.q.rank)
			}
		}
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		m[k] = v
		r.blanks()
		if r.at >= len(r.data) {
			return nil, io.EOF
		}
		switch r.data[r.at] {
		case ',':
			r.at++
		case '}':
			if r.at++; r.loose {
				return m, nil
			}
			r.q.order[reflect.ValueOf(m).Pointer()] = keys
			noteShape(r.q, keys)
			r.q.keep = append(r.q.keep, m)
			return m, nil
		default:
			return nil, r.fail("Expected separator between values")
		}
	}
}

func (r *jsonReader) str() (string, error) {
	start := r.at
	for r.at++; r.at < len(r.data); r.at++ {
		if r.at-r.paid > bound.Piece {
			r.pay()
		}
		switch r.data[r.at] {
		case '\\':
			r.at++
		case '"':
			r.at++
			if r.at-start > bound.Piece {
				return r.long(r.data[start+1 : r.at-1])
			}
			var s string
			if err := json.Unmarshal(r.data[start:r.at], &s); err != nil {
				var b []byte // characters below the blank are let through, as jq does
				for _, c := range r.data[start:r.at] {
					if c < ' ' {
						b = fmt.Appendf(b, `\u%04x`, c)
					} else {
						b = append(b, c)
					}
				}
				if err := json.Unmarshal(b, &s); err != nil {
					return "", r.fail("Invalid escape")
				}
			}
			return s, nil
		}
	}
	return "", io.EOF
}

// long reads a text that is long, piece by piece: none ends within a character or an escape.
func (r *jsonReader) long(b []byte) (string, error) {
	var all []byte
	for len(b) > 0 {
		n := 0
		for n < len(b) && n < bound.Piece/2 {
			n += characterBytes(b[n:])
		}
		n = min(n, len(b))
		piece := jsonReader{q: r.q, data: slices.Concat([]byte{'"'}, b[:n], []byte{'"'})}
		s, err := piece.str()
		if err != nil || piece.at != len(piece.data) {
			return "", r.fail("Invalid escape")
		}
		r.q.p.Charge(n)
		all, b = r.q.p.Append(all, []byte(s)), b[n:]
	}
	return r.q.p.Text(all), nil
}

// characterBytes is how long a character is in JSON: an escape, of two halves where it begins one, or as it stands.
func characterBytes(b []byte) int {
	if b[0] != '\\' {
		_, n := utf8.DecodeRune(b)
		return n
	}
	if len(b) < 6 || b[1] != 'u' {
		return 2
	}
	if b[2]|0x20 == 'd' && strings.IndexByte("89abAB", b[3]) >= 0 && len(b) >= 12 && b[6] == '\\' && b[7] == 'u' && b[8]|0x20 == 'd' &&
		strings.IndexByte("cdefCDEF", b[9]) >= 0 {
		return 12
	}
	return 6
}

func (r *jsonReader) number() (any, error) {
	start := r.at
	whole := true
	for r.at < len(r.data) && strings.IndexByte("+-0123456789.eE", r.data[r.at]) >= 0 {
		whole = whole && (r.data[r.at] >= '0' && r.data[r.at] <= '9' || r.at == start)
		if r.at++; r.at-start > 1000 {
			return nil, r.fail("Number too long")
		}
	}
	text := string(r.data[start:r.at])
	if whole {
		if n, err := strconv.Atoi(text); err == nil {
			return n, nil
		}
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil, r.fail("Invalid numeric literal")
	}
	if !whole {
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			return v, nil
		}
	}
	return json.Number(text), nil
}
