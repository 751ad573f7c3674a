package term

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzPlain(f *testing.F) {
	for _, seed := range []string{"a", "\x1b[31m", "\u202e", "\xff", "\xc3", "\U000e0041", "\r\n", "\u2028", "\ufffd"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Plain(s)
		if Plain(got) != got {
			t.Errorf("plain(%q) = %q is not harmless", s, got)
		}
		if strings.Contains(OneLine(s, 0), "\n") {
			t.Errorf("oneLine(%q) has a line break", s)
		}
		var out bytes.Buffer
		if err := (&Printer{Out: &out}).Record(s); err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || utf8.ValidString(s) && back != s {
			t.Errorf("record(%q) = %s: %v", s, out.Bytes(), err)
		}
		if strings.IndexFunc(out.String(), disguise) >= 0 {
			t.Errorf("record(%q) = %q is not harmless", s, out.String())
		}
	})
}
