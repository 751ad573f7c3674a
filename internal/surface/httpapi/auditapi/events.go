// Package auditapi has the operations for the log: events, causes, proofs and redactions.
package auditapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/service/query"
	"agentbox/internal/service/rooms"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/strictjson"
	"agentbox/internal/surface/httpapi/wire"
)

// eventFrames are the messages of the event streams.
func eventFrames() []wire.Frame {
	return []wire.Frame{{Event: "message", Doc: "An event; or, without data, the place where a stream begins that was asked for no place",
		Data: event.Shown{}, Empty: true}}
}

// EventFilter are the parameters that select events.
type EventFilter struct {
	StreamType  string   `query:"stream_type" enum:"workspace,room" doc:"With stream_id: only events of this stream, and places are those in it"`
	StreamID    string   `query:"stream_id" maxLength:"100"`
	Room        string   `query:"room_id" maxLength:"100" doc:"Only events of this room; places are those in its stream"`
	Thread      string   `query:"thread_id" maxLength:"100"`
	Run         string   `query:"run_id" maxLength:"100"`
	Step        string   `query:"step_id" maxLength:"100"`
	Correlation string   `query:"correlation_id" maxLength:"128"`
	Causation   string   `query:"causation_id" maxLength:"100" doc:"Only events that name this event as their cause"`
	Space       string   `query:"space_id" maxLength:"100" doc:"Only events about this space"`
	Agent       string   `query:"subject_agent_id" maxLength:"100" doc:"Only events about this agent"`
	Principal   string   `query:"subject_principal_id" maxLength:"100" doc:"Only events about this principal"`
	Type        string   `query:"event_type" maxLength:"100" doc:"One type; one that does not exist is refused"`
	Types       []string `query:"event_types" maxItems:"20" doc:"Separated by commas; one that does not exist is refused"`
}

// filterOf reads the filter of a stream, of which huma reads nothing.
func filterOf(p url.Values) EventFilter {
	f := EventFilter{
		StreamType: p.Get("stream_type"), StreamID: p.Get("stream_id"), Room: p.Get("room_id"), Thread: p.Get("thread_id"), Run: p.Get("run_id"),
		Step:        p.Get("step_id"),
		Correlation: p.Get("correlation_id"), Causation: p.Get("causation_id"), Space: p.Get("space_id"), Agent: p.Get("subject_agent_id"),
		Principal: p.Get("subject_principal_id"), Type: p.Get("event_type"),
	}
	if types := p.Get("event_types"); types != "" {
		f.Types = strings.Split(types, ",")
	}
	return f
}

// query returns the filter as a query. A type that no event ever has is a slip of the pen, and finding nothing would hide it.
func (f EventFilter) query() (query.Query, error) {
	if f.Type != "" {
		f.Types = append(slices.Clip(f.Types), f.Type)
	}
	if f.Agent != "" && f.Principal != "" && f.Agent != f.Principal {
		return query.Query{}, fault.New(fault.Invalid, "query_invalid", "subject_agent_id and subject_principal_id name two principals; name one")
	}
	for _, typ := range f.Types {
		if err := knownType(typ); err != nil {
			return query.Query{}, err
		}
	}
	return query.Query{
		Stream: event.Stream{Type: f.StreamType, ID: f.StreamID}, Room: id.Room(f.Room), Thread: id.Thread(f.Thread), Run: id.Run(f.Run),
		Step:        id.Step(f.Step),
		Correlation: id.Correlation(f.Correlation), Causation: id.Event(f.Causation), Space: id.Space(f.Space),
		Subject: id.Principal(cmp.Or(f.Agent, f.Principal)), Types: f.Types,
	}, nil
}

// knownType refuses an event type that does not exist, and names those that may have been meant.
func knownType(typ string) error {
	known := query.EventTypes()
	if slices.Contains(known, typ) {
		return nil
	}
	noun, _, _ := strings.Cut(typ, ".")
	near := strictjson.Nearest(typ, known)
	alike := slices.DeleteFunc(slices.Clone(known), func(k string) bool { return k != near && !strings.HasPrefix(k, noun+".") })
	unknown := fault.New(fault.Invalid, "unknown_event_type", "there is no event type %.64q", typ)
	if len(alike) == 0 {
		return unknown.With("A type is written noun.verb, as in run.created. The nouns are " + strings.Join(nouns(known), ", ") + ".")
	}
	return unknown.With("Near it are " + strings.Join(alike, ", ") + ".")
}

