package runs_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/testkit"
)

// listener is a log that tells when something was logged for the first time.
type listener struct {
	slog.Handler
	once sync.Once
	said chan struct{}
}

func listen() *listener { return &listener{Handler: slog.DiscardHandler, said: make(chan struct{})} }

func (l *listener) Enabled(context.Context, slog.Level) bool { return true }

func (l *listener) Handle(context.Context, slog.Record) error {
	l.once.Do(func() { close(l.said) })
	return nil
}

// The kill switch holds a run whose operation was interrupted, before the question and after its answer; it does not end it.
func TestTheKillSwitchHoldsAnInterruptedRun(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, Idle: true})
	s.Run()
	in := s.Space().ID
	s.Log.DieAt(died(run.EventInvoked))
	doc := s.Start(in, `[{"type":"shell","command":"true"},{"type":"createFile","path":"after","content":"x"}]`)
	<-s.Log.Gone()
	s.Crash()
	throw := func(on bool) {
		t.Helper()
		change := s.Gate.KillSwitch.Lift
		if on {
			change = s.Gate.KillSwitch.Throw
		}
		if _, err := change(s.Context(), s.Origin, testkit.WS, ""); err != nil {
			t.Fatal(err)
		}
	}
	held := func() {
		t.Helper()
		l := listen()
		s.Runs.Logger = slog.New(l)
		s.Run()
		<-l.said
	}
	throw(true)
	held()
	if now := s.Find(doc.ID); now.Status != run.Running || now.Interrupted() != 0 {
		t.Fatalf("before the question: the run is %s", now.Status)
	}
	throw(false)
	if now := s.Rest(doc.ID); now.Status != run.AwaitingApproval {
		t.Fatalf("when it is lifted: the run is %s", now.Status)
	}
	s.Restart()
	s.Decide(doc.ID, policy.Approve, "")
	throw(true) // the run has not heard of the answer
	held()
	if now := s.Find(doc.ID); now.Status != run.AwaitingApproval {
		t.Fatalf("after the answer: the run is %s", now.Status)
	}
	throw(false)
	if now := s.Ended(doc.ID); now.Status != run.Succeeded || !now.Operations[1].OK {
		t.Errorf("when it is lifted again: the run is %s", now.Status)
	}
	s.Verify()
}

// A run that is held can be cancelled.
func TestAHeldRunIsCancelled(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, Idle: true})
	s.Run()
	in := s.Space().ID
	s.Log.DieAt(died(run.EventInvoked))
	doc := s.Start(in, `[{"type":"shell","command":"true"}]`)
	<-s.Log.Gone()
	s.Crash()
	if _, err := s.Gate.KillSwitch.Throw(s.Context(), s.Origin, testkit.WS, ""); err != nil {
		t.Fatal(err)
	}
	l := listen()
	s.Runs.Logger = slog.New(l)
	s.Run()
	<-l.said
	if err := s.Runs.Cancel(s.Context(), s.Origin, testkit.WS, doc.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	results := s.Results(doc.ID)
	if now := s.Find(doc.ID); now.Status != run.Cancelled || len(results) != 1 || results[0].Type != run.ResUnknown {
		t.Errorf("the run is %s with %+v", now.Status, results)
	}
	s.Verify()
}

// died lets the daemon die when an event of a type is recorded.
func died(typ string) func(event.Receipt) testkit.Death {
	return func(r event.Receipt) testkit.Death {
		if slices.ContainsFunc(r.Events, func(e event.Event) bool { return e.Type == typ }) {
			return testkit.Unconfirmed
		}
		return testkit.Survive
	}
}
