package gate_test

import (
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
)

// ask is a request of the agent to a model.
func (h *house) ask() policy.Action {
	return policy.Action{Type: policy.ModelCall, Workspace: ws, Room: room, Run: run, Principal: h.agent, Subject: "glm", Tool: "glm-4.6",
		Target: "https://api.z.ai/api/paas/v4", Content: event.DigestOf([]byte("a request"))}
}

// TestWhoMayAskAModel asks as persons of every role and as the agent: the registry says who may, also where the run's space pins the
// strictest preset, which permits no network.
func TestWhoMayAskAModel(t *testing.T) {
	h := build(t, nil)
	h.pinned(space, h.bundles["restrictive"].Hash, nil)
	inSpace := h.ask()
	inSpace.Space = space
	for name, a := range map[string]policy.Action{"beside a space": h.ask(), "in a strict space": inSpace} {
		if d := h.judge(a).Decision; d.Outcome != policy.Allow {
			t.Errorf("%s: got %s (%s)", name, d.Outcome, d.Reason)
		}
	}
	for role, want := range map[principal.Role]policy.Outcome{principal.Member: policy.Allow, principal.Viewer: policy.Deny} {
		a := h.ask()
		a.Principal = h.person("Pat "+string(role), role)
		if d := h.judge(a).Decision; d.Outcome != want {
			t.Errorf("%s: got %s (%s), want %s", role, d.Outcome, d.Reason, want)
		}
	}
	if _, err := h.KillSwitch.Throw(t.Context(), h.origin(h.owner), ws, "stop"); err != nil {
		t.Fatal(err)
	}
	if d := h.judge(h.ask()).Decision; d.ReasonCode != policy.ReasonKillSwitch {
		t.Errorf("under the kill switch: got %s (%s)", d.Outcome, d.ReasonCode)
	}
}

// TestPoliciesOnModels refuses and asks about models by the action, by the model and by the host of the endpoint.
func TestPoliciesOnModels(t *testing.T) {
	h := build(t, nil)
	for name, c := range map[string]struct {
		text    string
		cedar   bool
		outcome policy.Outcome
		says    string
	}{
		"the action refused":    {"deny: {actions: [model.call]}", false, policy.Deny, "model.call"},
		"the action asks":       {"ask: {actions: [model.call]}", false, policy.RequireApproval, "model.call"},
		"the model refused":     {"deny: {tools: [glm-4.6]}", false, policy.Deny, "glm-4.6"},
		"the model asks":        {"ask: {tools: [glm-4.6]}", false, policy.RequireApproval, "glm-4.6"},
		"another model refused": {"deny: {tools: [glm-4.5]}", false, policy.Allow, ""},
		"the host refused": {`@id("far") @reason("not in this country") forbid (principal, action == Action::"model.call", resource)
			when { context.host like "*.z.ai" };`, true, policy.Deny, "not in this country"},
		"another host refused": {`@id("far") forbid (principal, action == Action::"model.call", resource)
			when { context.host == "api.openai.com" };`, true, policy.Allow, ""},
	} {
		b := h.bundle(c.text, c.cedar)
		a := h.ask()
		a.Bundle = b.Hash
		e, err := h.Explain(t.Context(), a, nil)
		if err != nil || e.Decision.Outcome != c.outcome || !strings.Contains(e.Decision.Reason, c.says) {
			t.Errorf("%s: got %+v, %v, want %s", name, e.Decision, err, c.outcome)
		}
		trial := h.ask()
		if e, err := h.Explain(t.Context(), trial, &b); err != nil || e.Decision.Outcome != c.outcome {
			t.Errorf("%s, tried: got %+v, %v", name, e.Decision, err)
		}
	}
}

// TestATokenBoundsModels asks under tokens: the action, the model and the host must be within one.
func TestATokenBoundsModels(t *testing.T) {
	h := build(t, nil)
	whole := token.Scopes{Rooms: []string{string(room)}, Actions: []string{policy.ModelCall}, Tools: []string{"glm-4.6"},
		Domains: []string{"*.z.ai"}}
	other := func(change func(*token.Scopes)) token.Scopes {
		s := whole
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		scopes token.Scopes
		want   policy.Outcome
	}{
		"within":         {whole, policy.Allow},
		"another action": {other(func(s *token.Scopes) { s.Actions = []string{policy.ToolCall} }), policy.Deny},
		"another model":  {other(func(s *token.Scopes) { s.Tools = []string{"glm-4.5"} }), policy.Deny},
		"another host":   {other(func(s *token.Scopes) { s.Domains = []string{"api.openai.com"} }), policy.Deny},
		"no host":        {other(func(s *token.Scopes) { s.Domains = nil }), policy.Deny},
	} {
		made, err := h.Grant(t.Context(), h.origin(h.owner), ws, token.Grant{IssuedTo: h.agent, Scopes: c.scopes})
		if err != nil {
			t.Fatal(err)
		}
		a := h.ask()
		a.Token = made.ID
		if d := h.judge(a).Decision; d.Outcome != c.want {
			t.Errorf("%s: got %s (%s, %s), want %s", name, d.Outcome, d.ReasonCode, d.Reason, c.want)
		}
	}
}
