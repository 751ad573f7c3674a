package cedar_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/cedar"
)

const agent = "agt_00000000000000000000000001"

func bundle(t testing.TB, text string) policy.Bundle {
	t.Helper()
	b, err := policy.NewBundle("test", text, policy.Limits{FileBytes: 1, CommandMS: 1})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEvaluate(t *testing.T) {
	const (
		permits = `@id("permits") permit (principal, action, resource); `
		asks    = `@id("asks") @decision("require_approval") @reason("why") @suggestion("how") permit (principal, action, resource); `
		forbids = `@id("forbids") @code("own_code") forbid (principal, action, resource); `
		breaks  = `@id("breaks") permit (principal, action, resource) when { context.nothing == 1 }; `
		breaks2 = `@id("breaks2") forbid (principal, action, resource) when { 9223372036854775807 + context.size_bytes > 0 }; `
		other   = `@id("other") permit (principal, action == Action::"other", resource); `
	)
	facts := policy.Facts{Principal: agent, Action: policy.ShellExec, Size: 1}
	for _, c := range []struct {
		text  string
		want  policy.Outcome
		rules string
	}{
		{"", policy.Deny, ""},
		{other, policy.Deny, ""},
		{permits, policy.Allow, "permits"},
		{asks, policy.RequireApproval, "asks"},
		{permits + asks, policy.RequireApproval, "asks"},
		{asks + permits, policy.RequireApproval, "asks"},
		{forbids, policy.Deny, "forbids"},
		{permits + asks + forbids, policy.Deny, "forbids"},
		{permits + breaks, policy.Deny, "breaks"},
		{permits + asks + breaks2, policy.Deny, "breaks2"},
		{permits + "permit (principal, action, resource);", policy.Allow, "permits policy1"},
	} {
		v, err := cedar.New().Evaluate(bundle(t, c.text), facts)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		var ids []string
		for _, r := range v.Rules {
			ids = append(ids, r.ID)
		}
		if v.Outcome != c.want || strings.Join(ids, " ") != c.rules {
			t.Errorf("%s: got %s by %v, want %s by %s", c.text, v.Outcome, ids, c.want, c.rules)
		}
		if v.Matched() != (c.rules != "") {
			t.Errorf("%s: matched %t", c.text, v.Matched())
		}
	}
	v, err := cedar.New().Evaluate(bundle(t, asks), facts)
	if err != nil || v.Rules[0].Reason != "why" || v.Rules[0].Suggestion != "how" {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestFactsReachThePolicy(t *testing.T) {
	f := policy.Facts{
		Principal: agent, Workspace: "ws_dev", Space: "spc_1", Action: "shell.exec", Role: "member", Path: "a/b", Size: 1, MaxBytes: 2,
		Overwrite: true, Mode: "0755",
		Command: "ls", Args: []string{"-l"}, Line: "ls -l", Traits: []string{"network"}, TimeoutMS: 3, Tool: "t", Method: "GET",
		Target: "https://H.:1/", Delegated: true,
	}
	for _, when := range []string{
		`principal == Agent::"agt_00000000000000000000000001"`, `principal is Agent`, `action == Action::"shell.exec"`,
		`resource == Space::"spc_1"`,
		`context.workspace == "ws_dev"`, `context.role == "member"`, `context.path like "a/*"`, `context.size_bytes == 1`,
		`context.max_bytes == 2`,
		`context.overwrite`, `context.mode == "0755"`, `context.command == "ls"`, `context.args.contains("-l")`, `context.line == "ls -l"`,
		`context.traits.contains("network")`,
		`context.timeout_ms == 3`, `context.tool == "t"`, `context.method == "GET"`, `context.target == "https://H.:1/"`,
		`context.host == "h"`, `context.delegated`,
	} {
		b := bundle(t, `permit (principal, action, resource) when { `+when+` };`)
		if v, err := cedar.New().Evaluate(b, f); err != nil || v.Outcome != policy.Allow {
			t.Errorf("%s: got %s, %v", when, v.Outcome, err)
		}
		if v, err := cedar.New().Evaluate(b, policy.Facts{}); err != nil || v.Outcome != policy.Deny {
			t.Errorf("%s, without facts: got %s, %v", when, v.Outcome, err)
		}
	}
	f.Space = ""
	b := bundle(t, `permit (principal, action, resource == Workspace::"ws_dev");`)
	if v, err := cedar.New().Evaluate(b, f); err != nil || v.Outcome != policy.Allow {
		t.Errorf("the workspace as resource: got %s, %v", v.Outcome, err)
	}
}

func TestValidateNamesThePlace(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"permit (principal, action, resource)\nwhen { context.path };\nforbid (", "3:9"},
		{"@decision(\"ask\")\npermit (principal, action, resource);", "line 1, column 1"},
		{"permit (principal, action, resource);\n@decision(\"require_approval\")\nforbid (principal, action, resource);", "line 2, column 1"},
		{"@id(\"a\") permit (principal, action, resource);\n  @id(\"a\") permit (principal, action, resource);", "line 2, column 3"},
		{"@sugestion(\"a\") permit (principal, action, resource);", "the annotation @sugestion is not known"},
		{"@approvers(\"2\")\npermit (principal, action, resource);", "@approvers is"},
		{"@approvers(\"2\")\nforbid (principal, action, resource);", "@approvers is"},
		{"@decision(\"require_approval\") @approvers(\"3\")\npermit (principal, action, resource);", "@approvers is"},
		{"@decision(\"require_approval\") @approvers(\"\")\npermit (principal, action, resource);", "@approvers is"},
		{strings.Repeat("x", 10), "1:1"},
	} {
		b := bundle(t, c.text)
		e := cedar.New()
		err := e.Validate(b)
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: got %v, want %q", c.text, err, c.want)
		}
		if v, err := e.Evaluate(b, policy.Facts{}); err == nil || v.Outcome == policy.Allow {
			t.Errorf("%s: evaluated to %v, %v", c.text, v.Outcome, err)
		}
	}
	if _, err := policy.NewBundle("test", strings.Repeat("x", policy.MaxBundleBytes+1), policy.Limits{FileBytes: 1,
		CommandMS: 1}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a bundle that is too large: got %v", err)
	}
}

