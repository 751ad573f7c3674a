package policy

import (
	"errors"
	"fmt"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// misplaced is the error of an event that says in its data that it is about something else than its envelope says. The envelope's entity is
// outside the chain's hash, so the data decides.
func misplaced(e event.Event, err error) error {
	return errors.Join(err, fmt.Errorf("%s %s is about something else than %s", e.Type, e.ID, e.EntityID))
}

// Evolve returns the approval after an event about it.
func (a Approval) Evolve(e event.Event) (Approval, error) {
	switch e.Type {
	case ApprovalRequestedType:
		d, err := event.Decode[ApprovalRequested](e)
		if err != nil {
			return a, err
		}
		if e.Withheld == event.Destroyed {
			// The text of the question is gone, so it cannot be answered.
			return Approval{
				ID: id.Approval(e.EntityID), Workspace: e.Workspace, Room: e.Room, Run: e.Run, Step: e.Step, Thread: e.Thread, RequestedBy: e.Principal,
				RequestedAt: e.OccurredAt, Status: Expired,
			}, nil
		}
		return Approval{
			ID: d.Approval, Workspace: e.Workspace, Room: e.Room, Space: d.Space, Run: e.Run, Step: e.Step, Thread: e.Thread, Operation: d.Operation,
			Action: d.Action, Title: d.Title, Request: d.Request, ActionHash: d.ActionHash, Bundle: d.Bundle, Question: d.Question,
			RequestedBy: e.Principal, RequestedAt: e.OccurredAt, ExpiresAt: d.ExpiresAt, Status: Pending, Scope: d.Scope,
			Approvers: d.Approvers, Through: d.Through,
		}, nil
	case ApprovalAssentedType:
		d, err := event.Decode[ApprovalAssented](e)
		if err != nil || d.Approval != a.ID {
			return a, misplaced(e, err)
		}
		a.Assents = append(without(a.Assents, e.Principal), Assent{
			By: e.Principal, At: e.OccurredAt, Reason: d.Reason, Scope: d.Scope, ExpiresAt: d.ExpiresAt, Uses: d.Uses, Issuer: d.Issuer,
		})
	case ApprovalDecidedType:
		d, err := event.Decode[ApprovalDecided](e)
		if err != nil || d.Approval != a.ID {
			return a, misplaced(e, err)
		}
		a.Status, a.Reason, a.Scope, a.ExpiresAt, a.Standing = d.Status, d.Reason, d.Scope, d.ExpiresAt, d.Standing
		a.DecidedBy, a.DecidedAt = e.Principal, e.OccurredAt
	case ApprovalUsedType:
		d, err := event.Decode[ApprovalUsed](e)
		if err != nil || d.Approval != a.ID {
			return a, misplaced(e, err)
		}
		a.Used = true
	case ApprovalExpiredType:
		d, err := event.Decode[ApprovalExpired](e)
		if err != nil || d.Approval != a.ID {
			return a, misplaced(e, err)
		}
		a.Status = Expired
	case ApprovalWithdrawnType:
		d, err := event.Decode[ApprovalWithdrawn](e)
		if err != nil || d.Approval != a.ID {
			return a, misplaced(e, err)
		}
		a.Status, a.Reason = Withdrawn, d.Reason
	}
	return a, nil
}

// Asker is the document of a principal who has asked questions: how many in total.
type Asker struct {
	Principal id.Principal `json:"principal_id"`
	Asked     uint64       `json:"asked"`
}

// Evolve returns the asker after one of their questions.
func (a Asker) Evolve(e event.Event) Asker { return Asker{Principal: e.Principal, Asked: a.Asked + 1} }

// without returns the assents of all but one person, in a slice of its own.
func without(assents []Assent, by id.Principal) []Assent {
	return slices.DeleteFunc(slices.Clone(assents), func(x Assent) bool { return x.By == by })
}

// Evolve returns the standing approval after an event about it.
func (s Standing) Evolve(e event.Event) (Standing, error) {
	switch e.Type {
	case StandingGrantedType:
		d, err := event.Decode[StandingGranted](e)
		if err != nil {
			return s, err
		}
		return Standing{
			ID: d.Standing, Workspace: e.Workspace, Approval: d.Approval, Cover: d.Cover, EndsAt: d.EndsAt, Uses: d.Uses,
			GrantedBy: e.Principal, GrantedAt: e.OccurredAt,
		}, nil
	case StandingUsedType:
		d, err := event.Decode[StandingUsed](e)
		if err != nil || d.Standing != s.ID {
			return s, misplaced(e, err)
		}
		s.Used++
	case StandingRevokedType:
		d, err := event.Decode[StandingRevoked](e)
		if err != nil || d.Standing != s.ID {
			return s, misplaced(e, err)
		}
		s.RevokedAt, s.RevokedBy = e.OccurredAt, e.Principal
	}
	return s, nil
}

// Evolve returns the switch after an event about it.
func (k KillSwitch) Evolve(e event.Event) (KillSwitch, error) {
	var reason string
	switch e.Type {
	case KillSwitchThrownType:
		d, err := event.Decode[KillSwitchThrown](e)
		if err != nil {
			return k, err
		}
		reason = d.Reason
	case KillSwitchLiftedType:
		d, err := event.Decode[KillSwitchLifted](e)
		if err != nil {
			return k, err
		}
		reason = d.Reason
	default:
		return k, nil
	}
	return KillSwitch{
		Workspace: e.Workspace, On: e.Type == KillSwitchThrownType, Reason: reason, By: e.Principal, At: e.OccurredAt,
	}, nil
}

// EvolveBundle returns the pinned bundle after an event about it.
func EvolveBundle(b Bundle, e event.Event) (Bundle, error) {
	if e.Type != BundlePinnedType {
		return b, nil
	}
	d, err := event.Decode[BundlePinned](e)
	return d.Bundle, err
}

// Evolve returns the count after an event about it. Effects of two hours may be recorded in another order than they were counted in.
func (q Quota) Evolve(e event.Event) (Quota, error) {
	if e.Type != EffectCountedType {
		return q, nil
	}
	d, err := event.Decode[EffectCounted](e)
	switch {
	case err != nil || d.Window.Before(q.Window):
		return q, err
	case !d.Window.Equal(q.Window):
		q = Quota{Principal: d.Principal, Window: d.Window}
	}
	q.Used++
	return q, nil
}

// IsUse reports whether an event counts a use of a standing approval. Its revocation follows from what granted it, not from its last use.
func IsUse(e event.Event) bool { return e.Type == StandingUsedType }
