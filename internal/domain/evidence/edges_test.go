package evidence_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/evidence"
)

// A run ends with its first event that ends one.
func TestWhereARunEnds(t *testing.T) {
	if got := evidence.Ends(); !slices.Equal(got, []string{"run.cancelled", "run.completed", "run.failed"}) {
		t.Errorf("got %v", got)
	}
	for want, events := range [][]event.Event{nil, {at(1, "run.cancelled", "", "", "")},
		{at(1, "x", "", "", ""), at(2, "run.failed", "", "", ""), at(3, "run.completed", "", "", "")}} {
		if n, ok := evidence.Ended(events); n != want || ok != (want > 0) {
			t.Errorf("got %d, %t, want %d", n, ok, want)
		}
	}
	if n, ok := evidence.Ended([]event.Event{at(1, "x", "", "", "")}); n != 0 || ok {
		t.Errorf("of a run that has not ended: %d, %t", n, ok)
	}
}

// Calls of engines are known by their ids and operations by their steps; only what has not ended is open, and with a gap nobody knows.
func TestWhichCallsAreOpen(t *testing.T) {
	end := at(9, "run.completed", "run", "run_1", "")
	for name, c := range map[string]struct {
		events []event.Event
		gap    *evidence.Gap
		closed bool
		calls  int
	}{
		"none": {nil, nil, true, 0}, "an open call": {[]event.Event{at(1, "tool.invoked", "tool_call", "tc_1", "x")}, nil, false, 1},
		"an open operation": {[]event.Event{at(1, "tool.invoked", "x", "y", "x")}, nil, false, 0},
		"a call that succeeded": {[]event.Event{at(1, "tool.invoked", "tool_call", "tc_1", "x"),
			at(2, "tool.succeeded", "tool_call", "tc_1", "x")}, nil, true, 1},
		"a call that failed": {[]event.Event{at(1, "tool.invoked", "tool_call", "tc_1", "x"),
			at(2, "tool.failed", "tool_call", "tc_1", "x")}, nil, true, 1},
		"a call that nobody knows of": {[]event.Event{at(1, "tool.invoked", "tool_call", "tc_1", "x"),
			at(2, "tool.unknown", "tool_call", "tc_1", "x")}, nil, true, 1},
		"another call": {[]event.Event{at(1, "tool.invoked", "tool_call", "tc_1", "x"),
			at(2, "tool.failed", "tool_call", "tc_2", "x")}, nil, false, 1},
		"an operation, named otherwise": {[]event.Event{at(1, "tool.invoked", "x", "y", "x"), at(2, "tool.succeeded", "x", "z", "x")}, nil,
			true, 0},
		"a call that its step's end names": {[]event.Event{at(1, "tool.invoked", "tool_call", "tc_1", "x"),
			at(2, "tool.succeeded", "x", "tc_1", "x")}, nil, false, 1},
		"nothing, with a gap": {nil, &evidence.Gap{From: 1, To: 2}, false, 0},
	} {
		m, err := evidence.Collect("ws_dev", "run_1", "room_1", append(c.events, end), c.gap)
		if err != nil || m.Completeness.Calls != c.closed || len(m.Calls) != c.calls || !m.Completeness.Terminal {
			t.Errorf("%s: got %+v with %d calls, %v", name, m.Completeness, len(m.Calls), err)
		}
		raw, err := m.Canonical()
		if err != nil || !strings.HasPrefix(string(raw), `{"artifact_ids":[],`) {
			t.Errorf("%s: got %s, %v", name, raw, err)
		}
	}
}

// The first manifest of a run is the one that counts, and what is about another one makes none.
func TestTheRecordOfAManifest(t *testing.T) {
	raw, err := json.Marshal(evidence.Created{ID: "evd_1", Run: "run_1", Hash: event.DigestOf([]byte("h")), Root: event.DigestOf([]byte("r")),
		Window:       evidence.Window{From: 1, To: 2, Count: 2},
		Completeness: evidence.Completeness{Terminal: true}, Content: evidence.Content{Size: 3}})
	if err != nil {
		t.Fatal(err)
	}
	e := event.Event{Header: event.Header{Type: evidence.EventCreated, Principal: "usr_1", OccurredAt: time.Unix(1, 0)}, Data: raw}
	want := evidence.Record{ID: "evd_1", Run: "run_1", Hash: event.DigestOf([]byte("h")), Root: event.DigestOf([]byte("r")),
		Window:       evidence.Window{From: 1, To: 2, Count: 2},
		Completeness: evidence.Completeness{Terminal: true}, Content: evidence.Content{Size: 3}, CreatedBy: "usr_1", CreatedAt: time.Unix(1, 0)}
	if got, err := (evidence.Record{}).Evolve(e); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	first := evidence.Record{ID: "evd_0"}
	if got, err := first.Evolve(e); err != nil || got != first {
		t.Errorf("a second one: got %+v, %v", got, err)
	}
	e.Type = "x"
	if got, err := (evidence.Record{}).Evolve(e); err != nil || got != (evidence.Record{}) {
		t.Errorf("another event: got %+v, %v", got, err)
	}
	e.Type, e.Data = evidence.EventCreated, []byte(`[]`)
	if _, err := (evidence.Record{}).Evolve(e); err == nil {
		t.Error("broken data made a record")
	}
}
