package policy

import (
	"context"
	"encoding/json"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// Recorder is the part of a Gate that changes of documents need.
type Recorder interface {
	// Judge decides an action, as Gate.Judge does.
	Judge(ctx context.Context, a Action) (Ruling, error)
	// Record records an action by its event, as Gate.Record does.
	Record(ctx context.Context, origin event.Origin, a Action, b event.Batch) (event.Receipt, error)
}

var _ Recorder = Gate(nil)

// Change is a change of a document of a workspace. Its whole effect is its event.
type Change struct {
	Workspace id.Workspace
	Action    string                  // type of the action
	Entity    string                  // type of the entity that the event is about
	Key       string                  // the entity's id, and the subject of the action
	Event     string                  // type of the event
	Data      any                     // of the event; its JSON is the content of the action
	At        time.Time               // when it occurred
	Expect    []event.DocumentVersion // documents that must not have changed meanwhile
}

// May returns the refusal of a caller without the right to such a change. It records nothing.
func (c Change) May(ctx context.Context, g Recorder, origin event.Origin) error {
	r, err := g.Judge(ctx, Action{Type: c.Action, Workspace: c.Workspace, Principal: origin.Principal, Token: origin.Token, Subject: c.Key})
	if err == nil && !r.Decision.Allowed() {
		err = r.Decision.Refusal()
	}
	return err
}

// Record records the change by its event, once for each request of the origin. Its errors are those of Gate.Record.
func (c Change) Record(ctx context.Context, g Recorder, origin event.Origin) error {
	content, err := json.Marshal(c.Data)
	if err != nil {
		return err
	}
	a := Action{Type: c.Action, Workspace: c.Workspace, Principal: origin.Principal, Token: origin.Token, Subject: c.Key,
		Content: event.DigestOf(content)}
	draft := event.New(c.Event, origin, c.Workspace, "", c.Data).About(c.Entity, c.Key)
	draft.OccurredAt = c.At
	_, err = g.Record(ctx, origin, a, origin.Once(event.Batch{Workspace: c.Workspace, Drafts: []event.Draft{draft}, Documents: c.Expect}))
	return err
}
