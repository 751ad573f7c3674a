package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"

	"agentbox/internal/domain/fault"
)

// maxDepth bounds the nesting of JSON that is canonicalised.
const maxDepth = 64

// exact reports ErrInexact with the number when raw holds a number beyond ±(2^53-1), and an error for nesting deeper than maxDepth.
func exact(raw []byte) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	for depth := 0; ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fault.Wrap(err, fault.Invalid, "invalid_json", "the value is not JSON")
		}
		switch t := token.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				depth++
			} else {
				depth--
			}
			if depth > maxDepth {
				return fault.New(fault.Invalid, "json_too_deep", "JSON may be nested at most %d deep", maxDepth)
			}
		case json.Number:
			if !exactNumber(t.String()) {
				return inexact(t.String())
			}
		}
	}
}

// exactNumber reports whether canonical JSON keeps a number apart from its neighbours: its magnitude is at most 2^53-1, however it is
// spelled. Larger fractions are refused with the integers, for at that size they have become integers.
func exactNumber(text string) bool {
	n, err := strconv.ParseFloat(text, 64)
	return err == nil && math.Abs(n) <= maxExact
}
