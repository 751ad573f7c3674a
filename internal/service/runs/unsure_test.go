package runs_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/service/runs"
	"agentbox/internal/testkit"
)

// TestARunThatMayBeRecordedIsLookedFor has the log shut while it takes a run that begins at once, and open again: the run is there, so
// that it goes on to its end.
func TestARunThatMayBeRecordedIsLookedFor(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "key"} {
		s := open(t)
		in := s.Space().ID
		unsure := false
		s.Log.DieAt(func(r event.Receipt) testkit.Death {
			if !unsure && slices.ContainsFunc(r.Events, func(e event.Event) bool { return e.Type == run.EventCreated }) {
				unsure = true
				return testkit.Unsure
			}
			return testkit.Survive
		})
		if _, err := asks(s, in, `[{"type":"message","content":"a"},{"type":"shell","command":"true"}]`, key); !errors.Is(err,
			journal.ErrClosed) {
			t.Errorf("%q: a run that begins later: %v", key, err)
		}
		unsure = false
		if _, err := asks(s, s.Space().ID, `[{"type":"shell","command":"true"}]`, key); !errors.Is(err, journal.ErrClosed) {
			t.Errorf("%q: %v", key, err)
		}
		made := 0
		for _, e := range s.Events(0) {
			if e.Type != run.EventCreated {
				continue
			}
			made++
			if doc := s.Rest(e.Run); doc.Status != run.AwaitingApproval && !doc.Status.Ended() {
				// an operation that may have been begun is asked about
				t.Errorf("%q: the run is %s", key, doc.Status)
			}
		}
		if made != 2 {
			t.Errorf("%q: %d runs are recorded", key, made)
		}
	}
}

// TestWhatWasShownOfNoRunIsForgotten has a run shown to begin that the log does not take.
func TestWhatWasShownOfNoRunIsForgotten(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, SQLite: true})
	in := s.Space().ID
	q := runs.Request{Workspace: testkit.WS, Space: s.Space().ID, Agent: "helper",
		Message: s.Message(`[{"type":"shell","command":"echo private"}]`), Waits: true}
	known, err := s.Runs.Start(s.Context(), s.Origin, q)
	if err != nil {
		t.Fatal(err)
	}
	s.Ended(known.ID)
	q.Space = in
	s.Log.Shut(true)
	if _, err := s.Runs.Start(s.Context(), s.Origin, q); !errors.Is(err, journal.ErrClosed) {
		t.Fatal(err)
	}
	s.Log.Shut(false)
	doc := s.Ended(s.Start(in, `[{"type":"shell","command":"true"}]`).ID)
	files, err := filepath.Glob(filepath.Join(s.Dir, "live", "*.frames"))
	if err != nil || len(files) != 3 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		r := id.Run(strings.TrimSuffix(filepath.Base(file), ".frames"))
		if r == doc.ID || r == known.ID {
			continue
		}
		frames, err := s.Live.Read(t.Context(), r, 1, 10)
		if err != nil || len(frames) != 1 || string(frames[0].Data) != `{"redacted":true}` {
			t.Errorf("of a run that is not there: %+v, %v", frames, err)
		}
	}
}

// TestAnOperationIsShownToBeginOnce changes the space after the run was allowed, so that its beginning is recorded apart.
func TestAnOperationIsShownToBeginOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.Space().ID
	list, _ := commits(s)
	doc, err := s.Runs.Start(s.Context(), s.Origin, runs.Request{
		Workspace: testkit.WS, Space: in, Message: s.Message(`[{"type":"shell","command":"true"}]`), Waits: true,
		Unless: func(space.Space) error {
			_, err := s.Spaces.Settings.Extend(s.Context(), s.Origin, testkit.WS, in, time.Minute)
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Ended(doc.ID)
	if got := list(); got[0] != run.EventCreated {
		t.Errorf("recorded are %q", got)
	}
	var kinds []string
	for f, err := range s.Runs.Frames.Follow(t.Context(), testkit.WS, doc.ID, 1) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, f.Kind)
	}
	if want := []string{livestream.Operation, livestream.Result, livestream.Complete}; !slices.Equal(kinds, want) {
		t.Errorf("shown are %v, want %v", kinds, want)
	}
}

// TestALongRequestWaitsOnTheDisk forgets a request that waits for its turn: it was not kept in memory, where a hundred of a space would
// take gigabytes.
func TestALongRequestWaitsOnTheDisk(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, SQLite: true})
	in := s.Space()
	_, release := blocked(t, s, in)
	doc := s.Start(in.ID, `[{"type":"createFile","path":"f","content":"`+strings.Repeat("x", 5000)+`"}]`)
	if doc.Input.Inline {
		t.Fatal("it is short")
	}
	if err := s.Blobs.Forget(t.Context(), doc.Input.Digest); err != nil {
		t.Fatal(err)
	}
	release()
	if doc = s.Ended(doc.ID); doc.Status != run.Failed {
		t.Errorf("the run is %s", doc.Status)
	}
}

// TestARequestInItsEventIsTheOneThatIsNamed takes up a run whose event holds other operations than those of its hash, as an archive from
// elsewhere may: nothing is done.
func TestARequestInItsEventIsTheOneThatIsNamed(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, Idle: true})
	in := s.Space().ID
	genuine := s.Start(in, `[{"type":"shell","command":"true"}]`)
	other := s.Message(`[{"type":"shell","command":"echo x > f"}]`)
	forged := id.New[id.Run](s.IDs)
	_, err := s.Log.Append(t.Context(), event.Batch{Workspace: testkit.WS, Drafts: []event.Draft{event.New(run.EventCreated, s.Origin,
		testkit.WS, "", run.Created{
			Run: forged, Space: in, Agent: genuine.Agent, Input: genuine.Input, Message: &other,
			Operations: []run.Outline{{ID: other.Operations[0].ID, Type: run.OpShell}},
		}).About(space.EntityType, string(in)).In(forged, "")}})
	if err != nil {
		t.Fatal(err)
	}
	s.Crash()
	s.Run()
	if doc := s.Ended(genuine.ID); doc.Status != run.Succeeded {
		t.Errorf("the genuine run is %s: %s", doc.Status, doc.Error)
	}
	if doc := s.Ended(forged); doc.Status != run.Failed {
		t.Errorf("the forged run is %s", doc.Status)
	}
}
