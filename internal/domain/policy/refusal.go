package policy

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
)

// RecordRefusal records that something was refused for a reason that lies beyond what policy decides, as that nobody gives more than he
// has, and returns why. Who is nobody here is not even refused, and an archived workspace takes no more records. Where it cannot be
// recorded, the refusal stands all the same.
func RecordRefusal(ctx context.Context, g Gate, record func(context.Context, event.Batch) (event.Receipt, error), origin event.Origin,
	a Action, why error) error {
	f, ok := errors.AsType[*fault.Error](why)
	if !ok || f.Kind != fault.Denied {
		return why
	}
	r, err := g.Judge(ctx, a)
	if err != nil || r.Decision.ReasonCode == ReasonPrincipalNotFound || r.Decision.ReasonCode == ReasonArchived {
		return errors.Join(why, err)
	}
	if r.Decision.Allowed() {
		r.Decision.Outcome, r.Decision.ReasonCode, r.Decision.Reason, r.Decision.Suggestion = Deny, f.Code, f.Msg, f.Suggestion
	}
	_, err = record(ctx, event.Batch{Workspace: a.Workspace, Drafts: []event.Draft{RefusedDraft(origin, r)}})
	return errors.Join(why, err)
}
