package javascript

import (
	"encoding/json"
	"errors"
	"slices"
)

// sourceMap says where the parts of a transformed text came from.
type sourceMap struct {
	again func() []byte // makes raw, if it is not nil
	raw   []byte        // until it is read
	lines [][]mapping   // by line of the result
}

// mapping is a place in the result and its place in the source. Lines and columns begin with 0.
type mapping struct{ column, line, original int }

// parse reads the map of a text that was made from one other, once.
func (s *sourceMap) parse() error {
	if s.lines != nil {
		return nil
	}
	if s.again != nil {
		s.raw, s.again = s.again(), nil
	}
	var m struct {
		Mappings string `json:"mappings"`
	}
	if err := json.Unmarshal(s.raw, &m); err != nil {
		return err
	}
	s.raw, s.lines = nil, [][]mapping{nil}
	var column, line, original int
	for i := 0; i < len(m.Mappings); {
		switch m.Mappings[i] {
		case ';':
			s.lines = append(s.lines, nil)
			column = 0
			i++
			continue
		case ',':
			i++
			continue
		}
		var fields [5]int
		n := 0
		for i < len(m.Mappings) && m.Mappings[i] != ',' && m.Mappings[i] != ';' {
			v, next, ok := quantity(m.Mappings, i)
			if !ok || n == len(fields) {
				return errors.New("the source map of a transformation cannot be read")
			}
			fields[n] = v
			n++
			i = next
		}
		column += fields[0]
		if n >= 4 {
			line += fields[2]
			original += fields[3]
			last := &s.lines[len(s.lines)-1]
			*last = append(*last, mapping{column, line, original})
		}
	}
	return nil
}

// quantity reads a number in the base-64 digits of source maps.
func quantity(text string, at int) (v, next int, ok bool) {
	shift := 0
	for at < len(text) && shift < 60 {
		d := digit(text[at])
		if d < 0 {
			return 0, at, false
		}
		at++
		v |= (d & 31) << shift
		shift += 5
		if d&32 == 0 {
			if v&1 != 0 {
				return -(v >> 1), at, true
			}
			return v >> 1, at, true
		}
	}
	return 0, at, false
}

func digit(c byte) int {
	switch {
	case c >= 'A' && c <= 'Z':
		return int(c - 'A')
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 26
	case c >= '0' && c <= '9':
		return int(c-'0') + 52
	case c == '+':
		return 62
	case c == '/':
		return 63
	}
	return -1
}

// original returns where a place came from. All numbers begin with 1.
func (s *sourceMap) original(line, column int) (int, int) {
	for l := min(line, len(s.lines)) - 1; l >= 0; l-- {
		on := s.lines[l]
		if len(on) == 0 {
			continue
		}
		i := len(on) - 1
		if l == line-1 {
			found, ok := slices.BinarySearchFunc(on, column-1, func(m mapping, c int) int { return m.column - c })
			if i = found; !ok {
				i = max(found-1, 0)
			}
		}
		return on[i].line + 1, on[i].original + 1
	}
	return line, column
}
