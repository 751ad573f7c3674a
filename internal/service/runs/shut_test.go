package runs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/testkit"
)

// reopened shuts the log under a daemon, does something, and opens it again. No daemon is started anew.
func reopened(t *testing.T, s *testkit.Stack, meanwhile func()) {
	t.Helper()
	s.Log.Shut(true)
	meanwhile()
	s.Log.Shut(false)
}

// blocked starts a run whose first command waits until its space has a file, and returns a function that makes it.
func blocked(t *testing.T, s *testkit.Stack, in space.Space) (doc run.Run, release func()) {
	t.Helper()
	doc = s.Start(in.ID, `[{"type":"shell","command":"echo begun; until test -e go; do sleep 0.02; done; echo done > `+
		`did"},{"type":"shell","command":"echo fine"}]`)
	s.Prints(doc.ID, "begun")
	return doc, func() {
		if err := os.WriteFile(filepath.Join(s.Dir, "spaces", string(in.ID), "files", "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A command that ends while the log is shut has a result that nobody could record. When the log is open again it is unknown, once, a person
// is asked, and the run goes on.
func TestRunsGoOnWhenTheLogIsOpenAgain(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space()
	doc, release := blocked(t, s, in)
	asking := s.Start(s.Space().ID, `[{"type":"shell","command":"rm -r x"}]`)
	s.Rest(asking.ID)
	reopened(t, s, func() {
		release()
		did := filepath.Join(s.Dir, "spaces", string(in.ID), "files", "did")
		patience := s.Context()
		for _, err := os.Stat(did); err != nil; _, err = os.Stat(did) {
			if patience.Err() != nil {
				t.Fatal("the command does not end")
			}
		}
		if _, err := s.Log.Append(t.Context(), event.Batch{}); !errors.Is(err, journal.ErrClosed) {
			t.Errorf("the log takes events: %v", err)
		}
	})
	doc = s.Rest(doc.ID)
	if doc.Status == run.AwaitingApproval { // else the result came in after all, a moment later
		s.Decide(doc.ID, policy.Approve, "")
		doc = s.Ended(doc.ID)
	}
	if doc.Status != run.Succeeded && doc.Status != run.Failed {
		t.Errorf("got %s", doc.Status)
	}
	once(t, s, doc.ID)
	s.Decide(asking.ID, policy.Approve, "")
	if asking = s.Ended(asking.ID); len(s.Results(asking.ID)) != 1 {
		t.Errorf("the run that waited: got %d results", len(s.Results(asking.ID)))
	}
	once(t, s, asking.ID)
}

// A run that is cancelled while the log is shut is stopped at once. The answer says that this is not recorded, and it is recorded when the
// log is open again.
func TestCancelWhileTheLogIsShut(t *testing.T) {
	t.Parallel()
	s := open(t)
	doc, _ := blocked(t, s, s.Space())
	reopened(t, s, func() {
		if err := s.Runs.Cancel(s.Context(), s.Origin, testkit.WS, doc.ID, "enough"); !errors.Is(err, journal.ErrClosed) {
			t.Errorf("cancel: got %v, want %v", err, journal.ErrClosed)
		}
	})
	if doc = s.Ended(doc.ID); doc.Status != run.Cancelled {
		t.Errorf("got %s, want cancelled", doc.Status)
	}
	once(t, s, doc.ID)
}

// A space that is removed while the log is shut stays, with its runs, and is removed when it is asked for again.
func TestRemoveASpaceWhileTheLogIsShut(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space()
	doc, _ := blocked(t, s, in)
	second := s.Start(in.ID, `[{"type":"shell","command":"echo second"}]`)
	reopened(t, s, func() {
		if _, err := s.Spaces.Ending.Destroy(s.Context(), s.Origin, testkit.WS, in.ID); !errors.Is(err, journal.ErrClosed) {
			t.Errorf("destroy: got %v, want %v", err, journal.ErrClosed)
		}
	})
	if _, err := s.Spaces.Ending.Destroy(s.Context(), s.Origin, testkit.WS, in.ID); err != nil {
		t.Fatal(err)
	}
	for _, r := range []id.Run{doc.ID, second.ID} {
		if got := s.Ended(r); got.Status != run.Cancelled {
			t.Errorf("run %s: got %s, want cancelled", r, got.Status)
		}
		once(t, s, r)
	}
}

// A space may be removed before the daemon has taken up the runs that an earlier one left in it, or while it does: each ends once.
func TestRemoveASpaceInTheRecoveryGap(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program})
	for round, gap := range []func(remove func()){
		func(remove func()) { remove(); s.Run() },
		func(remove func()) { s.Run(); remove() },
		func(remove func()) {
			removed := make(chan struct{})
			go func() { defer close(removed); remove() }()
			s.Run()
			<-removed
		},
	} {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			in := s.Space()
			begun, _ := blocked(t, s, in)
			runs := []id.Run{begun.ID}
			for range 20 {
				runs = append(runs, s.Start(in.ID, `[{"type":"shell","command":"echo queued"}]`).ID)
			}
			s.Options.Idle = true
			s.Crash()
			gap(func() {
				if _, err := s.Spaces.Ending.Destroy(s.Context(), s.Origin, testkit.WS, in.ID); err != nil {
					t.Error(err)
				}
			})
			for _, r := range runs {
				if doc := s.Ended(r); doc.Status != run.Cancelled && (round == 0 || doc.Status != run.Failed) {
					t.Errorf("run %s: got %s, want cancelled", r, doc.Status) // or failed, for one that was taken up after the space was gone
				}
				once(t, s, r)
			}
			s.Options.Idle = false
			s.Restart()
		})
	}
}

// once holds a run that has ended against the log: it ended once, and each operation that began has one result.
func once(t *testing.T, s *testkit.Stack, r id.Run) {
	t.Helper()
	ended := 0
	invoked, results := map[id.Step]int{}, map[id.Step]int{}
	for _, e := range s.Events(0) {
		if e.Run != r {
			continue
		}
		switch e.Type {
		case run.EventCompleted, run.EventFailed, run.EventCancelled:
			ended++
		case run.EventInvoked:
			invoked[e.Step]++
		case run.EventSucceeded, run.EventErred, run.EventUnknown:
			results[e.Step]++
		}
	}
	if ended != 1 {
		t.Errorf("run %s ended %d times, want once", r, ended)
	}
	for step, n := range invoked {
		if n != 1 || results[step] != 1 {
			t.Errorf("step %s was invoked %d times and has %d results, want one of each", step, n, results[step])
		}
	}
}
