package room

import (
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// The fields of a context, as they are named where one is to be inherited again.
const (
	FieldPrompt = "system_prompt"
	FieldTools  = "tool_allowlist"
	FieldModels = "model_allowlist"
	FieldMemory = "memory_summary"
)

// Fields are all fields of a context.
var Fields = []string{FieldPrompt, FieldTools, FieldModels, FieldMemory}

// changed returns the context with the fields that a change sets, and without the fields that it inherits again.
func (c Context) changed(by Context, inherit []string) Context {
	c = by.Over(c)
	if slices.Contains(inherit, FieldPrompt) {
		c.Prompt = nil
	}
	if slices.Contains(inherit, FieldTools) {
		c.Tools = nil
	}
	if slices.Contains(inherit, FieldModels) {
		c.Models = nil
	}
	if slices.Contains(inherit, FieldMemory) {
		c.Memory = nil
	}
	return c
}

// Evolve returns the room after an event about it. The ids are taken from the envelope, which stays when the data are redacted.
func (r Room) Evolve(e event.Event) (Room, error) {
	switch e.Type {
	case EventCreated:
		d, err := event.Decode[Created](e)
		return Room{
			ID: id.Room(e.EntityID), Workspace: e.Workspace, Title: d.Title, Topic: d.Topic, Mode: d.Mode, Lang: d.Lang, ToolPolicy: d.ToolPolicy,
			Mission: d.Mission, Context: d.Context, CreatedBy: e.Principal, CreatedAt: e.OccurredAt, UpdatedAt: e.OccurredAt,
		}, err
	case EventUpdated:
		d, err := event.Decode[Updated](e)
		if err != nil {
			return r, err
		}
		if r.ID == "" { // the first event about the default room
			r = Default(e.Workspace)
		}
		set(&r.Title, d.Title)
		set(&r.Topic, d.Topic)
		set(&r.Mode, d.Mode)
		set(&r.Lang, d.Lang)
		set(&r.ToolPolicy, d.ToolPolicy)
		r.Context, r.UpdatedAt = r.Context.changed(d.Context, d.Inherit), e.OccurredAt
	}
	return r, nil
}

// Evolve returns the defaults after an event about them.
func (d Defaults) Evolve(e event.Event) (Defaults, error) {
	if e.Type != EventDefaultsSet {
		return d, nil
	}
	data, err := event.Decode[DefaultsSet](e)
	return Defaults{Workspace: e.Workspace, Context: d.Context.changed(data.Context, data.Inherit), UpdatedAt: e.OccurredAt}, err
}

// Evolve returns the thread after an event about it.
func (t Thread) Evolve(e event.Event) (Thread, error) {
	switch e.Type {
	case EventThreadCreated:
		d, err := event.Decode[ThreadCreated](e)
		if d.Status == "" { // its data were destroyed
			d.Status = Open
		}
		return Thread{
			ID: id.Thread(e.EntityID), Workspace: e.Workspace, Room: e.Room, Title: d.Title, Status: d.Status, CreatedBy: e.Principal,
			CreatedAt: e.OccurredAt, UpdatedAt: e.OccurredAt,
		}, err
	case EventThreadUpdated:
		d, err := event.Decode[ThreadUpdated](e)
		if err != nil {
			return t, err
		}
		set(&t.Title, d.Title)
		set(&t.Status, d.Status)
		t.UpdatedAt = e.OccurredAt
	}
	return t, nil
}

// Evolve returns the message after the event that posted it.
func (m Message) Evolve(e event.Event) (Message, error) {
	if e.Type != EventMessageCreated {
		return m, nil
	}
	d, err := event.Decode[MessageCreated](e)
	return Message{
		ID: id.Message(e.EntityID), Workspace: e.Workspace, Room: e.Room, Thread: e.Thread, Parent: d.Parent, SenderType: e.Actor.Type,
		Sender: e.Actor.ID,
		By:     e.Principal, Content: d.Content, Lang: d.Lang, Labels: d.Labels, SchemaVersion: d.SchemaVersion, Redacted: e.Withheld,
		Event:     e.ID,
		StreamSeq: e.StreamSeq, CreatedAt: e.OccurredAt,
	}, err
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}
