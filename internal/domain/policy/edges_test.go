package policy_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// TestWhatIsAnEndpoint holds the one form of a host with a port, at each edge.
func TestWhatIsAnEndpoint(t *testing.T) {
	for text, want := range map[string]bool{
		"localhost:8080": true, "a.example:1": true, "a.example:65535": true,
		"": false, "localhost": false, ":80": false, "?:80": false, "Localhost:80": false, "a b:80": false, "a:": false, "a:x": false,
		"a:0": false, "a:65536": false, "a:080": false, "a:+80": false, "a:-1": false, "a:80:80": false, "a:99999999999999999999": false,
	} {
		if got := policy.IsEndpoint(text); got != want {
			t.Errorf("%s: got %t", text, got)
		}
	}
}

// TestTheHostOfATargetWithoutAScheme holds a path behind a host, and an address without a user.
func TestTheHostOfATargetWithoutAScheme(t *testing.T) {
	for target, want := range map[string]string{"a.example/x": "a.example", "@a.example": "a.example", "b@a.example/x": policy.Unreadable} {
		if got := policy.Host(target); got != want {
			t.Errorf("%s: got %q", target, got)
		}
	}
	if kind, ok := (policy.Action{Type: policy.ExternalWrite}).Kind(); !ok || kind.Rules != policy.RulesHosts {
		t.Errorf("a write to the outside world is judged by %v", kind.Rules)
	}
}

// TestTheHostOfFacts is the host of the target, and nothing without a target.
func TestTheHostOfFacts(t *testing.T) {
	for target, want := range map[string]string{"": "", "https://A.example:1/x": "a.example", `https://a\b/`: policy.Unreadable} {
		if got := (&policy.Facts{Target: target}).Host(); got != want {
			t.Errorf("%s: got %q", target, got)
		}
	}
}

