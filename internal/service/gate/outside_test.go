package gate

import (
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
)

// TestWhatTheRegistryDemandsOfAnAction holds who may do an action outside and from which zone, what of it takes a person, and that a policy
// is asked only where the registry does not deny. Shadow mode lets none of these answers pass.
func TestWhatTheRegistryDemandsOfAnAction(t *testing.T) {
	kind := func(change func(*policy.Kind)) policy.Kind {
		k := policy.Kind{Type: "test.act", Title: "act", Role: string(principal.Member), Zone: event.Supervised, Outside: true}
		change(&k)
		return k
	}
	plain := kind(func(*policy.Kind) {})
	high := kind(func(k *policy.Kind) { k.Zone = event.HighStakes })
	for _, c := range []struct {
		name    string
		kind    policy.Kind
		role    principal.Role
		zone    event.Zone
		outcome policy.Outcome
		code    string
		reason  string
		asks    bool // the policy too
		soft    bool
	}{
		{"a plain one", plain, principal.Member, event.Supervised, policy.Allow, policy.ReasonDefaultAllow, "the role permits it", true, true},
		{"of a viewer", plain, principal.Viewer, event.Supervised, policy.Deny, policy.ReasonRoleTooLow, "to act takes the role member", false,
			false},
		{"from a sandbox", plain, principal.Admin, event.Sandbox, policy.Deny, policy.ReasonZoneMismatch,
			"to act takes the zone supervised, and this is asked from a sandbox", false, false},
		{"for a sandbox, from one", kind(func(k *policy.Kind) { k.Zone = event.Sandbox }), principal.Member, event.Sandbox, policy.Allow,
			policy.ReasonDefaultAllow, "the role permits it", true, true},
		{"high stakes from below", high, principal.Admin, event.Supervised, policy.RequireApproval, policy.ReasonHighStakes,
			"to act takes the zone high_stakes, so a person approves it", true, false},
		{"high stakes", high, principal.Admin, event.HighStakes, policy.Allow, policy.ReasonDefaultAllow, "the role permits it", true, true},
		{"a question", kind(func(k *policy.Kind) { k.Type, k.PreApproval = policy.QuestionAsk, true }), principal.Admin, event.Supervised,
			policy.RequireApproval, policy.ReasonPreApproval, "a person is asked in plain words", true, false},
		{"a write outside", kind(func(k *policy.Kind) { k.Type, k.PreApproval = policy.ExternalWrite, true }), principal.Admin, event.Supervised,
			policy.RequireApproval, policy.ReasonExternalWrite, "to act always needs a person's approval", true, false},
		{"what always needs a person", kind(func(k *policy.Kind) { k.PreApproval = true }), principal.Admin, event.Supervised,
			policy.RequireApproval, policy.ReasonPreApproval, "to act always needs a person's approval", true, false},
	} {
		v := consideration{kind: c.kind, who: principal.Principal{Kind: id.User, Role: c.role}, soft: true}
		v.ruling.Action = policy.Action{Type: c.kind.Type, Zone: c.zone}
		asks := v.registered()
		d := v.ruling.Decision
		if asks != c.asks || v.soft != c.soft || d.Outcome != c.outcome || d.ReasonCode != c.code || d.Reason != c.reason ||
			(d.Suggestion != "") != (c.outcome != policy.Allow) {
			t.Errorf("%s: got %+v, the policy is asked: %t, shadow mode lets it pass: %t", c.name, d, asks, v.soft)
		}
	}
}

// TestWhatNoPolicyNeedsToPermit holds which actions the registry alone gives: records, and actions outside. It gives
// none of them to code in a space, and none under a policy that is only tried.
func TestWhatNoPolicyNeedsToPermit(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  policy.Kind
		space id.Space
		trial bool
		want  bool
	}{
		{"outside", policy.Kind{Outside: true}, "", false, true},
		{"outside, from a space", policy.Kind{Outside: true}, "spc_1", false, false},
		{"outside, under a policy that is tried", policy.Kind{Outside: true}, "", true, false},
		{"by role", policy.Kind{Rules: policy.RulesRole}, "", false, true},
		{"by role, in a space", policy.Kind{Rules: policy.RulesRole}, "spc_1", false, true},
		{"by policy", policy.Kind{}, "", false, false},
	} {
		v := consideration{kind: c.kind, trial: c.trial}
		v.ruling.Action.Space = c.space
		if got := v.ownAffair(); got != c.want {
			t.Errorf("%s: got %t, want %t", c.name, got, c.want)
		}
	}
}
