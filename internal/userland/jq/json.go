package jq

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"agentbox/internal/userland/bound"
)

// toJSON writes large values part by part.
func (q *querier) toJSON(v any, _ []any) any {
	w := work{q: q}
	if _, leaf := v.(string); isLarge(q, v, &w) || !leaf {
		return q.p.Text(appendJSON(q, nil, v))
	}
	return nil
}

func (q *querier) toString(v any, _ []any) any {
	if s, ok := v.(string); ok {
		return s
	}
	return q.toJSON(v, nil)
}

// appendJSON appends a value as the library writes it, with the keys in their order.
func appendJSON(q *querier, b []byte, v any) []byte {
	switch v := v.(type) {
	case []any:
		q.p.Charge(gasPerElement)
		b = append(b, '[')
		for i, x := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(q, b, x)
		}
		return append(b, ']')
	case map[string]any:
		q.p.Charge(gasPerElement)
		b = append(b, '{')
		for i, k := range q.keys(v) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendJSON(q, b, k), ':')
			b = appendJSON(q, b, v[k])
		}
		return append(b, '}')
	}
	return appendLeaf(q, b, v)
}

// appendLeaf appends a value that has no parts. A long text is written piece by piece.
func appendLeaf(q *querier, b []byte, v any) []byte {
	s, ok := v.(string)
	if !ok || len(s) <= bound.Piece {
		q.p.Charge(gasPerElement + len(s))
		text, err := gojq.Marshal(v)
		if err != nil {
			return append(b, "null"...)
		}
		return q.p.Append(b, text)
	}
	b = append(b, '"')
	for s != "" {
		n := min(len(s), bound.Piece)
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		q.p.Charge(n)
		text, err := gojq.Marshal(s[:n])
		if err != nil {
			return append(b, "null"...)
		}
		b, s = q.p.Append(b, text[1:len(text)-1]), s[n:]
	}
	return append(b, '"')
}

func appendNewline(q *querier, b []byte, depth int) []byte {
	if q.packed {
		return b
	}
	q.p.Charge(1 + depth*len(q.indent)/8)
	b = append(b, '\n')
	for range depth {
		b = append(b, q.indent...)
	}
	return b
}

// appendValue appends a value. It flushes on the way, because the indentation of deep values is long.
func appendValue(q *querier, b []byte, v any, depth int) []byte {
	if len(b) > 1<<16 && q.live {
		_, _ = q.out.Write(b)
		b = b[:0]
	}
	if len(b) > 1<<16 && int64(len(b)) > q.p.Account.Spare() {
		q.p.Hold(len(b))
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return append(b, "{}"...)
		}
		b = append(b, '{')
		for i, k := range q.keys(v) {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendNewline(q, b, depth+1)
			b = appendScalar(q, b, k)
			if b = append(b, ':'); !q.packed {
				b = append(b, ' ')
			}
			b = appendValue(q, b, v[k], depth+1)
		}
		return append(appendNewline(q, b, depth), '}')
	case []any:
		if len(v) == 0 {
			return append(b, "[]"...)
		}
		b = append(b, '[')
		for i, x := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(q, appendNewline(q, b, depth+1), x, depth+1)
		}
		return append(appendNewline(q, b, depth), ']')
	}
	return appendScalar(q, b, v)
}

func appendScalar(q *querier, b []byte, v any) []byte {
	if f, ok := v.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1e17 {
		return strconv.AppendInt(b, int64(f), 10)
	}
	if _, ok := v.(string); !ok || !q.ascii {
		return appendLeaf(q, b, v)
	}
	text, err := gojq.Marshal(v)
	if err != nil {
		return append(b, "null"...)
	}
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r < utf8.RuneSelf:
			b = append(b, byte(r))
		case r > 0xffff:
			r -= 0x10000
			b = fmt.Appendf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
		text = text[size:]
	}
	return b
}
