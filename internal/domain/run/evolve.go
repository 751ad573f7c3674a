package run

import (
	"fmt"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// Touches reports whether the event changes the document of its run.
func Touches(e event.Event) bool {
	switch e.Type {
	case EventCreated, EventImported, EventStarted, EventSuspended, EventResumed, EventCompleted, EventFailed, EventCancelled,
		EventRetained, EventForgotten, EventClaimed, EventRenewed, EventReleased:
		return e.Run != ""
	case EventInvoked, EventSucceeded, EventErred, EventUnknown:
		return e.Run != "" && e.EntityType != CallEntity // which has a document of its own
	}
	return false
}

// Evolve returns the run after the event. It is pure.
func Evolve(r Run, e event.Event) (Run, error) {
	if e.Type == EventCreated && e.Withheld == event.Destroyed {
		// The text of the request is gone, so the run cannot continue.
		return Run{
			ID: e.Run, Workspace: e.Workspace, Room: e.Room, CreatedBy: e.Principal, Status: Cancelled, Error: ReasonRedacted,
			Operations: []Progress{},
			Redacted:   true, CreatedAt: e.OccurredAt, EndedAt: e.OccurredAt, Correlation: e.Correlation,
		}, nil
	}
	if r.Status == Cancelled && r.Error == ReasonRedacted {
		return r, nil
	}
	r, err := evolve(r, e)
	r.Redacted = r.Redacted || e.Withheld != ""
	return r, err
}

func evolve(r Run, e event.Event) (Run, error) {
	switch e.Type {
	case EventCreated:
		return created(e)
	case EventImported:
		return imported(e)
	case EventStarted:
		if r.Status = Running; r.StartedAt.IsZero() {
			r.StartedAt = e.OccurredAt
		}
	case EventClaimed, EventRenewed, EventReleased:
		return r.claimed(e)
	case EventInvoked:
		d, err := event.Decode[Invoked](e)
		if err != nil {
			return r, err
		}
		return r.with(d.Index, func(p *Progress) {
			p.State, p.Step, p.BegunAt, p.Decision, p.Reason = Begun, e.Step, e.OccurredAt, d.Decision, d.Reason
		})
	case EventSucceeded, EventErred, EventUnknown:
		return r.ended(e)
	case EventSuspended:
		d, err := event.Decode[Suspended](e)
		if err != nil {
			return r, err
		}
		r.Status = AwaitingApproval
		return r.asks(d, e.Step)
	case EventResumed:
		d, err := event.Decode[Resumed](e)
		if err != nil {
			return r, err
		}
		r.Status = Running
		return r.answered(d)
	case EventCompleted, EventFailed, EventCancelled:
		d, err := event.Decode[Finished](e)
		if err != nil {
			return r, err
		}
		r.Status, r.EndedAt, r.Error, r.KeptUntil, r.Claim = finalStatus[e.Type], e.OccurredAt, d.Error, d.Until, nil
		r.Reported, r.Artifacts = d.reported(r), d.Artifacts
	case EventRetained:
		d, err := event.Decode[Retained](e)
		if err != nil {
			return r, err
		}
		r.Retention, r.KeptUntil = d.Retention, d.Until
	case EventForgotten:
		r.Forgotten = e.OccurredAt
	}
	return r, nil
}

var finalStatus = map[string]Status{EventCompleted: Succeeded, EventFailed: Failed, EventCancelled: Cancelled}

// EndedBy returns the final state that an event of that type gives a run; "" if it does not end the run.
func EndedBy(eventType string) Status { return finalStatus[eventType] }

func created(e event.Event) (Run, error) {
	d, err := event.Decode[Created](e)
	if err != nil {
		return Run{}, err
	}
	r := Run{
		ID: d.Run, Workspace: e.Workspace, Room: e.Room, Space: d.Space, Agent: d.Agent, CreatedBy: e.Principal, Title: d.Title,
		Status: Queued, Input: d.Input, CreatedAt: e.OccurredAt, Correlation: e.Correlation, Trace: d.Trace, Retention: d.Retention,
		Token: d.Token, Operations: make([]Progress, len(d.Operations)),
		Order: d.Order, Parent: d.Parent, Side: d.Side, Patterns: d.Artifacts,
	}
	for i, o := range d.Operations {
		r.Operations[i] = Progress{ID: o.ID, Type: o.Type, Summary: o.Summary, Context: o.Context, State: Waiting}
	}
	return r, nil
}

func (r Run) ended(e event.Event) (Run, error) {
	d, err := event.Decode[Ended](e)
	if err != nil {
		return r, err
	}
	if d.Index >= r.Next {
		r.Next = d.Index + 1
	}
	return r.with(d.Index, func(p *Progress) {
		if p.BegunAt.IsZero() {
			p.BegunAt = e.OccurredAt
		}
		p.State, p.EndedAt, p.Event, p.Kind, p.OK = Done, e.OccurredAt, e.ID, d.Kind, e.Type == EventSucceeded
		if e.Step != "" {
			p.Step = e.Step
		}
		if d.Snapshot != nil {
			p.Snapshot = d.Snapshot.Root
		}
		if d.Decision != "" {
			p.Decision, p.Reason = d.Decision, d.Reason
		}
	})
}

// asks marks the operation that a person has to decide on. After an interrupted operation the question is about going on at all: that
// operation has its result, and stays done.
func (r Run) asks(d Suspended, step id.Step) (Run, error) {
	return r.with(d.Index, func(p *Progress) {
		p.Approval, p.Answer = d.Approval, "" // an answer to an earlier question is none to this one
		if p.State == Done {
			return
		}
		p.State, p.Step, p.Decision, p.Reason = Asking, step, "require_approval", d.Reason
	})
}

func (r Run) answered(d Resumed) (Run, error) {
	return r.with(d.Index, func(p *Progress) {
		p.Answer = d.Answer
		if p.State == Asking {
			p.State = Answered
		}
	})
}

// with returns a copy in which one operation is changed; the receiver's slice is never written to.
func (r Run) with(index int, change func(*Progress)) (Run, error) {
	if index < 0 || index >= len(r.Operations) {
		return r, fmt.Errorf("run %s has no operation %d", r.ID, index)
	}
	ops := make([]Progress, len(r.Operations))
	copy(ops, r.Operations)
	change(&ops[index])
	r.Operations = ops
	return r, nil
}

// Succeeded reports whether every operation that has a result succeeded.
func (r Run) Succeeded() bool {
	for _, p := range r.Operations {
		if p.State == Done && !p.OK {
			return false
		}
	}
	return true
}

// Unmet returns the operations that have not succeeded.
func (r Run) Unmet() (unmet []Progress) {
	for _, p := range r.Operations {
		if p.State != Done || !p.OK {
			unmet = append(unmet, p)
		}
	}
	return unmet
}

// Ended says how an operation came out, for people: by the type of its result where that is not the operation's own.
func (p Progress) Ended() string {
	switch {
	case p.State != Done:
		return string(p.State)
	case p.OK:
		return "succeeded"
	case p.Kind == ResPolicyDenied || p.Kind == ResUnknown:
		return p.Kind
	}
	return "failed"
}

// Interrupted returns the index of an operation whose intent is recorded and whose outcome is not; -1 where there is none. While its effect
// is under way that is the operation at Next; after a crash it is one whose outcome nobody knows.
func (r Run) Interrupted() int {
	if r.Next < len(r.Operations) && r.Operations[r.Next].State == Begun {
		return r.Next
	}
	return -1
}

// Pending returns the index of the operation that a person has to decide on, and its approval; -1 where there is none.
func (r Run) Pending() (int, id.Approval) {
	if r.Status != AwaitingApproval {
		return -1, ""
	}
	for i := len(r.Operations) - 1; i >= 0; i-- {
		if p := r.Operations[i]; p.Approval != "" && p.Answer == "" {
			return i, p.Approval
		}
	}
	return -1, ""
}
