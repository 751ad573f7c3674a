package gate_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/service/gate"
)

// answering is an evaluator that takes every bundle and answers by a function.
type answering func(policy.Facts) (policy.Verdict, error)

func (answering) Validate(policy.Bundle) error { return nil }

func (a answering) Evaluate(_ policy.Bundle, f policy.Facts) (policy.Verdict, error) { return a(f) }

// The answers of an evaluator about the parts of a command make one decision: the strictest one, with its rules and persons. An evaluator
// that fails, or that permits by no rule, permits nothing.
func TestTheStrictestPartDecides(t *testing.T) {
	rule := func(outcome policy.Outcome, people int, names ...string) policy.Verdict {
		v := policy.Verdict{Outcome: outcome}
		for _, name := range names {
			v.Rules = append(v.Rules, policy.Rule{ID: name, Reason: "because of " + name, Approvers: people})
		}
		return v
	}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		line    string
		answers map[string]policy.Verdict // by command; the evaluator fails about others
		outcome policy.Outcome
		code    string
		reason  string
		rules   []string
		people  int
	}{
		"one that is permitted": {"ls", map[string]policy.Verdict{"ls": rule(policy.Allow, 0, "a")}, policy.Allow, policy.ReasonDefaultAllow,
			"the policy standard permits it", []string{"a"}, 0},
		"one permitted by no rule": {"ls", map[string]policy.Verdict{"ls": {Outcome: policy.Allow}}, policy.Deny, policy.ReasonNoPolicy,
			"nothing in the policy standard permits ls", nil, 0},
		"a question of no rule": {"ls", map[string]policy.Verdict{"ls": {Outcome: policy.RequireApproval}}, policy.Deny, policy.ReasonNoPolicy,
			"nothing in the policy standard permits ls", nil, 0},
		"one that cannot be evaluated": {"ls", nil, policy.Deny, policy.ReasonPolicyUnavailable,
			"the policy cannot be evaluated: it could not be judged", nil, 0},
		"two by two rules": {"ls; pwd", map[string]policy.Verdict{"ls": rule(policy.Allow, 0, "a"), "pwd": rule(policy.Allow, 0, "b")},
			policy.Allow, policy.ReasonDefaultAllow, "the policy standard permits it", []string{"a", "b"}, 0},
		"two by the same rule": {"ls; pwd", map[string]policy.Verdict{"ls": rule(policy.Allow, 0, "a"), "pwd": rule(policy.Allow, 0, "a")},
			policy.Allow, policy.ReasonDefaultAllow, "the policy standard permits it", []string{"a"}, 0},
		"the persons of a question": {"ls; pwd", map[string]policy.Verdict{"ls": rule(policy.RequireApproval, 2, "a"),
			"pwd": rule(policy.Allow, 3, "b")}, policy.RequireApproval, policy.ReasonPolicyAsks, "ls: because of a", []string{"a"}, 2},
		"one person": {"ls", map[string]policy.Verdict{"ls": rule(policy.RequireApproval, 1, "a")}, policy.RequireApproval,
			policy.ReasonPolicyAsks, "ls: because of a", []string{"a"}, 0},
		"the most persons": {"ls; pwd", map[string]policy.Verdict{"ls": rule(policy.RequireApproval, 2, "a"),
			"pwd": rule(policy.RequireApproval, 3, "b")}, policy.RequireApproval, policy.ReasonPolicyAsks, "ls: because of a",
			[]string{"a", "b"}, 3},
		"a refusal behind a question": {"ls; pwd", map[string]policy.Verdict{"ls": rule(policy.RequireApproval, 2, "a"),
			"pwd": rule(policy.Deny, 0, "b")}, policy.Deny, policy.ReasonPolicyForbids, "pwd: because of b", []string{"b"}, 0},
	} {
		h := build(t, func(p *gate.Parts) {
			p.Evaluator = answering(func(f policy.Facts) (policy.Verdict, error) {
				v, ok := c.answers[f.Command]
				if !ok {
					return policy.Verdict{Outcome: policy.Allow, Rules: []policy.Rule{{ID: "broken"}}}, broken
				}
				return v, nil
			})
		})
		d := h.judge(h.shell("standard", c.line)).Decision
		if d.Outcome != c.outcome || d.ReasonCode != c.code || d.Reason != c.reason || !slices.Equal(d.Policies, c.rules) ||
			d.Approvers != c.people {
			t.Errorf("%s: got %s %s %q by %v of %d, want %s %s %q by %v of %d", name, d.Outcome, d.ReasonCode, d.Reason, d.Policies,
				d.Approvers, c.outcome, c.code, c.reason, c.rules, c.people)
		}
	}
}

