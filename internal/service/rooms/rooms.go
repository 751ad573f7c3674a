// Package rooms keeps rooms, threads and messages: who may post where, and how far each reader has read.
package rooms

import (
	"context"
	"encoding/json"
	"fmt"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/room"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Parts are the dependencies of the service.
type Parts struct {
	Log  journal.Journal
	Docs projection.Reader
	Gate policy.Gate
	IDs  *id.Source
}

// Service keeps rooms. Its methods are safe for concurrent use; nothing is decided from memory.
type Service struct{ Parts }

// New returns a service of the given parts.
func New(p Parts) *Service { return &Service{Parts: p} }

// CreateRoom makes a room. To set what agents in it are told and may use, the caller also needs the right to configure rooms. A repeat with
// the same idempotency key returns the first answer.
func (m *Service) CreateRoom(ctx context.Context, origin event.Origin, ws id.Workspace, c room.Created) (room.Room, error) {
	if err := c.Check(); err != nil {
		return room.Room{}, err
	}
	if made, known, err := m.recall(ctx, origin, ws, room.EventCreated); err != nil || known {
		return evolved(room.Room{}, made, err)
	}
	a := m.action(policy.RoomCreate, origin, ws, "", "", c)
	if also := a; c.ToolPolicy != "" || c.Context.Configures() {
		also.Type = policy.RoomConfigure
		if err := m.permitted(ctx, origin, also); err != nil {
			return room.Room{}, err
		}
	}
	c.Room = id.New[id.Room](m.IDs)
	draft := event.New(room.EventCreated, origin, ws, c.Room, c).About(room.EntityType, string(c.Room))
	draft.Mission = c.Mission
	made, err := m.record(ctx, origin, a, draft)
	return evolved(room.Room{}, made, err)
}

// UpdateRoom changes a room.
func (m *Service) UpdateRoom(ctx context.Context, origin event.Origin, ws id.Workspace, r id.Room, u room.Updated) (room.Room, error) {
	if err := u.Check(); err != nil {
		return room.Room{}, err
	}
	if _, err := m.Room(ctx, ws, r); err != nil {
		return room.Room{}, err
	}
	u.Room = r
	a := m.action(policy.RoomUpdate, origin, ws, r, string(r), u)
	if u.Configures() {
		a.Type = policy.RoomConfigure
	}
	if _, err := m.record(ctx, origin, a, event.New(room.EventUpdated, origin, ws, r, u).About(room.EntityType, string(r))); err != nil {
		return room.Room{}, err
	}
	return m.Room(ctx, ws, r)
}

// SetDefaults changes the values that the rooms of a workspace inherit.
func (m *Service) SetDefaults(ctx context.Context, origin event.Origin, ws id.Workspace, d room.DefaultsSet) (room.Defaults, error) {
	if err := d.Check(); err != nil {
		return room.Defaults{}, err
	}
	a := m.action(policy.RoomConfigure, origin, ws, "", string(ws), d)
	if _, err := m.record(ctx, origin, a, event.New(room.EventDefaultsSet, origin, ws, "", d).About(room.DefaultsEntity,
		string(ws))); err != nil {
		return room.Defaults{}, err
	}
	return m.Defaults(ctx, ws)
}

// CreateThread begins a thread in a room.
func (m *Service) CreateThread(ctx context.Context, origin event.Origin, ws id.Workspace, r id.Room, c room.ThreadCreated) (room.Thread,
	error) {
	if c.Status == "" {
		c.Status = room.Open
	}
	if err := c.Check(); err != nil {
		return room.Thread{}, err
	}
	if made, known, err := m.recall(ctx, origin, ws, room.EventThreadCreated); err != nil || known {
		return evolved(room.Thread{}, made, err)
	}
	if _, err := m.Room(ctx, ws, r); err != nil {
		return room.Thread{}, err
	}
	a := m.action(policy.ThreadCreate, origin, ws, r, string(r), c)
	c.Thread = id.New[id.Thread](m.IDs)
	draft := event.New(room.EventThreadCreated, origin, ws, r, c).About(room.ThreadEntity, string(c.Thread))
	draft.Thread = c.Thread
	made, err := m.record(ctx, origin, a, draft)
	return evolved(room.Thread{}, made, err)
}

// UpdateThread changes a thread: its title, or whether it is talked in.
func (m *Service) UpdateThread(ctx context.Context, origin event.Origin, ws id.Workspace, t id.Thread, u room.ThreadUpdated) (room.Thread,
	error) {
	if err := u.Check(); err != nil {
		return room.Thread{}, err
	}
	thread, err := m.Thread(ctx, ws, t)
	if err != nil {
		return room.Thread{}, err
	}
	u.Thread = t
	draft := event.New(room.EventThreadUpdated, origin, ws, thread.Room, u).About(room.ThreadEntity, string(t))
	draft.Thread = t
	if _, err := m.record(ctx, origin, m.action(policy.ThreadUpdate, origin, ws, thread.Room, string(t), u), draft); err != nil {
		return room.Thread{}, err
	}
	return m.Thread(ctx, ws, t)
}

// action is the question to the gate: to record the data about a subject. New ids are not part of the data, so that the same request is the
// same action.
func (m *Service) action(typ string, origin event.Origin, ws id.Workspace, r id.Room, subject string, data any) policy.Action {
	body, err := json.Marshal(data)
	if err != nil {
		panic(fmt.Sprintf("rooms: marshal the data of %s: %v", typ, err)) // the types are the program's own
	}
	return policy.Action{
		Type: typ, Workspace: ws, Room: r, Principal: origin.Principal, Token: origin.Token, Subject: subject, Content: event.DigestOf(body),
		Size: int64(len(body)),
	}
}

// recall returns the event of the first request with the key of an origin, and whether there was one. It comes before any other check: the
// gate would ask again about an approved and finished action, and the objects found then may be gone now.
func (m *Service) recall(ctx context.Context, origin event.Origin, ws id.Workspace, typ string) (event.Event, bool, error) {
	if origin.Key == "" {
		return event.Event{}, false, nil
	}
	events, known, err := journal.Recall(ctx, m.Log, ws, origin.Key, origin.Command)
	return firstOf(events, typ), known, err
}

// evolved is the document after the one event that made it.
func evolved[T interface {
	Evolve(event.Event) (T, error)
}](none T, made event.Event, err error) (T, error) {
	if err != nil {
		return none, err
	}
	return none.Evolve(made)
}

// record records one event if the gate lets the action through, and returns it.
func (m *Service) record(ctx context.Context, origin event.Origin, a policy.Action, d event.Draft,
	want ...event.DocumentVersion) (event.Event, error) {
	receipt, err := m.Gate.Record(ctx, origin, a, origin.Once(event.Batch{Workspace: a.Workspace, Drafts: []event.Draft{d}, Documents: want}))
	if err != nil {
		return event.Event{}, err
	}
	return firstOf(receipt.Events, d.Type), nil
}

func firstOf(events []event.Event, typ string) event.Event {
	for _, e := range events {
		if e.Type == typ {
			return e
		}
	}
	return event.Event{}
}

// permitted refuses an action that the gate does not allow at once, and records the refusal. It does not wait for a person.
func (m *Service) permitted(ctx context.Context, origin event.Origin, a policy.Action) error {
	_, err := policy.Client{Gate: m.Gate, Append: m.Log.Append, Final: true, Known: true}.Allow(ctx, origin, a)
	return err
}
