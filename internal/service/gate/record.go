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
			return "", refusal(d)
		}
		if err := g.recordRefusal(ctx, refused); err != nil {
			return "", err
		}
		return "", refusal(d)
	}
	question, err := g.AskOnce(ctx, origin, r, refused)
	if err == nil {
		err = question.Answered()
	}
	return question.ID, err
}

// entitled reports whether who acts may do what is only recorded, and lays that down as the first part of the decision.
func (c *consideration) entitled() bool {
	title := policy.Title(c.ruling.Action)
	v := verdict{policy.Allow, policy.ReasonDefaultAllow, "the role permits it", ""}
	switch role := principal.Role(c.kind.Role); {
	case c.who.Kind == id.Agent && c.kind.Agents, c.who.Kind == id.Service && c.kind.Services, c.who.Kind == id.User && role != "" && c.who.Role.AtLeast(role):
	case c.who.Kind == id.User && role != "":
		v = verdict{policy.Deny, policy.ReasonRoleTooLow, fmt.Sprintf("to %s takes the role %s", c.kind.Title, role), "Ask an owner for the role " + string(role) + "."}
	default:
		v = verdict{policy.Deny, policy.ReasonRoleTooLow, fmt.Sprintf("to %s is not for %ss", c.kind.Title, c.who.Kind), "Let a person do it."}
	}
	c.part(title, nil, v, nil)
	return v.outcome == policy.Allow
}
