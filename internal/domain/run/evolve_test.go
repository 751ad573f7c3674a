package run_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
)

// story folds the events of one run, one second apart.
type story struct {
	t   *testing.T
	doc run.Run
	at  time.Time
}

func begin(t *testing.T, operations ...run.Outline) *story {
	s := &story{t: t, at: time.Unix(1_800_000_000, 0).UTC()}
	s.then(run.EventCreated, run.Created{Run: "run_1", Space: "spc_1", Agent: "agt_1", Operations: operations})
	return s
}

func (s *story) then(typ string, data any) *story {
	s.t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		s.t.Fatal(err)
	}
	s.at = s.at.Add(time.Second)
	e := event.Event{Header: event.Header{ID: id.Event(typ), Type: typ, Run: "run_1", OccurredAt: s.at}, Data: raw}
	if s.doc, err = run.Evolve(s.doc, e); err != nil {
		s.t.Fatalf("%s: %v", typ, err)
	}
	return s
}

// shows states the run's status, the next operation, and the state of each operation.
func (s *story) shows(want string) *story {
	s.t.Helper()
	got := []string{string(s.doc.Status)}
	for i, p := range s.doc.Operations {
		mark := ""
		if i == s.doc.Next {
			mark = ">"
		}
		got = append(got, mark+p.ID+"="+string(p.State))
	}
	if line := strings.Join(got, " "); line != want {
		s.t.Errorf("got  %s\nwant %s", line, want)
	}
	return s
}

func TestARunFromBeginningToEnd(t *testing.T) {
	s := begin(t, run.Outline{ID: "a", Type: run.OpMessage}, run.Outline{ID: "b", Type: run.OpShell}).shows("queued >a=waiting b=waiting")
	s.then(run.EventStarted, run.Started{Run: "run_1"}).shows("running >a=waiting b=waiting")
	s.then(run.EventSucceeded, run.Ended{Operation: "a", Index: 0}).shows("running a=done >b=waiting")
	s.then(run.EventInvoked, run.Invoked{Operation: "b", Index: 1, Decision: "allow"}).shows("running a=done >b=begun")
	s.then(run.EventErred, run.Ended{Operation: "b", Index: 1}).shows("running a=done b=done")
	s.then(run.EventCompleted, run.Finished{Run: "run_1"}).shows("succeeded a=done b=done")
	if p := s.doc.Operations[1]; p.OK || p.EndedAt.Sub(p.BegunAt) != time.Second || s.doc.Status.Protocol() != "completed" {
		t.Errorf("operation %+v, protocol status %s", p, s.doc.Status.Protocol())
	}
}

func TestARunThatAsksAndIsAnswered(t *testing.T) {
	s := begin(t, run.Outline{ID: "a", Type: run.OpShell}, run.Outline{ID: "b", Type: run.OpShell})
	s.then(run.EventStarted, run.Started{}).then(run.EventSuspended, run.Suspended{Index: 0, Operation: "a", Approval: "appr_1"})
	s.shows("awaiting_approval >a=asking b=waiting")
	if i, approval := s.doc.Pending(); i != 0 || approval != "appr_1" {
		t.Errorf("pending %d, %s", i, approval)
	}
	s.then(run.EventResumed, run.Resumed{Index: 0, Operation: "a", Approval: "appr_1",
		Answer: "approved"}).shows("running >a=answered b=waiting")
	if i, _ := s.doc.Pending(); i != -1 {
		t.Errorf("still pending %d", i)
	}
	s.then(run.EventInvoked, run.Invoked{Index: 0}).then(run.EventSucceeded, run.Ended{Index: 0}).shows("running a=done >b=waiting")
	s.then(run.EventSuspended, run.Suspended{Index: 1, Approval: "appr_2"}).shows("awaiting_approval a=done >b=asking")
	if i, approval := s.doc.Pending(); i != 1 || approval != "appr_2" {
		t.Errorf("pending %d, %s", i, approval)
	}
}