// The words of a decision are those of its rule, or name the rule; they say how the policy is shown, and who gets an action by a token.
func TestWhatADecisionSuggests(t *testing.T) {
	h := build(t, nil)
	h.pinned(space, h.bundles["standard"].Hash, nil)
	given := h.bundle("allow: {delegated: [run.start]}", false)
	quiet := h.bundle(`@id("quiet") forbid (principal, action, resource);`, true)
	files := h.bundle("allow: {commands: ['sort *', sort]}", false)
	elsewhere := func(bundle policy.Bundle, line string) policy.Action {
		a := h.shell("standard", line)
		a.Space, a.Bundle = "", bundle.Hash
		return a
	}
	start := func(p id.Principal, bundle policy.Bundle) policy.Action {
		return policy.Action{Type: policy.RunStart, Workspace: ws, Room: room, Principal: p, Bundle: bundle.Hash}
	}
	all := h.bundle(`@id("all") permit (principal, action, resource);`, true)
	trapped := elsewhere(all, "ls")
	trapped.Env = map[string]string{"Y": "x[$(rm -r y)]"}
	calls := h.bundle(`@id("calls") permit (principal, action == Action::"tool.call", resource);`, true)
	for name, c := range map[string]struct {
		a                  policy.Action
		code               string
		reason, suggestion string // a part of it
	}{
		"in a space": {h.shell("standard", "moon"), policy.ReasonNoPolicy, "nothing in the policy standard permits moon",
			"`agentbox policy show " + string(space) + "` lists"},
		"in no space": {elsewhere(h.bundles["standard"], "moon"), policy.ReasonNoPolicy, "permits moon",
			"`agentbox policy show standard` lists"},
		"a rule without words": {elsewhere(quiet, "ls"), policy.ReasonPolicyForbids, "ls: the rule quiet of the policy custom decides", ""},
		"an agent that may get it": {start(h.agent, given), policy.ReasonNoPolicy, "",
			"Ask a person for a capability token that names run.start, and use that: agentbox token grant AGENT --action run.start"},
		"an agent that may not get it": {start(h.agent, files), policy.ReasonNoPolicy, "",
			"Let a person do it. A policy gives it to agents under `allow.delegated` or `allow.actions`, and this one does not."},
		"a person": {start(h.person("Mia", principal.Member), calls), policy.ReasonNoPolicy, "", "Use another command or operation"},
		"what nobody gives on": {policy.Action{Type: policy.SpaceDiff, Workspace: ws, Room: room, Principal: h.agent, Bundle: files.Hash},
			policy.ReasonNoPolicy, "", "Use another command or operation"},
		"a file as an argument":       {elsewhere(files, "sort in"), policy.ReasonDefaultAllow, "", ""},
		"a file that the shell reads": {elsewhere(files, "sort < in"), policy.ReasonNoPolicy, "permits in", ""},
		"what is only known later": {trapped, policy.ReasonUnresolved,
			"what runs is only known when it runs: the environment variable Y holds a command", "Write the command out."},
		"what changes the rest": {elsewhere(h.bundles["permissive"], "export PATH=/x; ls"), policy.ReasonUnresolved,
			"it changes what later commands mean: ", "Leave it out, or set it for one program only."},
	} {
		d := h.judge(c.a).Decision
		if d.ReasonCode != c.code || !strings.Contains(d.Reason, c.reason) || !strings.Contains(d.Suggestion, c.suggestion) {
			t.Errorf("%s: got %s %s, %q, %q", name, d.Outcome, d.ReasonCode, d.Reason, d.Suggestion)
		}
	}
}

// An agent is told to ask for a token only where the policy surely permits the action under one.
func TestATokenIsSuggestedWhereItHelps(t *testing.T) {
	rules := []policy.Rule{{ID: "a"}}
	for name, c := range map[string]struct {
		verdict policy.Verdict
		err     error
		helps   bool
	}{
		"permitted":            {policy.Verdict{Outcome: policy.Allow, Rules: rules}, nil, true},
		"permitted by no rule": {policy.Verdict{Outcome: policy.Allow}, nil, false},
		"asked about":          {policy.Verdict{Outcome: policy.RequireApproval, Rules: rules}, nil, false},
		"not to be evaluated":  {policy.Verdict{Outcome: policy.Allow, Rules: rules}, errors.New("broken"), false},
		"forbidden":            {policy.Verdict{Outcome: policy.Deny, Rules: rules}, nil, false},
	} {
		h := build(t, func(p *gate.Parts) {
			p.Evaluator = answering(func(f policy.Facts) (policy.Verdict, error) {
				if f.Delegated {
					return c.verdict, c.err
				}
				return policy.Verdict{}, nil
			})
		})
		d := h.judge(policy.Action{Type: policy.RunStart, Workspace: ws, Room: room, Principal: h.agent}).Decision
		if d.Outcome != policy.Deny || strings.HasPrefix(d.Suggestion, "Ask a person for a capability token") != c.helps ||
			strings.HasPrefix(d.Suggestion, "Let a person do it.") == c.helps {
			t.Errorf("%s: got %s, %q", name, d.Outcome, d.Suggestion)
		}
	}
}
