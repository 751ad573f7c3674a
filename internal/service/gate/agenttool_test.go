package gate_test

import (
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/service/gate"
)

// agentUses is the question of a coding agent about one of its tools.
func (h *house) agentUses(tool, input string) policy.Action {
	return policy.Action{Type: policy.AgentTool, Workspace: ws, Room: room, Space: space, Run: run, Principal: h.agent, Operation: "tc_1",
		Tool: tool, Content: event.DigestOf([]byte(input)), Size: int64(len(input)), Request: []byte(input)}
}

// TestToolsOfCodingAgents holds what a policy says about the tools of a coding agent: a person is asked, unless a rule says otherwise.
func TestToolsOfCodingAgents(t *testing.T) {
	h := build(t, nil)
	for name, c := range map[string]struct {
		text    string
		outcome policy.Outcome
		says    string
	}{
		"no rule":              {"preset: permissive", policy.RequireApproval, "no rule of the policy permissive is about claude.Bash"},
		"the strictest":        {"preset: restrictive", policy.RequireApproval, "no rule of the policy restrictive"},
		"the tool allowed":     {"allow: {tools: [claude.Bash]}", policy.Allow, "permits it"},
		"another tool allowed": {"allow: {tools: [claude.Read]}", policy.RequireApproval, "no rule"},
		"every tool allowed":   {"allow: {actions: [agent.tool]}", policy.Allow, "permits it"},
		"all but this one": {"allow: {actions: [agent.tool]}\nask: {tools: [claude.Bash]}", policy.RequireApproval,
			"asks before claude.Bash"},
		"the tool refused":   {"allow: {tools: [claude.Bash]}\ndeny: {tools: [claude.Bash]}", policy.Deny, "refuses claude.Bash"},
		"every tool refused": {"allow: {tools: [claude.Bash]}\ndeny: {actions: [agent.tool]}", policy.Deny, "refuses agent.tool"},
		"every tool is asked of": {"allow: {tools: [claude.Bash]}\nask: {actions: [agent.tool]}", policy.RequireApproval,
			"asks before agent.tool"},
	} {
		a := h.agentUses("claude.Bash", `{"command":"ls"}`)
		a.Space, a.Bundle = "", h.bundle(c.text, false).Hash
		if d := h.judge(a).Decision; d.Outcome != c.outcome || !strings.Contains(d.Reason, c.says) {
			t.Errorf("%s: got %s (%s), want %s", name, d.Outcome, d.Reason, c.outcome)
		}
		a.Request = nil // too long to be shown
		want := c.outcome
		if want == policy.RequireApproval {
			want = policy.Deny
		}
		if d := h.judge(a).Decision; d.Outcome != want || want == policy.Deny && c.outcome != want &&
			d.ReasonCode != policy.ErrTooLongToShow.Code {
			t.Errorf("%s, too long to be shown: got %s (%s), want %s", name, d.Outcome, d.ReasonCode, want)
		}
	}
	a := h.agentUses("claude.Bash", `{"command":"ls"}`)
	a.Space, a.Principal = "", h.person("Vera", principal.Viewer)
	if d := h.judge(a).Decision; d.Outcome != policy.Deny || d.ReasonCode != policy.ReasonRoleTooLow {
		t.Errorf("a viewer: got %s (%s)", d.Outcome, d.ReasonCode)
	}
	if _, err := h.KillSwitch.Throw(t.Context(), h.origin(h.owner), ws, "stop"); err != nil {
		t.Fatal(err)
	}
	a.Principal = h.agent
	if d := h.judge(a).Decision; d.ReasonCode != policy.ReasonKillSwitch {
		t.Errorf("under the kill switch: got %s (%s)", d.Outcome, d.ReasonCode)
	}
}

