package tools

import (
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"agentbox/internal/userland/bound"
)

// toJSON writes large values part by part.
func (q *querier) toJSON(v any, _ []any) any {
	w := work{q: q}
	if _, leaf := v.(string); q.large(v, &w) || !leaf {
		return q.p.Text(q.json(nil, v))
	}
	return nil
}

func (q *querier) toString(v any, _ []any) any {
	if s, ok := v.(string); ok {
		return s
	}
	return q.toJSON(v, nil)
}

// json appends a value as the library writes it, with the keys in their order.
func (q *querier) json(b []byte, v any) []byte {
	switch v := v.(type) {
	case []any:
		q.p.Charge(gasPerElement)
		b = append(b, '[')
		for i, x := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = q.json(b, x)
		}
		return append(b, ']')
	case map[string]any:
		q.p.Charge(gasPerElement)
		b = append(b, '{')
		for i, k := range q.keys(v) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(q.json(b, k), ':')
			b = q.json(b, v[k])
		}
		return append(b, '}')
	}
	return q.leaf(b, v)
}

// leaf appends a value that has no parts. A long text is written piece by piece.
func (q *querier) leaf(b []byte, v any) []byte {
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
