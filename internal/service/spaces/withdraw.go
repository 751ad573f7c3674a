package spaces

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/projection"
)

// withdraw ends the questions about a space that was destroyed: whatever somebody answered, nothing could be done any more.
func (k *Service) withdraw(ctx context.Context, origin event.Origin, doc space.Space) error {
	return k.eachQuestion(ctx, doc.Workspace, "space_status", string(doc.ID)+" ", func(a policy.Approval) error {
		return k.withdrawOne(ctx, origin, a)
	})
}

// withdrawLeft ends the questions about spaces of a workspace that were destroyed by a daemon which did not come to that.
func (k *Service) withdrawLeft(ctx context.Context, ws id.Workspace) error {
	return k.eachQuestion(ctx, ws, "status", "", func(a policy.Approval) error {
		if a.Space == "" || a.Run != "" {
			return nil // a run's question ends with its run
		}
		doc, err := k.Space(ctx, ws, a.Space)
		if err != nil || doc.Status != space.Destroyed {
			return err
		}
		return k.withdrawOne(ctx, event.Origin{Principal: k.System}, a)
	})
}

func (k *Service) withdrawOne(ctx context.Context, origin event.Origin, a policy.Approval) error {
	origin.Key = "" // it is that of one batch, and there may be many questions
	_, err := k.Gate.Withdraw(ctx, origin, a.ID, "the space was destroyed", event.Batch{Workspace: a.Workspace})
	if errors.Is(err, policy.ErrAlreadyDecided) {
		return nil
	}
	return err
}

// eachQuestion calls f for every open question under the values of an index that begin so and end with a status.
func (k *Service) eachQuestion(ctx context.Context, ws id.Workspace, index, begins string, f func(policy.Approval) error) error {
	for _, status := range []policy.ApprovalStatus{policy.Pending, policy.Held} {
		q := projection.Query{
			Workspace: ws, Name: policy.ApprovalProjection, Index: projection.Index{Name: index, Value: begins + string(status)}, Limit: 100,
		}
		for {
			found, err := projection.List[policy.Approval](ctx, k.Docs, q)
			if err != nil {
				return err
			}
			for _, a := range found {
				if err := f(a); err != nil {
					return err
				}
				q.After = string(a.ID)
			}
			if len(found) < q.Limit {
				break
			}
		}
	}
	return nil
}
