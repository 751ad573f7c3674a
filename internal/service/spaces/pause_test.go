package spaces_test

import (
	"errors"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
	"agentbox/internal/testkit/wall"
)

// ticking is a command that adds to the file n as fast as it can.
const ticking = `[{"type":"shell","id":"tick","command":"while :; do date +%N >> n; done","timeout":60000}]`

func pause(t testing.TB, s *testkit.Stack, in id.Space, how spaces.Pause) space.Space {
	t.Helper()
	doc, err := s.Spaces.Pauses.Pause(s.Context(), s.Origin, testkit.WS, in, how)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func resume(t testing.TB, s *testkit.Stack, in id.Space) space.Space {
	t.Helper()
	doc, err := s.Spaces.Pauses.Resume(s.Context(), s.Origin, testkit.WS, in, 0)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// resumptions returns the space.resumed events so far.
func resumptions(t testing.TB, s *testkit.Stack) (found []space.ResumedData) {
	t.Helper()
	for _, e := range s.Events(0) {
		if e.Type == space.EventResumed {
			d, err := event.Decode[space.ResumedData](e)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, d)
		}
	}
	return found
}

// moves waits until the file n of the space changes.
func moves(t testing.TB, s *testkit.Stack, in id.Space) {
	t.Helper()
	before := written(s, in)
	for end := time.Now().Add(wall.Patience); written(s, in) == before; pass(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the processes of the space stand still")
		}
	}
}

// pass lets real time pass: the processes of a space and the timers of its commands are the host's.
func pass(d time.Duration) { <-time.After(d) }

// stands checks that neither the file n of the space nor its processor time changes.
func stands(t testing.TB, s *testkit.Stack, in id.Space) {
	t.Helper()
	load, _ := s.Spaces.Living.Load(in)
	before := written(s, in)
	pass(200 * time.Millisecond)
	if after := written(s, in); after != before {
		t.Errorf("a paused space goes on: %q, then %q", before, after)
	}
	if now, _ := s.Spaces.Living.Load(in); now.CPUMicros > load.CPUMicros+2_000 { // the kernel counts the stop itself late
		t.Errorf("a paused space has used %d microseconds of processor time", now.CPUMicros-load.CPUMicros)
	}
}

// written is the file n of a space, "" where it is not there.
func written(s *testkit.Stack, in id.Space) string {
	doc, err := s.Spaces.Catalog.Space(s.Context(), testkit.WS, in)
	if err != nil {
		s.T.Fatal(err)
	}
	entries, err := s.Spaces.Files.List(s.Context(), s.Origin, doc.Workspace, in, ".", false)
	if err != nil {
		s.T.Fatal(err)
	}
	for _, e := range entries {
		if e.Path == "n" {
			return s.File(in, "n")
		}
	}
	return ""
}

// A paused space stands still, its files can be read, and it goes on from the same state. The end of a run or of the space also comes while
// it is paused.
func TestAPausedSpaceStandsStill(t *testing.T) {
	s := open(t)
	in := s.SpaceOf(spaces.Request{Preset: "permissive"}).ID
	r := s.Start(in, ticking).ID
	moves(t, s, in)
	doc := pause(t, s, in, spaces.Pause{Reason: "lunch"})
	if p := doc.Pause; doc.Status != space.Paused || p == nil || p.By != s.Owner || p.Reason != "lunch" || p.Resumes != space.Running ||
		p.Method != space.PausedBySignals && p.Method != space.PausedByFreezer {
		t.Errorf("got %s, %+v", doc.Status, doc.Pause)
	}
	stands(t, s, in)
	if _, err := s.Spaces.Pauses.Pause(s.Context(), s.Origin, testkit.WS, in, spaces.Pause{}); !errors.Is(err, space.ErrAlreadyPaused) {
		t.Errorf("paused twice: %v", err)
	}
	if doc := resume(t, s, in); doc.Status != space.Running || doc.Pause != nil {
		t.Errorf("resumed: got %s, %+v", doc.Status, doc.Pause)
	}
	moves(t, s, in)
	if _, err := s.Spaces.Pauses.Resume(s.Context(), s.Origin, testkit.WS, in, 0); !errors.Is(err, space.ErrNotPaused) {
		t.Errorf("resumed twice: %v", err)
	}
	pause(t, s, in, spaces.Pause{})
	fork, err := s.Spaces.Creation.Fork(s.Context(), s.Origin, spaces.Fork{Workspace: testkit.WS, Space: in})
	if err != nil && fault.CodeOf(err) != spaces.ErrBusy.Code {
		t.Errorf("fork: %v", err)
	} else if err == nil && fork.Pause != nil {
		t.Error("the fork of a paused space is paused")
	}
	if err := s.Runs.Cancel(s.Context(), s.Origin, testkit.WS, r, "enough"); err != nil {
		t.Fatal(err)
	}
	if doc, err := s.Spaces.Catalog.Space(s.Context(), testkit.WS, in); err != nil || doc.Pause == nil || doc.Pause.Resumes != space.Ready {
		t.Errorf("after its run was cancelled: %+v, %v", doc.Pause, err)
	}
	if _, err := s.Spaces.Ending.Destroy(s.Context(), s.Origin, testkit.WS, in); err != nil {
		t.Fatal(err)
	}
	if got := resumptions(t, s); len(got) != 1 || got[0].Ended || got[0].Cause != space.ResumeRequested {
		t.Errorf("got %+v", got)
	}
}

