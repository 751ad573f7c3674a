package yamltext_test

import (
	"io"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"agentbox/internal/kernel/yamltext"
)

func decode(r io.Reader) error { return yaml.NewDecoder(r).Decode(new(yaml.Node)) }

func faultOf(t *testing.T, text string) yamltext.Fault {
	t.Helper()
	err := decode(strings.NewReader(text))
	if err == nil {
		t.Fatalf("%q is YAML", text)
	}
	return yamltext.FaultOf([]byte(text), err, decode)
}

// TestTheLineOfAFault breaks texts in every way that people break them, each on the first line and on a later one.
func TestTheLineOfAFault(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"models: [", `line 1: `},
		{"models:\n  - {name: a, model: b\n  - {name: c, model: d}\nroutes: []\n", `line 3: a comma or a } is missing before this: ` +
			`"- {name: c, model: d}"; or the fault is above it: what the parser reads there begins on line 2: "- {name: a, model: b"`},
		{"x: 1\nmodels: [a\nroutes: []\n", `line 3: a comma or a ] is missing before this: "routes: []"`},
		{"models:\n  - name: a\n    model: b\n   key: c\nroutes: []\n", `line 4: this is no item of the list above it`},
		{"models:\n  - name: a\n\n\n    model: b\n\n  name: x\nroutes: []\n", `line 7: this is no item`},
		{"models:\n  - {name: a}}\nroutes: []\n", `line 3: this is no item of the list above it; begin each item with - in the same column: ` +
			`"routes: []"; or the fault is above it: what the parser reads there begins on line 2: "- {name: a}}"`},
		{"models:\n  - name: a\n\tmodel: b\n", `line 3: indent with spaces`},
		{"models:\n\t- name: a\n", `line 2: indent with spaces and not with tabs: "- name: a"`},
		{"models:\n  - name: \"a\n    model: b\nroutes: []\n\n", `line 2: a quote is opened here and not closed: "- name: \"a"`},
		{"name: 'a\nroutes: []\n", `line 1: a quote is opened here`},
		{"models:\n  - name: a: b\n", `line 2: a second ": " is here`},
		{"x: 1\na: 1\n b: 2\nc: 1\n", `line 3: a second ": " is here, or the line is indented otherwise`},
		{"models:\n  - name: a\n    model b\n    key: c\n", `line 3: a : is missing behind a key: "model b"`},
		{"date: 1\nmodels:\n  dear: {input:\n", `line 3: `},
		{"a: @x\nb: 1\n", `line 1: a value cannot begin so`},
		{"a: 1\nb: @x\nc: 1\n", `line 2: a value cannot begin so (@ ` + "`" + ` % or a tab); put it in quotes: "b: @x"`},
		{"a: 1\nb: \"\\q\"\n", `line 2: \ in double quotes`},
		{"a: 1\nb: |\n  x\n c: 1\nd: 1\n", `line 4: a key is wanted here`},
		{"a: 1\nb: 'it's'\nc: 1\nd: 1\n", `line 3: a key is wanted here; begin the keys of an object in the same column, and close quotes: ` +
			`"c: 1"; or the fault is above it: what the parser reads there begins on line 2: "b: 'it's'"`},
		{"a:\n  - 1\n - 2\nb: 1\n", `line 4: a key is wanted here; begin the keys of an object in the same column, and close quotes: ` +
			`"b: 1"; or the fault is above it: what the parser reads there begins on line 3: "- 2"`},
		{"a: 1\nb: 'open\nc: 1", `line 2: a quote is opened here`},
		{"b: 'open\nc: 1", `line 1: a quote is opened here`},
		{"x: 1\na:\n  b: 1\n  c: 2\n    d: 3\n", `line 5: `},
		{"a: 1\nb: \xff\n", `line 2: the line is not UTF-8: "b: `},
		{"a: 1\nb: \x01\nc: 1\n", `line 2: a control character is in the line: "b: \x01"`},
		{"a: 1\nb: *x\nc: 1\n", `line 2: anchors and aliases are not allowed`},
		{"a: 1\r\nb: @x\r\n", `line 2: a value cannot begin so (@ ` + "`" + ` % or a tab); put it in quotes: "b: @x"`},
	} {
		if got := faultOf(t, c.text).String(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q:\ngot  %s\nwant %s", c.text, got, c.want)
		}
	}
}

// TestTheTextOfALine is cut at 80 bytes, shows no secret, and has the column of its first character.
func TestTheTextOfALine(t *testing.T) {
	for n, cut := range map[int]bool{79: false, 80: false, 81: true} {
		text := "b: @" + strings.Repeat("x", n-4)
		got := faultOf(t, "a: 1\n"+text).Message
		if want := text + `"`; strings.HasSuffix(got, want) == cut || cut && !strings.HasSuffix(got, text[:80]+`..."`) {
			t.Errorf("%d bytes: got %s", n, got)
		}
	}
	const key = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
	if got := faultOf(t, "a: 1\nkey: @"+key+"\n").Message; strings.Contains(got, key[10:]) {
		t.Errorf("a secret is shown: %s", got)
	}
	for text, kept := range map[string]string{
		"api_key: @0123abcd.EFghIjkl\n":                                                       `"api_key: [not shown]"`,
		"a: 1\n\"Token\" : @0123abcd.EFghIjkl\n":                                              `"\"Token\" : [not shown]"`,
		"- {name: x, secret: @0123abcd.EFghIjkl, b}\n":                                        `"- {name: x, secret: [not shown]"`,
		"-----BEGIN PRIVATE KEY-----\nMIIE: 0123: abcd.EFghIjkl\n-----END PRIVATE KEY-----\n": "not shown",
	} {
		if got := faultOf(t, text).Message; strings.Contains(got, "EFgh") || !strings.Contains(got, kept) {
			t.Errorf("%q: got %s, want %s", text, got, kept)
		}
	}
	if got := faultOf(t, "a:\n  b: @x\n"); got.Line != 2 || got.Column != 3 {
		t.Errorf("got %+v", got)
	}
}

func FuzzFault(f *testing.F) {
	f.Add("a: [\n")
	f.Add("a: 1\n b: 2")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 || strings.Count(text, "[")+strings.Count(text, "{") > 64 {
			return
		}
		err := decode(strings.NewReader(text))
		if err == nil || err == io.EOF {
			return
		}
		got := yamltext.FaultOf([]byte(text), err, decode)
		if lines := strings.Count(text, "\n") + 1; got.Line < 1 || got.Line > lines || got.Column < 1 || got.Message == "" {
			t.Errorf("%q: got %+v of %d lines", text, got, lines)
		}
	})
}
