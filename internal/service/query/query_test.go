package query_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/memory"
	"agentbox/internal/service/query"
)

const (
	ws   id.Workspace = "ws_dev"
	room id.Room      = "room_01ARZ3NDEKTSV4RRFFQ69G5FAV"
	who  id.Principal = "usr_01ARZ3NDEKTSV4RRFFQ69G5FAV"
)

// clock stands still.
type clock struct{}

func (clock) Now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func (clock) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// filled returns a reader of a log with 300 events, every third of them in the room.
func filled(t *testing.T) *query.Service {
	t.Helper()
	log, err := memory.NewJournal(nil, clock{}, id.NewSource(clock{}.Now, rand.Reader), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		in := room
		if i%3 != 0 {
			in = ""
		}
		draft := event.New("thing.counted", event.Origin{Principal: who, Correlation: "cor_1"}, ws, in, map[string]int{"n": i}).About("space",
			fmt.Sprint("spc_", i%2))
		if _, err := log.Append(t.Context(), event.Batch{Workspace: ws, Drafts: []event.Draft{draft}}); err != nil {
			t.Fatal(err)
		}
	}
	return query.New(log)
}

func TestEvents(t *testing.T) {
	r := filled(t)
	roomStream := event.RoomStream(ws, room)
	many := make([]string, query.MaxTypes+1)
	for _, c := range []struct {
		name        string
		ws          id.Workspace
		query       query.Query
		first, last uint64 // places; 0 for none
		code        string
	}{
		{"the first hundred", ws, query.Query{}, 1, 100, ""},
		{"the last ten", ws, query.Query{Last: true, Limit: 10}, 291, 300, ""},
		{"in front of a place", ws, query.Query{Last: true, Limit: 5, Before: 291}, 286, 290, ""},
		{"as many as possible", ws, query.Query{From: 50, Limit: query.MaxEvents}, 50, 249, ""},
		{"one more", ws, query.Query{Limit: query.MaxEvents + 1}, 0, 0, "query_invalid"},
		{"fewer than none", ws, query.Query{Limit: -1}, 0, 0, "query_invalid"},
		{"of a room, by its places", ws, query.Query{Stream: roomStream, From: 90}, 90, 100, ""},
		{"half a stream", ws, query.Query{Stream: event.Stream{Type: "room"}}, 0, 0, "stream_type_and_stream_id_required_together"},
		{"of a space", ws, query.Query{Space: "spc_1", Limit: 2}, 2, 4, ""},
		{"as many types as possible", ws, query.Query{Types: many[1:]}, 0, 0, ""},
		{"one type more", ws, query.Query{Types: many}, 0, 0, "query_invalid"},
		{"of another workspace", "ws_other", query.Query{}, 0, 0, ""},
		{"a room of another workspace", "ws_other", query.Query{Stream: roomStream}, 0, 0, ""},
	} {
		found, err := r.Events(t.Context(), c.ws, c.query)
		if fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %q", c.name, err, c.code)
			continue
		}
		var first, last uint64
		if len(found) > 0 {
			first, last = c.query.Place(found[0]), c.query.Place(found[len(found)-1])
		}
		if first != c.first || last != c.last {
			t.Errorf("%s: %d to %d, want %d to %d", c.name, first, last, c.first, c.last)
		}
	}
}

func TestAnEventIsFoundInItsOwnWorkspaceOnly(t *testing.T) {
	r := filled(t)
	found, err := r.Events(t.Context(), ws, query.Query{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := r.Event(t.Context(), ws, found[0].ID); err != nil || e.Seq != 1 {
		t.Errorf("got %d, %v", e.Seq, err)
	}
	if _, err := r.Event(t.Context(), "ws_other", found[0].ID); fault.CodeOf(err) != "event_not_found" {
		t.Errorf("from another workspace came %v", err)
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	r := filled(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	next := uint64(299)
	for e, err := range r.Follow(ctx, ws, query.Query{From: 299}) {
		if next > 300 {
			if err == nil {
				t.Errorf("behind the last came %d", e.Seq)
			}
			return
		}
		if err != nil || e.Seq != next {
			t.Fatalf("got %d, %v, want %d", e.Seq, err, next)
		}
		if next++; next > 300 {
			cancel()
		}
	}
	t.Error("it ended without an error")
}
