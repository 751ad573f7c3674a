package runs_test

import (
	"os"
	"path/filepath"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/testkit"
)

// tasks lets n runs of the workspace run at the same time.
func tasks(s *testkit.Stack, n int) {
	s.T.Helper()
	_, err := s.Log.Append(s.Context(), event.Batch{Workspace: testkit.WS, Drafts: []event.Draft{
		event.New(workspace.EventUpdated, s.Origin, testkit.WS, "", workspace.Updated{Workspace: testkit.WS,
			Tasks: n}).About(workspace.EntityType, string(testkit.WS)),
	}})
	if err != nil {
		s.T.Fatal(err)
	}
}

// stuck starts a run in a space of its own that goes on until it is released.
func stuck(s *testkit.Stack) (doc run.Run, release func()) {
	s.T.Helper()
	in := s.Space().ID
	return s.Start(in, `[{"type":"shell","command":"echo begun; until test -e go; do sleep 0.02; done"}]`), func() {
		s.T.Helper()
		if err := os.WriteFile(filepath.Join(s.Dir, "spaces", string(in), "files", "go"), nil, 0o600); err != nil {
			s.T.Fatal(err)
		}
	}
}

// running waits until a run runs.
func running(s *testkit.Stack, r id.Run) {
	s.T.Helper()
	s.Prints(r, "begun")
}

// most returns how many runs of the log ran at the same time, at most, and fails where a run still has a place.
func most(s *testkit.Stack) (n int) {
	s.T.Helper()
	var load run.Load
	for _, e := range s.Events(0) {
		if !run.Loads(e) {
			continue
		}
		var err error
		if load, err = load.Evolve(e); err != nil {
			s.T.Fatal(err)
		}
		n = max(n, len(load.Running))
	}
	kept, _, err := projection.Load[run.Load](s.Context(), s.Docs, testkit.WS, run.LoadProjection, string(testkit.WS))
	if err != nil || len(load.Running) != 0 || len(kept.Running) != 0 {
		s.T.Errorf("%v have a place at the end, %v by the document, %v", load.Running, kept.Running, err)
	}
	return n
}

// TestNoMoreRunsThanAWorkspaceMay starts one run more than may run at the same time; it waits, and begins when another one has ended.
func TestNoMoreRunsThanAWorkspaceMay(t *testing.T) {
	t.Parallel()
	s := open(t)
	var runs []run.Run
	var release []func()
	for range workspace.DefaultTasks + 2 {
		doc, let := stuck(s)
		runs, release = append(runs, doc), append(release, let)
	}
	const n = workspace.DefaultTasks
	for _, doc := range runs[:n] {
		running(s, doc.ID)
	}
	for _, doc := range runs[n:] {
		if now := s.Find(doc.ID); now.Status != run.Queued {
			t.Errorf("run %s is %s while %d run", doc.ID, now.Status, n)
		}
	}
	release[2]()
	running(s, runs[n].ID) // the older of the two that wait
	if now := s.Find(runs[n+1].ID); now.Status != run.Queued {
		t.Errorf("the last run is %s", now.Status)
	}
	tasks(s, n+1)
	running(s, runs[n+1].ID)
	for i, let := range release {
		if i != 2 {
			let()
		}
	}
	for _, doc := range runs {
		if now := s.Ended(doc.ID); now.Status != run.Succeeded {
			t.Errorf("run %s is %s", doc.ID, now.Status)
		}
	}
	if got := most(s); got != n+1 {
		t.Errorf("%d ran at the same time, want %d", got, n+1)
	}
	s.Verify()
}

// TestWhoWaitsForAPersonKeepsNobodyWaiting has the place of a run that asks taken by another one; when it is answered it waits for its
// turn.
func TestWhoWaitsForAPersonKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	s := open(t)
	tasks(s, 1)
	asks := s.Start(s.Space().ID, `[{"type":"shell","command":"rm -rf d"},{"type":"shell","command":"echo begun"}]`)
	s.Rest(asks.ID)
	doc, let := stuck(s)
	running(s, doc.ID)
	s.Decide(asks.ID, policy.Approve, "")
	next, letNext := stuck(s)
	late, letLate := stuck(s)
	if err := s.Runs.Cancel(s.Context(), s.Origin, testkit.WS, late.ID, "not any more"); err != nil { // while it waits
		t.Fatal(err)
	}
	letLate()
	if now := s.Find(late.ID); now.Status != run.Cancelled || !now.StartedAt.IsZero() {
		t.Errorf("the cancelled run is %s", now.Status)
	}
	if now := s.Find(asks.ID); now.Status != run.AwaitingApproval {
		t.Errorf("the answered run is %s while another one runs", now.Status)
	}
	let()
	if now := s.Ended(asks.ID); now.Status != run.Succeeded {
		t.Errorf("the answered run is %s", now.Status)
	}
	running(s, next.ID)
	s.Options.Idle = true
	s.Restart() // it is interrupted, and asks a person
	s.Run()
	letNext()
	s.Rest(next.ID)
	s.Decide(next.ID, policy.Approve, "")
	if now := s.Ended(next.ID); now.Status != run.Succeeded {
		t.Errorf("after a restart: %s", now.Status)
	}
	if got := most(s); got != 1 {
		t.Errorf("%d ran at the same time", got)
	}
	s.Verify()
}
