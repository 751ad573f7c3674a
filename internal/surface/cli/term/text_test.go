package term

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

// TestWrapped breaks between words only, and never loses one.
func TestWrapped(t *testing.T) {
	for _, c := range []struct {
		text   string
		width  int
		indent int
		want   string
	}{
		{"one two three", 0, 2, "one two three"},
		{"one two three", 13, 0, "one two three"},
		{"one two three", 12, 0, "one two\nthree"},
		{"one two three", 9, 2, "one two\n  three"},
		{"one two three", 8, 2, "one\n  two\n  three"},
		{"äöü äöü", 7, 0, "äöü äöü"},
		{"/a/path/that/is/long or not", 10, 1, "/a/path/that/is/long\n or not"},
		{"x", 1, 2, "x"},
	} {
		if got := Wrapped(c.text, c.width, c.indent); got != c.want {
			t.Errorf("wrapped(%q, %d, %d): got %q, want %q", c.text, c.width, c.indent, got, c.want)
		}
	}
}

// TestPlainShowsWhatATerminalWouldObey escapes what moves the cursor, changes what follows or cannot be seen, and leaves the rest alone.
func TestPlainShowsWhatATerminalWouldObey(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"words", "naïve 日本 ✓\n\tend", "naïve 日本 ✓\n\tend"},
		{"colour", "\x1b[31mred", `\x1b[31mred`},
		{"carriage return", "safe\rrm -rf /", `safe\x0drm -rf /`},
		{"backspace", "a\b", `a\x08`},
		{"C1 control sequence introducer", "\u009b31m", `\x9b31m`},
		{"operating system command", "\x1b]0;title\a", `\x1b]0;title\x07`},
		{"right-to-left override", "gpj.\u202exe", `gpj.\u202exe`},
		{"isolate", "\u2066a\u2069", `\u2066a\u2069`},
		{"zero width", "a\u200bb", `a\u200bb`},
		{"tag characters", "a\U000e0041", `a\U000e0041`},
		{"byte order mark", "\ufeffa", `\ufeffa`},
		{"invalid byte", "a\xffb", `a\xffb`},
		{"replacement character", "a\ufffdb", "a\ufffdb"},
		{"delete", "a\x7f", `a\x7f`},
	} {
		if got := Plain(c.in); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestJSONIsHarmlessAndStillSaysTheSame reads back what was escaped.
func TestJSONIsHarmlessAndStillSaysTheSame(t *testing.T) {
	want := "\x1b[0m \u009b \u202e \U000e0041 <&> ok\n"
	var out bytes.Buffer
	if err := (&Printer{Out: &out}).Record(map[string]string{"text": want}); err != nil {
		t.Fatal(err)
	}
	if line := out.String(); !harmless(line) {
		t.Errorf("got %q, which a terminal would obey", line)
	}
	var got map[string]string
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got["text"] != want {
		t.Errorf("got %q, want %q", got["text"], want)
	}
}

// TestOneLine cuts at a number of characters, not of bytes.
func TestOneLine(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"äöü", 3, "äöü"},
		{"äöüß", 3, "äö…"},
		{"a\nb", 0, `a\nb`},
		{"abc", 1, "…"},
	} {
		if got := OneLine(c.in, c.width); got != c.want {
			t.Errorf("oneLine(%q, %d): got %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

// TestDurations writes spans the way people say them.
func TestDurations(t *testing.T) {
	for in, want := range map[time.Duration]string{
		999 * time.Microsecond: "0 ms", 42 * time.Millisecond: "42 ms", 1500 * time.Millisecond: "1.5 s", 61 * time.Second: "1 min 01 s",
		90 * time.Minute: "1 h 30 min", 47*time.Hour + 59*time.Minute: "47 h 59 min", 72 * time.Hour: "3 days", -time.Second: "-1.0 s",
	} {
		if got := Duration(in); got != want {
			t.Errorf("duration(%v): got %q, want %q", in, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 files", 1: "1 file", 2: "2 files"} {
		if got := Count(n, "file"); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
