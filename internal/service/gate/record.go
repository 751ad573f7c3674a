package gate

import (
	"context"
	"fmt"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
)

// Record implements policy.Gate.
func (g *Gate) Record(ctx context.Context, origin event.Origin, a policy.Action, b event.Batch) (event.Receipt, error) {
	if kind, ok := policy.KindOf(a.Type); ok && kind.SideEffect != policy.Record {
		return event.Receipt{}, fault.New(fault.Internal, policy.ReasonActionInvalid, "%s does more than to record something", a.Type)
	}
	if len(b.Drafts) == 0 {
		return event.Receipt{}, fault.New(fault.Internal, policy.ReasonActionInvalid, "there is nothing to record of %s", a.Type)
	}
	if a.Token == "" {
		a.Token = origin.Token // so no recorder can forget the token under which it acts
	}
	if a.Token != origin.Token {
		return event.Receipt{}, fault.New(fault.Internal, policy.ReasonActionInvalid,
			"the action names another capability token than that under which somebody acts")
	}
	ruling, approval, err := policy.Client{Gate: g, Append: g.recordRefusal, Known: true}.Ask(ctx, origin, a)
	if err != nil {
		return event.Receipt{}, err
	}
	_, receipt, err := g.Begin(ctx, ruling, approval, b)
	return receipt, err
}

// entitled reports whether the acting principal may do an action that is only recorded. It writes that as the first part of the decision.
func (c *consideration) entitled() bool {
	v := entitlement(c.kind, c.who.Kind, c.who.Role)
	c.part(policy.Title(c.ruling.Action), nil, v, nil)
	return v.outcome == policy.Allow
}

// entitlement says whether the registry gives an action to a principal of a kind and a role.
func entitlement(kind policy.Kind, who id.PrincipalKind, has principal.Role) verdict {
	role := principal.Role(kind.Role)
	switch {
	case who == id.Agent && kind.Agents, who == id.Service && kind.Services, who == id.User && role != "" && has.AtLeast(role):
		return verdict{policy.Allow, policy.ReasonDefaultAllow, "the role permits it", ""}
	case who == id.User && role != "":
		return roleTooLow(kind, role)
	}
	return verdict{policy.Deny, policy.ReasonRoleTooLow, fmt.Sprintf("to %s is not for %ss", kind.Title, who), "Let a person do it."}
}

// roleTooLow is the refusal of an action that takes a role.
func roleTooLow(kind policy.Kind, role principal.Role) verdict {
	return verdict{
		policy.Deny, policy.ReasonRoleTooLow, fmt.Sprintf("to %s takes the role %s", kind.Title, role), "Ask an owner for the role " +
			string(role) + ".",
	}
}

// Barred refuses an action that the caller's kind or role rules out in every case, and records the refusal. So a request is refused before
// its body is read, and the answer does not tell whether the body was valid. Least is the least role of a person if the registry names
// none. Barred rules nothing out if the outcome depends on the policy of a space, or on the principal that the body names for a service.
func (g *Gate) Barred(ctx context.Context, origin event.Origin, c principal.Caller, a policy.Action, least principal.Role) error {
	kind, known := policy.KindOf(a.Type)
	if !known {
		return nil
	}
	v, who := verdict{outcome: policy.Allow}, c.Principal.Kind()
	switch {
	case kind.Rules == policy.RulesRole || kind.Outside:
		if who == id.Service && kind.Agents { // it may act for an agent
			return nil
		}
		v = entitlement(kind, who, c.Role)
	case who == id.User && least != "" && !c.Role.AtLeast(least):
		v = roleTooLow(kind, least)
	case who == id.User && kind.SideEffect.Reaches() && !c.Role.AtLeast(principal.Member):
		v = verdict{policy.Deny, policy.ReasonRoleTooLow, "a viewer only reads", "Ask an owner for the role member."}
	}
	if v.outcome == policy.Allow {
		return nil
	}
	return g.refuse(ctx, origin, a, policy.Decision{Outcome: policy.Deny, ReasonCode: v.code, Reason: v.reason, Suggestion: v.suggestion})
}
