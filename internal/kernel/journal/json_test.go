package journal

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// plainly is what isObject means.
func plainly(raw []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) && utf8.Valid(raw) && json.Valid(raw)
}

var objects = []string{
	``, ` `, `{}`, " \t\r\n{ } \n", `{"a":1}`, `{"a":1,}`, `{"a" : [ 1 , -0.5e+3 , 2E-1, 1e5, true,false , null, "x\u00e4\n\"" ] , "b":{} }`,
	`{"a":[]}`, `{"a":[1,]}`, `{"a":[,]}`, `{"a":}`, `{"a"}`, `{a:1}`, `{"a":1 "b":2}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":.5}`,
	`{"a":1e}`,
	`{"a":+1}`, `{"a":tru}`, `{"a":truex}`, `{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":"\u12`, `{"a":"\`, `{"a":"` + "\x01" + `"}`, `{"a":"` +
		"\xff" + `"}`,
	`{"a":"` + "\x7f" + `"}`, `{"a":1}x`, `{}{}`, `[]`, `[{}]`, `1`, `"x"`, `null`, "\ufeff{}", `{"a":1]`, `{"a":[1}`, `{"a":"b`, `{"a`, `{`,
	`{"a":{`, "{\"a\":\"\x00\"}",
	strings.Repeat(`{"a":`, maxNesting-1) + `{}` + strings.Repeat(`}`, maxNesting-1),
	strings.Repeat(`{"a":`, maxNesting) + `{}` + strings.Repeat(`}`, maxNesting),
	`{"a":` + strings.Repeat(`[`, maxNesting-1) + `1` + strings.Repeat(`]`, maxNesting-1) + `}`,
	`{"a":` + strings.Repeat(`[`, maxNesting) + strings.Repeat(`]`, maxNesting) + `}`,
}

func TestIsObject(t *testing.T) {
	valid := 0
	for _, text := range objects {
		got, want := isObject([]byte(text)), plainly([]byte(text))
		if got != want {
			t.Errorf("%.80q: got %v, want %v", text, got, want)
		}
		if want {
			valid++
		}
	}
	if valid < 6 {
		t.Errorf("only %d of the texts are objects", valid)
	}
}

func FuzzIsObject(f *testing.F) {
	for _, text := range objects {
		if len(text) < 200 {
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if got, want := isObject(raw), plainly(raw); got != want {
			t.Errorf("%q: got %v, want %v", raw, got, want)
		}
	})
}
