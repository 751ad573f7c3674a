// Package approvals asks people, takes their answers, and ends unanswered questions.
package approvals

import (
	"context"
	"errors"
	"slices"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate/authority"
)

// Parts are the dependencies of the service.
type Parts struct {
	Log          journal.Journal
	Docs         projection.Reader
	Clock        event.Clock
	IDs          *id.Source
	System       id.Principal  // ends questions that nobody answered; without it the requester does
	QuestionTime time.Duration // how long a question stays open

	People       *authority.Reader
	Judge        Judge
	Switch       Switch
	Declarations Declarations
}

// Judge is the gate, as the approvals need it.
type Judge interface {
	// Own refuses a ruling that the gate did not make, or that was changed since.
	Own(r policy.Ruling) error
	// Judge decides an action.
	Judge(ctx context.Context, a policy.Action) (policy.Ruling, error)
}

// Switch is the kill switch, as the approvals need it.
type Switch interface {
	// On reports whether the switch of a workspace is thrown.
	On(ctx context.Context, ws id.Workspace) (bool, error)
}

// Declarations are the action types that workspaces declared, as the approvals need them.
type Declarations interface {
	// Current refuses an action whose type its workspace has changed or retired since the action was judged.
	Current(ctx context.Context, a policy.Action) error
}

// Service keeps approvals and standing approvals. Make it with New; any goroutine may call its methods.
type Service struct {
	Parts
	askers askers
}

// New returns a service of the given parts.
func New(parts Parts) *Service { return &Service{parts, newAskers()} }

// The errors of an answer.
var (
	// ErrNotFound means that the workspace has no such approval.
	ErrNotFound = fault.New(fault.NotFound, "approval_not_found", "there is no such approval in this workspace")
	// ErrStandingNotFound means that the workspace has no such standing approval.
	ErrStandingNotFound = fault.New(fault.NotFound, "standing_not_found", "there is no such standing approval in this workspace")
	// ErrOwnRequest refuses an answer from the requester.
	ErrOwnRequest = fault.New(fault.Denied, "approval_own_request",
		"nobody approves what they themselves requested; somebody else has to decide")
	// ErrOwnCredential refuses an answer with a credential that the requester has issued, because the requester may know it.
	ErrOwnCredential = fault.New(fault.Denied, "approval_own_credential",
		"whoever requested this has issued the key or token that you sent, so that the answer could be their own").
		With("Answer with a key of your own: one that you, or somebody else than whoever asked, made for you.")
)

// ErrKillSwitchHolds refuses to approve an action that the kill switch would stop at once.
var ErrKillSwitchHolds = fault.New(fault.Conflict, policy.ReasonKillSwitch,
	"the kill switch is on, so what is approved now would be refused; the question stays open").
	With("Lift it with `agentbox kill-switch off` and approve then; to deny or to hold is possible now.")

// Filter selects approvals. Zero fields do not select; a run goes before a space, and a space before a room.
type Filter struct {
	Status policy.ApprovalStatus
	Run    id.Run
	Space  id.Space
	Room   id.Room
	After  id.Approval // the last one of the page before
	Limit  int         // 1 to 1000; 0 means 100
}

// List returns the approvals of a workspace that the filter selects, newest first.
func (s *Service) List(ctx context.Context, ws id.Workspace, f Filter) ([]policy.Approval, error) {
	q := projection.Query{Workspace: ws, Name: policy.ApprovalProjection, After: string(f.After), Newest: true, Limit: f.Limit}
	switch {
	case f.Run != "" && f.Status != "":
		q.Index = projection.Index{Name: "run_status", Value: string(f.Run) + " " + string(f.Status)}
	case f.Run != "":
		q.Index = projection.Index{Name: "run", Value: string(f.Run)}
	case f.Space != "" && f.Status != "":
		q.Index = projection.Index{Name: "space_status", Value: string(f.Space) + " " + string(f.Status)}
	case f.Space != "":
		q.Index = projection.Index{Name: "space", Value: string(f.Space)}
	case f.Room != "" && f.Status != "":
		q.Index = projection.Index{Name: "room_status", Value: string(f.Room) + " " + string(f.Status)}
	case f.Room != "":
		q.Index = projection.Index{Name: "room", Value: string(f.Room)}
	case f.Status != "":
		q.Index = projection.Index{Name: "status", Value: string(f.Status)}
	}
	return projection.List[policy.Approval](ctx, s.Docs, q)
}

