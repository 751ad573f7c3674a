package gate

import (
	"fmt"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
)

// registered applies the registry row of an action outside: who may do it, and whether the requested posture is strict enough. It reports
// whether a bundle can still make it stricter.
func (c *consideration) registered() bool {
	if !c.entitled() {
		c.soft = false
		return false
	}
	a, k := c.ruling.Action, c.kind
	v := verdict{outcome: policy.RequireApproval, suggestion: "Ask for approval of it: POST /v1/approvals."}
	switch {
	case a.Zone == event.Sandbox && k.Zone != event.Sandbox:
		v = verdict{policy.Deny, policy.ReasonZoneMismatch, fmt.Sprintf("to %s takes the zone %s, and this is asked from a sandbox", k.Title,
			k.Zone), "Do it from the zone " + string(k.Zone) + "."}
	case k.Zone == event.HighStakes && a.Zone != event.HighStakes:
		v.code, v.reason = policy.ReasonHighStakes, fmt.Sprintf("to %s takes the zone high_stakes, so a person approves it", k.Title)
	case k.Type == policy.QuestionAsk:
		v.code, v.reason = policy.ReasonPreApproval, "a person is asked in plain words"
	case k.Type == policy.ExternalWrite:
		v.code, v.reason = policy.ReasonExternalWrite, "to "+k.Title+" always needs a person's approval"
	case k.PreApproval:
		v.code, v.reason = policy.ReasonPreApproval, "to "+k.Title+" always needs a person's approval"
	default:
		return true
	}
	c.soft = false
	c.part(policy.Title(a), nil, v, nil)
	return v.outcome != policy.Deny
}

// ownAffair reports whether a policy need not permit the action, because the registry says who may do it. Such an action is only recorded,
// asks a model, or is done outside by the principal who asks. It is false for an action outside from within a space, or under a policy
// that is tried, because that policy has to permit it.
func (c *consideration) ownAffair() bool {
	if c.kind.Outside {
		return c.ruling.Action.Space == "" && !c.trial
	}
	return c.kind.Rules == policy.RulesRole
}
