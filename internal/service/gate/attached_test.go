package gate_test

import (
	"testing"

	"agentbox/internal/domain/policy"
)

// TestWhatIsTypedWhileItRuns: a person is asked before code can be typed into a shell or an interpreter, because nobody reads it. Input
// that is data needs nobody.
func TestWhatIsTypedWhileItRuns(t *testing.T) {
	h := build(t, nil)
	const ask, allow = policy.RequireApproval, policy.Allow
	for line, want := range map[string]struct{ plain, attached policy.Outcome }{
		"cat": {allow, allow}, "grep x": {allow, allow}, "bash": {ask, ask}, "bash -s": {ask, ask}, "bash -i -l": {ask, ask}, "sh -i": {ask, ask},
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