// Get returns one approval of the workspace.
func (s *Service) Get(ctx context.Context, ws id.Workspace, approval id.Approval) (policy.Approval, error) {
	doc, _, err := s.load(ctx, ws, approval)
	return doc, err
}

func (s *Service) load(ctx context.Context, ws id.Workspace, approval id.Approval) (policy.Approval, uint64, error) {
	doc, version, err := projection.Load[policy.Approval](ctx, s.Docs, ws, policy.ApprovalProjection, string(approval))
	if errors.Is(err, projection.ErrNotFound) {
		err = ErrNotFound
	}
	return doc, version, err
}

// Decide answers an approval on behalf of origin's principal and returns it. A scope beyond once makes a standing approval in the same
// commit; then the answer needs an end and a number of uses.
func (s *Service) Decide(ctx context.Context, origin event.Origin, ws id.Workspace, approval id.Approval,
	answer policy.Answer) (policy.Approval, error) {
	err := journal.Again(func() error { return s.decide(ctx, origin, ws, approval, answer) })
	if err != nil {
		return policy.Approval{}, err
	}
	return s.Get(ctx, ws, approval)
}

func (s *Service) decide(ctx context.Context, origin event.Origin, ws id.Workspace, approval id.Approval, answer policy.Answer) error {
	doc, version, err := s.load(ctx, ws, approval)
	if err != nil {
		return err
	}
	if answer.Saw != nil && *answer.Saw != doc.ActionHash {
		return policy.ErrOtherAction
	}
	standing := answer.Decision == policy.Approve && answer.Scope != "" && answer.Scope != policy.ScopeOnce
	if err := s.mayDecide(ctx, origin, doc, standing); err != nil {
		return err
	}
	expect := []event.DocumentVersion{{Projection: policy.ApprovalProjection, Key: string(doc.ID), Version: version}}
	if answer.Decision != policy.Refuse { // to refuse ends something, and can be done in an archived workspace too
		alive, err := s.People.Living(ctx, ws)
		if err != nil {
			return err
		}
		expect = append(expect, alive...)
	}
	if answer.Decision == policy.Approve && doc.Open() {
		if err := s.approvable(ctx, doc); err != nil {
			return err
		}
	}
	now := s.Clock.Now().UTC()
	if answer.Decision == policy.Approve && doc.Approvers > 1 && doc.Open() {
		var enough bool
		answer, enough, expect, err = s.second(ctx, origin, doc, answer, standing, expect)
		if err != nil {
			return err
		}
		if !enough {
			return s.assent(ctx, origin, doc, answer, now, expect)
		}
	}
	if standing {
		answer.Standing = id.New[id.Standing](s.IDs)
	}
	decided, err := doc.Decide(answer, now)
	if err != nil {
		return err
	}
	draft := event.New(policy.ApprovalDecidedType, origin, ws, doc.Room, decided).In(doc.Run, doc.Step).About(policy.ApprovalEntity,
		string(doc.ID))
	draft.OccurredAt = now
	batch := event.Batch{Workspace: ws, Drafts: []event.Draft{draft}, Documents: expect}
	if standing {
		granted, err := s.grant(doc, answer, now)
		if err != nil {
			return err
		}
		grant := event.New(policy.StandingGrantedType, origin, ws, doc.Room, granted).In(doc.Run, doc.Step).About(policy.StandingEntity,
			string(granted.Standing))
		grant.Follows = event.Subject{Type: policy.ApprovalEntity, ID: string(doc.ID)}
		grant.OccurredAt = now
		batch.Drafts = append(batch.Drafts, grant)
		batch.Documents = append(batch.Documents, event.DocumentVersion{Projection: policy.StandingProjection, Key: string(granted.Standing)})
	}
	_, err = s.Log.Append(ctx, origin.Once(batch))
	return err
}

