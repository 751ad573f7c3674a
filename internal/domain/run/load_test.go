package run_test

import (
	"encoding/json"
	"slices"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
)

func TestWhatRunsInAWorkspace(t *testing.T) {
	var load run.Load
	for _, s := range []struct {
		typ  string
		run  id.Run
		data any
		want []id.Run
	}{
		{run.EventStarted, "run_1", run.Started{Run: "run_1"}, []id.Run{"run_1"}},
		{run.EventStarted, "run_2", run.Started{Run: "run_2"}, []id.Run{"run_1", "run_2"}},
		{run.EventStarted, "run_child", run.Started{Run: "run_child", Child: true}, []id.Run{"run_1", "run_2"}},
		{run.EventSuspended, "run_1", run.Suspended{Run: "run_1"}, []id.Run{"run_2"}},
		{run.EventSuspended, "run_child", run.Suspended{Run: "run_child"}, []id.Run{"run_2"}},
		{run.EventResumed, "run_child", run.Resumed{Run: "run_child", Child: true}, []id.Run{"run_2"}},
		{run.EventResumed, "run_1", run.Resumed{Run: "run_1"}, []id.Run{"run_2", "run_1"}},
		{run.EventReleased, "run_2", run.Released{Run: "run_2"}, []id.Run{"run_1"}},
		{run.EventStarted, "run_2", run.Started{Run: "run_2"}, []id.Run{"run_1", "run_2"}},
		{run.EventCancelled, "run_queued", run.Finished{Run: "run_queued"}, []id.Run{"run_1", "run_2"}},
		{run.EventCompleted, "run_1", run.Finished{Run: "run_1"}, []id.Run{"run_2"}},
		{run.EventFailed, "run_2", run.Finished{Run: "run_2"}, []id.Run{}},
	} {
		raw, err := json.Marshal(s.data)
		if err != nil {
			t.Fatal(err)
		}
		e := event.Event{Header: event.Header{Type: s.typ, Run: s.run}, Data: raw}
		if !run.Loads(e) {
			t.Errorf("%s is not looked at", s.typ)
		}
		before := slices.Clone(load.Running)
		next, err := load.Evolve(e)
		if err != nil || !slices.Equal(next.Running, s.want) || !slices.Equal(load.Running, before) {
			t.Errorf("after %s of %s: %v, %v; want %v", s.typ, s.run, next.Running, err, s.want)
		}
		load = next
	}
	if run.Loads(event.Event{Header: event.Header{Type: run.EventStarted}}) {
		t.Error("an event of no run is looked at")
	}
	for _, s := range []struct {
		most, atOnce int
		want         bool
	}{{run.AmpleRoom + 2, 1, false}, {run.AmpleRoom + 3, 1, true}, {run.AmpleRoom + 3, run.AtOnceFree, true}, {run.AmpleRoom + 3,
		run.AtOnceFree + 1, false}, {5, 1, false}} {
		if got := (run.Load{Running: []id.Run{"a", "b"}}).Ample(s.most, s.atOnce); got != s.want {
			t.Errorf("%+v: %t", s, got)
		}
	}
	two := run.Load{Running: []id.Run{"a", "b"}}
	if got := []int{two.Room(1), two.Room(2), two.Room(3)}; !slices.Equal(got, []int{0, 0, 1}) {
		t.Errorf("room: %v", got)
	}
}
