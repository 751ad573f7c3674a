package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"strconv"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// EventFilter selects events. Zero fields do not select.
type EventFilter struct {
	Stream      event.Stream
	Room        id.Room // places are those in its stream
	Thread      id.Thread
	Run         id.Run
	Step        id.Step
	Space       id.Space
	Correlation id.Correlation
	Causation   id.Event // the events that this one caused
	Types       []string // at most 20
	From        uint64   // the place of the first event
	Before      uint64   // only events in front of this place
	Limit       int      // at most 200
}

func (f EventFilter) values() url.Values {
	return Page{}.values(
		"stream_type", f.Stream.Type, "stream_id", f.Stream.ID, "run_id", string(f.Run), "room_id", string(f.Room), "thread_id", string(f.Thread),
		"step_id", string(f.Step), "space_id", string(f.Space),
		"correlation_id", string(f.Correlation), "causation_id", string(f.Causation), "event_types", strings.Join(f.Types, ","))
}

// EventList is a part of the log, in ascending order.
type EventList struct {
	Events []event.Event `json:"events"`
	Next   uint64        `json:"next_from_seq"` // the From that goes on behind the last event
	Before uint64        `json:"before"`        // the Before that goes on in front of the first; 0 where nothing is in front of it
}

// Events reads the log: from a place on, or else the last events.
func (c *Client) Events(ctx context.Context, f EventFilter) (EventList, error) {
	q := f.values()
	for name, n := range map[string]uint64{"from_seq": f.From, "before": f.Before, "limit": uint64(max(0, f.Limit))} {
		if n != 0 {
			q.Set(name, strconv.FormatUint(n, 10))
		}
	}
	var l EventList
	err := c.get(ctx, "/v1/events", q, &l)
	return l, err
}

// FollowEvents yields events from a place on, as they are recorded, until ctx ends or the daemon does not come back. It reconnects after
// the last event, without a gap and without a duplicate. Without From it yields only new events.
func (c *Client) FollowEvents(ctx context.Context, f EventFilter) iter.Seq2[event.Event, error] {
	return c.followPlaces(ctx, "/v1/events/stream", f.values(), f.From)
}

// followPlaces yields the events of a stream whose cursor is a place, and takes it up again behind the last one.
func (c *Client) followPlaces(ctx context.Context, path string, q url.Values, from uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		next := ""
		if from > 0 {
			next = strconv.FormatUint(from, 10)
		}
		for m, err := range c.follow(ctx, path, q, func() (string, string) { return "from_seq", next }) {
			var e event.Event
			if err == nil {
				if err = json.Unmarshal([]byte(m.data), &e); err != nil {
					err = fault.Wrap(err, fault.Internal, "stream_broken", "an event of the stream cannot be read")
				}
			}
			place, broken := strconv.ParseUint(m.id, 10, 64)
			if err == nil && broken != nil {
				err = fault.New(fault.Internal, "stream_broken", "an event of the stream has no place")
			}
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			next = strconv.FormatUint(place+1, 10)
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Mismatch is the first event that is not what its chain says.
type Mismatch struct {
	Seq        uint64   `json:"seq"` // place in the workspace; 0 where it is not known
	StreamType string   `json:"stream_type"`
	StreamID   string   `json:"stream_id"`
	StreamSeq  uint64   `json:"stream_seq"`
	Event      id.Event `json:"event_id"`
	Kind       string   `json:"kind"`
	Expected   string   `json:"expected"`
	Actual     string   `json:"actual"`
	Detail     string   `json:"detail"` // a sentence for people
}

// AuditReport is the result of a verification of the log.
type AuditReport struct {
	Checked  uint64       `json:"checked"`
	Redacted uint64       `json:"redacted,omitempty"` // of them, whose data were destroyed, as the log says
	Sealed   uint64       `json:"sealed,omitempty"`   // of them, whose data could not be opened, and were not checked
	Valid    bool         `json:"valid"`
	Mismatch *Mismatch    `json:"first_mismatch,omitempty"`
	LastHash event.Digest `json:"last_event_hash"`
}

// VerifyAudit checks every event of the workspace against its chain.
func (c *Client) VerifyAudit(ctx context.Context) (AuditReport, error) {
	var r AuditReport
	err := c.get(ctx, "/v1/audit/hash-chain/verify", nil, &r)
	return r, err
}

// Causes lists the causes and the effects of an event.
type Causes struct {
	Event   event.Event   `json:"event"`
	Path    []event.Event `json:"path"` // the first cause first
	Effects []struct {
		Depth int         `json:"depth"` // 1 for what the event itself caused
		Event event.Event `json:"event"`
	} `json:"effects"`
	Outside    id.Event `json:"outside_cause_id"` // the cause of the first event of Path, where another workspace's log holds it
	PathCut    bool     `json:"path_cut"`
	EffectsCut bool     `json:"effects_cut"`
}

// Causes walks from an event to its first cause and to its effects.
func (c *Client) Causes(ctx context.Context, e id.Event) (Causes, error) {
	var found Causes
	err := c.get(ctx, "/v1/events/"+url.PathEscape(string(e))+"/causes", nil, &found)
	return found, err
}
