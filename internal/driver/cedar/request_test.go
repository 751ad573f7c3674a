package cedar

import (
	"fmt"
	"slices"
	"testing"

	cedar "github.com/cedar-policy/cedar-go"
	"pgregory.net/rapid"

	"agentbox/internal/domain/policy"
)

// A context holds what the policies look at, and everything where that cannot be told.
func TestLookedAt(t *testing.T) {
	for _, c := range []struct {
		condition string
		want      []string
	}{
		{`true`, nil},
		{`context.path like "*.md"`, []string{"path"}},
		{`context["path"] == "x"`, []string{"path"}},
		{`context has path && context.size_bytes < 10`, []string{"path", "size_bytes"}},
		{`context has unheard_of`, nil},
		{`if context.overwrite then context.traits.contains("x") else !(context.args.containsAny([context.tool]))`, []string{"overwrite", "args",
			"traits", "tool"}},
		{`{"a": context.line}.a == "x"`, []string{"line"}},
		{`{"Var": context.line, "left": "context", "attr": "path"} == {}`, []string{"line"}},
		{`"context" == "context.path"`, nil},
		{`principal has path`, nil},
		{`context == {"path": "x"}`, attributes},
		{`[context].contains({})`, attributes},
		{`{"a": context}.a.path == "x"`, attributes},
		{`(if context.overwrite then context else {}) has path`, attributes},
		{`{".": context} has path`, attributes},
		{`{"has": context}["has"].path == "x"`, attributes},
	} {
		list, err := cedar.NewPolicyListFromBytes("test", []byte("permit (principal, action, resource) when { "+c.condition+" };"))
		if err != nil {
			t.Fatalf("%s: %v", c.condition, err)
		}
		if got := lookedAt(list); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.condition, got, c.want)
		}
		list, err = cedar.NewPolicyListFromBytes("test", []byte("permit (principal, action, resource) unless { "+c.condition+" };"))
		if err != nil || !slices.Equal(lookedAt(list), c.want) {
			t.Errorf("unless %s: got %q, want %q, %v", c.condition, lookedAt(list), c.want, err)
		}
	}
}

// For all facts, a verdict from the policies that are not bound to another action, and from the entities that they look at, is the verdict
// from all of them.
func TestVerdictNeedsOnlyWhatIsAsked(t *testing.T) {
	conditions := []string{
		`context.path like "*.md"`, `context has path && context.size_bytes < 10`, `context has unheard_of`, `context.traits.contains("x")`,
		`context.args.containsAny(["x", "y"])`, `context.overwrite`, `context == {"path": "x"}`, `context.missing == 1`, `context.tool < 3`,
	}
	heads := rapid.SampledFrom([]string{
		`principal, action`, `principal, action == Action::"file.create"`, `principal is User, action == Action::"shell.exec"`,
		`principal == Agent::"agt_x", action == Action::"shell.exec"`, `principal, action == Other::"file.create"`,
		`principal, action == Action::""`,
		`principal, action in Action::"file.create"`, `principal, action in [Action::"file.create", Action::"shell.exec"]`,
	})
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		for i, n := 0, rapid.IntRange(1, 5).Draw(t, "policies"); i < n; i++ {
			text += fmt.Sprintf("%s (%s, resource) when { %s };\n",
				rapid.SampledFrom([]string{"permit", "forbid", "@decision(\"require_approval\") permit"}).Draw(t, "effect"), heads.Draw(t, "head"),
				rapid.SampledFrom(conditions).Draw(t, "condition"))
		}
		b, err := policy.NewBundle("test", text, policy.Limits{FileBytes: 1, CommandMS: 1})
		if err != nil {
			t.Fatal(err)
		}
		some, err := compile(b)
		if err != nil {
			t.Fatal(err)
		}
		list, err := cedar.NewPolicyListFromBytes("test", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		all := compiled{rules: some.rules, rest: &chapter{policies: list, looks: attributes}}
		for i := range list {
			all.rest.ids = append(all.rest.ids, cedar.PolicyID(fmt.Sprintf("policy%d", i)))
		}
		word := rapid.SampledFrom([]string{"", "x", "y", "a.md"})
		f := policy.Facts{
			Principal: "agt_x", Action: rapid.SampledFrom([]string{policy.FileCreate, policy.ShellExec, policy.FileRead, ""}).Draw(t, "action"),
			Path: word.Draw(t, "path"), Size: rapid.Int64Range(0, 20).Draw(t, "size"),
			Overwrite: rapid.Bool().Draw(t, "overwrite"), Mode: word.Draw(t, "mode"), Args: rapid.SliceOf(word).Draw(t, "args"),
			Traits: rapid.SliceOf(word).Draw(t, "traits"),
			Tool:   word.Draw(t, "tool"),
		}
		got, want := fmt.Sprint(some.evaluate(f)), fmt.Sprint(all.evaluate(f))
		if got != want {
			t.Fatalf("%s: got %s, want %s", text, got, want)
		}
	})
}
