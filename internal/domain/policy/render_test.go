package policy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
)

// unescape reverses policy.Escape.
func unescape(text string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			out.WriteByte(text[i])
			i++
			continue
		}
		rest := text[i+1:]
		switch {
		case strings.HasPrefix(rest, "n"):
			out.WriteByte('\n')
			i += 2
		case strings.HasPrefix(rest, "r"):
			out.WriteByte('\r')
			i += 2
		case strings.HasPrefix(rest, "t"):
			out.WriteByte('\t')
			i += 2
		case strings.HasPrefix(rest, `"`), strings.HasPrefix(rest, `\`):
			out.WriteByte(rest[0])
			i += 2
		case strings.HasPrefix(rest, "x"):
			n, err := strconv.ParseUint(rest[1:3], 16, 8)
			if err != nil {
				return "", err
			}
			out.WriteByte(byte(n))
			i += 4
		case strings.HasPrefix(rest, "u{"):
			digits, _, _ := strings.Cut(rest[2:], "}")
			n, err := strconv.ParseUint(digits, 16, 32)
			if err != nil {
				return "", err
			}
			out.WriteRune(rune(n))
			i += 4 + len(digits)
		default:
			return "", fmt.Errorf("unknown escape at %q", text[i:])
		}
	}
	return out.String(), nil
}

// parse reads a rendering back into the value that it shows. It is written from the text alone, so that if it works no two values share
// a rendering.
func parse(text string) (map[string]any, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")[1:]
	root := map[string]any{}
	for i := 0; i < len(lines); i++ {
		path, rest, err := readPath(lines[i])
		if err != nil {
			return nil, err
		}
		var value any
		switch {
		case rest == ":":
			var block []string
			for i+1 < len(lines) && strings.HasPrefix(lines[i+1], "  | ") {
				i++
				line, err := unescape(strings.TrimPrefix(lines[i], "  | "))
				if err != nil {
					return nil, err
				}
				block = append(block, line)
			}
			value = strings.Join(block, "\n")
		case strings.HasPrefix(rest, `: "`):
			value, err = unescape(strings.TrimSuffix(strings.TrimPrefix(rest, `: "`), `"`))
			if err != nil {
				return nil, err
			}
		case rest == ": []":
			value = []any{}
		case rest == ": {}":
			value = map[string]any{}
		default:
			dec := json.NewDecoder(strings.NewReader(strings.TrimPrefix(rest, ": ")))
			dec.UseNumber()
			if err := dec.Decode(&value); err != nil {
				return nil, fmt.Errorf("%q: %w", lines[i], err)
			}
		}
		put(root, path, value)
	}
	return root, nil
}

// readPath reads name, .name and [n] up to the colon.
func readPath(line string) (path []any, rest string, err error) {
	for first := true; ; first = false {
		switch {
		case !first && strings.HasPrefix(line, ":"):
			return path, line, nil
		case !first && strings.HasPrefix(line, "["):
			digits, after, _ := strings.Cut(line[1:], "]")
			n, err := strconv.Atoi(digits)
			if err != nil {
				return nil, "", err
			}
			path, line = append(path, n), after
			continue
		case !first:
			line = strings.TrimPrefix(line, ".")
		}
		if strings.HasPrefix(line, `"`) {
			end := 1
			for ; line[end] != '"'; end++ {
				if line[end] == '\\' {
					end++
				}
			}
			key, err := unescape(line[1:end])
			if err != nil {
				return nil, "", err
			}
			path, line = append(path, key), line[end+1:]
			continue
		}
		end := strings.IndexAny(line, ".[:")
		if end < 0 {
			return nil, "", fmt.Errorf("no value in %q", line)
		}
		path, line = append(path, line[:end]), line[end:]
	}
}

func put(root map[string]any, path []any, value any) {
	var at any = root
	for i, step := range path {
		last := i == len(path)-1
		var next any = map[string]any{}
		if !last {
			if _, ok := path[i+1].(int); ok {
				next = &[]any{}
			}
		} else {
			next = value
		}
		switch container := at.(type) {
		case map[string]any:
			key := step.(string)
			if _, ok := container[key]; !ok || last {
				container[key] = next
			}
			at = container[key]
		case *[]any:
			n := step.(int)
			if n == len(*container) {
				*container = append(*container, next)
			}
			at = (*container)[n]
		}
	}
}

// plain turns the lists of put into what encoding/json makes.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	case *[]any:
		for i := range *v {
			(*v)[i] = plain((*v)[i])
		}
		return *v
	}
	return v
}

func roundTrips(canonical []byte) error {
	shown, err := policy.Render(canonical)
	if errors.Is(err, policy.ErrTooLongToShow) {
		return nil
	}
	if err != nil {
		return err
	}
	for i, r := range shown {
		if r != '\n' && (r < 0x20 || r > 0x7e) && (r < 0xc0 || r > 0xff || r == 0xd7 || r == 0xf7) {
			return fmt.Errorf("the rendering holds %U at %d", r, i)
		}
	}
	got, err := parse(shown)
	if err != nil {
		return fmt.Errorf("read the rendering back: %w\n%s", err, shown)
	}
	dec := json.NewDecoder(bytes.NewReader(canonical))
	dec.UseNumber()
	var want map[string]any
	if err := dec.Decode(&want); err != nil {
		return err
	}
	if !reflect.DeepEqual(plain(got), any(want)) {
		return fmt.Errorf("got %v, want %v\n%s", got, want, shown)
	}
	return nil
}

