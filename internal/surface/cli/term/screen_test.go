package term

import (
	"strings"
	"testing"
)

// TestAScreenShowsTextAndColours cuts what a command prints at each place.
func TestAScreenShowsTextAndColours(t *testing.T) {
	const printed = "é\x1b[1;32mgreen\x1b[0m\tx\r\ny\rz\x1b[2J\x1b]0;t\x07\u202e\xff\x1b[31mred"
	const want = "é\x1b[1;32mgreen\x1b[0m\tx\ny\nz\\x1b[2J\\x1b]0;t\\x07\\u202e\\xff\x1b[31mred\x1b[0m"
	for cut := range len(printed) + 1 {
		var b strings.Builder
		s := Screen{Out: &b}
		for _, part := range []string{printed[:cut], printed[cut:]} {
			if n, err := s.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := s.Flush(); err != nil || b.String() != want || !s.Open {
			t.Errorf("cut at %d: got %q (%v, open: %v), want %q", cut, b.String(), err, s.Open, want)
		}
	}
	for end, want := range map[string]string{"\x1b": `\x1b`, "\x1b[3": `\x1b[3`, "\r": "\n", "\xc3": `\xc3`, "\x1b[" + strings.Repeat("1",
		40) + "m": `\x1b[` + strings.Repeat("1", 40) + "m"} {
		var b strings.Builder
		s := Screen{Out: &b}
		if _, err := s.Write([]byte(end)); err != nil {
			t.Fatal(err)
		}
		if err := s.Flush(); err != nil || b.String() != want {
			t.Errorf("%q: got %q (%v), want %q", end, b.String(), err, want)
		}
	}
}
