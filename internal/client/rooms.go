package client

import (
	"context"
	"iter"
	"net/http"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/room"
)

// RoomRequest asks for a room; missing fields of the context are inherited from the workspace.
type RoomRequest struct {
	Title      string       `json:"title"`
	Topic      string       `json:"topic,omitempty"`
	Mode       string       `json:"room_mode,omitempty"`
	Lang       string       `json:"default_lang,omitempty"`
	ToolPolicy string       `json:"tool_policy_ref,omitempty"`
	Mission    string       `json:"mission_id,omitempty"`
	Context    room.Context `json:"context,omitzero"`

	IdempotencyKey string `json:"-"`
}

// RoomChange changes a room. Fields that are nil stay; Inherit names fields of the context that are inherited again.
type RoomChange struct {
	Title      *string      `json:"title,omitempty"`
	Topic      *string      `json:"topic,omitempty"`
	Mode       *string      `json:"room_mode,omitempty"`
	Lang       *string      `json:"default_lang,omitempty"`
	ToolPolicy *string      `json:"tool_policy_ref,omitempty"`
	Context    room.Context `json:"context,omitzero"`
	Inherit    []string     `json:"inherit,omitempty"`
}

// ContextChange changes what the rooms of the workspace inherit. Fields that are nil stay; Inherit names fields that are unset again.
type ContextChange struct {
	Context room.Context `json:"context,omitzero"`
	Inherit []string     `json:"inherit,omitempty"`
}