func TestABundleIsWhatItsHashSays(t *testing.T) {
	e := cedar.New()
	b := bundle(t, `forbid (principal, action, resource);`)
	swapped := b
	swapped.Cedar = `permit (principal, action, resource);`
	if _, err := e.Evaluate(swapped, policy.Facts{}); fault.CodeOf(err) != policy.ReasonPolicyUnavailable {
		t.Errorf("a swapped text: got %v", err)
	}
	if _, err := e.Evaluate(b, policy.Facts{}); err != nil {
		t.Fatal(err)
	}
	if v, err := e.Evaluate(swapped, policy.Facts{}); err != nil || v.Outcome != policy.Deny {
		t.Errorf("a swapped text after the true one: got %s, %v", v.Outcome, err)
	}
	if _, err := e.Evaluate(policy.Bundle{}, policy.Facts{}); err == nil {
		t.Error("no bundle at all was evaluated")
	}
}

func TestManyBundlesAtOnce(t *testing.T) {
	e := cedar.New()
	var wg sync.WaitGroup
	for i := range 600 {
		wg.Go(func() {
			b := bundle(t, fmt.Sprintf(`permit (principal, action, resource) when { context.size_bytes == %d };`, i%300))
			for size, want := range map[int64]policy.Outcome{int64(i % 300): policy.Allow, -1: policy.Deny} {
				if v, err := e.Evaluate(b, policy.Facts{Size: size}); err != nil || v.Outcome != want {
					t.Errorf("got %s, %v, want %s", v.Outcome, err, want)
				}
			}
		})
	}
	wg.Wait()
}
