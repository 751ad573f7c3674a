package step

import (
	"bytes"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// Evolve returns the step after an event about it.
func (s Step) Evolve(e event.Event) (Step, error) {
	if e.EntityType == CallEntity {
		return s.called(e), nil
	}
	if e.Type != EventCreated {
		return s, nil
	}
	d, err := event.Decode[Created](e)
	return Step{
		ID: d.Step, Run: e.Run, Room: e.Room, Kind: d.Kind, Title: d.Title, Input: d.Input, Fence: d.Fence, As: policy.Attested,
		CreatedBy: e.Principal, CreatedAt: e.OccurredAt,
		Redacted: e.Withheld != "", Status: Pending,
	}, err
}

// called returns the step after an event about a tool call in it.
func (s Step) called(e event.Event) Step {
	switch e.Type {
	case EventInvoked:
		s.Calls, s.Status = s.Calls+1, Running
	case EventSucceeded, EventFailed, EventUnknown:
		if s.Calls = max(0, s.Calls-1); s.Calls == 0 {
			s.Status = ended[e.Type]
		}
	}
	return s
}

// childCreated is the type of the event by which a run is made; see Parent.
const childCreated = "run.created"

// Parent returns the tool call for which an event makes a run in a space, "" for any other.
func Parent(e event.Event) id.ToolCall {
	if e.Type != childCreated || !bytes.Contains(e.Data, []byte(`"parent":`)) {
		return ""
	}
	d, err := event.Decode[struct {
		Parent struct {
			Call id.ToolCall `json:"tool_call_id"`
		} `json:"parent"`
	}](e)
	if err != nil {
		return ""
	}
	return d.Parent.Call
}

// ended is where the events that end a tool call leave it.
var ended = map[string]Status{EventSucceeded: Succeeded, EventFailed: Failed, EventUnknown: Unknown}

// Evolve returns the tool call after an event about it.
func (c Call) Evolve(e event.Event) (Call, error) {
	switch e.Type {
	case EventInvoked:
		d, err := event.Decode[Invoked](e)
		return Call{
			ID: d.Call, Run: e.Run, Step: e.Step, Room: e.Room, Tool: d.Tool, Title: d.Title, Agent: d.Agent, By: e.Principal, Fence: d.Fence,
			Status: Running,
			Input:  d.Input, Decision: d.Decision, Reason: d.Reason, Action: d.Action, As: policy.Attested, BegunAt: e.OccurredAt,
			Redacted: e.Withheld != "",
		}, err
	case childCreated:
		c.Child = e.Run
	case EventSucceeded, EventFailed, EventUnknown:
		d, err := event.Decode[Ended](e)
		if err != nil {
			return c, err
		}
		c.Status, c.EndedAt, c.Output, c.Error, c.Message = ended[e.Type], e.OccurredAt, d.Output, d.Error, d.Message
		if !d.Permit.IsZero() {
			c.As = policy.Permitted
		}
		c.Redacted = c.Redacted || e.Withheld != ""
	}
	return c, nil
}

// Evolve returns the artifact after an event about it.
func (a Artifact) Evolve(e event.Event) (Artifact, error) {
	switch e.Type {
	case EventArtifactCreated:
		d, err := event.Decode[ArtifactCreated](e)
		as := policy.Attested
		if d.Operation != "" || d.Taken {
			as = policy.Permitted
		}
		return Artifact{
			ID: d.Artifact, Run: e.Run, Step: e.Step, Room: e.Room, Kind: d.Kind, Title: d.Title, Media: d.Media, Size: d.Size, Digest: d.Digest,
			Content:  d.Content,
			Metadata: d.Metadata, Fence: d.Fence, Operation: d.Operation, Path: d.Path, As: as, CreatedBy: e.Principal,
			CreatedAt: e.OccurredAt, Redacted: e.Withheld != "",
		}, err
	case EventArtifactStored:
		d, err := event.Decode[ArtifactStored](e)
		if err != nil {
			return a, err
		}
		a.Stored = &d.Content
		if a.Redacted = a.Redacted || e.Withheld != ""; e.Withheld != "" {
			a.Stored = nil
		}
	}
	return a, nil
}
