package rooms

import (
	"context"
	"errors"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/room"
	"agentbox/internal/kernel/projection"
)

// Definitions fold the documents of rooms. A message changes only its own document, so posting costs the same in a thread of any length. A
// page of a thread is a range of one index.
func Definitions() []projection.Definition {
	return append(cursorDefinitions(), []projection.Definition{
		projection.Define(room.Projection, 2, about(room.EntityType), func(r room.Room, _ string, e event.Event) (room.Room, error) {
			return r.Evolve(e)
		}, nil).Leads(room.EntityType, nil),
		projection.Define(room.DefaultsProjection, 2, about(room.DefaultsEntity), func(d room.Defaults, _ string, e event.Event) (room.Defaults,
			error) {
			return d.Evolve(e)
		}, nil).Leads(room.DefaultsEntity, nil),
		projection.Define(room.ThreadProjection, 2, about(room.ThreadEntity), func(t room.Thread, _ string, e event.Event) (room.Thread, error) {
			return t.Evolve(e)
		}, func(t room.Thread) []projection.Index {
			return []projection.Index{{Name: room.IndexRoom, Value: string(t.Room)}}
		}).Leads(room.ThreadEntity, nil),
		projection.Define(room.MessageProjection, 2, about(room.MessageEntity), func(m room.Message, _ string, e event.Event) (room.Message,
			error) {
			return m.Evolve(e)
		}, func(m room.Message) []projection.Index {
			return []projection.Index{{Name: room.IndexThread, Value: string(m.Thread)}}
		}).Leads(room.MessageEntity, nil),
	}...)
}

// about selects the events about an entity type that change its document; the entity's id is the document's key.
func about(entity string) func(event.Event) []string {
	return func(e event.Event) []string {
		if e.EntityType != entity || e.EntityID == "" {
			return nil
		}
		switch e.Type {
		case room.EventCreated, room.EventUpdated, room.EventDefaultsSet, room.EventThreadCreated, room.EventThreadUpdated,
			room.EventMessageCreated:
			return []string{e.EntityID}
		}
		return nil
	}
}

// Room returns a room of the workspace. The default room exists even without an event about it.
func (m *Service) Room(ctx context.Context, ws id.Workspace, r id.Room) (room.Room, error) {
	doc, _, err := projection.Load[room.Room](ctx, m.Docs, ws, room.Projection, string(r))
	if errors.Is(err, projection.ErrNotFound) {
		if r == id.DefaultRoom {
			return room.Default(ws), nil
		}
		return doc, room.ErrNoRoom
	}
	return doc, err
}

// Rooms returns rooms of the workspace, the newest first; the default one is the last.
func (m *Service) Rooms(ctx context.Context, ws id.Workspace, after id.Room, limit int) ([]room.Room, error) {
	found, err := projection.List[room.Room](ctx, m.Docs, projection.Query{Workspace: ws, Name: room.Projection, After: string(after),
		Newest: true, Limit: limit})
	if err != nil || len(found) == limit || after == id.DefaultRoom {
		return found, err
	}
	if n := len(found); n == 0 || found[n-1].ID != id.DefaultRoom {
		found = append(found, room.Default(ws))
	}
	return found, nil
}

// Defaults returns the values that the rooms of the workspace inherit.
func (m *Service) Defaults(ctx context.Context, ws id.Workspace) (room.Defaults, error) {
	doc, _, err := projection.Load[room.Defaults](ctx, m.Docs, ws, room.DefaultsProjection, string(ws))
	if errors.Is(err, projection.ErrNotFound) {
		return room.Defaults{Workspace: ws}, nil
	}
	return doc, err
}

// Context returns the effective context of a room: its own fields, and the workspace's for unset ones.
func (m *Service) Context(ctx context.Context, r room.Room) (room.Context, error) {
	below, err := m.Defaults(ctx, r.Workspace)
	return r.Context.Over(below.Context), err
}

// Thread returns a thread of the workspace.
func (m *Service) Thread(ctx context.Context, ws id.Workspace, t id.Thread) (room.Thread, error) {
	doc, _, err := m.thread(ctx, ws, t)
	return doc, err
}

func (m *Service) thread(ctx context.Context, ws id.Workspace, t id.Thread) (room.Thread, uint64, error) {
	doc, version, err := projection.Load[room.Thread](ctx, m.Docs, ws, room.ThreadProjection, string(t))
	if errors.Is(err, projection.ErrNotFound) {
		err = room.ErrNoThread
	}
	return doc, version, err
}

// Threads returns the threads of a room, the newest first.
func (m *Service) Threads(ctx context.Context, ws id.Workspace, r id.Room, after id.Thread, limit int) ([]room.Thread, error) {
	if _, err := m.Room(ctx, ws, r); err != nil {
		return nil, err
	}
	return projection.List[room.Thread](ctx, m.Docs, projection.Query{
		Workspace: ws, Name: room.ThreadProjection, Index: projection.Index{Name: room.IndexRoom, Value: string(r)}, After: string(after),
		Newest: true, Limit: limit,
	})
}

// Message returns a message of the workspace.
func (m *Service) Message(ctx context.Context, ws id.Workspace, one id.Message) (room.Message, error) {
	doc, _, err := projection.Load[room.Message](ctx, m.Docs, ws, room.MessageProjection, string(one))
	if errors.Is(err, projection.ErrNotFound) {
		err = room.ErrNoMessage
	}
	return doc, err
}

// Messages returns the messages of a thread, the newest first: those in front of one, or all where before is empty.
func (m *Service) Messages(ctx context.Context, ws id.Workspace, t id.Thread, before id.Message, limit int) ([]room.Message, error) {
	if _, err := m.Thread(ctx, ws, t); err != nil {
		return nil, err
	}
	return projection.List[room.Message](ctx, m.Docs, projection.Query{
		Workspace: ws, Name: room.MessageProjection, Index: projection.Index{Name: room.IndexThread, Value: string(t)}, After: string(before),
		Newest: true, Limit: limit,
	})
}

// ErrBefore refuses what names no place in a thread.
var ErrBefore = fault.New(fault.Invalid, "invalid_before",
	"before is the id of a message, or a time as in RFC 3339, for example 2026-11-22T09:00:00Z")

// ParseBefore reads the place in front of which a page of messages ends: the id of a message, or a time. Empty means the end.
func ParseBefore(text string) (id.Message, error) {
	if text == "" {
		return "", nil
	}
	if before, err := id.Parse[id.Message](text); err == nil {
		return before, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "", ErrBefore
	}
	return id.Least[id.Message](at), nil
}
