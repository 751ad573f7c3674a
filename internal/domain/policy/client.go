package policy

import (
	"context"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// Client takes the actions of a service through the gate. Each method judges the action, and returns an error if it is not allowed. An
// action whose whole effect is its record needs no Client: Gate.Record does all of this.
type Client struct {
	Gate Gate
	// Append records refusals. If it is nil, no refusal is recorded.
	Append func(context.Context, event.Batch) (event.Receipt, error)
	// Final says that nobody waits for a person: an action that needs an approval is denied.
	Final bool
	// Known is true if the refusal of an unknown principal is not recorded.
	Known bool
}

// Do takes an action through the gate and records its intent. Only an allowance is good enough.
func (c Client) Do(ctx context.Context, origin event.Origin, a Action, intent event.Batch) (Permit, event.Receipt, error) {
	ruling, err := c.Allow(ctx, origin, a)
	if err != nil {
		return Permit{}, event.Receipt{}, err
	}
	return c.Gate.Begin(ctx, ruling, "", intent)
}

// Allow returns the ruling of an action that may be done now. Only an allowance is good enough.
func (c Client) Allow(ctx context.Context, origin event.Origin, a Action) (Ruling, error) {
	ruling, err := c.Gate.Judge(ctx, a)
	if err != nil {
		return ruling, err
	}
	return ruling, c.Refuse(ctx, origin, ruling)
}

// Ask is Allow for a request that is sent again until a person has answered. If policy asks, it makes one question for the same request. It
// returns the approval that the action uses up, "" if it needs none.
func (c Client) Ask(ctx context.Context, origin event.Origin, a Action) (Ruling, id.Approval, error) {
	ruling, err := c.Gate.Judge(ctx, a)
	if err != nil {
		return ruling, "", err
	}
	if d := ruling.Decision; d.Allowed() || d.Outcome != RequireApproval {
		return ruling, "", c.Refuse(ctx, origin, ruling)
	}
	question, err := c.Gate.AskOnce(ctx, origin, ruling, event.Batch{Workspace: a.Workspace, Drafts: []event.Draft{RefusedDraft(origin,
		ruling)}})
	if err == nil {
		err = question.Answered()
	}
	return ruling, question.ID, err
}

// Early refuses an action that no person's answer can permit, before any work is done for it. The action is judged again when it begins.
func (c Client) Early(ctx context.Context, origin event.Origin, a Action) error {
	ruling, err := c.Gate.Judge(ctx, a)
	if err != nil || ruling.Decision.Outcome != Deny {
		return err
	}
	return c.Refuse(ctx, origin, ruling)
}

// Refuse records a ruling that does not allow, and turns it into an error. It returns nil for one that allows.
func (c Client) Refuse(ctx context.Context, origin event.Origin, r Ruling) error {
	d := r.Decision
	if d.Allowed() {
		return nil
	}
	if c.Append != nil && (!c.Known || d.ReasonCode != ReasonPrincipalNotFound) {
		if _, err := c.Append(ctx, event.Batch{Workspace: r.Action.Workspace, Drafts: []event.Draft{RefusedDraft(origin, r)}}); err != nil {
			return err
		}
	}
	if c.Final {
		d.Outcome = Deny
	}
	return d.Refusal()
}
