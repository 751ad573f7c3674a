// Package query answers questions about the log.
package query

import (
	"context"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Limits of one answer.
const (
	MaxEvents     = 200
	DefaultEvents = 100
	MaxTypes      = 20
)

// Query selects events of a workspace. Zero fields do not select.
type Query struct {
	Stream         event.Stream // both of its parts or none
	From           uint64       // the lowest place, inclusive; of the stream if one is named, else of the workspace
	Before         uint64       // the place at which to stop, exclusive
	Room           id.Room      // its stream; places are those in it
	Thread         id.Thread
	Run            id.Run
	Step           id.Step
	Correlation    id.Correlation
	Causation      id.Event     // the events that this one caused
	Space          id.Space     // that the events are about
	Subject        id.Principal // that the events are about
	Types          []string
	RecordedBefore time.Time // only events recorded before it
	Last           bool      // the last Limit of them instead of the first; still ascending
	Limit          int       // 1 to MaxEvents; 0 means DefaultEvents
}

// Place returns an event's place in the query's stream, else in its workspace.
func (q Query) Place(e event.Event) uint64 {
	if q.Stream != (event.Stream{}) || q.Room != "" {
		return e.StreamSeq
	}
	return e.Seq
}

// Service reads the log.
type Service struct {
	log         journal.Journal
	definitions []projection.Definition // of the documents that Past folds

	mu       sync.Mutex // guards presents
	presents map[id.Workspace]*present
}

// New returns a service that reads a log.
func New(log journal.Journal, definitions ...projection.Definition) *Service {
	return &Service{log: log, definitions: definitions, presents: map[id.Workspace]*present{}}
}

// Events returns the events that a query selects, in ascending order.
func (r *Service) Events(ctx context.Context, ws id.Workspace, q Query) ([]event.Event, error) {
	jq, err := q.read(ws)
	if err != nil {
		return nil, err
	}
	if q.Limit == 0 {
		jq.Limit = DefaultEvents
	}
	if !q.RecordedBefore.IsZero() {
		place, err := r.placeAt(ctx, jq, q.RecordedBefore)
		if err != nil {
			return nil, err
		}
		if jq.Before == 0 || place < jq.Before {
			jq.Before = place
		}
	}
	return r.log.Read(ctx, jq)
}

// placeAt returns the first place whose event was recorded at that time or later. The place is in the query's stream if it names one, else
// in its workspace. It is a binary search, because times rise with places. If the host's clock was set back, the result is one of the
// places where the times pass it.
func (r *Service) placeAt(ctx context.Context, q journal.Query, at time.Time) (uint64, error) {
	look := journal.Query{Workspace: q.Workspace, Stream: q.Stream, Last: true, Limit: 1}
	last, err := r.log.Read(ctx, look)
	if err != nil || len(last) == 0 {
		return 1, err
	}
	look.Last = false
	low, high := uint64(1), look.Place(&last[0])+1
	for low < high {
		look.From = low + (high-low)/2
		found, err := r.log.Read(ctx, look)
		if err != nil {
			return 0, err
		}
		if len(found) == 0 || !found[0].RecordedAt.Before(at) {
			high = look.From
		} else {
			low = look.From + 1
		}
	}
	return low, nil
}

// Event returns one event of the workspace.
func (r *Service) Event(ctx context.Context, ws id.Workspace, e id.Event) (event.Event, error) {
	found, err := r.log.Get(ctx, ws, e)
	if fault.KindOf(err) == fault.NotFound {
		err = fault.New(fault.NotFound, "event_not_found", "there is no event %.64q in this workspace", e)
	}
	return found, err
}

// At returns the event at a place of the workspace.
func (r *Service) At(ctx context.Context, ws id.Workspace, seq uint64) (event.Event, error) {
	found, err := r.log.Read(ctx, journal.Query{Workspace: ws, From: seq, Before: seq + 1, Limit: 1})
	if err == nil && len(found) == 0 {
		err = fault.New(fault.NotFound, "event_not_found", "there is no event %d in this workspace", seq)
	}
	if err != nil {
		return event.Event{}, err
	}
	return found[0], nil
}

// Head returns the place of the workspace's last event.
func (r *Service) Head(ctx context.Context, ws id.Workspace) (uint64, error) {
	return r.log.Head(ctx, ws)
}

func (q Query) read(ws id.Workspace) (journal.Query, error) {
	if (q.Stream.Type == "") != (q.Stream.ID == "") {
		return journal.Query{}, fault.New(fault.Invalid, "stream_type_and_stream_id_required_together",
			"stream_type and stream_id name a stream together; send both or none")
	}
	if len(q.Types) > MaxTypes {
		return journal.Query{}, fault.New(fault.Invalid, "query_invalid", "%d event types were named; at most %d are taken", len(q.Types),
			MaxTypes)
	}
	if q.Limit < 0 || q.Limit > MaxEvents {
		return journal.Query{}, fault.New(fault.Invalid, "query_invalid", "limit is %d; it may be 1 to %d", q.Limit, MaxEvents)
	}
	if q.Room != "" {
		of := event.RoomStream(ws, q.Room)
		if q.Stream != (event.Stream{}) && q.Stream != of {
			return journal.Query{}, fault.New(fault.Invalid, "query_invalid",
				"room_id names the room's stream, and the stream that was named beside it is another one")
		}
		q.Stream = of
	}
	if q.Space != "" && q.Subject != "" {
		return journal.Query{}, fault.New(fault.Invalid, "query_invalid", "events are about a space, or about a principal; name one of the two")
	}
	jq := journal.Query{
		Workspace: ws, From: q.From, Before: q.Before, Stream: q.Stream, Run: q.Run, Step: q.Step, Thread: q.Thread, Correlation: q.Correlation,
		Causation: q.Causation, Types: q.Types,
		Last: q.Last, Limit: q.Limit,
	}
	if q.Space != "" {
		jq.EntityType, jq.EntityID = space.EntityType, string(q.Space)
	}
	if q.Subject != "" {
		jq.EntityType, jq.EntityID = principal.Entity, string(q.Subject)
	}
	return jq, nil
}