// grant checks a standing approval: it must not cover more than the action of the question, and must be typed and bounded in time and
// number.
func (s *Service) grant(doc policy.Approval, answer policy.Answer, now time.Time) (policy.StandingGranted, error) {
	a, err := policy.ParseAction(doc.Request)
	if err != nil {
		return policy.StandingGranted{}, err
	}
	if runsAnything(a) {
		return policy.StandingGranted{}, policy.ErrStandingImpossible
	}
	cover, err := policy.CoverOf(a, answer.Scope, wordsOf(a))
	if err != nil {
		return policy.StandingGranted{}, err
	}
	return policy.Grant(answer.Standing, doc.ID, cover, answer.ExpiresAt.UTC(), answer.Uses, now)
}

// mayDecide checks the person who answers: their role is high enough, and they are not the requester under any credential.
func (s *Service) mayDecide(ctx context.Context, origin event.Origin, doc policy.Approval, standing bool) error {
	p := origin.Principal
	who, err := s.People.Who(ctx, doc.Workspace, p)
	if err != nil {
		return err
	}
	least := leastRole(doc, standing)
	if who.Kind != id.User || who.Quarantined || !who.Role.AtLeast(least) {
		return authority.ErrNotDecider
	}
	asked, err := s.requesters(ctx, doc)
	if err != nil {
		return err
	}
	if !slices.Contains(asked, p) {
		if i := origin.Issuer; i != "" && slices.Contains(asked, i) {
			return ErrOwnCredential
		}
		return nil
	}
	others, err := s.others(ctx, doc.Workspace, least, p)
	if err != nil {
		return err
	}
	if others || who.Role != principal.Overlord {
		return ErrOwnRequest
	}
	return nil // a single owner is never locked out
}

// requesters returns the principals who asked the question: the acting one and the one who sent it. If policy demands several persons, the
// person who asked for the run counts too, because then the question is their own. Otherwise one person may approve what the agent of their
// own space does.
func (s *Service) requesters(ctx context.Context, doc policy.Approval) ([]id.Principal, error) {
	asked := []id.Principal{doc.RequestedBy}
	if doc.Through != "" {
		asked = append(asked, doc.Through)
	}
	if doc.Run == "" || doc.Approvers < 2 {
		return asked, nil
	}
	r, _, err := projection.Load[run.Run](ctx, s.Docs, doc.Workspace, run.Projection, string(doc.Run))
	if errors.Is(err, projection.ErrNotFound) {
		return asked, nil
	}
	return append(asked, r.CreatedBy), err
}

// approvable refuses to approve an effect that the kill switch would stop at once, and a question under an older declaration.
func (s *Service) approvable(ctx context.Context, doc policy.Approval) error {
	if a, err := policy.ParseAction(doc.Request); err == nil {
		if err := s.Declarations.Current(ctx, a); err != nil {
			return err
		}
	}
	if kind, ok := kindOf(doc); ok && !kind.Stops() {
		return nil
	}
	on, err := s.Switch.On(ctx, doc.Workspace)
	if err == nil && on {
		err = ErrKillSwitchHolds
	}
	return err
}

// leastRole is the least role that may decide. An action that leaves the machine, or an answer that covers more than once, needs an admin.
func leastRole(doc policy.Approval, standing bool) principal.Role {
	if kind, ok := kindOf(doc); standing || !ok || kind.Zone == event.HighStakes {
		return principal.Admin
	}
	return principal.Operator
}

// others reports whether another person than the given ones could decide.
func (s *Service) others(ctx context.Context, ws id.Workspace, least principal.Role, but ...id.Principal) (bool, error) {
	q := projection.Query{Workspace: ws, Name: principal.Projection, Index: projection.Index{Name: "kind", Value: string(id.User)},
		Limit: 1000}
	for {
		people, err := projection.List[principal.Principal](ctx, s.Docs, q)
		if err != nil {
			return false, err
		}
		for _, other := range people {
			if !slices.Contains(but, other.ID) && !other.Quarantined && other.Role.AtLeast(least) {
				return true, nil
			}
			q.After = string(other.ID)
		}
		if len(people) < q.Limit {
			return false, nil
		}
	}
}

