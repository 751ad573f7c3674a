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

// questions are those about spaces that people have not answered yet.
type questions struct {
	catalog *Catalog
	docs    projection.Reader
	gate    policy.Gate
	system  id.Principal
}

// withdraw ends the questions about a space that was destroyed: whatever somebody answered, nothing could be done any more.
func (qs *questions) withdraw(ctx context.Context, origin event.Origin, doc space.Space) error {
	return qs.eachQuestion(ctx, doc.Workspace, "space_status", string(doc.ID)+" ", func(a policy.Approval) error {
		return qs.withdrawOne(ctx, origin, a)
	})
}

// withdrawLeft ends the questions about spaces of a workspace that were destroyed by a daemon which did not come to that.
func (qs *questions) withdrawLeft(ctx context.Context, ws id.Workspace) error {
	return qs.eachQuestion(ctx, ws, "status", "", func(a policy.Approval) error {
		if a.Space == "" || a.Run != "" {
			return nil // a run's question ends with its run
		}
		doc, err := qs.catalog.Space(ctx, ws, a.Space)
		if err != nil || doc.Status != space.Destroyed {
			return err
		}
		return qs.withdrawOne(ctx, event.Origin{Principal: qs.system}, a)
	})
}

func (qs *questions) withdrawOne(ctx context.Context, origin event.Origin, a policy.Approval) error {
	origin.Key = "" // it is that of one batch, and there may be many questions
	_, err := qs.gate.Withdraw(ctx, origin, a.ID, "the space was destroyed", event.Batch{Workspace: a.Workspace})
	if errors.Is(err, policy.ErrAlreadyDecided) {
		return nil
	}
	return err
}

// eachQuestion calls f for every open question under the values of an index that begin so and end with a status.
func (qs *questions) eachQuestion(ctx context.Context, ws id.Workspace, index, begins string, f func(policy.Approval) error) error {
	for _, status := range []policy.ApprovalStatus{policy.Pending, policy.Held} {
		q := projection.Query{
			Workspace: ws, Name: policy.ApprovalProjection, Index: projection.Index{Name: index, Value: begins + string(status)}, Limit: 100,
		}
		for {
			found, err := projection.List[policy.Approval](ctx, qs.docs, q)
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
