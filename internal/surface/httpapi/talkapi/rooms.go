// Package talkapi has the operations for rooms, threads and messages, and the search in them.
package talkapi

import (
	"context"
	"net/http"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/room"
	"agentbox/internal/service/query"
	"agentbox/internal/service/rooms"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// roomRequest asks for a room.
type roomRequest struct {
	Title      string        `json:"title" minLength:"1"`
	Topic      string        `json:"topic,omitempty"`
	Mode       string        `json:"room_mode,omitempty" doc:"A word of the client's own"`
	Lang       string        `json:"default_lang,omitempty" doc:"Of its messages, a BCP 47 tag"`
	ToolPolicy string        `json:"tool_policy_ref,omitempty" doc:"Names a policy for tools; to set it takes the right to configure rooms"`
	Mission    string        `json:"mission_id,omitempty"`
	Context    *room.Context `json:"context,omitempty" doc:"What agents in it are told and may use; what is left out is inherited from the workspace. The gate holds the list of tools; that of models is a statement to engines"`
}

// roomChange changes a room; missing fields stay as they are.
type roomChange struct {
	Title      *string       `json:"title,omitempty" minLength:"1"`
	Topic      *string       `json:"topic,omitempty"`
	Mode       *string       `json:"room_mode,omitempty"`
	Lang       *string       `json:"default_lang,omitempty"`
	ToolPolicy *string       `json:"tool_policy_ref,omitempty"`
	Context    *room.Context `json:"context,omitempty"`
	Inherit    []string      `json:"inherit,omitempty" enum:"system_prompt,tool_allowlist,model_allowlist,memory_summary" doc:"Fields of the context that are inherited from the workspace again"`
}

// defaultsChange changes the values that the rooms of a workspace inherit; missing fields stay as they are.
type defaultsChange struct {
	Context *room.Context `json:"context,omitempty"`
	Inherit []string      `json:"inherit,omitempty" enum:"system_prompt,tool_allowlist,model_allowlist,memory_summary" doc:"Fields that are unset again"`
}

// listedRoom is a room's row in a list.
type listedRoom struct {
	Room      id.Room   `json:"room_id"`
	Title     string    `json:"title"`
	Topic     string    `json:"topic,omitempty"`
	Mode      string    `json:"room_mode,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	Unread    int       `json:"unread" doc:"Messages of others that the caller has not read, at most 100, which means as many or more"`
}

// readCursor says how far the caller has read a room.
type readCursor struct {
	room.Cursor
	Unread int `json:"unread" doc:"Messages of others behind it, at most 100, which means as many or more"`
}

// readRequest moves a read cursor.
type readRequest struct {
	StreamSeq uint64 `json:"stream_seq,omitempty" minimum:"1" doc:"The place in the room's stream up to which was read; everything that is there unless given"`
}

// shownRoom is a room with the context that holds in it.
type shownRoom struct {
	room.Room
	Effective room.Context `json:"effective_context" doc:"What holds: the room's own context, and for what it leaves unset that of the workspace"`
}

type threadRequest struct {
	Title  string      `json:"title" minLength:"1"`
	Status room.Status `json:"status,omitempty" enum:"open,closed" doc:"open by default"`
}

type threadChange struct {
	Title  *string      `json:"title,omitempty" minLength:"1"`
	Status *room.Status `json:"status,omitempty" enum:"open,closed"`
}

// messageRequest posts a message.
type messageRequest struct {
	Content       string           `json:"content_md" doc:"Markdown, at most 65536 bytes"`
	Lang          string           `json:"lang,omitempty" doc:"A BCP 47 tag; the room's default_lang by default"`
	SenderType    id.PrincipalKind `json:"sender_type,omitempty" enum:"user,agent,service" doc:"The caller's unless given"`
	Sender        string           `json:"sender_id,omitempty" doc:"The caller unless given; an agent of the workspace where the caller is an owner, an admin or a service"`
	Parent        id.Message       `json:"parent_message_id,omitempty" doc:"A message of the same thread"`
	Labels        []string         `json:"labels,omitempty" maxItems:"20"`
	SchemaVersion string           `json:"schema_version,omitempty"`
}

// RoomPath names a room.
type RoomPath struct {
	Room string `path:"room_id" doc:"The room"`
}

// ThreadPath names a thread.
type ThreadPath struct {
	Thread string `path:"thread_id" doc:"The thread"`
}

type roomAnswer struct {
	Location string `header:"Location"`
	Body     room.Room
}

type threadAnswer struct {
	Location string `header:"Location"`
	Body     room.Thread
}

type roomList struct {
	Rooms []listedRoom `json:"rooms" nullable:"false"`
	Next  string       `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

type threadList struct {
	Threads []room.Thread `json:"threads" nullable:"false"`
	Next    string        `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

type messageList struct {
	Messages []room.Message `json:"messages" nullable:"false" doc:"The newest first"`
	Next     string         `json:"next_before,omitempty" doc:"The before of the next page; absent at the beginning of the thread"`
}

// Rooms are the operations for rooms, threads and messages.
type Rooms struct {
	access.Part
	rooms *rooms.Service
}

// NewRooms returns the operations for rooms, threads and messages.
func NewRooms(p access.Part, rooms *rooms.Service) *Rooms {
	return &Rooms{p, rooms}
}

// Register adds the operations to the server.
func (s *Rooms) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "create-room", Needs: wire.DoesThere(policy.RoomCreate), Method: http.MethodPost, Path: "/v1/rooms", Tag: "rooms",
		Summary: "Make a room", Status: http.StatusCreated, Repeat: wire.RepeatByService,
	}, s.createRoom)
	wire.Handle(s.Server, wire.Operation{
		ID: "list-rooms", Needs: wire.Shows("room"), Method: http.MethodGet, Path: "/v1/rooms", Tag: "rooms",
		Summary: "List rooms, the newest first",
		Detail:  "Every workspace has a default room, which is the last.",
	}, s.listRooms)
	wire.Handle(s.Server, wire.Operation{ID: "get-room", Needs: wire.Shows("room", "room_id"), Method: http.MethodGet,
		Path: "/v1/rooms/{room_id}", Tag: "rooms", Summary: "Show a room with the context that holds in it"},
		func(ctx context.Context, c wire.Call, in *RoomPath) (*struct{ Body shownRoom }, error) {
			found, err := s.rooms.Room(ctx, c.Caller.Workspace, id.Room(in.Room))
			if err != nil {
				return nil, err
			}
			effective, err := s.rooms.Context(ctx, found)
			return &struct{ Body shownRoom }{shownRoom{found, effective}}, err
		})
	wire.Handle(s.Server, wire.Operation{
		ID: "update-room", Needs: wire.Does(policy.RoomUpdate, "room_id"), Method: http.MethodPatch, Path: "/v1/rooms/{room_id}", Tag: "rooms",
		Summary: "Change a room", Repeat: wire.RepeatRecalled,
		Detail: "A field that is left out stays. Only owners and admins change tool_policy_ref and the context, except its memory summary.",
	}, s.updateRoom)
	wire.Handle(s.Server, wire.Operation{ID: "get-read-cursor", Needs: wire.Shows("room", "room_id"), Method: http.MethodGet,
		Path: "/v1/rooms/{room_id}/read-cursor", Tag: "rooms", Summary: "Show how far the caller has read a room"},
		func(ctx context.Context, c wire.Call, in *RoomPath) (*struct{ Body readCursor }, error) {
			found, err := s.rooms.ReadCursor(ctx, c.Caller.Workspace, c.Caller.Principal, id.Room(in.Room))
			return &struct{ Body readCursor }{readCursor(found)}, err
		})
	wire.Handle(s.Server, wire.Operation{
		ID: "put-read-cursor", Needs: wire.Does(policy.RoomRead, "room_id").PastLabels(), Method: http.MethodPut,
		Path: "/v1/rooms/{room_id}/read-cursor", Tag: "rooms", Summary: "Say how far the caller has read a room",
		Detail: "It never goes back: a place in front of the present one changes nothing.",
	}, func(ctx context.Context, c wire.Call, in *struct {
		RoomPath
		Body readRequest
	}) (*struct{ Body readCursor }, error) {
		moved, err := s.rooms.MarkRead(ctx, c.Origin(), c.Caller.Workspace, id.Room(in.Room), in.Body.StreamSeq)
		return &struct{ Body readCursor }{readCursor(moved)}, err
	})
	wire.Handle(s.Server, wire.Operation{ID: "get-room-defaults", Needs: wire.Shows("room"), Method: http.MethodGet, Path: "/v1/room-defaults",
		Tag: "rooms", Summary: "Show what the rooms of the workspace inherit"},
		func(ctx context.Context, c wire.Call, _ *struct{}) (*struct{ Body room.Defaults }, error) {
			found, err := s.rooms.Defaults(ctx, c.Caller.Workspace)
			return &struct{ Body room.Defaults }{found}, err
		})
	wire.Handle(s.Server, wire.Operation{
		ID: "update-room-defaults", Needs: wire.Does(policy.RoomConfigure), Method: http.MethodPatch, Path: "/v1/room-defaults", Tag: "rooms",
		Summary: "Change what the rooms of the workspace inherit", Repeat: wire.RepeatRecalled,
	}, s.updateDefaults)
	wire.Handle(s.Server, wire.Operation{
		ID: "create-thread", Needs: wire.Does(policy.ThreadCreate, "room_id").PastLabels(), Method: http.MethodPost,
		Path: "/v1/rooms/{room_id}/threads", Tag: "rooms", Summary: "Begin a thread", Status: http.StatusCreated, Repeat: wire.RepeatByService,
	}, func(ctx context.Context, c wire.Call, in *struct {
		RoomPath
		Body threadRequest
	}) (*threadAnswer, error) {
		made, err := s.rooms.CreateThread(ctx, c.Once(), c.Caller.Workspace, id.Room(in.Room), room.ThreadCreated{Title: in.Body.Title,
			Status: in.Body.Status})
		return &threadAnswer{Location: "/v1/threads/" + string(made.ID), Body: made}, err
	})
	wire.Handle(s.Server, wire.Operation{ID: "list-threads", Needs: wire.Shows("thread", "room_id"), Method: http.MethodGet,
		Path: "/v1/rooms/{room_id}/threads", Tag: "rooms", Summary: "List the threads of a room, the newest first"},
		func(ctx context.Context, c wire.Call, in *struct {
			RoomPath
			access.LongPage[id.Thread]
		}) (*struct{ Body threadList }, error) {
			found, err := s.rooms.Threads(ctx, c.Caller.Workspace, id.Room(in.Room), in.Cursor.After, in.Limit+1)
			if err != nil {
				return nil, err
			}
			out := threadList{}
			out.Threads, out.Next = access.Cut(found, in.Limit, func(t room.Thread) string { return string(t.ID) })
			out.Threads, err = access.Visible(ctx, s.Access, c, out.Threads, func(x room.Thread) label.Resource {
				return label.Resource{Type: label.OfThread, ID: string(x.ID)}
			})
			return &struct{ Body threadList }{out}, err
		})
	wire.Handle(s.Server, wire.Operation{ID: "get-thread", Needs: wire.Shows("thread", "thread_id"), Method: http.MethodGet,
		Path: "/v1/threads/{thread_id}", Tag: "rooms", Summary: "Show a thread"},
		func(ctx context.Context, c wire.Call, in *ThreadPath) (*threadAnswer, error) {
			found, err := s.rooms.Thread(ctx, c.Caller.Workspace, id.Thread(in.Thread))
			return &threadAnswer{Body: found}, err
		})
	wire.Handle(s.Server, wire.Operation{
		ID: "update-thread", Needs: wire.Does(policy.ThreadUpdate, "thread_id"), Method: http.MethodPatch, Path: "/v1/threads/{thread_id}",
		Tag: "rooms", Summary: "Change a thread", Repeat: wire.RepeatRecalled,
		Detail: "Nothing is posted into a thread that is closed.",
	}, s.updateThread)
	wire.Handle(s.Server, wire.Operation{
		ID: "create-message", Needs: wire.Does(policy.MessageCreate, "thread_id").PastLabels(), Method: http.MethodPost,
		Path: "/v1/threads/{thread_id}/messages", Tag: "rooms", Summary: "Post a message", Status: http.StatusCreated,
		Repeat: wire.RepeatByService,
		Detail: "The sender is the caller. Owners, admins and engines may name an agent of the workspace instead; the event says who spoke and " +
			"who handed it in.",
	}, s.postMessage)
	wire.Handle(s.Server, wire.Operation{ID: "list-messages", Needs: wire.Shows("message", "thread_id"), Method: http.MethodGet,
		Path: "/v1/threads/{thread_id}/messages", Tag: "rooms", Summary: "Read a thread, the newest message first"}, s.listMessages)
}

func (s *Rooms) createRoom(ctx context.Context, c wire.Call, in *struct{ Body roomRequest }) (*roomAnswer, error) {
	b := in.Body
	asked := room.Created{Title: b.Title, Topic: b.Topic, Mode: b.Mode, Lang: b.Lang, ToolPolicy: b.ToolPolicy, Mission: b.Mission}
	if b.Context != nil {
		asked.Context = *b.Context
	}
	made, err := s.rooms.CreateRoom(ctx, c.Once(), c.Caller.Workspace, asked)
	return &roomAnswer{Location: "/v1/rooms/" + string(made.ID), Body: made}, err
}

func (s *Rooms) listRooms(ctx context.Context, c wire.Call, in *access.LongPage[id.Room]) (*struct{ Body roomList }, error) {
	found, err := s.rooms.Rooms(ctx, c.Caller.Workspace, in.Cursor.After, in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := roomList{Rooms: []listedRoom{}}
	found, out.Next = access.Cut(found, in.Limit, func(r room.Room) string { return string(r.ID) })
	if found, err = access.Visible(ctx, s.Access, c, found, func(x room.Room) label.Resource {
		return label.Resource{Type: label.OfRoom, ID: string(x.ID)}
	}); err != nil {
		return nil, err
	}
	for _, r := range found {
		read, err := s.rooms.ReadCursor(ctx, c.Caller.Workspace, c.Caller.Principal, r.ID)
		if err != nil {
			return nil, err
		}
		out.Rooms = append(out.Rooms, listedRoom{Unread: read.Unread, Room: r.ID, Title: r.Title, Topic: r.Topic, Mode: r.Mode,
			CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt})
	}
	return &struct{ Body roomList }{out}, nil
}

func (s *Rooms) updateRoom(ctx context.Context, c wire.Call, in *struct {
	RoomPath
	Body roomChange
}) (*roomAnswer, error) {
	b := in.Body
	change := room.Updated{Title: b.Title, Topic: b.Topic, Mode: b.Mode, Lang: b.Lang, ToolPolicy: b.ToolPolicy, Inherit: b.Inherit}
	if b.Context != nil {
		change.Context = *b.Context
	}
	changed, err := wire.Once(c, func() (room.Room, error) {
		return access.Then[room.Room](ctx, s.Access, c, query.Subject{Projection: room.Projection, EntityType: room.EntityType, Key: in.Room})
	}, func() (room.Room, error) {
		return s.rooms.UpdateRoom(ctx, c.Once(), c.Caller.Workspace, id.Room(in.Room), change)
	})
	return &roomAnswer{Body: changed}, err
}

func (s *Rooms) updateDefaults(ctx context.Context, c wire.Call, in *struct{ Body defaultsChange }) (*struct{ Body room.Defaults },
	error) {
	ws := c.Caller.Workspace
	change := room.DefaultsSet{Inherit: in.Body.Inherit}
	if in.Body.Context != nil {
		change.Context = *in.Body.Context
	}
	changed, err := wire.Once(c, func() (room.Defaults, error) {
		return access.Then[room.Defaults](ctx, s.Access, c, query.Subject{Projection: room.DefaultsProjection, EntityType: room.DefaultsEntity,
			Key: string(ws)})
	}, func() (room.Defaults, error) { return s.rooms.SetDefaults(ctx, c.Once(), ws, change) })
	return &struct{ Body room.Defaults }{changed}, err
}

func (s *Rooms) updateThread(ctx context.Context, c wire.Call, in *struct {
	ThreadPath
	Body threadChange
}) (*threadAnswer, error) {
	changed, err := wire.Once(c, func() (room.Thread, error) {
		return access.Then[room.Thread](ctx, s.Access, c, query.Subject{Projection: room.ThreadProjection, EntityType: room.ThreadEntity,
			Key: in.Thread})
	}, func() (room.Thread, error) {
		return s.rooms.UpdateThread(ctx, c.Once(), c.Caller.Workspace, id.Thread(in.Thread),
			room.ThreadUpdated{Title: in.Body.Title, Status: in.Body.Status})
	})
	return &threadAnswer{Body: changed}, err
}

func (s *Rooms) postMessage(ctx context.Context, c wire.Call, in *struct {
	ThreadPath
	Body messageRequest
}) (*struct{ Body room.Message }, error) {
	b := in.Body
	posted, err := s.rooms.Post(ctx, c.Once(), c.Caller, id.Thread(in.Thread), room.MessageCreated{
		Content: b.Content, Lang: b.Lang, SenderType: b.SenderType, Sender: b.Sender, Parent: b.Parent, Labels: b.Labels,
		SchemaVersion: b.SchemaVersion,
	})
	return &struct{ Body room.Message }{posted}, err
}

func (s *Rooms) listMessages(ctx context.Context, c wire.Call, in *struct {
	ThreadPath
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"How many at most"`
	Before string `query:"before" maxLength:"100" doc:"Only messages in front of this one, or posted before this time (RFC 3339)"`
}) (*struct{ Body messageList }, error) {
	before, err := rooms.ParseBefore(in.Before)
	if err != nil {
		return nil, err
	}
	found, err := s.rooms.Messages(ctx, c.Caller.Workspace, id.Thread(in.Thread), before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := messageList{}
	out.Messages, out.Next = access.Cut(found, in.Limit, func(m room.Message) string { return string(m.ID) })
	out.Messages, err = access.Visible(ctx, s.Access, c, out.Messages, func(x room.Message) label.Resource {
		return label.Resource{Type: label.OfMessage, ID: string(x.ID)}
	})
	return &struct{ Body messageList }{out}, err
}