// Standings returns the standing approvals of a workspace, newest first, after the given one.
func (s *Service) Standings(ctx context.Context, ws id.Workspace, after id.Standing, limit int) ([]policy.Standing, error) {
	return projection.List[policy.Standing](ctx, s.Docs, projection.Query{
		Workspace: ws, Name: policy.StandingProjection, After: string(after), Newest: true, Limit: limit,
	})
}

// Revoke ends a standing approval. The people who may decide may revoke. It waits only for the log.
func (s *Service) Revoke(ctx context.Context, origin event.Origin, ws id.Workspace, standing id.Standing, reason string) error {
	who, err := s.People.Who(ctx, ws, origin.Principal)
	if err != nil {
		return err
	}
	if who.Kind != id.User || who.Quarantined || !who.Role.AtLeast(principal.Operator) {
		return authority.ErrNotDecider
	}
	if len(reason) > policy.MaxReasonBytes {
		return policy.ErrReasonTooLong
	}
	return journal.Again(func() error {
		doc, version, err := projection.Load[policy.Standing](ctx, s.Docs, ws, policy.StandingProjection, string(standing))
		if errors.Is(err, projection.ErrNotFound) {
			return ErrStandingNotFound
		}
		if err != nil || !doc.RevokedAt.IsZero() {
			return err
		}
		draft := event.New(policy.StandingRevokedType, origin, ws, "", policy.StandingRevoked{Standing: standing,
			Reason: reason}).About(policy.StandingEntity, string(standing))
		draft.OccurredAt = s.Clock.Now().UTC()
		_, err = s.Log.Append(ctx, event.Batch{
			Workspace: ws, Drafts: []event.Draft{draft},
			Documents: []event.DocumentVersion{{Projection: policy.StandingProjection, Key: string(standing), Version: version}},
		})
		return err
	})
}

// Step records the end of every question whose time is over at now.
func (s *Service) Step(ctx context.Context, now time.Time) error {
	workspaces, err := s.Log.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, ws := range workspaces {
		for _, status := range []policy.ApprovalStatus{policy.Pending, policy.Held} {
			if err := s.expire(ctx, ws, status, now); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Service) expire(ctx context.Context, ws id.Workspace, status policy.ApprovalStatus, now time.Time) error {
	q := projection.Query{Workspace: ws, Name: policy.ApprovalProjection, Index: projection.Index{Name: "status", Value: string(status)},
		Limit: 100}
	for {
		open, err := projection.List[policy.Approval](ctx, s.Docs, q)
		if err != nil {
			return err
		}
		for _, doc := range open {
			q.After = string(doc.ID)
			if _, over := doc.Expire(now); !over {
				continue
			}
			if err := journal.Again(func() error { return s.end(ctx, ws, doc.ID, now) }); err != nil {
				return err
			}
		}
		if len(open) < q.Limit {
			return nil
		}
	}
}

func (s *Service) end(ctx context.Context, ws id.Workspace, approval id.Approval, now time.Time) error {
	doc, version, err := s.load(ctx, ws, approval)
	if err != nil {
		return err
	}
	expired, over := doc.Expire(now)
	if !over {
		return nil // somebody decided it a moment ago
	}
	origin := event.Origin{Principal: s.System}
	if origin.Principal == "" {
		origin.Principal = doc.RequestedBy
	}
	draft := event.New(policy.ApprovalExpiredType, origin, ws, doc.Room, expired).In(doc.Run, doc.Step).About(policy.ApprovalEntity,
		string(doc.ID))
	draft.OccurredAt = now.UTC()
	_, err = s.Log.Append(ctx, event.Batch{
		Workspace: ws, Drafts: []event.Draft{draft},
		Documents: []event.DocumentVersion{{Projection: policy.ApprovalProjection, Key: string(doc.ID), Version: version}},
	})
	return err
}
