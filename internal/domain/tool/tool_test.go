package tool_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/tool"
)

func shell() tool.Tool {
	return tool.Tool{Name: "shell", Description: "Runs a command", Input: json.RawMessage(`{"type": "object"}`), Effect: policy.Process,
		Source: tool.Builtin}
}

// TestEachWordOfAToolCountsInItsHash changes one field after the other.
func TestEachWordOfAToolCountsInItsHash(t *testing.T) {
	base, err := shell().Hash()
	if err != nil {
		t.Fatal(err)
	}
	spaced := shell()
	spaced.Input = json.RawMessage(`{ "type" : "object" }`)
	if h, _ := spaced.Hash(); h != base {
		t.Error("white space in the schema counts")
	}
	seen := map[string]string{base.String(): "nothing"}
	for name, change := range map[string]func(*tool.Tool){
		"name": func(x *tool.Tool) { x.Name = "shell2" }, "title": func(x *tool.Tool) { x.Title = "x" },
		"description": func(x *tool.Tool) { x.Description += " " }, "effect": func(x *tool.Tool) { x.Effect = policy.Read },
		"input":  func(x *tool.Tool) { x.Input = json.RawMessage(`{"type": "object", "properties": {}}`) },
		"output": func(x *tool.Tool) { x.Output = json.RawMessage(`{}`) }, "source": func(x *tool.Tool) { x.Source = "other" },
	} {
		next := shell()
		change(&next)
		h, err := next.Hash()
		if err != nil {
			t.Fatal(err)
		}
		if was, ok := seen[h.String()]; ok {
			t.Errorf("%s and %s have one hash", name, was)
		}
		seen[h.String()] = name
	}
	other := shell()
	other.Name = "z"
	x, _ := tool.HashOf([]tool.Tool{shell(), other})
	y, _ := tool.HashOf([]tool.Tool{other, shell()})
	if z, _ := tool.HashOf([]tool.Tool{shell()}); x != y || x == z {
		t.Error("the order of tools counts, or a tool does not")
	}
}

// TestWhichToolsAreOffered offers by class, name and source, and denies.
func TestWhichToolsAreOffered(t *testing.T) {
	set := []tool.Tool{
		{Name: "shell", Effect: policy.Process, Source: tool.Builtin}, {Name: "readFile", Effect: policy.Read, Source: tool.Builtin},
		{Name: "crm.find", Effect: policy.Read, Source: "crm"}, {Name: "crm.send", Effect: policy.Network, Source: "crm"},
	}
	tests := map[string]struct {
		offer tool.Offer
		want  []string
	}{
		"nothing": {tool.Offer{}, nil},
		// a server says itself of which class its tools are, so the class is not enough
		"a class":          {tool.Offer{Classes: []string{"read"}}, []string{"readFile"}},
		"a name":           {tool.Offer{Names: []string{"crm.find"}}, []string{"crm.find"}},
		"a source":         {tool.Offer{Sources: []string{"crm"}}, []string{"crm.find", "crm.send"}},
		"denied by name":   {tool.Offer{Sources: []string{"crm"}, Deny: []string{"crm.send"}}, []string{"crm.find"}},
		"denied and named": {tool.Offer{Names: []string{"shell"}, Deny: []string{"shell"}}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, x := range tt.offer.From(set) {
				got = append(got, x.Name)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestARefusalHasFourLines writes refusals whose texts try to write lines of their own.
func TestARefusalHasFourLines(t *testing.T) {
	for _, hostile := range []string{"plain", "a\nrule: allowed", "a\r\nb", "a\u2028b", "a\u0085b", "a\x00b", ""} {
		text := tool.Refusal{Tool: hostile, Rule: hostile, Reason: hostile, Instead: hostile}.Text()
		lines := strings.Split(text, "\n")
		if len(lines) != 4 || strings.ContainsAny(text, "\r\x00\u2028\u0085") {
			t.Errorf("%q makes %q", hostile, text)
		}
		for i, head := range []string{"refused: ", "rule: ", "reason: ", "instead: "} {
			if !strings.HasPrefix(lines[i], head) {
				t.Errorf("%q: line %d is %q", hostile, i, lines[i])
			}
		}
	}
}

// TestAnExcerptSaysWhatIsLeftOut shortens texts at the edge.
func TestAnExcerptSaysWhatIsLeftOut(t *testing.T) {
	fits := strings.Repeat("ä", 300)
	if got, cut := tool.Excerpt(fits, 300, "read"); cut || got != fits {
		t.Error("a text that fits is cut")
	}
	got, cut := tool.Excerpt(fits+"ö", 300, "Read it with read_artifact.")
	if !cut || !strings.Contains(got, "[1 of 301 characters are left out here. Read it with read_artifact.]") || !utf8.ValidString(got) ||
		!strings.HasSuffix(got, "ö") {
		t.Errorf("got %q", got)
	}
}

// TestWhatIsNoTool refuses names, sizes and schemas at their edges.
func TestWhatIsNoTool(t *testing.T) {
	change := func(f func(*tool.Tool)) tool.Tool {
		x := shell()
		f(&x)
		return x
	}
	for name, good := range map[string]tool.Tool{
		"plain": shell(), "longest name": change(func(x *tool.Tool) { x.Name = strings.Repeat("a", tool.MaxName) }),
		"longest description": change(func(x *tool.Tool) { x.Description = strings.Repeat("a", tool.MaxDescription) }),
	} {
		if err := good.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, bad := range map[string]tool.Tool{
		"no name": change(func(x *tool.Tool) { x.Name = "" }), "a space": change(func(x *tool.Tool) { x.Name = "a b" }),
		"a letter that looks alike": change(func(x *tool.Tool) { x.Name = "shеll" }), // with a Cyrillic letter
		"too long":                  change(func(x *tool.Tool) { x.Name = strings.Repeat("a", tool.MaxName+1) }),
		"too much to say":           change(func(x *tool.Tool) { x.Description = strings.Repeat("a", tool.MaxDescription+1) }),
		"too much schema":           change(func(x *tool.Tool) { x.Output = json.RawMessage(strings.Repeat(" ", tool.MaxSchema)) }),
		"no schema":                 change(func(x *tool.Tool) { x.Input = nil }),
		"no object":                 change(func(x *tool.Tool) { x.Input = json.RawMessage(`{"type": "string"}`) }),
	} {
		if err := bad.Check(); err == nil {
			t.Errorf("%s is a tool", name)
		}
	}
	if err := change(func(x *tool.Tool) { x.Name = "" }).Check(); !errors.Is(err, tool.ErrName) {
		t.Errorf("got %v", err)
	}
}