// nouns returns what the types begin with, sorted, each once.
func nouns(types []string) []string {
	all := make([]string, 0, len(types))
	for _, typ := range types {
		noun, _, _ := strings.Cut(typ, ".")
		all = append(all, noun)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

type eventList struct {
	Events []event.Shown `json:"events" nullable:"false" doc:"In ascending order"`
	Next   uint64        `json:"next_from_seq" doc:"The from_seq that goes on behind the last event"`
	Before uint64        `json:"before,omitempty" doc:"The before that goes on in front of the first event; absent where nothing is in front of it"`
}

// StreamParameters are those of the event streams.
type StreamParameters struct {
	From uint64 `query:"from_seq" doc:"The place of the first event; without it and without Last-Event-ID, only what happens from now on"`
	Last uint64 `header:"Last-Event-ID" doc:"The last event that was received; wins over from_seq"`
}

// Events are the operations for events of the log.
type Events struct {
	access.Part
	rooms *rooms.Service
	query *query.Service
}

// NewEvents returns the operations for events of the log.
func NewEvents(p access.Part, rooms *rooms.Service, query *query.Service) *Events {
	return &Events{p, rooms, query}
}

// Register adds the operations to the server.
func (s *Events) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "list-events", Needs: wire.Shows("event", "stream_id", "room_id", "thread_id", "run_id", "step_id", "space_id").PastLabels(),
		Method: http.MethodGet, Path: "/v1/events", Tag: "events", Summary: "Read the log",
		Detail: "From a place on with from_seq, else the last events, or the last before a place. Where a label keeps an event's data from the " +
			"caller, they are withheld: `withheld` is `labelled`.",
	}, s.listEvents)
	wire.Handle(s.Server, wire.Operation{ID: "get-event", Needs: wire.Shows("event", "event_id").PastLabels(), Method: http.MethodGet,
		Path: "/v1/events/{event_id}", Tag: "events", Summary: "Show an event"},
		func(ctx context.Context, c wire.Call, in *struct {
			Event string `path:"event_id" doc:"The event"`
		}) (*struct{ Body event.Shown }, error) {
			e, err := s.query.Event(ctx, c.Caller.Workspace, id.Event(in.Event))
			if err != nil {
				return nil, err
			}
			sight, err := s.Sight(ctx, c)
			if err != nil {
				return nil, err
			}
			e, err = sight.Event(ctx, e)
			return &struct{ Body event.Shown }{event.Show(e)}, err
		})
	const detail = "Server-sent events; data is the event, id its place. A client that sends the last id back as Last-Event-ID misses " +
		"nothing and gets nothing twice. " +
		"Where a label keeps an event's data from the caller, they are withheld, and the event keeps its place."
	wire.Stream[struct {
		EventFilter
		StreamParameters
	}](s.Server, wire.Operation{
		ID: "stream-events", Needs: wire.Shows("event", "stream_id", "room_id", "thread_id", "run_id", "step_id", "space_id").PastLabels(),
		Method: http.MethodGet, Path: "/v1/events/stream", Tag: "events", Summary: "Follow the log", Media: "text/event-stream",
		Frames: eventFrames(), Detail: detail,
	}, func(w http.ResponseWriter, r *http.Request, c wire.Call) error {
		q, err := filterOf(r.URL.Query()).query()
		if err != nil {
			return err
		}
		return s.followEvents(w, r, c, q)
	})
	wire.Stream[struct {
		Room string `path:"room_id" doc:"The room"`
		StreamParameters
	}](s.Server, wire.Operation{
		ID: "stream-room", Needs: wire.Shows("event", "room_id").PastLabels(), Method: http.MethodGet, Path: "/v1/streams/rooms/{room_id}",
		Tag: "events", Summary: "Follow a room", Media: "text/event-stream", Frames: eventFrames(), Detail: detail,
	}, func(w http.ResponseWriter, r *http.Request, c wire.Call) error {
		in, err := s.rooms.Room(r.Context(), c.Caller.Workspace, id.Room(r.PathValue("room_id")))
		if err != nil {
			return err
		}
		return s.followEvents(w, r, c, query.Query{Room: in.ID})
	})
}

