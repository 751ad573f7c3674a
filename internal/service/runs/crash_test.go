package runs_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/runs"
	"agentbox/internal/testkit"
)

// story is a run whose every kind of step is there: pure, reading, changing, asking.
const story = `[
	{"type":"message","content":"hello"},
	{"type":"shell","id":"a","command":"mkdir -p d; echo a >> ledger"},
	{"type":"createFile","id":"b","path":"b","content":"b"},
	{"type":"shell","id":"c","command":"rm -r d; echo c >> ledger"},
	{"type":"readFile","id":"d","path":"b"},
	{"type":"shell","id":"e","command":"echo e >> ledger"}
]`

// TestThreat14CrashAfterEachEvent lets the daemon die at each append of a run in turn: once when the append is recorded and its author
// goes on for a moment, so that effects happen whose outcome nobody records, and once when its author never learns of it.
func TestThreat14CrashAfterEachEvent(t *testing.T) {
	for _, answer := range []policy.DecisionWord{policy.Approve, policy.Refuse} {
		for _, death := range []testkit.Death{testkit.Recorded, testkit.Unconfirmed} {
			name := map[testkit.Death]string{testkit.Recorded: "recorded", testkit.Unconfirmed: "unconfirmed"}[death]
			t.Run(fmt.Sprintf("%s/%s", answer, name), func(t *testing.T) {
				t.Parallel()
				s := open(t)
				n := 1
				for crashAt(t, s, n, death, answer) {
					n++
				}
				if n < 15 {
					t.Errorf("the story has %d appends; where are the others?", n-1)
				}
				s.Verify()
			})
		}
	}
}

// crashAt plays the story, lets the daemon die at the nth append, and checks the end. It reports whether the daemon died: when n lies
// beyond the story's end it does not.
func crashAt(t *testing.T, s *testkit.Stack, n int, death testkit.Death, answer policy.DecisionWord) bool {
	in := s.Space().ID
	left := n
	s.Log.DieAt(func(event.Receipt) testkit.Death {
		if left--; left == 0 {
			return death
		}
		return testkit.Survive
	})
	request := runs.Request{Workspace: testkit.WS, Space: in, Message: s.Message(story), Key: fmt.Sprintf("crash-%s-%d", in, n)}
	doc, err := s.Runs.Start(s.Context(), s.Origin, request)
	died := false
	if err != nil {
		<-s.Log.Gone() // the death of the daemon is the only reason
		died = true
		s.Crash()
		if doc, err = s.Runs.Start(s.Context(), s.Origin, request); err != nil {
			t.Fatalf("crash at append %d: the repeated request: %v", n, err)
		}
	}
	for {
		now, alive := s.RestOrDeath(doc.ID)
		if alive && now.Status == run.AwaitingApproval {
			_, approval := now.Pending()
			_, err := s.Gate.Approvals.Decide(s.Context(), s.Origin, testkit.WS, approval, policy.Answer{Decision: answer})
			alive = err == nil
		}
		if !alive {
			<-s.Log.Gone()
			died = true
			s.Crash()
			continue
		}
		if now.Status.Ended() {
			break
		}
	}
	died = revive(s) || died // it may have died over the end of the run
	checkStory(t, s, doc, fmt.Sprintf("crash at append %d", n), answer)
	return died
}

// checkStory holds the end of a story against what may be: nothing twice, and nothing done that its result denies.
func checkStory(t *testing.T, s *testkit.Stack, doc run.Run, when string, answer policy.DecisionWord) {
	t.Helper()
	doc = s.Ended(doc.ID)
	ledger := ""
	for _, e := range list(t, s, doc) {
		if e == "ledger" {
			ledger = s.File(doc.Space, "ledger")
		}
	}
	results, unknown := s.Results(doc.ID), 0
	byID := map[string]run.Result{}
	for _, r := range results {
		if _, twice := byID[r.OperationID]; twice {
			t.Errorf("%s: operation %s has two results", when, r.OperationID)
		}
		byID[r.OperationID] = r
		if r.Type == run.ResUnknown {
			unknown++
		}
	}
	for _, op := range []string{"a", "c", "e"} {
		done := strings.Count(ledger, op+"\n")
		r, has := byID[op]
		switch {
		case done > 1:
			t.Errorf("%s: %s was done %d times", when, op, done)
		case done == 1 && (!has || !r.OK() && r.Type != run.ResUnknown):
			t.Errorf("%s: %s was done, and its result says %+v", when, op, r)
		case done == 0 && r.OK():
			t.Errorf("%s: %s was not done, and its result says that it was", when, op)
		}
	}
	startsAreApproved(t, s, doc, when)
	want := run.Succeeded
	if unknown > 0 && answer == policy.Refuse {
		want = run.Cancelled
	}
	if doc.Status != want || unknown > 1 || want == run.Succeeded && len(results) != len(doc.Operations) {
		t.Errorf("%s: the run is %s with %d results, %d of them unknown; want %s", when, doc.Status, len(results), unknown, want)
	}
}

