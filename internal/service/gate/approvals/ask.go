package approvals

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// MaxOpen is how many questions of one principal may be open at once. More would bury the people who answer.
const MaxOpen = 100

// Ask implements policy.Gate.
func (s *Service) Ask(ctx context.Context, origin event.Origin, r policy.Ruling, q policy.Ask, with event.Batch) (policy.Approval, error) {
	return s.ask(ctx, origin, r, q, with, "")
}

// AskOnce implements policy.Gate.
func (s *Service) AskOnce(ctx context.Context, origin event.Origin, r policy.Ruling, with event.Batch) (policy.Approval, error) {
	if err := s.Judge.Own(r); err != nil {
		return policy.Approval{}, err
	}
	// Questions about the daemon's own requests to the network for an agent are asked here: these requests are no operations of the run.
	if kind, _ := r.Action.Kind(); r.Action.Run != "" && kind.Rules != policy.RulesRole && kind.SideEffect != policy.Network {
		return policy.Approval{}, fault.New(fault.Internal, "nothing_to_ask", "a run asks for its effects itself")
	}
	if p := r.Action.Principal; origin.Principal != p { // the principal who sends it for the acting one
		origin.Principal, origin.By = p, cmp.Or(origin.By, origin.Principal)
	}
	for try := 1; ; try++ {
		latest, err := s.latest(ctx, r)
		if err != nil || latest.Counts(s.Clock.Now()) {
			return latest, err
		}
		// Many callers may be here at once. The key lets one of them ask after the latest question; the others find its question.
		q, err := s.ask(ctx, origin, r, policy.Ask{}, with, "ask:"+r.Decision.Action.String()+":"+string(latest.ID))
		if err == nil || !journal.Lost(err) || try == journal.Tries {
			return q, err
		}
	}
}

// latest returns the latest question about exactly this action, or the zero approval.
func (s *Service) latest(ctx context.Context, r policy.Ruling) (policy.Approval, error) {
	found, err := projection.List[policy.Approval](ctx, s.Docs, projection.Query{
		Workspace: r.Action.Workspace, Name: policy.ApprovalProjection, Index: projection.Index{Name: "request",
			Value: r.Decision.Action.String()},
		Newest: true, Limit: 1,
	})
	if err != nil || len(found) == 0 {
		return policy.Approval{}, err
	}
	return found[0], nil
}

// ask records a question. Unique, if not empty, is a key that no other question may have.
func (s *Service) ask(ctx context.Context, origin event.Origin, r policy.Ruling, q policy.Ask, with event.Batch,
	unique string) (policy.Approval, error) {
	if err := s.Judge.Own(r); err != nil {
		return policy.Approval{}, err
	}
	a := r.Action
	if err := policy.Belongs(with, a.Workspace); err != nil {
		return policy.Approval{}, err
	}
	if origin.Principal != a.Principal {
		return policy.Approval{}, fault.New(fault.Internal, "principal_mismatch", "only who acts can ask for approval of the act")
	}
	if r.Decision.Outcome != policy.RequireApproval {
		return policy.Approval{}, fault.New(fault.Internal, "nothing_to_ask", "only what needs approval can be asked about")
	}
	now, err := s.Judge.Judge(ctx, a)
	if err != nil {
		return policy.Approval{}, err
	}
	if now.Decision.Outcome == policy.Deny {
		return policy.Approval{}, now.Decision.Refusal() // it has become impossible since
	}
	draft, err := s.question(origin, r, q)
	if err != nil {
		return policy.Approval{}, err
	}
	draft.IdempotencyKey = unique
	give, err := s.askers.of(ctx, a.Principal) // else all but one of many concurrent callers would lose again and again
	if err != nil {
		return policy.Approval{}, err
	}
	defer give()
	for try := 1; ; try++ {
		open, err := s.open(ctx, a.Workspace, a.Principal)
		if err != nil {
			return policy.Approval{}, err
		}
		batch := with
		batch.Drafts = append(slices.Clone(with.Drafts), draft)
		batch.Documents = append(slices.Clone(with.Documents), open, event.DocumentVersion{Projection: policy.ApprovalProjection,
			Key: draft.EntityID})
		if _, err = s.Log.Append(ctx, batch); err == nil {
			break
		}
		if !errors.Is(err, journal.ErrConflict) || try == journal.Tries {
			return policy.Approval{}, err
		}
		if again, lookErr := projection.Stale(ctx, s.Docs, with); lookErr != nil || again {
			return policy.Approval{}, err // the caller's own expectation failed: another try cannot help
		}
	}
	doc, _, err := projection.Load[policy.Approval](ctx, s.Docs, a.Workspace, policy.ApprovalProjection, draft.EntityID)
	return doc, err
}

