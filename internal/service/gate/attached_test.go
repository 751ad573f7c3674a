package gate_test

import (
	"errors"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
)

// TestWhatIsTypedWhileItRuns: a person is asked before code can be typed into a shell or an interpreter, because nobody reads it. Input
// that is data needs nobody.
func TestWhatIsTypedWhileItRuns(t *testing.T) {
	h := build(t, nil)
	const ask, allow = policy.RequireApproval, policy.Allow
	for line, want := range map[string]struct{ plain, attached policy.Outcome }{
		"cat": {allow, allow}, "grep x": {allow, allow}, "grep -i x": {allow, allow},
		"bash": {ask, ask}, "bash -s": {ask, ask}, "bash -i -l": {ask, ask}, "sh -i": {ask, ask},
		"exec bash --norc": {ask, ask}, "python3": {allow, ask}, "python3 -": {allow, ask}, "python3 -i": {allow, ask}, "node": {allow, ask},
		"python3 -i x.py": {allow, ask}, "node -i": {allow, ask}, "python3 x.py": {allow, allow}, "node x.js": {allow, allow},
		"bash x.sh": {allow, allow}, "cd a; python3": {allow, ask}, "python3 -c 'print(1)'": {allow, allow}, "python3 -ic 1": {allow, ask},
		"python3 -qi": {allow, ask}, "node --interactive x.js": {allow, ask}, "python3 x.py -i": {allow, ask},
	} {
		a := h.shell("standard", line)
		if got := h.judge(a).Decision; got.Outcome != want.plain {
			t.Errorf("%s: got %s, want %s", line, got.Outcome, want.plain)
		}
		a.Background = true
		for _, attach := range []string{policy.AttachStdin, policy.AttachTerminal} {
			a.Attach = attach
			if got := h.judge(a).Decision; got.Outcome != want.attached {
				t.Errorf("%s with %s: got %s (%s), want %s", line, attach, got.Outcome, got.Reason, want.attached)
			}
		}
	}
}

// TestNoStandingApprovalCoversAnInput: an answer covers a command with an input once only, because nobody knows what the next input is. A
// standing approval of the same command without an input does not cover it either.
func TestNoStandingApprovalCoversAnInput(t *testing.T) {
	ctx := t.Context()
	h := build(t, nil)
	plain := h.shell("standard", "rm -r scratch")
	plain.Background = true
	answer := policy.Answer{Decision: policy.Approve, Scope: policy.ScopeRoom, Uses: 9, ExpiresAt: h.clock.Now().Add(time.Hour)}
	for _, attach := range []string{policy.AttachStdin, policy.AttachTerminal} {
		a := plain
		a.Attach = attach
		r, q := h.asked(a)
		if q.Question.Template != "" {
			t.Errorf("%s: the question offers the template %q", attach, q.Question.Template)
		}
		for _, scope := range []policy.Scope{policy.ScopeRun, policy.ScopeRoom, policy.ScopeWorkspace, policy.ScopeTemplate} {
			wide := answer
			wide.Scope = scope
			if _, err := h.Approvals.Decide(ctx, h.origin(h.owner), ws, q.ID, wide); !errors.Is(err, policy.ErrStandingImpossible) &&
				!errors.Is(err, policy.ErrTemplateImpossible) {
				t.Errorf("%s: an answer of the scope %s: got %v, want a refusal", attach, scope, err)
			}
			if _, err := h.Ask(ctx, h.origin(h.agent), r, policy.Ask{Scope: scope}, event.Batch{Workspace: ws}); err == nil {
				t.Errorf("%s: a question of the scope %s: want a refusal", attach, scope)
			}
		}
	}
	_, q := h.asked(plain)
	if _, err := h.Approvals.Decide(ctx, h.origin(h.owner), ws, q.ID, answer); err != nil {
		t.Fatal(err)
	}
	for attach, want := range map[string]policy.Outcome{"": policy.Allow, policy.AttachStdin: policy.RequireApproval,
		policy.AttachTerminal: policy.RequireApproval} {
		a := plain
		a.Attach = attach
		if got := h.judge(a); got.Decision.Outcome != want || (got.Standing != "") != (attach == "") {
			t.Errorf("beside a standing approval with the input %q: got %s by %q, want %s", attach, got.Decision.Outcome, got.Standing, want)
		}
	}
}

// TestTheTimeOfABackgroundCommand: policy bounds the time of a command for which something waits, and nothing else.
func TestTheTimeOfABackgroundCommand(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "sleep 1")
	a.Background = true
	for _, ms := range []int64{0, 1, 3_600_000} {
		a.TimeoutMS = ms
		r := h.judge(a)
		if r.Decision.Outcome != policy.Allow || r.Action.TimeoutMS != ms {
			t.Errorf("%d ms: got %s with %d ms (%s)", ms, r.Decision.Outcome, r.Action.TimeoutMS, r.Decision.Reason)
		}
	}
	for name, change := range map[string]func(*policy.Action){
		"input without background": func(a *policy.Action) { a.Background, a.Attach = false, policy.AttachStdin },
		"a way that is not known":  func(a *policy.Action) { a.Attach = "telepathy" },
		"a file in the background": func(a *policy.Action) { a.Type, a.Command, a.Argv, a.Path = policy.FileRead, "", nil, "f" },
		"input of no command": func(a *policy.Action) {
			a.Type, a.Command, a.Argv, a.Attach = policy.RunStart, "", nil, policy.AttachStdin
		},
		"background of a container": func(a *policy.Action) { a.Type, a.Command, a.Argv = policy.SpaceStart, "", nil },
	} {
		bad := a
		change(&bad)
		if got := h.judge(bad).Decision; got.Outcome != policy.Deny {
			t.Errorf("%s: got %s, want a denial", name, got.Outcome)
		}
	}
}
