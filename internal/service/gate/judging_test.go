package gate_test

import (
	"context"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate"
)

// A policy that is tried replaces the one that a space pins, whatever policy the action names; but it has to be what its hash says. A
// policy that nobody pinned permits nothing, and the refusal says so.
func TestAPolicyThatIsTried(t *testing.T) {
	h := build(t, nil)
	h.pinned(space, h.bundles["restrictive"].Hash, nil)
	trial := h.bundles["permissive"]
	for _, named := range []string{"", "standard", "restrictive"} {
		a := h.shell("standard", "moon")
		a.Bundle = h.bundles[named].Hash // zero for ""
		e, err := h.Explain(t.Context(), a, &trial)
		if err != nil || e.Decision.Outcome != policy.Allow || e.Decision.Bundle != trial.Hash {
			t.Errorf("named %q: got %s %s, %v", named, e.Decision.Outcome, e.Decision.Reason, err)
		}
	}
	trial.Cedar += " "
	e, err := h.Explain(t.Context(), h.shell("restrictive", "ls"), &trial)
	if err != nil || e.Decision.ReasonCode != policy.ReasonPolicyUnavailable ||
		!strings.HasPrefix(e.Decision.Reason, "the policy bundle is not what its hash says") {
		t.Errorf("not what its hash says: got %s %q, %v", e.Decision.ReasonCode, e.Decision.Reason, err)
	}
	a := h.file("standard", policy.FileRead, "a")
	a.Space, a.Bundle = "", event.DigestOf([]byte("pinned by nobody"))
	d := h.judge(a).Decision
	if d.ReasonCode != policy.ReasonPolicyUnavailable || !strings.Contains(d.Reason, "is not known in this workspace") ||
		!strings.Contains(d.Suggestion, "pin the policy again") {
		t.Errorf("pinned by nobody: got %s %q %q", d.ReasonCode, d.Reason, d.Suggestion)
	}
}

// Shadow mode marks what policy would refuse, and nothing else.
func TestShadowMarksWhatWouldBeRefused(t *testing.T) {
	h := build(t, func(p *gate.Parts) { p.Shadow = true })
	for line, want := range map[string]bool{"ls": false, "rm -r scratch": true, "sudo ls": true} {
		if d := h.judge(h.shell("standard", line)).Decision; d.Shadow != want {
			t.Errorf("%s: got %s, in the shadow: %t", line, d.Outcome, d.Shadow)
		}
	}
	if h := build(t, nil); h.judge(h.shell("standard", "sudo ls")).Decision.Shadow {
		t.Error("without the mode something is in the shadow")
	}
}

// swapped reads the document of one principal in the place of another's.
type swapped struct {
	projection.Reader
	of, by id.Principal
}

func (s *swapped) Document(ctx context.Context, ws id.Workspace, name, key string) (projection.Document, error) {
	if name == principal.Projection && key == string(s.of) && s.by != "" {
		key = string(s.by)
	}
	return s.Reader.Document(ctx, ws, name, key)
}

// Nobody acts by the document of another one.
func TestNobodyActsByTheDocumentOfAnother(t *testing.T) {
	docs := &swapped{}
	h := build(t, func(p *gate.Parts) { docs.Reader, p.Docs = p.Docs, docs })
	docs.of, docs.by = h.person("Vera", principal.Viewer), h.owner
	a, b := h.said(docs.of, policy.RoomCreate)
	if _, err := h.Record(t.Context(), h.origin(docs.of), a, b); fault.CodeOf(err) != policy.ReasonPrincipalNotFound {
		t.Errorf("got %v", err)
	}
}

// A policy is pinned in a workspace that has no document of its own, as before there were such documents.
func TestAWorkspaceWithoutADocumentLives(t *testing.T) {
	h := build(t, nil)
	owner, err := h.Owner(t.Context(), otherWS, "Olaf")
	if err == nil {
		_, err = h.Bundles.Pin(t.Context(), h.origin(owner), otherWS, "permissive", nil)
	}
	if err != nil {
		t.Error(err)
	}
}

// Shadow mode permits effects that policy would refuse. Maintenance, actions that only record, actions of viewers, and actions that always
// need a person are refused as ever.
func TestShadowModeTriesOnlyEffects(t *testing.T) {
	h := build(t, func(p *gate.Parts) { p.Shadow = true })
	none := h.bundle(`@id("none") forbid (principal, action, resource);`, true)
	all := h.bundle(`@id("all") permit (principal, action, resource);`, true)
	vera := h.person("Vera", principal.Viewer)
	of := func(typ string, p id.Principal, b policy.Bundle) policy.Action {
		return policy.Action{Type: typ, Workspace: ws, Room: room, Principal: p, Bundle: b.Hash}
	}
	shell := h.shell("standard", "ls")
	shell.Bundle = none.Hash
	seen := shell
	seen.Principal = vera
	for name, c := range map[string]struct {
		a       policy.Action
		outcome policy.Outcome
		code    string
		shadow  bool
	}{
		"an effect":                   {shell, policy.Deny, policy.ReasonPolicyForbids, true},
		"an effect of a viewer":       {seen, policy.Deny, policy.ReasonPolicyForbids, false},
		"what maintains":              {of(policy.SpaceDestroy, h.owner, none), policy.Deny, policy.ReasonPolicyForbids, false},
		"what is recorded":            {of(policy.MessageCreate, h.agent, none), policy.Deny, policy.ReasonPolicyForbids, false},
		"what always needs a person":  {of(policy.RunContinue, h.owner, all), policy.RequireApproval, policy.ReasonPreApproval, false},
		"recorded, needing a person":  {of(policy.DataAccessUnjustified, h.owner, all), policy.RequireApproval, policy.ReasonPreApproval, false},
		"what is permitted":           {of(policy.SpaceDestroy, h.owner, all), policy.Allow, policy.ReasonDefaultAllow, false},
		"recorded, and it is allowed": {of(policy.MessageCreate, h.agent, all), policy.Allow, policy.ReasonDefaultAllow, false},
	} {
		d := h.judge(c.a).Decision
		if d.Outcome != c.outcome || d.ReasonCode != c.code || d.Shadow != c.shadow {
			t.Errorf("%s: got %s %s (%s), in the shadow: %t", name, d.Outcome, d.ReasonCode, d.Reason, d.Shadow)
		}
		if c.code == policy.ReasonPreApproval && !strings.HasSuffix(d.Reason, "always needs a person's approval") {
			t.Errorf("%s: got %q", name, d.Reason)
		}
	}
}

// The gate does not ask about an action that no person could read. An action that needs no person may be of any length.
func TestWhatIsTooLongToShow(t *testing.T) {
	for _, shadow := range []bool{false, true} {
		h := build(t, func(p *gate.Parts) { p.Shadow = shadow })
		for line, want := range map[string]string{"ls": policy.ReasonDefaultAllow, "rm -r x": policy.ErrTooLongToShow.Code} {
			a := h.shell("permissive", line)
			a.Env = map[string]string{"LANG": strings.Repeat("x", policy.MaxQuestionBytes)}
			if d := h.judge(a).Decision; d.ReasonCode != want || d.Shadow {
				t.Errorf("%s: got %s (%.80s), want %s", line, d.ReasonCode, d.Reason, want)
			}
		}
	}
}
