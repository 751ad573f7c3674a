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
		a.Token = origin.Token // whoever records something cannot forget under what he acts
	}
	if a.Token != origin.Token {
		return event.Receipt{}, fault.New(fault.Internal, policy.ReasonActionInvalid, "the action names another capability token than that under which somebody acts")
	}
	ruling, err := g.Judge(ctx, a)
	if err != nil {
		return event.Receipt{}, err
	}
	approval, err := g.granted(ctx, origin, ruling)
	if err != nil {
		return event.Receipt{}, err
	}
	_, receipt, err := g.Begin(ctx, ruling, approval, b)
	return receipt, err
}

// granted returns the approval that a ruling uses up if it needs one. Where policy asks, the question is made, once for the same request,
// and the request has to be sent again when it is answered. A refusal is recorded.
func (g *Gate) granted(ctx context.Context, origin event.Origin, r policy.Ruling) (id.Approval, error) {
	d := r.Decision
	if d.Allowed() {
		return "", nil
	}
	refused := event.Batch{Workspace: r.Action.Workspace, Drafts: []event.Draft{policy.RefusedDraft(origin, r)}}
	if d.Outcome != policy.RequireApproval {
		if d.ReasonCode == policy.ReasonPrincipalNotFound { // nobody is not even refused
			return "", d.Refusal()
		}
		if err := g.recordRefusal(ctx, refused); err != nil {
			return "", err
		}
		return "", d.Refusal()
	}
	question, err := g.AskOnce(ctx, origin, r, refused)
	if err == nil {
		err = question.Answered()
	}
	return question.ID, err
}

// entitled reports whether who acts may do what is only recorded, and lays that down as the first part of the decision.
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
		policy.Deny, policy.ReasonRoleTooLow, fmt.Sprintf("to %s takes the role %s", kind.Title, role), "Ask an owner for the role " + string(role) + ".",
	}
}

// Barred refuses an action that the caller's kind or role rules out whatever else is said of it, and records the refusal. So a request is
// refused before its body is read, and the answer does not tell whether the body was valid. Least is the least role of a person where the
// registry names none. It rules nothing out where the outcome depends on the policy of a space, or on whom the body says that a service acts for.
func (g *Gate) Barred(ctx context.Context, origin event.Origin, c principal.Caller, a policy.Action, least principal.Role) error {
	kind, known := policy.KindOf(a.Type)
	if !known {
		return nil
	}
	v, who := verdict{outcome: policy.Allow}, c.Principal.Kind()
	switch {
	case kind.SideEffect == policy.Record || kind.Outside:
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