// TestWhatAPolicyCanAskAbout holds which actions ask by their type.
func TestWhatAPolicyCanAskAbout(t *testing.T) {
	for name, want := range map[string]bool{"email.send": true, policy.PortExpose: true, policy.ModelCall: true, policy.AgentTool: true,
		policy.ShellExec: false, policy.FileRead: false} {
		if got := policy.Askable(name); got != want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestTextsForSentences cuts a text at its bound, between two letters, and escapes it.
func TestTextsForSentences(t *testing.T) {
	for text, want := range map[string]string{
		"a\n": `a\n`, strings.Repeat("a", 120): strings.Repeat("a", 120), strings.Repeat("a", 121): strings.Repeat("a", 120) + "...",
		strings.Repeat("a", 119) + "éb": strings.Repeat("a", 119) + "...",
	} {
		if got := policy.Brief(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
	if got := policy.EscapeAll([]string{}); got != nil {
		t.Errorf("an empty list: got %q", got)
	}
	if got := policy.EscapeAll([]string{"a", "\n"}); !slices.Equal(got, []string{"a", `\n`}) {
		t.Errorf("got %q", got)
	}
	if policy.IsMask(strings.Repeat("a", 64)+"]") || !policy.IsMask(policy.Mask(make([]byte, 32))) {
		t.Error("a mask is one with its beginning only")
	}
}

// TestTheWordsAboutAnAction holds the title of a call of a server's tool, and that a command without a space is not undone by a rewind.
func TestTheWordsAboutAnAction(t *testing.T) {
	if got := policy.Title(policy.Action{Type: policy.MCPCall, Tool: "shop__buy", Target: "https://shop.example/"}); !strings.HasSuffix(got,
		": shop__buy") {
		t.Errorf("got %q", got)
	}
	in, out := policy.Action{Type: policy.ShellExec, Space: "spc_1"}, policy.Action{Type: policy.ShellExec}
	if got := policy.Impact(in, nil, false); !strings.Contains(got, "A rewind") {
		t.Errorf("in a space: got %q", got)
	}
	for _, leaves := range []bool{false, true} {
		if got := policy.Impact(out, nil, leaves); strings.Contains(got, "rewind") || !strings.Contains(got, "Cannot be undone.") {
			t.Errorf("without a space: got %q", got)
		}
	}
}

// TestAToolOfAnAgentIsCoveredWithItsInput holds that a standing approval covers one input only, and no command that runs something else.
func TestAToolOfAnAgentIsCoveredWithItsInput(t *testing.T) {
	a := policy.Action{Type: policy.AgentTool, Workspace: "ws_1", Principal: "agt_1", Tool: "claude.Bash", Command: "ls",
		Argv: []string{"ls"}, Content: event.DigestOf([]byte("ls"))}
	if _, err := policy.CoverOf(a, policy.ScopeWorkspace, nil); !errors.Is(err, policy.ErrStandingImpossible) {
		t.Errorf("a command whose words are not known: got %v", err)
	}
	one, err := policy.CoverOf(a, policy.ScopeWorkspace, []string{"ls"})
	if err != nil || one.Kind != policy.CoverInput {
		t.Fatalf("got %+v, %v", one, err)
	}
	a.Content = event.DigestOf([]byte("ls -l"))
	other, err := policy.CoverOf(a, policy.ScopeWorkspace, []string{"ls"})
	if err != nil || other.Match == one.Match {
		t.Errorf("another input has the same cover: %v", err)
	}
	a.Command, a.Argv = "", nil
	if c, err := policy.CoverOf(a, policy.ScopeWorkspace, nil); err != nil || c.Kind != policy.CoverInput {
		t.Errorf("a tool without a command: got %+v, %v", c, err)
	}
	mail := policy.Action{Type: "email.send", Workspace: "ws_1", Principal: "agt_1", Target: "a@b.example", Command: "ls"}
	if c, err := policy.CoverOf(mail, policy.ScopeWorkspace, nil); err != nil || c.Kind != policy.CoverRecipient {
		t.Errorf("another action with a command: got %+v, %v", c, err)
	}
}

// TestABatchBelongsToTheWorkspaceOfItsAction refuses events of another workspace.
func TestABatchBelongsToTheWorkspaceOfItsAction(t *testing.T) {
	of := func(ws id.Workspace) event.Draft { return event.Draft{Header: event.Header{Workspace: ws}} }
	for name, c := range map[string]struct {
		b    event.Batch
		want bool
	}{
		"empty":    {event.Batch{Workspace: "ws_1"}, true},
		"all":      {event.Batch{Workspace: "ws_1", Drafts: []event.Draft{of("ws_1"), of("ws_1")}}, true},
		"an event": {event.Batch{Workspace: "ws_1", Drafts: []event.Draft{of("ws_1"), of("ws_2")}}, false},
		"itself":   {event.Batch{Workspace: "ws_2", Drafts: []event.Draft{of("ws_1")}}, false},
	} {
		if err := policy.Belongs(c.b, "ws_1"); (err == nil) != c.want || err != nil && fault.CodeOf(err) != "workspace_mismatch" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// unreachable is a gate that allows everything where it can be reached, and cannot judge or ask otherwise.
type unreachable struct {
	verdict
	judges, asks error
}

func (b *unreachable) Judge(ctx context.Context, a policy.Action) (policy.Ruling, error) {
	r, _ := b.verdict.Judge(ctx, a)
	return r, b.judges
}

func (b *unreachable) AskOnce(ctx context.Context, o event.Origin, r policy.Ruling, batch event.Batch) (policy.Approval, error) {
	a, _ := b.verdict.AskOnce(ctx, o, r, batch)
	return a, b.asks
}

func (b *unreachable) Record(context.Context, event.Origin, policy.Action, event.Batch) (event.Receipt, error) {
	return event.Receipt{}, b.judges
}

// TestAnErrorOfTheGateIsNoAllowance has the gate and the log fail: no method goes on, and the error is that of the gate or of the log.
func TestAnErrorOfTheGateIsNoAllowance(t *testing.T) {
	gone := fault.New(fault.Unavailable, "gone", "gone")
	a, allow := policy.Action{Type: policy.FileRead}, policy.Decision{Outcome: policy.Allow}
	ask := policy.Decision{Outcome: policy.RequireApproval}
	deny := policy.Decision{Outcome: policy.Deny, ReasonCode: "no", Reason: "no"}
	wants := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, gone) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	g := &unreachable{verdict: verdict{decision: allow}, judges: gone}
	c := policy.Client{Gate: g}
	_, err := c.Allow(t.Context(), event.Origin{}, a)
	wants("allow", err)
	_, _, err = c.Ask(t.Context(), event.Origin{}, a)
	wants("ask", err)
	g.decision = deny
	wants("early", c.Early(t.Context(), event.Origin{}, a))
	wants("may", policy.Change{Action: policy.BlueprintRegister}.May(t.Context(), g, event.Origin{}))
	wants("record", policy.Change{Action: policy.BlueprintRegister}.Record(t.Context(), g, event.Origin{}))
	_, _, err = policy.Client{Gate: &unreachable{verdict: verdict{decision: ask, answer: policy.Approved}, asks: gone}}.Ask(t.Context(),
		event.Origin{}, a)
	wants("a question", err)
	c = policy.Client{Gate: &verdict{decision: deny}, Append: func(context.Context, event.Batch) (event.Receipt, error) {
		return event.Receipt{}, gone
	}}
	_, err = c.Allow(t.Context(), event.Origin{}, a)
	wants("a refusal that is not recorded", err)
}

// TestAClientReturnsTheRuling holds that the caller gets the gate's ruling, to begin or to show it.
func TestAClientReturnsTheRuling(t *testing.T) {
	a := policy.Action{Type: policy.FileRead, Path: "p"}
	for _, d := range []policy.Decision{{Outcome: policy.Allow}, {Outcome: policy.Deny, ReasonCode: "no"}, {Outcome: policy.RequireApproval},
		{Outcome: policy.RequireApproval, Shadow: true}} {
		g := &verdict{decision: d, answer: policy.Approved}
		if r, _ := (policy.Client{Gate: g}).Allow(t.Context(), event.Origin{}, a); r.Action.Path != "p" || r.Decision.Outcome != d.Outcome {
			t.Errorf("allow: got %+v", r)
		}
		r, _, _ := policy.Client{Gate: g}.Ask(t.Context(), event.Origin{}, a)
		if r.Action.Path != "p" || r.Decision.Outcome != d.Outcome || (g.asked == 1) != (d.Outcome == policy.RequireApproval && !d.Shadow) {
			t.Errorf("ask: got %+v, asked %d times", r, g.asked)
		}
	}
}
