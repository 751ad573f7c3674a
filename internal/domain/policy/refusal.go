package policy

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
)

// RecordRefusal records a refusal whose reason lies outside policy, such as "nobody gives more than they have". It returns why. It records
// nothing if the principal is unknown in the workspace, or if the workspace is archived. If recording fails, the refusal still stands.
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
