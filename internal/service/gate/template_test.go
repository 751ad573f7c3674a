package gate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// template approves an action with scope template.
func (h *house) template(q policy.Approval) error {
	_, err := h.Approvals.Decide(context.Background(), h.origin(h.owner), ws, q.ID, policy.Answer{
		Decision: policy.Approve, Scope: policy.ScopeTemplate, Uses: 10, ExpiresAt: h.clock.Now().Add(time.Hour),
	})
	return err
}

func TestATemplateCoversOtherFilesOfTheFolder(t *testing.T) {
	h := build(t, nil)
	_, q := h.asked(h.shell("guarded", "rm -r build/cache-1.tmp scratch"))
	if want := "run a command: rm -r build/{name}.tmp scratch"; q.Question.Template != want {
		t.Errorf("the question shows %q, want %q", q.Question.Template, want)
	}
	if err := h.template(q); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]policy.Outcome{
		"rm -r build/cache-1.tmp scratch":                           policy.Allow,
		"rm -r build/other.tmp scratch":                             policy.Allow,
		"rm -r 'build/x.tmp' scratch":                               policy.Allow,
		"rm -r build/" + strings.Repeat("x", 60) + ".tmp scratch":   policy.Allow,
		"rm -r build/" + strings.Repeat("x", 61) + ".tmp scratch":   policy.RequireApproval,
		"rm -r build/other scratch":                                 policy.RequireApproval, // another type
		"rm -r build/.tmp scratch":                                  policy.RequireApproval, // hidden
		"rm -r build/-x.tmp scratch":                                policy.RequireApproval,
		"rm -r build/sub/x.tmp scratch":                             policy.RequireApproval, // another folder
		"rm -r build/../x.tmp scratch":                              policy.RequireApproval,
		"rm -r ./build/x.tmp scratch":                               policy.RequireApproval,
		"rm -r build//x.tmp scratch":                                policy.RequireApproval,
		"rm -r /workspace/build/x.tmp scratch":                      policy.RequireApproval,
		"rm -r build/x.tmp other":                                   policy.RequireApproval, // a word that is fixed
		"rm -r build/x.tmp scratch build/y.tmp":                     policy.RequireApproval, // a word more
		"rm -r build/x.tmp":                                         policy.RequireApproval, // a word less
		"rm -rf build/x.tmp scratch":                                policy.RequireApproval, // another option
		"rm -r build/*.tmp scratch":                                 policy.RequireApproval,
		"rm -r build/$X.tmp scratch":                                policy.RequireApproval,
		"rm -r 'build/x\ty.tmp' scratch":                            policy.RequireApproval,
		"rm -r build/x.tmp scratch; ls":                             policy.RequireApproval,
		"A=1 rm -r build/x.tmp scratch":                             policy.RequireApproval,
		"rm -r 'build/{name}.tmp' scratch":                          policy.RequireApproval, // what is shown is no word
		"env rm -r build/x.tmp scratch":                             policy.RequireApproval,
		"rm -r build/x.env scratch":                                 policy.Deny, // what the policy refuses stays refused
		"rm -r build/cache-1.tmp scratch && sudo rm -r build/a.tmp": policy.Deny,
	} {
		if d := h.judge(h.shell("guarded", command)).Decision; d.Outcome != want {
			t.Errorf("%s: got %s (%s), want %s", command, d.Outcome, d.Reason, want)
		}
	}
	for what, change := range map[string]func(*policy.Action){
		"environment": func(a *policy.Action) { a.Env = map[string]string{"A": "b"} },
		"folder":      func(a *policy.Action) { a.Cwd = "sub" },
		"time":        func(a *policy.Action) { a.TimeoutMS++ },
		"room":        func(a *policy.Action) { a.Room = "room_00000000000000000000000009" },
		"space":       func(a *policy.Action) { a.Space = "spc_00000000000000000000000009" },
		"policy":      func(a *policy.Action) { a.Bundle = h.bundles["permissive"].Hash },
		"stdin":       func(a *policy.Action) { a.Stdin = event.DigestOf([]byte("x")) },
	} {
		a := h.shell("guarded", "rm -r build/other.tmp scratch")
		change(&a)
		if d := h.judge(a).Decision; d.Outcome == policy.Allow {
			t.Errorf("another %s: got allow", what)
		}
	}
	other, err := h.Agent(context.Background(), h.origin(h.owner), ws, "other")
	if err != nil {
		t.Fatal(err)
	}
	a := h.shell("guarded", "rm -r build/other.tmp scratch")
	a.Principal = other
	if d := h.judge(a).Decision; d.Outcome == policy.Allow {
		t.Error("another agent: got allow")
	}
	a.Principal, a.Run, a.Operation = h.agent, "run_00000000000000000000000009", "op-9"
	if d := h.judge(a).Decision; d.Outcome != policy.Allow {
		t.Errorf("another run of the agent: got %s", d.Outcome)
	}
}

