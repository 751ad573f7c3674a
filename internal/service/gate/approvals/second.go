package approvals

import (
	"context"
	"errors"
	"slices"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/service/gate/authority"
)

// second combines this approval with earlier ones, if policy demands more than one (two-person rule). Only assents of people who could
// decide now count. Enough people agree, or nobody else is there who could: then it is enough, so a person who is alone is never locked
// out. A second person who may decide once, but may not grant a standing approval, counts as present.
func (s *Service) second(ctx context.Context, origin event.Origin, doc policy.Approval, answer policy.Answer, standing bool,
	expect []event.DocumentVersion) (policy.Answer, bool, []event.DocumentVersion, error) {
	p, least := origin.Principal, leastRole(doc, standing)
	asked, err := s.requesters(ctx, doc)
	if err != nil {
		return answer, false, nil, err
	}
	var others []policy.Assent
	for _, a := range doc.Assents {
		if a.By == p || slices.Contains(asked, a.By) {
			continue
		}
		who, version, err := s.People.Person(ctx, doc.Workspace, a.By)
		if errors.Is(err, authority.ErrNobody) {
			continue
		}
		if err != nil {
			return answer, false, nil, err
		}
		if who.Quarantined || !who.Role.AtLeast(least) {
			continue
		}
		others = append(others, a)
		expect = append(expect, event.DocumentVersion{Projection: principal.Projection, Key: string(a.By), Version: version})
	}
	more, err := s.others(ctx, doc.Workspace, leastRole(doc, false), append(asked, p)...)
	if err != nil {
		return answer, false, nil, err
	}
	answer, enough, err := doc.Second(answer, p, origin.Issuer, others, more)
	return answer, enough, expect, err
}

// assent records one person's approval; the question stays open for another one. It refuses an answer that could not decide the question.
func (s *Service) assent(ctx context.Context, origin event.Origin, doc policy.Approval, answer policy.Answer, now time.Time,
	expect []event.DocumentVersion) error {
	if _, err := doc.Decide(answer, now); err != nil {
		return err
	}
	assented := doc.Assent(answer, origin.Issuer)
	if assented.Scope != policy.ScopeOnce {
		if _, err := s.grant(doc, answer, now); err != nil {
			return err
		}
	}
	draft := event.New(policy.ApprovalAssentedType, origin, doc.Workspace, doc.Room, assented).In(doc.Run,
		doc.Step).About(policy.ApprovalEntity, string(doc.ID))
	draft.OccurredAt = now
	_, err := s.Log.Append(ctx, event.Batch{Workspace: doc.Workspace, Drafts: []event.Draft{draft}, Documents: expect})
	return err
}
