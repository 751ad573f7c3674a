package room

import (
	"fmt"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// The documents of reading: how far somebody has read a room, and the places of a room's messages.
const (
	CursorProjection = "read_cursors"
	MarkProjection   = "message_marks"
)

// EventRead is recorded where somebody has read a room further than before. It is an event of the workspace, for in the room's own stream
// it would be something new to read.
const EventRead = "room.read"

// CursorEntity is the entity type of a read cursor; its id is CursorKey.
const CursorEntity = "read_cursor"

// MaxUnread is how far unread messages are counted; so many means that many or more.
const MaxUnread = 100

// ErrBeyond refuses a place after the end of the stream, because the cursor would hide later messages.
var ErrBeyond = fault.New(fault.Invalid, "invalid_stream_seq",
	"nothing lies that far in the room's stream yet; send the stream_seq of an event that was read, or none for everything that is there")

// Read is the data of room.read.
type Read struct {
	Room      id.Room `json:"read_room_id"`
	StreamSeq uint64  `json:"stream_seq"`
}

// Cursor is the document of a reader's progress in a room: a place in its stream, which never goes back.
type Cursor struct {
	Room      id.Room      `json:"room_id"`
	Principal id.Principal `json:"principal_id"`
	StreamSeq uint64       `json:"stream_seq"` // 0 for nothing
	UpdatedAt time.Time    `json:"updated_at,omitzero"`
}

// CursorKey is the key of somebody's cursor in a room.
func CursorKey(r id.Room, p id.Principal) string { return string(r) + "/" + string(p) }

// Evolve returns the cursor after an event about it.
func (c Cursor) Evolve(e event.Event) (Cursor, error) {
	if e.Type != EventRead {
		return c, nil
	}
	d, err := event.Decode[Read](e)
	return Cursor{Room: d.Room, Principal: e.Principal, StreamSeq: max(c.StreamSeq, d.StreamSeq), UpdatedAt: e.OccurredAt}, err
}

// Mark is the document of a message's place in its room. It is as small as possible, because many of them are counted.
type Mark struct {
	Sender string `json:"by"`
}

// MarkKey is the key of the mark of an event in a room's stream; the marks of a room sort by their places.
func MarkKey(r id.Room, streamSeq uint64) string { return fmt.Sprintf("%s/%016x", r, streamSeq) }
