package journal

import "unicode/utf8"

// maxNesting is how deep JSON may be nested, here as in encoding/json.
const maxNesting = 10_000

// isObject reports whether raw is a JSON object in UTF-8. Every event passes here. It needs one comparison per byte, while encoding/json
// needs a call. A test compares it with encoding/json.
func isObject(raw []byte) bool {
	s := jsonText{raw: raw}
	s.space()
	return s.at < len(raw) && raw[s.at] == '{' && utf8.Valid(raw) && s.value(0) && s.at == len(raw)
}

// jsonText is JSON that is read up to at.
type jsonText struct {
	raw []byte
	at  int
}

func (s *jsonText) space() {
	for s.at < len(s.raw) {
		switch s.raw[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// next takes a byte if it is the one that is wanted.
func (s *jsonText) next(want byte) bool {
	if s.at < len(s.raw) && s.raw[s.at] == want {
		s.at++
		return true
	}
	return false
}

// value takes a value and the space behind it.
func (s *jsonText) value(depth int) bool {
	if s.at == len(s.raw) {
		return false
	}
	ok := false
	switch c := s.raw[s.at]; {
	case c == '{':
		ok = s.members('}', depth+1)
	case c == '[':
		ok = s.members(']', depth+1)
	case c == '"':
		ok = s.text()
	case c == 't':
		ok = s.word("true")
	case c == 'f':
		ok = s.word("false")
	case c == 'n':
		ok = s.word("null")
	default:
		ok = s.number()
	}
	s.space()
	return ok
}

// members takes an object or an array, which ends with the given byte.
func (s *jsonText) members(end byte, depth int) bool {
	if depth > maxNesting {
		return false
	}
	s.at++
	s.space()
	if s.next(end) {
		return true
	}
	for {
		if end == '}' {
			if s.at == len(s.raw) || s.raw[s.at] != '"' || !s.text() {
				return false
			}
			s.space()
			if !s.next(':') {
				return false
			}
			s.space()
		}
		if !s.value(depth) {
			return false
		}
		if s.next(end) {
			return true
		}
		if !s.next(',') {
			return false
		}
		s.space()
	}
}

// text takes a string.
func (s *jsonText) text() bool {
	for i := s.at + 1; i < len(s.raw); i++ {
		switch c := s.raw[i]; {
		case c == '"':
			s.at = i + 1
			return true
		case c < ' ':
			return false
		case c == '\\':
			i++
			if i == len(s.raw) {
				return false
			}
			switch s.raw[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					if i++; i == len(s.raw) || !isHex(s.raw[i]) {
						return false
					}
				}
			default:
				return false
			}
		}
	}
	return false
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

func (s *jsonText) word(want string) bool {
	if len(s.raw)-s.at < len(want) || string(s.raw[s.at:s.at+len(want)]) != want {
		return false
	}
	s.at += len(want)
	return true
}

// number takes a number.
func (s *jsonText) number() bool {
	s.next('-')
	if !s.next('0') && !s.digits() {
		return false
	}
	if s.next('.') && !s.digits() {
		return false
	}
	if s.next('e') || s.next('E') {
		if !s.next('+') {
			s.next('-')
		}
		return s.digits()
	}
	return true
}

// digits takes one digit or more.
func (s *jsonText) digits() bool {
	from := s.at
	for s.at < len(s.raw) && s.raw[s.at] >= '0' && s.raw[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}