// ListedRoom is a room's row in a list.
type ListedRoom struct {
	ID        id.Room   `json:"room_id"`
	Title     string    `json:"title"`
	Topic     string    `json:"topic,omitempty"`
	Mode      string    `json:"room_mode,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	Unread    int       `json:"unread"` // messages of others, at most 100, which means as many or more
}

// ReadCursor says how far the key's principal has read a room.
type ReadCursor struct {
	room.Cursor
	Unread int `json:"unread"`
}

// RoomList is a page of rooms, the newest first.
type RoomList struct {
	Rooms []ListedRoom `json:"rooms"`
	Next  string       `json:"next_cursor"` // empty at the end
}

// ShownRoom is a room with the context that holds in it.
type ShownRoom struct {
	room.Room
	Effective room.Context `json:"effective_context"`
}

// ThreadList is a page of threads, the newest first.
type ThreadList struct {
	Threads []room.Thread `json:"threads"`
	Next    string        `json:"next_cursor"` // empty at the end
}

// ThreadChange changes a thread. Fields that are nil stay.
type ThreadChange struct {
	Title  *string `json:"title,omitempty"`
	Status *string `json:"status,omitempty"`
}

// MessageRequest posts a message. Without a sender it is the caller's.
type MessageRequest struct {
	Content       string   `json:"content_md"`
	Lang          string   `json:"lang,omitempty"`
	SenderType    string   `json:"sender_type,omitempty"`
	Sender        string   `json:"sender_id,omitempty"`
	Parent        string   `json:"parent_message_id,omitempty"`
	Labels        []string `json:"labels,omitempty"`
	SchemaVersion string   `json:"schema_version,omitempty"`

	IdempotencyKey string `json:"-"`
}

// MessageList is a page of messages, the newest first.
type MessageList struct {
	Messages []room.Message `json:"messages"`
	Next     string         `json:"next_before"` // the Before of the next page; empty at the beginning of the thread
}

// CreateRoom makes a room.
func (c *Client) CreateRoom(ctx context.Context, q RoomRequest) (room.Room, error) {
	var r room.Room
	err := c.call(ctx, http.MethodPost, "/v1/rooms", nil, q, &r, idempotent(q.IdempotencyKey))
	return r, err
}

// Rooms lists rooms.
func (c *Client) Rooms(ctx context.Context, p Page) (RoomList, error) {
	var l RoomList
	err := c.get(ctx, "/v1/rooms", p.values(), &l)
	return l, err
}

// Room returns a room.
func (c *Client) Room(ctx context.Context, r id.Room) (ShownRoom, error) {
	var found ShownRoom
	err := c.get(ctx, roomPath(r), nil, &found)
	return found, err
}

// UpdateRoom changes a room.
func (c *Client) UpdateRoom(ctx context.Context, r id.Room, change RoomChange) (room.Room, error) {
	var changed room.Room
	err := c.call(ctx, http.MethodPatch, roomPath(r), nil, change, &changed, nil)
	return changed, err
}

// ReadCursor returns how far the key's principal has read a room.
func (c *Client) ReadCursor(ctx context.Context, r id.Room) (ReadCursor, error) {
	var found ReadCursor
	err := c.get(ctx, roomPath(r)+"/read-cursor", nil, &found)
	return found, err
}

// MarkRead says that a room was read up to a place in its stream, or with 0 everything that is there.
func (c *Client) MarkRead(ctx context.Context, r id.Room, to uint64) (ReadCursor, error) {
	var moved ReadCursor
	body := map[string]uint64{}
	if to > 0 {
		body["stream_seq"] = to
	}
	err := c.call(ctx, http.MethodPut, roomPath(r)+"/read-cursor", nil, body, &moved, nil)
	return moved, err
}

// RoomDefaults returns what the rooms of the workspace inherit.
func (c *Client) RoomDefaults(ctx context.Context) (room.Defaults, error) {
	var d room.Defaults
	err := c.get(ctx, "/v1/room-defaults", nil, &d)
	return d, err
}

// UpdateRoomDefaults changes what the rooms of the workspace inherit.
func (c *Client) UpdateRoomDefaults(ctx context.Context, change ContextChange) (room.Defaults, error) {
	var d room.Defaults
	err := c.call(ctx, http.MethodPatch, "/v1/room-defaults", nil, change, &d, nil)
	return d, err
}

// FollowRoom yields the events of a room from a place in its stream on, as FollowEvents does. With 0 only what happens from now on is seen.
func (c *Client) FollowRoom(ctx context.Context, r id.Room, from uint64) iter.Seq2[event.Event, error] {
	return c.followPlaces(ctx, "/v1/streams/rooms/"+escape(string(r)), nil, from)
}

// CreateThread begins a thread in a room.
func (c *Client) CreateThread(ctx context.Context, r id.Room, title string) (room.Thread, error) {
	var t room.Thread
	err := c.post(ctx, roomPath(r)+"/threads", map[string]string{"title": title}, &t)
	return t, err
}

// Threads lists the threads of a room.
func (c *Client) Threads(ctx context.Context, r id.Room, p Page) (ThreadList, error) {
	var l ThreadList
	err := c.get(ctx, roomPath(r)+"/threads", p.values(), &l)
	return l, err
}

// Thread returns a thread.
func (c *Client) Thread(ctx context.Context, t id.Thread) (room.Thread, error) {
	var found room.Thread
	err := c.get(ctx, threadPath(t), nil, &found)
	return found, err
}

// UpdateThread changes a thread.
func (c *Client) UpdateThread(ctx context.Context, t id.Thread, change ThreadChange) (room.Thread, error) {
	var changed room.Thread
	err := c.call(ctx, http.MethodPatch, threadPath(t), nil, change, &changed, nil)
	return changed, err
}

// PostMessage posts a message into a thread.
func (c *Client) PostMessage(ctx context.Context, t id.Thread, q MessageRequest) (room.Message, error) {
	var m room.Message
	err := c.call(ctx, http.MethodPost, threadPath(t)+"/messages", nil, q, &m, idempotent(q.IdempotencyKey))
	return m, err
}

// Messages reads a thread: the newest messages, or those in front of a message or a time.
func (c *Client) Messages(ctx context.Context, t id.Thread, before string, limit int) (MessageList, error) {
	var l MessageList
	q := Page{Limit: limit}.values("before", before)
	err := c.get(ctx, threadPath(t)+"/messages", q, &l)
	return l, err
}

func roomPath(r id.Room) string     { return join("/v1/rooms/", escape(string(r))) }
func threadPath(t id.Thread) string { return join("/v1/threads/", escape(string(t))) }
