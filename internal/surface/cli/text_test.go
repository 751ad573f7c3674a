package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
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
		if got := wrapped(c.text, c.width, c.indent); got != c.want {
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
		if got := plain(c.in); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestJSONIsHarmlessAndStillSaysTheSame reads back what was escaped.
func TestJSONIsHarmlessAndStillSaysTheSame(t *testing.T) {
	want := "\x1b[0m \u009b \u202e \U000e0041 <&> ok\n"
	var out bytes.Buffer
	if err := (&printer{out: &out}).record(map[string]string{"text": want}); err != nil {
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
		if got := oneLine(c.in, c.width); got != c.want {
			t.Errorf("oneLine(%q, %d): got %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

// TestSizes reads sizes back and refuses what is none.
func TestSizes(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "512": 512, "64KiB": 64 << 10, "64k": 64 << 10, "1.5G": 3 << 29, "2 GB": 2 << 30, "1T": 1 << 40, "4096MiB": 4 << 30,
	} {
		if got, err := parseSize(in); err != nil || got != want {
			t.Errorf("parseSize(%q): got %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "G", "-1", "1X", "1 K K", "NaN", "Inf", "1e30", "12q"} {
		if got, err := parseSize(in); fault.KindOf(err) != fault.Invalid || err == nil {
			t.Errorf("parseSize(%q): got %d, %v, want a refusal", in, got, err)
		}
	}
}

// TestSpans reads time spans and refuses what is none.
func TestSpans(t *testing.T) {
	for in, want := range map[string]time.Duration{"90s": 90 * time.Second, "15m": 15 * time.Minute, "7d": 168 * time.Hour,
		"0.5d": 12 * time.Hour} {
		if got, err := parseSpan(in); err != nil || got != want {
			t.Errorf("parseSpan(%q): got %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "0s", "-1m", "5", "d", "1w", "99999d"} {
		if got, err := parseSpan(in); err == nil {
			t.Errorf("parseSpan(%q): got %v, want a refusal", in, got)
		}
	}
}

// TestDurations writes spans the way people say them.
func TestDurations(t *testing.T) {
	for in, want := range map[time.Duration]string{
		999 * time.Microsecond: "0 ms", 42 * time.Millisecond: "42 ms", 1500 * time.Millisecond: "1.5 s", 61 * time.Second: "1 min 01 s",
		90 * time.Minute: "1 h 30 min", 47*time.Hour + 59*time.Minute: "47 h 59 min", 72 * time.Hour: "3 days", -time.Second: "-1.0 s",
	} {
		if got := duration(in); got != want {
			t.Errorf("duration(%v): got %q, want %q", in, got, want)
		}
	}
}

// TestExitCodes gives every kind of fault its own code, and tells a refusal by policy from one at the door.
func TestExitCodes(t *testing.T) {
	for kind, want := range kinds {
		if got := exitCode(fault.New(kind, "x", "x")); got != want {
			t.Errorf("exitCode(%v): got %d, want %d", kind, got, want)
		}
	}
	for kind := fault.Internal; kind <= fault.Unavailable; kind++ {
		if _, ok := kinds[kind]; !ok {
			t.Errorf("%v has no exit code", kind)
		}
	}
	if got := exitCode(fault.New(fault.Denied, "kill_switch_active", "x")); got != ExitRefused {
		t.Errorf("got %d, want %d", got, ExitRefused)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 files", 1: "1 file", 2: "2 files"} {
		if got := count(n, "file"); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

func TestALineThatIsAskedAbout(t *testing.T) {
	c := carried{top: "/w", folder: "/tmp", code: 3, first: map[string]string{"A": "1"}, now: map[string]string{}}
	const line = "rm -r x\necho 'a\nb'"
	op, _, err := c.operation(line, strings.NewReader(strings.Repeat("x", 16)))
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := policy.Action{Type: policy.ShellExec, Workspace: "ws_1", Principal: "usr_1", Command: op.Command,
		Argv: []string{"/bin/bash", "-c", op.Command}}.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	what, err := policy.Render(canonical)
	if err != nil {
		t.Fatal(err)
	}
	a := policy.Approval{ID: "appr_1", Title: "run a command: cd -- /tmp || exit"}
	a.Question.What = what
	got := lineAsked(a, op.Command, line)
	if got.Title != `run a command: rm -r x\necho 'a\nb'` {
		t.Errorf("the title is %q", got.Title)
	}
	for _, text := range []string{"  | rm -r x\n  | echo 'a\n  | b'\n", "argv[0]", "agentbox approvals show appr_1"} {
		if !strings.Contains(got.Question.What, text) {
			t.Errorf("it does not show %q:\n%s", text, got.Question.What)
		}
	}
	for _, text := range []string{"cd --", "unset", "(exit 3)", "here="} {
		if !strings.Contains(what, text) || strings.Contains(got.Question.What, text) {
			t.Errorf("it shows %q:\n%s", text, got.Question.What)
		}
	}
	other := a
	other.Question.What = "command: \"something else\"\n"
	if got := lineAsked(other, op.Command, line); got.Title != other.Title || got.Question.What != other.Question.What {
		t.Errorf("a question about something else became %q", got.Question.What)
	}
}