func TestATemplateOfAFileLetsItsContentVary(t *testing.T) {
	h := build(t, nil)
	b, err := h.Bundles.ReadPolicy([]byte("preset: standard\nask: {paths: ['docs/**']}\ndeny: {paths: ['*.env']}\n"), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Bundles.PinBundle(context.Background(), h.origin(h.owner), ws, b); err != nil {
		t.Fatal(err)
	}
	write := func(path, content string) policy.Action {
		a := h.file("standard", policy.FileCreate, path)
		a.Bundle, a.Content, a.Size = b.Hash, event.DigestOf([]byte(content)), int64(len(content))
		return a
	}
	_, q := h.asked(write("docs/a.md", "one"))
	if err := h.template(q); err != nil {
		t.Fatal(err)
	}
	over, elsewhere, deleted := write("docs/b.md", "two"), write("docs/b.md", "two"), write("docs/b.md", "two")
	over.Overwrite, elsewhere.Space, deleted.Type = true, "spc_00000000000000000000000009", policy.FileDelete
	executable, setuid, read := write("docs/b.md", "two"), write("docs/b.md", "two"), h.file("standard", policy.FileRead, "notes.md")
	executable.Mode, setuid.Mode, read.Mode = "0755", "04755", "0644"
	large := write("docs/b.md", "two")
	large.Size = 10<<20 + 1
	for _, c := range []struct {
		name string
		a    policy.Action
		want policy.Outcome
	}{
		{"again", write("docs/a.md", "one"), policy.Allow}, {"another content", write("docs/a.md", "two"), policy.Allow},
		{"another name", write("docs/b.md", "two"), policy.Allow}, {"another type", write("docs/b.sh", "two"), policy.RequireApproval},
		{"a folder below", write("docs/x/b.md", "two"), policy.RequireApproval}, {"over a file", over, policy.RequireApproval},
		{"another space", elsewhere, policy.RequireApproval}, {"to delete", deleted, policy.RequireApproval},
		{"hidden", write("docs/.md", "two"), policy.RequireApproval}, {"refused", write("docs/a.env", "x"), policy.Deny}, {"too large", large,
			policy.Deny},
		{"with another mode", executable, policy.RequireApproval}, {"with a mode that there is not", setuid, policy.Deny},
		{"with a mode, to read", read, policy.Deny},
	} {
		if d := h.judge(c.a).Decision; d.Outcome != c.want {
			t.Errorf("%s: got %s (%s), want %s", c.name, d.Outcome, d.Reason, c.want)
		}
	}
}

// A scope that an action does not have is refused, never taken silently.
func TestScopesThatAreRefused(t *testing.T) {
	h := build(t, nil)
	outside := h.shell("standard", "rm -r a")
	outside.Run, outside.Room = id.Run(""), id.Room("")
	goOn := h.file("standard", policy.RunContinue, "")
	for _, c := range []struct {
		name  string
		a     policy.Action
		scope policy.Scope
		want  error
	}{
		{"no run", outside, policy.ScopeRun, policy.ErrScopeMissing},
		{"no room", outside, policy.ScopeRoom, policy.ErrScopeMissing},
		{"nothing varies", outside, policy.ScopeTemplate, policy.ErrTemplateImpossible},
		{"going on", goOn, policy.ScopeTemplate, policy.ErrTemplateImpossible},
		{"going on", goOn, policy.ScopeRun, policy.ErrStandingImpossible},
		{"no scope", outside, "always", policy.ErrInvalidScope},
		{"not exact", h.shell("standard", "rm -r a/b; ls"), policy.ScopeTemplate, policy.ErrStandingImpossible},
		{"a shell", h.shell("standard", "sh -c 'rm -r a/b'"), policy.ScopeTemplate, policy.ErrStandingImpossible},
	} {
		_, q := h.asked(c.a)
		_, err := h.Approvals.Decide(context.Background(), h.origin(h.owner), ws, q.ID, policy.Answer{
			Decision: policy.Approve, Scope: c.scope, Uses: 1, ExpiresAt: h.clock.Now().Add(time.Hour),
		})
		if !errors.Is(err, c.want) {
			t.Errorf("%s, scope %s: got %v, want %v", c.name, c.scope, err, c.want)
		}
		if doc, err := h.Approvals.Get(context.Background(), ws, q.ID); err != nil || doc.Status != policy.Pending {
			t.Errorf("%s, scope %s: the question is %s, %v", c.name, c.scope, doc.Status, err)
		}
	}
	if n := h.count(policy.StandingGrantedType); n != 0 {
		t.Errorf("got %d standing approvals, want none", n)
	}
}

// A read that a standing approval permits counts as its use.
func TestReadingByATemplateCounts(t *testing.T) {
	h := build(t, nil)
	a := h.file("standard", policy.FileRead, "docs/a.md")
	a.Bundle = h.bundle("preset: standard\nask: {paths: ['docs/**']}\ndeny: {paths: ['*.env']}\n", false).Hash
	_, q := h.asked(a)
	if err := h.template(q); err != nil {
		t.Fatal(err)
	}
	r := h.judge(a)
	if _, err := h.Glance(r); fault.CodeOf(err) != "intent_missing" {
		t.Errorf("at a glance: got %v, want intent_missing", err)
	}
	read := 0
	for range 12 {
		if begin(h, r, "") == nil {
			read++
		}
	}
	if read != 10 {
		t.Errorf("read %d times, want the 10 that were granted", read)
	}
}
