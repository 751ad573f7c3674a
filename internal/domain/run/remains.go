package run

import "agentbox/internal/domain/event"

// Remains returns the part of a run event's data that stays after a redaction: ids, numbers and words of the program, no text of a person.
// The run's document can still be folded from it. It is nil for events of other kinds.
func Remains(e event.Event) (any, error) {
	if e.EntityType == CallEntity {
		return nil, nil // of an engine's tool call
	}
	switch e.Type {
	case EventCreated:
		d, err := event.Decode[Created](e)
		left := Created{Run: d.Run, Space: d.Space, Agent: d.Agent, Retention: d.Retention, Token: d.Token, Operations: make([]Outline,
			len(d.Operations))}
		left.Parent = d.Parent
		left.Side = Side{Background: d.Background, Stdin: d.Stdin, PTY: d.PTY}
		left.Order = Order{Engine: d.Engine, Work: d.Work, Thread: d.Thread, Experiment: d.Experiment}
		for i, o := range d.Operations {
			left.Operations[i] = Outline{Type: o.Type, Context: o.Context}
		}
		return left, err
	case EventClaimed:
		return event.Decode[Claimed](e)
	case EventRenewed:
		return event.Decode[Renewed](e)
	case EventReleased:
		return event.Decode[Released](e)
	case EventStarted:
		return event.Decode[Started](e)
	case EventInvoked:
		d, err := event.Decode[Invoked](e)
		return Invoked{Run: d.Run, Index: d.Index, Tool: d.Tool, Decision: d.Decision, Reason: d.Reason, Approval: d.Approval}, err
	case EventSucceeded, EventErred, EventUnknown:
		d, err := event.Decode[Ended](e)
		return Ended{Run: d.Run, Index: d.Index, Tool: d.Tool, Kind: d.Kind, Decision: d.Decision, Reason: d.Reason, DurationMS: d.DurationMS,
			Kept: d.Kept}, err
	case EventSuspended:
		d, err := event.Decode[Suspended](e)
		d.Operation = ""
		return d, err
	case EventResumed:
		d, err := event.Decode[Resumed](e)
		d.Operation = ""
		return d, err
	case EventInput:
		d, err := event.Decode[Given](e)
		d.Digest = nil
		return d, err
	case EventCompleted, EventFailed, EventCancelled:
		d, err := event.Decode[Finished](e)
		left := Finished{Run: d.Run, Permit: d.Permit, Retention: d.Retention, Until: d.Until}
		if g := d.Artifacts; g != nil {
			left.Artifacts = &Gathered{Files: g.Files, Bytes: g.Bytes, LeftOut: g.LeftOut, Error: g.Error}
		}
		return left, err
	}
	return nil, nil
}

// ReasonRedacted is why a run is cancelled whose request was redacted after this copy of the log was made.
const ReasonRedacted = "redacted"