func (s *Events) listEvents(ctx context.Context, c wire.Call, in *struct {
	EventFilter
	From           uint64 `query:"from_seq" doc:"The place of the first event"`
	Before         uint64 `query:"before" doc:"Only events in front of this place"`
	RecordedBefore string `query:"before_recorded_at" maxLength:"100" doc:"Only events that were recorded before this time (RFC 3339)"`
	Limit          int    `query:"limit" minimum:"1" maximum:"200" default:"100"`
}) (*struct{ Body eventList }, error) {
	q, err := in.query()
	if err != nil {
		return nil, err
	}
	if in.RecordedBefore != "" {
		if q.RecordedBefore, err = time.Parse(time.RFC3339, in.RecordedBefore); err != nil {
			return nil, fault.New(fault.Invalid, "invalid_before_recorded_at",
				"before_recorded_at is a time as in RFC 3339, for example 2026-11-22T09:00:00Z")
		}
	}
	q.From, q.Before, q.Limit, q.Last = in.From, in.Before, in.Limit, in.From == 0
	found, err := s.query.Events(ctx, c.Caller.Workspace, q)
	if err != nil {
		return nil, err
	}
	sight, err := s.Sight(ctx, c)
	if err != nil {
		return nil, err
	}
	out := eventList{Events: make([]event.Shown, len(found)), Next: max(q.From, 1)}
	for i, e := range found {
		if e, err = sight.Event(ctx, e); err != nil {
			return nil, err
		}
		out.Events[i] = event.Show(e)
	}
	if len(found) == 0 {
		return &struct{ Body eventList }{out}, nil
	}
	out.Next = q.Place(found[len(found)-1]) + 1
	if first := q.Place(found[0]); first > 1 {
		out.Before = first
	}
	return &struct{ Body eventList }{out}, nil
}

func (s *Events) followEvents(w http.ResponseWriter, r *http.Request, c wire.Call, q query.Query) error {
	from, given, err := wire.Cursor(r, "from_seq")
	if err != nil {
		return err
	}
	// Read the head before answering, so that events recorded after the answer began are on the stream.
	next, err := s.placeAfterHead(r.Context(), c, q)
	if err != nil {
		return err
	}
	if q.From = from; !given {
		q.From = next
	}
	if err := wire.Within(q.From, next); err != nil {
		return err
	}
	return s.Feed(w, r, c, func(ctx context.Context) iter.Seq2[wire.Message, error] {
		return func(yield func(wire.Message, error) bool) {
			// A stream that begins at the present says where that is, so that a client that is cut off before anything happens misses nothing.
			if !given && !yield(wire.Message{ID: q.From - 1}, nil) {
				return
			}
			for e, err := range s.query.Follow(ctx, c.Caller.Workspace, q) {
				if err != nil {
					yield(wire.Message{}, err)
					return
				}
				data, err := s.shown(ctx, c, e)
				if !yield(wire.Message{ID: q.Place(e.Event), Data: data}, err) {
					return
				}
			}
		}
	})
}

// shown returns a followed event as JSON. If a label hides its data from the caller, the data are withheld and the event keeps its place,
// so the stream has no gap. The labels are read for each event, because they may change meanwhile.
func (s *Events) shown(ctx context.Context, c wire.Call, item *query.Item) ([]byte, error) {
	sight, err := s.Sight(ctx, c)
	if err != nil {
		return nil, err
	}
	e, err := sight.Event(ctx, item.Event)
	if err != nil || e.Withheld == item.Withheld {
		data, jsonErr := item.JSON()
		return data, errors.Join(err, jsonErr)
	}
	return json.Marshal(event.Show(e))
}

// placeAfterHead is the place of the next event that a query could read.
func (s *Events) placeAfterHead(ctx context.Context, c wire.Call, q query.Query) (uint64, error) {
	if q.Stream == (event.Stream{}) && q.Room == "" {
		head, err := s.query.Head(ctx, c.Caller.Workspace)
		return head + 1, err
	}
	last, err := s.query.Events(ctx, c.Caller.Workspace, query.Query{Stream: q.Stream, Room: q.Room, Last: true, Limit: 1})
	if err != nil || len(last) == 0 {
		return 1, err
	}
	return last[0].StreamSeq + 1, nil
}
