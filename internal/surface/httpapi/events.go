package httpapi

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/service/reader"
)

// EventFilter are the parameters that select events.
type EventFilter struct {
	StreamType  string   `query:"stream_type" enum:"workspace,room" doc:"With stream_id: only events of this stream, and places are those in it"`
	StreamID    string   `query:"stream_id" maxLength:"100"`
	Run         string   `query:"run_id" maxLength:"100"`
	Correlation string   `query:"correlation_id" maxLength:"128"`
	Space       string   `query:"space_id" maxLength:"100"`
	Types       []string `query:"event_types" maxItems:"20" doc:"Separated by commas"`
}

func (f EventFilter) query() reader.Query {
	return reader.Query{
		Stream: event.Stream{Type: f.StreamType, ID: f.StreamID}, Run: id.Run(f.Run), Correlation: id.Correlation(f.Correlation),
		Space: id.Space(f.Space), Types: f.Types,
	}
}

type eventList struct {
	Events []event.Event `json:"events" nullable:"false" doc:"In ascending order"`
	Next   uint64        `json:"next_from_seq" doc:"The from_seq that goes on behind the last event"`
	Before uint64        `json:"before,omitempty" doc:"The before that goes on in front of the first event; absent where nothing is in front of it"`
}

// StreamParameters are those of the event streams.
type StreamParameters struct {
	From uint64 `query:"from_seq" doc:"The place of the first event; without it and without Last-Event-ID, only what happens from now on"`
	Last uint64 `header:"Last-Event-ID" doc:"The last event that was received; wins over from_seq"`
}

func (s *Server) registerEvents() {
	handle(s, operation{
		id: "list-events", method: http.MethodGet, path: "/v1/events", tag: "events", summary: "Read the log",
		detail: "From a place on with from_seq, else the last events, or the last before a place.",
	}, s.listEvents)
	handle(s, operation{id: "get-event", method: http.MethodGet, path: "/v1/events/{event_id}", tag: "events", summary: "Show an event"},
		func(ctx context.Context, c call, in *struct {
			Event string `path:"event_id" doc:"The event"`
		}) (*struct{ Body event.Event }, error) {
			e, err := s.Services.Reader.Event(ctx, c.caller.Workspace, id.Event(in.Event))
			return &struct{ Body event.Event }{e}, err
		})
	const detail = "Server-sent events; data is the event, id its place. A client that sends the last id back as Last-Event-ID misses nothing and gets nothing twice."
	stream[struct {
		EventFilter
		StreamParameters
	}](s, operation{
		id: "stream-events", method: http.MethodGet, path: "/v1/events/stream", tag: "events", summary: "Follow the log", media: "text/event-stream", detail: detail,
	}, func(w http.ResponseWriter, r *http.Request, c call) error {
		p := r.URL.Query()
		f := EventFilter{
			StreamType: p.Get("stream_type"), StreamID: p.Get("stream_id"), Run: p.Get("run_id"), Correlation: p.Get("correlation_id"), Space: p.Get("space_id"),
		}
		if types := p.Get("event_types"); types != "" {
			f.Types = strings.Split(types, ",")
		}
		return s.followEvents(w, r, c, f.query())
	})
	stream[struct {
		Room string `path:"room_id" doc:"The room"`
		StreamParameters
	}](s, operation{
		id: "stream-room", method: http.MethodGet, path: "/v1/streams/rooms/{room_id}", tag: "events", summary: "Follow a room", media: "text/event-stream", detail: detail,
	}, func(w http.ResponseWriter, r *http.Request, c call) error {
		return s.followEvents(w, r, c, reader.Query{Stream: event.RoomStream(c.caller.Workspace, id.Room(r.PathValue("room_id")))})
	})
}

func (s *Server) listEvents(ctx context.Context, c call, in *struct {
	EventFilter
	From   uint64 `query:"from_seq" doc:"The place of the first event"`
	Before uint64 `query:"before" doc:"Only events in front of this place"`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"100"`
}) (*struct{ Body eventList }, error) {
	q := in.query()
	q.From, q.Before, q.Limit, q.Last = in.From, in.Before, in.Limit, in.From == 0
	found, err := s.Services.Reader.Events(ctx, c.caller.Workspace, q)
	if err != nil {
		return nil, err
	}
	out := eventList{Events: found, Next: max(q.From, 1)}
	if len(found) == 0 {
		out.Events = []event.Event{}
		return &struct{ Body eventList }{out}, nil
	}
	out.Next = q.Place(found[len(found)-1]) + 1
	if first := q.Place(found[0]); first > 1 {
		out.Before = first
	}
	return &struct{ Body eventList }{out}, nil
}

func (s *Server) followEvents(w http.ResponseWriter, r *http.Request, c call, q reader.Query) error {
	from, given, err := cursor(r, "from_seq")
	if err != nil {
		return err
	}
	if q.From = from; !given {
		// The head is read before anything is answered: what is recorded after the answer began is on the stream.
		if q.From, err = s.placeAfterHead(r.Context(), c, q); err != nil {
			return err
		}
	}
	return s.feed(w, r, c, func(ctx context.Context) iter.Seq2[message, error] {
		return func(yield func(message, error) bool) {
			for e, err := range s.Services.Reader.Follow(ctx, c.caller.Workspace, q) {
				var data []byte
				if err == nil {
					data, err = json.Marshal(e)
				}
				if !yield(message{id: q.Place(e), data: data}, err) {
					return
				}
			}
		}
	})
}

// placeAfterHead is the place of the next event of what a query reads.
func (s *Server) placeAfterHead(ctx context.Context, c call, q reader.Query) (uint64, error) {
	if q.Stream == (event.Stream{}) {
		head, err := s.Services.Reader.Head(ctx, c.caller.Workspace)
		return head + 1, err
	}
	last, err := s.Services.Reader.Events(ctx, c.caller.Workspace, reader.Query{Stream: q.Stream, Last: true, Limit: 1})
	if err != nil || len(last) == 0 {
		return 1, err
	}
	return last[0].StreamSeq + 1, nil
}