// startsAreApproved finds in the log that the operation which policy asks about began only when a person had approved it before, and used
// that up.
func startsAreApproved(t *testing.T, s *testkit.Stack, doc run.Run, when string) {
	t.Helper()
	approved, used, starts := map[id.Approval]bool{}, map[id.Approval]int{}, 0
	for _, e := range s.Events(0) {
		if e.Run != doc.ID {
			continue
		}
		switch e.Type {
		case policy.ApprovalDecidedType:
			d, err := event.Decode[policy.ApprovalDecided](e)
			if err != nil {
				t.Fatal(err)
			}
			approved[d.Approval] = d.Status == policy.Approved && e.Principal == s.Owner
		case policy.ApprovalUsedType:
			used[id.Approval(e.EntityID)]++
		case run.EventInvoked:
			d, err := event.Decode[run.Invoked](e)
			if err != nil {
				t.Fatal(err)
			}
			if d.Operation != "c" {
				continue
			}
			if starts++; !approved[d.Approval] {
				t.Errorf("%s: event %d starts what nobody approved: %+v", when, e.Seq, d)
			}
		}
	}
	for approval, n := range used {
		if n != 1 || !approved[approval] {
			t.Errorf("%s: %s is approved %t and was used %d times", when, approval, approved[approval], n)
		}
	}
	if starts > 1 {
		t.Errorf("%s: what was approved once started %d times", when, starts)
	}
}

func list(t *testing.T, s *testkit.Stack, doc run.Run) []string {
	t.Helper()
	entries, err := s.Spaces.Files.List(s.Context(), s.Origin, testkit.WS, doc.Space, ".", false)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Path)
	}
	return names
}

// A daemon on disk is no other than one in memory.
func TestCrashOnDisk(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, SQLite: true})
	for _, n := range []int{1, 3, 5, 7, 9, 11} {
		crashAt(t, s, n, testkit.Recorded, policy.Approve)
	}
	s.Verify()
	if _, ok := s.Docs.(*memory.Journal); ok {
		t.Error("the log is in memory")
	}
}

// A run that is cancelled right after the crash that interrupted it still gets the result that is missing.
func TestCancelAfterACrashRecordsTheInterruptedOperation(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, Idle: true})
	s.Run()
	in := s.Space().ID
	s.Log.DieAt(died(run.EventInvoked))
	doc := s.Start(in, `[{"type":"shell","command":"true"},{"type":"shell","command":"true"}]`)
	<-s.Log.Gone()
	s.Crash() // the next daemon does not run: nobody has continued the run
	if err := s.Runs.Cancel(s.Context(), s.Origin, testkit.WS, doc.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	doc = s.Find(doc.ID)
	results := s.Results(doc.ID)
	if doc.Status != run.Cancelled || len(results) != 1 || results[0].Type != run.ResUnknown {
		t.Errorf("got %s with %+v, want cancelled with one unknown result", doc.Status, results)
	}
	s.Verify()
}

// interposed calls between before the nth reading of a run's document.
type interposed struct {
	projection.Reader
	n       atomic.Int64
	between func()
}

func (i *interposed) Document(ctx context.Context, ws id.Workspace, name, key string) (projection.Document, error) {
	if name == run.Projection && i.n.Add(-1) == 0 {
		i.between()
	}
	return i.Reader.Document(ctx, ws, name, key)
}

// A run that is cancelled while the daemon that has just begun takes it up is not begun, and its end says nothing that is not so.
func TestCancelWhileTheRunIsTakenUp(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, Idle: true})
	doc := s.Start(s.Space().ID, `[{"type":"shell","command":"echo x > f"},{"type":"shell","command":"true"}]`)
	s.Crash()
	docs := &interposed{Reader: s.Docs}
	docs.n.Store(2) // the first is to find the run, the second comes when no worker was found to have it
	docs.between = func() {
		s.Run()
		s.Ended(doc.ID)
	}
	s.Runs.Docs = docs
	if err := s.Runs.Cancel(s.Context(), s.Origin, testkit.WS, doc.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	if doc = s.Find(doc.ID); doc.Status != run.Cancelled || len(s.Results(doc.ID)) > 0 {
		t.Errorf("got %s with %+v, want cancelled before anything was begun", doc.Status, s.Results(doc.ID))
	}
	s.Verify()
}
