package gate_test

import (
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/service/gate"
)

// listening is an evaluator that keeps what it was asked.
type listening struct {
	policy.Evaluator
	mu    sync.Mutex
	asked []policy.Facts
}

func (l *listening) Evaluate(b policy.Bundle, f policy.Facts) (policy.Verdict, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, f)
	return l.Evaluator.Evaluate(b, f)
}

// A bundle is asked with the facts of the action, and with nothing else: of a folder without a name about the whole one, and of the files
// that a shell opens about no sizes of the command's action.
func TestABundleIsAskedWithTheFactsOfTheAction(t *testing.T) {
	heard := &listening{}
	h := build(t, func(p *gate.Parts) { heard.Evaluator, p.Evaluator = p.Evaluator, heard })
	plain := func(typ string) policy.Facts {
		return policy.Facts{Principal: h.agent, Workspace: ws, Space: space, Action: typ}
	}
	for name, c := range map[string]struct {
		a    policy.Action
		want func() []policy.Facts
	}{
		"a file that replaces one": {func() policy.Action {
			a := h.file("permissive", policy.FileCreate, "a")
			a.Overwrite, a.Size, a.Mode = true, 3, "0644"
			return a
		}(), func() []policy.Facts {
			f := plain(policy.FileCreate)
			f.Path, f.Overwrite, f.Size, f.Mode = "a", true, 3, "0644"
			return []policy.Facts{f}
		}},
		"a file that replaces none": {h.file("permissive", policy.FileCreate, "a"), func() []policy.Facts {
			f := plain(policy.FileCreate)
			f.Path = "a"
			return []policy.Facts{f}
		}},
		"the whole folder": {h.file("permissive", policy.FileList, ""), func() []policy.Facts {
			f := plain(policy.FileList)
			f.Path = "."
			return []policy.Facts{f}
		}},
		"what has no path": {h.file("permissive", policy.SpaceDiff, ""), func() []policy.Facts {
			return []policy.Facts{plain(policy.SpaceDiff)}
		}},
		"a command that opens files": {func() policy.Action {
			a := h.shell("permissive", "sort < in > out")
			a.Size, a.MaxBytes = 5, 7
			return a
		}(), func() []policy.Facts {
			one := plain(policy.ShellExec)
			one.TimeoutMS, one.Size, one.MaxBytes, one.Command, one.Line = 10_000, 5, 7, "sort", "sort"
			in, out := one, one
			in.Action, in.Path, in.Size, in.MaxBytes = policy.FileRead, "in", 0, 0
			out.Action, out.Path, out.Size, out.MaxBytes = policy.FileCreate, "out", 0, 0
			return []policy.Facts{one, in, out}
		}},
	} {
		heard.asked = nil
		h.judge(c.a)
		want := c.want()
		for i := range heard.asked { // what the reading of a command finds out is not tested here
			if heard.asked[i].Traits = nil; len(heard.asked[i].Args) == 0 {
				heard.asked[i].Args = nil
			}
			if f := &heard.asked[i]; c.a.Type == policy.ShellExec && f.Action != policy.ShellExec {
				f.Command, f.Line = "sort", "sort"
			}
		}
		if !reflect.DeepEqual(heard.asked, want) {
			t.Errorf("%s: asked\n%+v, want\n%+v", name, heard.asked, want)
		}
	}
}

// A variable that changes what commands mean makes a question of any command, also where it is empty; and no standing approval answers it.
func TestAVariableThatPoisonsIsAlwaysAsked(t *testing.T) {
	h := build(t, nil)
	h.pinned(space, h.bundles["permissive"].Hash, map[string]string{"PATH": "/bin", "LANG": "C"})
	for name, c := range map[string]struct {
		env  map[string]string
		want policy.Outcome
	}{
		"none":                   {nil, policy.Allow},
		"a harmless one":         {map[string]string{"LANG": "D"}, policy.Allow},
		"as the space has it":    {map[string]string{"PATH": "/bin"}, policy.Allow},
		"another than the space": {map[string]string{"PATH": "/x"}, policy.RequireApproval},
		"an empty one":           {map[string]string{"LD_PRELOAD": ""}, policy.RequireApproval},
		"empty, not as there":    {map[string]string{"PATH": ""}, policy.RequireApproval},
	} {
		a := h.shell("permissive", "ls")
		a.Env = c.env
		if d := h.judge(a).Decision; d.Outcome != c.want {
			t.Errorf("%s: got %s (%s), want %s", name, d.Outcome, d.Reason, c.want)
		}
	}
	a := h.shell("permissive", "rm -r scratch")
	a.Env = map[string]string{"LD_PRELOAD": "x"}
	_, q := h.asked(a)
	answer := policy.Answer{Decision: policy.Approve, Scope: policy.ScopeRun, Uses: 2, ExpiresAt: h.clock.Now().Add(time.Hour)}
	if _, err := h.Approvals.Decide(t.Context(), h.origin(h.owner), ws, q.ID, answer); err != nil {
		t.Logf("granted: %v", err)
	}
	if d := h.judge(a).Decision; d.Outcome != policy.RequireApproval {
		t.Errorf("after an answer that stands: got %s (%s)", d.Outcome, d.Reason)
	}
}

// The description of a command's parts says which of them leave the space, and which are known only when it runs.
func TestWhatIsShownOfACommand(t *testing.T) {
	h := build(t, nil)
	for line, want := range map[string]string{
		"mv scratch /tmp/gone": "what leaves /workspace is kept nowhere: mv scratch /tmp/gone",
		"mv scratch other":     "mv scratch other",
		"rm -r scratch":        "rm -r scratch",
		"$X":                   "a command that is only known when it runs",
	} {
		e, err := h.Explain(t.Context(), h.shell("permissive", line), nil)
		if err != nil || len(e.Parts) == 0 || e.Parts[0].What != want {
			t.Errorf("%s: got %+v, %v, want %s", line, e.Parts, err, want)
		}
	}
}

// An action outside is held to its row of the registry also where it comes from a space, whatever the policy of that space permits.
func TestTheRegistryHoldsForWhatIsDoneFromASpace(t *testing.T) {
	h := build(t, nil)
	b := h.bundle(`@id("all") permit (principal, action, resource);`, true)
	h.pinned(space, b.Hash, nil)
	a := policy.Action{Type: policy.APICallIdempotent, Workspace: ws, Room: room, Space: space, Principal: h.agent, Bundle: b.Hash,
		Target: "a.org", Method: "GET", Zone: event.Supervised}
	if d := h.judge(a).Decision; d.Outcome != policy.Allow {
		t.Errorf("got %s (%s)", d.Outcome, d.Reason)
	}
	a.Zone = event.Sandbox
	if d := h.judge(a).Decision; d.ReasonCode != policy.ReasonZoneMismatch || !strings.Contains(d.Suggestion, "supervised") {
		t.Errorf("from a sandbox: got %s, %s (%s)", d.Outcome, d.ReasonCode, d.Reason)
	}
}
