package approvals

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Use adds the use of an approval to a batch, which fails if anybody else has used it or the document has changed.
func (s *Service) Use(ctx context.Context, batch *event.Batch, r policy.Ruling, approval id.Approval) error {
	doc, version, err := projection.Load[policy.Approval](ctx, s.Docs, r.Action.Workspace, policy.ApprovalProjection, string(approval))
	if errors.Is(err, projection.ErrNotFound) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	used, err := doc.Use(r.Canonical, r.Action, s.Clock.Now())
	if err != nil {
		return err
	}
	origin := event.Origin{Principal: r.Action.Principal, Token: r.Action.Token, Correlation: batch.Correlation()}
	for i := range batch.Drafts {
		if d := &batch.Drafts[i]; d.Run == "" && d.Follows.ID == "" { // events of a run follow from the run, which the answer let continue
			d.Follows = event.Subject{Type: policy.ApprovalEntity, ID: string(approval)}
		}
	}
	draft := event.New(policy.ApprovalUsedType, origin, r.Action.Workspace, doc.Room, used)
	batch.Drafts = append(batch.Drafts, draft.In(doc.Run, doc.Step).About(policy.ApprovalEntity, string(doc.ID)))
	batch.Documents = append(batch.Documents, event.DocumentVersion{Projection: policy.ApprovalProjection, Key: string(approval),
		Version: version})
	return nil
}

// Count adds the use of a standing approval to a batch.
func (s *Service) Count(ctx context.Context, batch *event.Batch, r policy.Ruling) error {
	doc, version, err := projection.Load[policy.Standing](ctx, s.Docs, r.Action.Workspace, policy.StandingProjection, string(r.Standing))
	if err != nil {
		return err
	}
	if !doc.Holds(s.Clock.Now()) {
		return journal.ErrConflict // it was used up or revoked a moment ago: judge again
	}
	origin := event.Origin{Principal: r.Action.Principal, Token: r.Action.Token, Correlation: batch.Correlation()}
	draft := event.New(policy.StandingUsedType, origin, r.Action.Workspace, r.Action.Room, policy.StandingUsed{Standing: doc.ID,
		ActionHash: r.Decision.Action})
	batch.Drafts = append(batch.Drafts, draft.In(r.Action.Run, r.Action.Step).About(policy.StandingEntity, string(doc.ID)))
	batch.Documents = append(batch.Documents, event.DocumentVersion{Projection: policy.StandingProjection, Key: string(doc.ID),
		Version: version})
	return nil
}

// Covering returns a standing approval that covers an action now, and false if there is none. words are those of an action that is one
// command, otherwise nil.
func (s *Service) Covering(ctx context.Context, a policy.Action, words []string) (policy.Standing, bool, error) {
	for _, scope := range []policy.Scope{policy.ScopeRun, policy.ScopeRoom, policy.ScopeWorkspace, policy.ScopeTemplate} {
		cover, err := policy.CoverOf(a, scope, words)
		if err != nil {
			continue // nothing of this scope can cover it
		}
		found, err := projection.List[policy.Standing](ctx, s.Docs, projection.Query{
			Workspace: a.Workspace, Name: policy.StandingProjection, Index: projection.Index{Name: "match", Value: cover.Match.String()},
			Newest: true, Limit: 20,
		})
		if err != nil {
			return policy.Standing{}, false, err
		}
		for _, doc := range found {
			if doc.Cover == cover && doc.Holds(s.Clock.Now()) {
				return doc, true, nil
			}
		}
	}
	return policy.Standing{}, false, nil
}