// TestAStandingApprovalOfATool covers one tool with exactly one input, whatever call it is.
func TestAStandingApprovalOfATool(t *testing.T) {
	h := build(t, nil)
	a := h.agentUses("claude.Bash", `{"command":"ls"}`)
	match := func(a policy.Action, scope policy.Scope) policy.Cover {
		c, err := policy.CoverOf(a, scope, nil)
		if err != nil || c.Kind != policy.CoverInput {
			t.Fatalf("got %+v, %v", c, err)
		}
		return c
	}
	again, other, masked := a, h.agentUses("claude.Bash", `{"command":"rm"}`), a
	again.Operation, again.Step = "tc_2", "step_2"
	masked.Content = event.DigestOf([]byte("another secret")) // both requests show the same mask
	for _, scope := range []policy.Scope{policy.ScopeRun, policy.ScopeRoom, policy.ScopeWorkspace} {
		got := match(a, scope).Match
		if got != match(again, scope).Match || got == match(other, scope).Match || got == match(masked, scope).Match {
			t.Errorf("%s: the cover is another one", scope)
		}
	}
	for command, words := range map[string][]string{"ls": {"ls"}, "sh x.sh": nil} {
		a.Command = command
		if _, err := policy.CoverOf(a, policy.ScopeRun, words); (err == nil) != (words != nil) {
			t.Errorf("%s: %v", command, err)
		}
	}
	if _, err := policy.CoverOf(a, policy.ScopeTemplate, []string{"ls"}); err == nil {
		t.Error("a tool has a template")
	}
}

// TestAnAnswerForLaterUsesOfATool grants a standing approval of a coding agent's tool with a command, and none where that is a script.
func TestAnAnswerForLaterUsesOfATool(t *testing.T) {
	for command, code := range map[string]string{"ls": "", "sh x.sh": policy.ErrStandingImpossible.Code} {
		h := build(t, nil)
		a := h.agentUses("bash", `{"command":"`+command+`"}`) // its name is not that of a program of the space
		a.Space, a.Command = "", command
		_, q := h.asked(a)
		_, err := h.Approvals.Decide(t.Context(), h.origin(h.owner), ws, q.ID, policy.Answer{
			Decision: policy.Approve, Scope: policy.ScopeRun, ExpiresAt: h.clock.Now().Add(time.Hour), Uses: 2,
		})
		if fault.CodeOf(err) != code {
			t.Errorf("%s: got %v, want %q", command, err, code)
		}
		a.Operation = "tc_2"
		if r := h.judge(a); (r.Decision.Outcome == policy.Allow) != (code == "") || (r.Standing == "") != (code != "") {
			t.Errorf("%s, another call: got %+v by %q", command, r.Decision, r.Standing)
		}
	}
}

// TestToolsOfCodingAgentsInShadowMode lets pass what a rule refuses or asks about. Where no rule is about a tool, or a person cannot see
// the input, nothing passes.
func TestToolsOfCodingAgentsInShadowMode(t *testing.T) {
	h := build(t, func(p *gate.Parts) { p.Shadow = true })
	for name, c := range map[string]struct {
		text    string
		shown   bool
		outcome policy.Outcome
		shadow  bool
	}{
		"a rule asks":             {"ask: {tools: [claude.Bash]}", true, policy.RequireApproval, true},
		"a rule refuses":          {"deny: {tools: [claude.Bash]}", true, policy.Deny, true},
		"no rule":                 {"preset: permissive", true, policy.RequireApproval, false},
		"asks, too long to show":  {"ask: {tools: [claude.Bash]}", false, policy.Deny, false},
		"no rule, too long":       {"preset: permissive", false, policy.Deny, false},
		"allowed, however long":   {"allow: {tools: [claude.Bash]}", false, policy.Allow, false},
		"refused, and not a text": {"deny: {tools: [claude.Bash]}", false, policy.Deny, true},
	} {
		a := h.agentUses("claude.Bash", `{"command":"ls"}`)
		a.Space, a.Bundle = "", h.bundle(c.text, false).Hash
		if !c.shown {
			a.Request = nil
		}
		if d := h.judge(a).Decision; d.Outcome != c.outcome || d.Shadow != c.shadow {
			t.Errorf("%s: got %s (%s), in the shadow: %t", name, d.Outcome, d.Reason, d.Shadow)
		}
	}
}
