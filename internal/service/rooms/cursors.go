package rooms

import (
	"context"
	"errors"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/room"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Read says how far somebody has read a room, and how many messages of others follow that place.
type Read struct {
	room.Cursor
	Unread int // messages of others, at most room.MaxUnread, which means as many or more
}

func cursorDefinitions() []projection.Definition {
	marks := projection.Define(room.MarkProjection, 1, func(e event.Event) []string {
		if e.Type != room.EventMessageCreated || e.Room == "" {
			return nil
		}
		return []string{room.MarkKey(e.Room, e.StreamSeq)}
	}, func(_ room.Mark, _ string, e event.Event) (room.Mark, error) {
		return room.Mark{Sender: e.Actor.ID}, nil
	}, nil)
	marks.Once = true
	return []projection.Definition{
		projection.Define(room.CursorProjection, 1, func(e event.Event) []string {
			if e.Type != room.EventRead || e.EntityType != room.CursorEntity || e.EntityID == "" {
				return nil
			}
			return []string{e.EntityID}
		}, func(c room.Cursor, _ string, e event.Event) (room.Cursor, error) { return c.Evolve(e) }, nil),
		marks,
	}
}

// ReadCursor returns how far a principal has read a room.
func (m *Service) ReadCursor(ctx context.Context, ws id.Workspace, p id.Principal, r id.Room) (Read, error) {
	if _, err := m.Room(ctx, ws, r); err != nil {
		return Read{}, err
	}
	return m.read(ctx, ws, p, r)
}

func (m *Service) read(ctx context.Context, ws id.Workspace, p id.Principal, r id.Room) (Read, error) {
	c, _, err := m.cursor(ctx, ws, p, r)
	if err != nil {
		return Read{}, err
	}
	found := Read{Cursor: c}
	// Count the marks of other people's messages. The reader's own marks lie between them, so the loop reads more marks than it counts.
	q := projection.Query{Workspace: ws, Name: room.MarkProjection, After: room.MarkKey(r, c.StreamSeq), Limit: 2 * room.MaxUnread}
	own := `{"by":"` + string(p) + `"}`
	for looked := 0; looked < maxMarks; looked, q.Limit = looked+q.Limit, 1_000 {
		q.Limit = min(q.Limit, maxMarks-looked)
		marks, err := m.Docs.Documents(ctx, q)
		if err != nil {
			return Read{}, err
		}
		for _, mark := range marks {
			if !strings.HasPrefix(mark.Key, string(r)+"/") || found.Unread == room.MaxUnread {
				return found, nil
			}
			if q.After = mark.Key; string(mark.Body) != own {
				found.Unread++
			}
		}
		if len(marks) < q.Limit {
			break
		}
	}
	return found, nil
}

// maxMarks is how many messages after a cursor are checked for the unread count. Further messages do not count. More are only needed if the
// reader has sent about that many messages without moving the cursor.
const maxMarks = 10_000

func (m *Service) cursor(ctx context.Context, ws id.Workspace, p id.Principal, r id.Room) (room.Cursor, uint64, error) {
	doc, version, err := projection.Load[room.Cursor](ctx, m.Docs, ws, room.CursorProjection, room.CursorKey(r, p))
	if errors.Is(err, projection.ErrNotFound) {
		return room.Cursor{Room: r, Principal: p}, 0, nil
	}
	return doc, version, err
}

// MarkRead moves the caller's cursor to a place in the room's stream, or without a place to its end. It never goes back: a read message
// stays read, whichever of several clients calls last.
func (m *Service) MarkRead(ctx context.Context, origin event.Origin, ws id.Workspace, r id.Room, to uint64) (Read, error) {
	if _, err := m.Room(ctx, ws, r); err != nil {
		return Read{}, err
	}
	last, err := m.Log.Read(ctx, journal.Query{Workspace: ws, Stream: event.RoomStream(ws, r), Last: true, Limit: 1})
	if err != nil {
		return Read{}, err
	}
	head := uint64(0)
	if len(last) > 0 {
		head = last[0].StreamSeq
	}
	if to > head {
		return Read{}, room.ErrBeyond
	}
	if to == 0 {
		to = head
	}
	p := origin.Principal
	for try := 1; ; try++ {
		c, version, err := m.cursor(ctx, ws, p, r)
		if err != nil {
			return Read{}, err
		}
		if c.StreamSeq >= to {
			return m.read(ctx, ws, p, r)
		}
		data := room.Read{Room: r, StreamSeq: to}
		draft := event.New(room.EventRead, origin, ws, "", data).About(room.CursorEntity, room.CursorKey(r, p))
		_, err = m.record(ctx, origin, m.action(policy.RoomRead, origin, ws, r, string(r), data), draft,
			event.DocumentVersion{Projection: room.CursorProjection, Key: room.CursorKey(r, p), Version: version})
		if err == nil {
			return m.read(ctx, ws, p, r)
		}
		if !errors.Is(err, journal.ErrConflict) || try == tries {
			return Read{}, err
		}
	}
}