// The time limit of a command does not run while its space is paused, and runs on after it.
func TestTheTimeOfACommandStandsStill(t *testing.T) {
	s := open(t)
	in := s.SpaceOf(spaces.Request{Preset: "permissive"}).ID
	r := s.Start(in, `[{"type":"shell","id":"a","command":"echo begun; read x < /dev/null; sleep 1","timeout":5000}]`).ID
	s.Prints(r, "begun")
	pause(t, s, in, spaces.Pause{})
	pass(5 * time.Second)
	resume(t, s, in)
	if got := s.Results(s.Ended(r).ID); len(got) != 1 || got[0].Success == nil || !*got[0].Success {
		t.Errorf("got %+v, want a command that ended in time", got)
	}
	r = s.Start(in, `[{"type":"shell","id":"a","command":"echo begun; sleep 60","timeout":1000}]`).ID
	s.Prints(r, "begun")
	pause(t, s, in, spaces.Pause{})
	pass(1500 * time.Millisecond)
	resume(t, s, in)
	if got := s.Results(s.Ended(r).ID); len(got) != 1 || got[0].TimedOut == nil || !*got[0].TimedOut {
		t.Errorf("got %+v, want a command whose time ran out", got)
	}
}

// A run that is sent to a paused space waits until it is resumed, or resumes it. So it does in the tier nano.
func TestARunThatIsSentToAPausedSpace(t *testing.T) {
	s := light(t)
	for _, tier := range []string{"namespace", "nano"} {
		in := s.SpaceOf(spaces.Request{Runtime: tier}).ID
		pause(t, s, in, spaces.Pause{})
		waits := s.Start(in, `[{"type":"shell","id":"a","command":"echo hello"}]`).ID
		if got := s.Find(waits); got.Status != run.Queued {
			t.Errorf("%s: the run is %s, want queued", tier, got.Status)
		}
		if _, err := s.Spaces.Routing.Promote(s.Context(), s.Origin, testkit.WS, in, "", space.Why{}); !errors.Is(err, space.ErrPaused) {
			t.Errorf("%s: promoted while it is paused: %v", tier, err)
		}
		resume(t, s, in)
		if got := s.Ended(waits); got.Status != run.Succeeded {
			t.Errorf("%s: after the resumption: %s", tier, got.Status)
		}
		pause(t, s, in, spaces.Pause{ResumeOnRun: true})
		if got := s.Ended(s.Start(in, `[{"type":"shell","id":"a","command":"echo hello"}]`).ID); got.Status != run.Succeeded {
			t.Errorf("%s: a run that resumes: %s", tier, got.Status)
		}
		if all := resumptions(t, s); all[len(all)-1].Cause != space.ResumeRun || all[len(all)-1].Ended {
			t.Errorf("%s: got %+v", tier, all[len(all)-1])
		}
		pause(t, s, in, spaces.Pause{})
		cancelled := s.Start(in, `[{"type":"shell","id":"a","command":"echo hello"}]`).ID
		if err := s.Runs.Cancel(s.Context(), s.Origin, testkit.WS, cancelled, ""); err != nil {
			t.Errorf("%s: cancel a run that waits: %v", tier, err)
		}
	}
}

// After a restart of the daemon a space is paused still; its processes are gone, which the resumption says.
func TestAPausedSpaceAfterARestart(t *testing.T) {
	s := open(t)
	in := s.SpaceOf(spaces.Request{Preset: "permissive"}).ID
	s.Start(in, ticking)
	moves(t, s, in)
	pause(t, s, in, spaces.Pause{})
	last := written(s, in)
	s.Restart()
	if doc, err := s.Spaces.Catalog.Space(s.Context(), testkit.WS, in); err != nil || doc.Status != space.Paused || doc.Pause == nil {
		t.Fatalf("after the restart: %s, %+v, %v", doc.Status, doc.Pause, err)
	}
	if got := written(s, in); got != last {
		t.Errorf("its file is %q, want %q", got, last)
	}
	resume(t, s, in)
	if got := resumptions(t, s); len(got) != 1 || !got[0].Ended {
		t.Errorf("got %+v, want processes that have ended", got)
	}
}

// A space that asked for it is paused at the end of its time, and destroyed at the end of the pause.
func TestPauseAtTheEnd(t *testing.T) {
	s := testkit.Open(t, testkit.Options{Program: program, Idle: true})
	in := s.SpaceOf(spaces.Request{TTL: time.Hour, PauseAtEnd: true}).ID
	s.Clock.Move(time.Hour + time.Minute)
	if err := s.Spaces.Ending.Step(s.Context(), s.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	doc, err := s.Spaces.Catalog.Space(s.Context(), testkit.WS, in)
	if left := doc.ExpiresAt.Sub(s.Clock.Now()); err != nil || doc.Pause == nil || !doc.Pause.AtEnd || left < spaces.MaxTTL-time.Minute {
		t.Fatalf("at its end: %+v, ends in %s, %v", doc.Pause, left, err)
	}
	doc = resume(t, s, in)
	if left := doc.ExpiresAt.Sub(s.Clock.Now()); doc.Pause != nil || left <= 0 || left > 5*time.Minute {
		t.Errorf("resumed: %+v, ends in %s", doc.Pause, left)
	}
	pause(t, s, in, spaces.Pause{})
	s.Clock.Move(time.Hour)
	if err := s.Spaces.Ending.Step(s.Context(), s.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	if doc, err = s.Spaces.Catalog.Space(s.Context(), testkit.WS, in); err != nil || doc.Status != space.Destroyed {
		t.Errorf("the end of a pause: %s, %v", doc.Status, err)
	}
}
