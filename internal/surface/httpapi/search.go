package httpapi

import (
	"context"
	"net/http"

	"agentbox/internal/domain/label"
	"agentbox/internal/domain/room"
	"agentbox/internal/service/librarian"
	"agentbox/internal/surface/httpapi/wire"
)

type searchAnswer struct {
	Results []librarian.Result `json:"results" nullable:"false" doc:"The newest first"`
	Indexed uint64             `json:"indexed_to_seq" doc:"The place in the log up to which was searched"`
	Head    uint64             `json:"head_seq" doc:"The place of the last event when the search began"`
	Whole   bool               `json:"complete" doc:"Everything up to head_seq was searched; false while the index is made anew"`
}

func (s *Server) registerSearch() {
	wire.Handle(s.Server, wire.Operation{
		ID: "search", Needs: wire.Shows("message"), Method: http.MethodGet, Path: "/v1/search", Tag: "rooms", Summary: "Find messages",
		Detail: "Those that have every word of q somewhere, also inside of other words, in any language; case does not count. What was posted before the request is found.",
	}, func(ctx context.Context, c wire.Call, in *struct {
		Q     string `query:"q" doc:"Words with spaces between; at least two characters"`
		Limit int    `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"How many at most"`
	}) (*struct{ Body searchAnswer }, error) {
		sight, err := s.sight(ctx, c)
		if err != nil {
			return nil, err
		}
		a, err := s.services.Librarian.Search(ctx, c.Caller.Workspace, in.Q, in.Limit, func(m room.Message) (bool, error) {
			return sight.Shows(ctx, label.Resource{Type: label.OfMessage, ID: string(m.ID)})
		})
		return &struct{ Body searchAnswer }{searchAnswer{a.Results, a.Indexed, a.Head, a.Indexed >= a.Head}}, err
	})
}
