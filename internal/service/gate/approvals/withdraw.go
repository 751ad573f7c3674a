package approvals

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Withdraw implements policy.Gate.
func (s *Service) Withdraw(ctx context.Context, origin event.Origin, approval id.Approval, reason string, with event.Batch) (event.Receipt,
	error) {
	for try := 1; ; try++ {
		receipt, err := s.withdraw(ctx, origin, approval, reason, with)
		if err == nil || !errors.Is(err, journal.ErrConflict) || try == journal.Tries {
			return receipt, err
		}
		if again, lookErr := projection.Stale(ctx, s.Docs, with); lookErr != nil || again {
			return receipt, err // the caller's own expectation failed: another try cannot help
		}
	}
}

func (s *Service) withdraw(ctx context.Context, origin event.Origin, approval id.Approval, reason string, with event.Batch) (event.Receipt,
	error) {
	doc, version, err := s.load(ctx, with.Workspace, approval)
	if err != nil {
		return event.Receipt{}, err
	}
	batch := with
	if withdrawn, open := doc.Withdraw(reason); open {
		draft := event.New(policy.ApprovalWithdrawnType, origin, with.Workspace, doc.Room, withdrawn).In(doc.Run,
			doc.Step).About(policy.ApprovalEntity, string(doc.ID))
		draft.OccurredAt = s.Clock.Now().UTC()
		batch.Drafts = append([]event.Draft{draft}, with.Drafts...)
		batch.Documents = append(slices.Clone(with.Documents), event.DocumentVersion{Projection: policy.ApprovalProjection, Key: string(approval),
			Version: version})
	}
	if len(batch.Drafts) == 0 {
		return event.Receipt{}, policy.ErrAlreadyDecided
	}
	return s.Log.Append(ctx, batch)
}

// The refusals of a principal who withdraws a question.
var (
	// ErrNotRequester refuses everybody except the requester.
	ErrNotRequester = fault.New(fault.Denied, "not_requester",
		"only who requested the approval, or sent it for who acts, withdraws it; whoever may decide can deny it")
	// ErrRunAsks refuses to withdraw a question that a run in a space waits for.
	ErrRunAsks = fault.New(fault.Conflict, "run_waits", "a run waits for this answer; cancel the run, or let somebody deny it")
)

// outside reports whether a question is about an action outside, so that no run in a space waits for its answer.
func outside(doc policy.Approval) bool {
	kind, ok := kindOf(doc)
	return ok && kind.Outside
}

// TakeBack withdraws a question in the name of its requester, or of the principal who sent it for the acting one. A repeat changes nothing.
func (s *Service) TakeBack(ctx context.Context, origin event.Origin, ws id.Workspace, approval id.Approval, reason string) (policy.Approval,
	error) {
	doc, err := s.Get(ctx, ws, approval)
	if err != nil {
		return doc, err
	}
	who, err := s.People.Who(ctx, ws, origin.Principal)
	switch {
	case err != nil:
		return doc, err
	case who.Quarantined || origin.Principal != doc.RequestedBy && origin.Principal != doc.Through:
		return doc, ErrNotRequester
	case doc.Status == policy.Withdrawn:
		return doc, nil
	case doc.Space != "" && doc.Run != "" && !outside(doc):
		return doc, ErrRunAsks
	case len(reason) > policy.MaxReasonBytes:
		return doc, policy.ErrReasonTooLong
	}
	if _, err := s.Withdraw(ctx, origin, approval, cmp.Or(reason, "withdrawn_by_requester"), event.Batch{Workspace: ws}); err != nil {
		return doc, err
	}
	return s.Get(ctx, ws, approval)
}
