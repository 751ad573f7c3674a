package talkapi

import (
	"context"
	"net/http"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/room"
	"agentbox/internal/service/rooms"
	"agentbox/internal/service/search"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

type searchAnswer struct {
	Results []search.Result `json:"results" nullable:"false" doc:"The newest first"`
	Indexed uint64          `json:"indexed_to_seq" doc:"The place in the log up to which was searched"`
	Head    uint64          `json:"head_seq" doc:"The place of the last event when the search began"`
	Whole   bool            `json:"complete" doc:"Everything up to head_seq was searched; false while the index is made anew"`
}

// Search are the operations for the search of messages.
type Search struct {
	access.Part
	rooms  *rooms.Service
	search *search.Service
}

// NewSearch returns the operations for the search of messages.
func NewSearch(p access.Part, rooms *rooms.Service, search *search.Service) *Search {
	return &Search{p, rooms, search}
}

// Register adds the operations to the server.
func (s *Search) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "search", Needs: wire.Shows("message", "room_id", "thread_id"), Method: http.MethodGet, Path: "/v1/search", Tag: "rooms",
		Summary: "Find messages",
		Detail: "Those that have every word of q somewhere, also inside of other words, in any language; case does not count. What was posted " +
			"before the request is found. With room_id or thread_id only what was said there.",
	}, func(ctx context.Context, c wire.Call, in *struct {
		Q      string `query:"q" doc:"Words with spaces between; at least two characters"`
		Room   string `query:"room_id" maxLength:"64" doc:"Only what was said in this room"`
		Thread string `query:"thread_id" maxLength:"64" doc:"Only what was said in this thread"`
		Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"How many at most"`
	}) (*struct{ Body searchAnswer }, error) {
		if err := s.whereIs(ctx, c.Caller.Workspace, id.Room(in.Room), id.Thread(in.Thread)); err != nil {
			return nil, err
		}
		sight, err := s.Sight(ctx, c)
		if err != nil {
			return nil, err
		}
		shows := func(m room.Message) (bool, error) {
			return sight.Shows(ctx, label.Resource{Type: label.OfMessage, ID: string(m.ID)})
		}
		a, err := s.search.Search(ctx, c.Caller.Workspace, search.Query{Words: in.Q, Room: id.Room(in.Room),
			Thread: id.Thread(in.Thread), Limit: in.Limit, Shows: shows})
		return &struct{ Body searchAnswer }{searchAnswer{a.Results, a.Indexed, a.Head, a.Indexed >= a.Head}}, err
	})
}

// whereIs refuses a room or a thread that does not exist, and a thread of another room; empty means everywhere.
func (s *Search) whereIs(ctx context.Context, ws id.Workspace, in id.Room, thread id.Thread) error {
	if in != "" {
		if _, err := s.rooms.Room(ctx, ws, in); err != nil {
			return err
		}
	}
	if thread == "" {
		return nil
	}
	doc, err := s.rooms.Thread(ctx, ws, thread)
	if err == nil && in != "" && doc.Room != in {
		err = room.ErrNoThread
	}
	return err
}
