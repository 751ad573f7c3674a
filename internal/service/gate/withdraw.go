package gate

import (
	"context"
	"errors"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/journal"
)

// Withdraw implements policy.Gate.
func (g *Gate) Withdraw(ctx context.Context, origin event.Origin, approval id.Approval, reason string, with event.Batch) (event.Receipt, error) {
	for try := 1; ; try++ {
		receipt, err := g.withdraw(ctx, origin, approval, reason, with)
		if err == nil || !errors.Is(err, journal.ErrConflict) || try == tries {
			return receipt, err
		}
		if again, lookErr := g.stale(ctx, with); lookErr != nil || again {
			return receipt, err // the caller's own expectation failed: another try cannot help
		}
	}
}

func (g *Gate) withdraw(ctx context.Context, origin event.Origin, approval id.Approval, reason string, with event.Batch) (event.Receipt, error) {
	doc, version, err := g.approval(ctx, with.Workspace, approval)
	if err != nil {
		return event.Receipt{}, err
	}
	batch := with
	if withdrawn, open := doc.Withdraw(reason); open {
		draft := event.New(policy.ApprovalWithdrawnType, origin, with.Workspace, doc.Room, withdrawn).In(doc.Run, doc.Step).About(policy.ApprovalEntity, string(doc.ID))
		draft.OccurredAt = g.Clock.Now().UTC()
		batch.Drafts = append([]event.Draft{draft}, with.Drafts...)
		batch.Documents = append(slices.Clone(with.Documents), event.DocumentVersion{Projection: policy.ApprovalProjection, Key: string(approval), Version: version})
	}
	if len(batch.Drafts) == 0 {
		return event.Receipt{}, policy.ErrAlreadyDecided
	}
	return g.Log.Append(ctx, batch)
}