func TestThreat11RenderingIsInjective(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z \n\t"\\|:.\[\]{}]{0,40}`), rapid.StringOf(rapid.RuneFrom([]rune{'a', '\n',
		'\r', '\x1b', '\u202e', '\u200b', 'а', 'é', ' ', '"', '\\', '|'})))
	rapid.Check(t, func(t *rapid.T) {
		a := policy.Action{
			Type: policy.ShellExec, Command: text.Draw(t, "command"), Argv: rapid.SliceOfN(text, 0, 4).Draw(t, "argv"),
			Path: text.Draw(t, "path"), Target: text.Draw(t, "target"), Size: rapid.Int64Range(-9e15, 9e15).Draw(t, "size"),
			Env: rapid.MapOfN(text, text, 0, 4).Draw(t, "env"), Overwrite: rapid.Bool().Draw(t, "overwrite"), Mode: text.Draw(t, "mode"),
		}
		canonical, err := a.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		if err := roundTrips(canonical); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzRender(f *testing.F) {
	for _, seed := range []string{
		`{"type":"a"}`, `{"a":[],"b":{},"c":null,"d":[[1,[2]],{"x":"y\nz"}]}`, `{"":""}`, `{"a.b":"c","a":{"b":"c"}}`, `{"a[0]":"x","a":["x"]}`,
		`{"a":"x\n  | y: \"z\""}`, `{"a":"\u001b[31m\u202e\u0000"}`, `{"a: \"b\"\nc":"d"}`, `{"a":"                              x"}`,
		`{"a":"x\n"}`, `{"a":-0.5e-7}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		canonical, err := policy.Canonicalize(raw)
		if err != nil || len(canonical) == 0 || canonical[0] != '{' || !utf8.Valid(canonical) {
			return
		}
		if err := roundTrips(canonical); err != nil {
			t.Error(err)
		}
	})
}

func TestThreat05NothingIsCut(t *testing.T) {
	for name, a := range map[string]policy.Action{
		"1 MiB of arguments": {Type: policy.ShellExec, Argv: []string{strings.Repeat("x", 1<<20)}},
		"10,000 newlines":    {Type: policy.ShellExec, Command: "ls" + strings.Repeat("\n", 10_000) + "rm -rf /"},
		"many arguments":     {Type: policy.ShellExec, Argv: strings.Split(strings.Repeat("x ", 5_000), " ")},
		"long escapes":       {Type: policy.ShellExec, Command: strings.Repeat("\u202e", 10_000)},
	} {
		if _, err := policy.Render(canonical(t, a)); !errors.Is(err, policy.ErrTooLongToShow) {
			t.Errorf("%s: got %v, want %v", name, err, policy.ErrTooLongToShow)
		}
	}
	for name, command := range map[string]string{
		"colours":                     "ls \x1b[8mrm -rf /\x1b[0m",
		"carriage return":             "rm -rf /\rls            ",
		"backspaces":                  "rm -rf /\b\b\b\b\b\b\b\bls",
		"tabs":                        "ls\t\t\t\trm",
		"far to the right":            "ls" + strings.Repeat(" ", 500) + "; rm -rf /",
		"blanks at the end of a line": "a  \nb",
		"right to left":               "ls \u202e/ fr- mr",
		"no width":                    "r\u200bm",
	} {
		shown, err := policy.Render(canonical(t, policy.Action{Type: policy.ShellExec, Command: command}))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if strings.ContainsFunc(shown, func(r rune) bool { return r != '\n' && (r < 0x20 || r > 0x7e) }) || strings.Contains(shown,
			strings.Repeat(" ", 17)) {
			t.Errorf("%s: it can steer what is shown: %q", name, shown)
		}
		back, err := parse(shown)
		if err != nil || back["command"] != command {
			t.Errorf("%s: read back %q, %v, want %q", name, back["command"], err, command)
		}
	}
	long := canonical(t, policy.Action{Type: policy.ShellExec, Command: strings.Repeat("é", 20_000)})
	shown, err := policy.Render(long)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(shown, fmt.Sprintf("%d bytes, %s\n", len(long), event.DigestOf(long))) || !strings.Contains(shown,
		strings.Repeat("é", 20_000)) {
		t.Error("a long action is not shown in full, with its length and its hash")
	}
}

func TestThreat12ConfusablesLookDifferent(t *testing.T) {
	for _, pair := range [][2]string{
		{"a", "а"}, {"e", "е"}, {"o", "ο"}, {"p", "р"}, {"c", "с"}, {"x", "х"}, {"I", "l"}, {"0", "Ο"}, {"paypal", "pаypal"}, {"/", "⁄"},
		{".", "․"},
		{"-", "‐"}, {"é", "e\u0301"}, {"A", "Α"}, {"K", "\u212a"}, {"Å", "\u212b"}, {" ", "\u00a0"}, {"", "\u200b"}, {"ab", "a\u00adb"},
		{"m", "rn"}, {"ß", "β"},
		{"file.txt", "file\u202etxt."}, {"ﬁ", "fi"}, {"１", "1"}, {";", "\u037e"}, {"`", "ˋ"}, {"'", "’"},
	} {
		left, right := policy.Escape(pair[0]), policy.Escape(pair[1])
		if left == right {
			t.Errorf("%q and %q look the same: %s", pair[0], pair[1], left)
		}
		for _, shown := range []string{left, right} {
			if strings.ContainsFunc(shown, func(r rune) bool { return r > 0xff }) {
				t.Errorf("%q is shown with a character beyond Latin-1", shown)
			}
		}
	}
}

func TestTitleIsShort(t *testing.T) {
	for _, command := range []string{"", "ls", strings.Repeat("é", 200), strings.Repeat("x", 1000), "a\nb\x1b"} {
		title := policy.Title(policy.Action{Type: policy.ShellExec, Command: command})
		if len(title) > 120 || !utf8.ValidString(title) || strings.ContainsAny(title, "\n\x1b") {
			t.Errorf("%.20q: got %q", command, title)
		}
	}
}