// question drafts approval.requested.
func (s *Service) question(origin event.Origin, r policy.Ruling, q policy.Ask) (event.Draft, error) {
	a := r.Action
	what, err := policy.Render(r.Canonical)
	if err != nil {
		return event.Draft{}, err
	}
	if q.Approval == "" {
		q.Approval = id.New[id.Approval](s.IDs)
	}
	unsealed := append(slices.Clone(r.Decision.Unsealed), policy.EscapeAll(q.Unsealed)...)
	words, _ := leak.Text(q.AgentWords)
	if len(words) > policy.MaxAgentWords {
		words = strings.ToValidUTF8(words[:policy.MaxAgentWords], "") + "..."
	}
	why := r.Decision.Reason
	if len(r.Decision.Policies) > 0 {
		why += fmt.Sprintf(" (rules: %s)", policy.Escape(strings.Join(r.Decision.Policies, ", ")))
	}
	if r.Decision.Approvers > 1 {
		why += fmt.Sprintf("; %d persons have to approve it", r.Decision.Approvers)
	}
	template, err := policy.CoverOf(a, policy.ScopeTemplate, wordsOf(a))
	if err != nil {
		template.Text = "" // it makes none
	}
	now := s.Clock.Now().UTC()
	expires := now.Add(s.QuestionTime)
	if !q.ExpiresAt.IsZero() {
		if expires = q.ExpiresAt.UTC(); !expires.After(now) || expires.After(now.Add(policy.MaxQuestionTime)) {
			return event.Draft{}, policy.ErrInvalidExpiry
		}
	}
	scope, err := grantable(a, q.Scope)
	if err != nil {
		return event.Draft{}, err
	}
	title, _ := leak.Text(q.AgentTitle)
	draft := event.New(policy.ApprovalRequestedType, origin, a.Workspace, a.Room, policy.ApprovalRequested{
		Approval: q.Approval, Space: a.Space, Operation: a.Operation, Action: a.Type, Title: policy.Title(a), Request: r.Canonical,
		ActionHash: r.Decision.Action, Bundle: a.Bundle, Scope: scope, ExpiresAt: expires,
		Approvers: r.Decision.Approvers, Through: cmp.Or(q.Through, origin.By),
		Question: policy.Question{
			What: policy.Title(a) + "\n" + what, Why: why, Impact: policy.Impact(a, unsealed, leaves(a)), Unsealed: unsealed,
			Template:   template.Text,
			AgentTitle: policy.Escape(title), AgentWords: policy.Escape(words),
		},
	}).In(a.Run, a.Step).About(policy.ApprovalEntity, string(q.Approval))
	draft.OccurredAt, draft.Thread = now, q.Thread
	return draft, nil
}

// grantable returns the requested scope, and refuses one that no answer could grant for the action.
func grantable(a policy.Action, asked policy.Scope) (policy.Scope, error) {
	scope, err := asked.Known()
	if err != nil || scope == policy.ScopeOnce {
		return scope, err
	}
	if runsAnything(a) {
		return "", policy.ErrStandingImpossible
	}
	_, err = policy.CoverOf(a, scope, wordsOf(a))
	return scope, err
}

// askers serializes the questions of each principal with 64 striped locks. A lock is a channel with room for one, so that waiting honours
// the context.
type askers [64]chan struct{}

func newAskers() (a askers) {
	for i := range a {
		a[i] = make(chan struct{}, 1)
	}
	return a
}

// of locks the questions of a principal, and returns the function that unlocks them.
func (a *askers) of(ctx context.Context, p id.Principal) (unlock func(), err error) {
	lock := a[crc32.ChecksumIEEE([]byte(p))%uint32(len(a))]
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// open refuses a question beyond the limit of a principal's open questions. It returns the document version that the log must expect, so
// that the principal has asked no other question meanwhile.
func (s *Service) open(ctx context.Context, ws id.Workspace, p id.Principal) (event.DocumentVersion, error) {
	asked := event.DocumentVersion{Projection: policy.AskerProjection, Key: string(p)}
	doc, err := s.Docs.Document(ctx, ws, policy.AskerProjection, string(p))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return asked, err
	}
	asked.Version = doc.Version
	found, err := s.Docs.Documents(ctx, projection.Query{
		Workspace: ws, Name: policy.ApprovalProjection, Index: projection.Index{Name: "open_by", Value: string(p)}, Limit: MaxOpen,
	})
	if err == nil && len(found) >= MaxOpen {
		err = fault.New(fault.Exhausted, policy.ReasonQuotaExceeded,
			"%d questions of this agent are open already, the most that are allowed; wait for an answer", MaxOpen)
	}
	return asked, err
}