func TestAnInterruptedOperationIsDoneAndTheRunAsks(t *testing.T) {
	s := begin(t, run.Outline{ID: "a", Type: run.OpShell}, run.Outline{ID: "b", Type: run.OpShell})
	s.then(run.EventStarted, run.Started{}).then(run.EventInvoked, run.Invoked{Index: 0}).shows("running >a=begun b=waiting")
	s.then(run.EventUnknown, run.Ended{Index: 0, Kind: run.ResUnknown}).then(run.EventSuspended, run.Suspended{Index: 0, Approval: "appr_1"})
	s.shows("awaiting_approval a=done >b=waiting")
	if i, approval := s.doc.Pending(); i != 0 || approval != "appr_1" {
		t.Errorf("pending %d, %s", i, approval)
	}
	s.then(run.EventResumed, run.Resumed{Index: 0, Answer: "approved"}).shows("running a=done >b=waiting")
}

func TestEvolveNeverWritesIntoWhatItWasGiven(t *testing.T) {
	s := begin(t, run.Outline{ID: "a", Type: run.OpShell})
	before := s.doc
	s.then(run.EventInvoked, run.Invoked{Index: 0})
	if before.Operations[0].State != run.Waiting {
		t.Error("an earlier document changed")
	}
}

func TestAnEventAboutAnOperationThatIsNotThereIsAnError(t *testing.T) {
	s := begin(t, run.Outline{ID: "a"})
	for _, index := range []int{-1, 1} {
		raw, _ := json.Marshal(run.Invoked{Index: index})
		if _, err := run.Evolve(s.doc, event.Event{Header: event.Header{Type: run.EventInvoked, Run: "run_1"}, Data: raw}); err == nil {
			t.Errorf("index %d passed", index)
		}
	}
}

// An operation that a person allowed and a crash interrupted is asked about anew: the answer to the first question is none to the second.
func TestAnAnsweredOperationThatIsInterruptedAsksAnew(t *testing.T) {
	s := begin(t, run.Outline{ID: "a", Type: run.OpShell}).then(run.EventStarted, run.Started{})
	if i := s.doc.Interrupted(); i != -1 {
		t.Errorf("before anything has begun, operation %d is interrupted", i)
	}
	s.then(run.EventSuspended, run.Suspended{Approval: "appr_1"}).then(run.EventResumed, run.Resumed{Approval: "appr_1", Answer: "approved"})
	s.then(run.EventInvoked, run.Invoked{}).shows("running >a=begun")
	if i := s.doc.Interrupted(); i != 0 {
		t.Errorf("got operation %d as the one under way, want 0", i)
	}
	s.then(run.EventUnknown, run.Ended{}).then(run.EventSuspended, run.Suspended{Approval: "appr_2"}).shows("awaiting_approval a=done")
	if i, approval := s.doc.Pending(); i != 0 || approval != "appr_2" {
		t.Errorf("got %d, %q, want the second question of operation 0", i, approval)
	}
	if i := s.doc.Interrupted(); i != -1 {
		t.Errorf("with its result, operation %d is interrupted", i)
	}
}

// An operation has done what it was asked only where it has a result, and a good one.
func TestWhichOperationsDidNotDoWhatTheyWereAsked(t *testing.T) {
	for name, c := range map[string]struct {
		p    run.Progress
		want string // "" where it did
	}{
		"good":      {run.Progress{State: run.Done, OK: true, Kind: run.OpShell}, ""},
		"exit 1":    {run.Progress{State: run.Done, Kind: run.OpShell}, "failed"},
		"an error":  {run.Progress{State: run.Done, Kind: run.ResError}, "failed"},
		"refused":   {run.Progress{State: run.Done, Kind: run.ResPolicyDenied}, "policyDenied"},
		"unknown":   {run.Progress{State: run.Done, Kind: run.ResUnknown}, "unknown"},
		"not yet":   {run.Progress{State: run.Waiting}, "waiting"},
		"asks":      {run.Progress{State: run.Asking}, "asking"},
		"under way": {run.Progress{State: run.Begun, OK: true}, "begun"},
	} {
		c.p.ID = "x"
		unmet := run.Run{Operations: []run.Progress{{ID: "a", State: run.Done, OK: true}, c.p}}.Unmet()
		got := ""
		for _, p := range unmet {
			got += p.ID + " " + p.Ended()
		}
		if want := strings.TrimSpace("x " + c.want); c.want == "" && got != "" || c.want != "" && got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
