package term

import (
	"strings"
	"testing"
)

// TestMarkdownIsDrawnWhileItComes cuts a text at each place. The drawn text is the same.
func TestMarkdownIsDrawnWhileItComes(t *testing.T) {
	const text = "# A head\n\nSome **strong** words, `co*de`, 2 * 3 and é.\n- one\n  * two\n-no point\n> said\n" +
		"#no head\n```go\n# x **y**\n\n- z\n```\nend *"
	const want = "{1:A head}\n\nSome }{1:strong} words, }{36:co*de}, 2 * 3 and é.\n• one\n  • two\n-no point\n{2:│ said}\n#no head\n" +
		"{2:```go}\n{36:# x **y**}\n\n{36:- z}\n{2:```}\nend *\n"
	named := func(s string) string {
		return strings.NewReplacer("\x1b[0m", "}", "\x1b[1m", "{1:", "\x1b[2m", "{2:", "\x1b[36m", "{36:").Replace(s)
	}
	for cut := range len(text) + 1 {
		var b strings.Builder
		m := Markdown{P: &Printer{Out: &b, Colour: true}}
		for _, part := range []string{text[:cut], text[cut:]} {
			if n, err := m.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := m.Flush(); err != nil || named(b.String()) != want {
			t.Fatalf("cut at %d: got %q (%v), want %q", cut, named(b.String()), err, want)
		}
	}
	for in, want := range map[string]string{"": "", "a\n": "a\n", "**a**\n- b": "**a**\n- b\n", "\x1b[2J": "\\x1b[2J\n", "\xc3": "\\xc3\n"} {
		var b strings.Builder
		m := Markdown{P: &Printer{Out: &b}}
		if _, err := m.Write([]byte(in)); err != nil {
			t.Fatal(err)
		}
		if err := m.Flush(); err != nil || b.String() != want {
			t.Errorf("%q without colours: got %q (%v), want %q", in, b.String(), err, want)
		}
	}
}
