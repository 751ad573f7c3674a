package spaces_test

import (
	"fmt"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
)

// folders makes n folders in a space, f0 and so on.
func folders(t *testing.T, s *testkit.Stack, in id.Space, n int) {
	t.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("f", i)
	}
	doc := s.Ended(s.Start(in, `[{"type":"shell","command":"mkdir `+strings.Join(names, " ")+`"}]`).ID)
	if r := s.Results(doc.ID); len(r) != 1 || !r[0].OK() {
		t.Fatalf("mkdir: %v", r)
	}
}

// TestTheBoundsOfWatches meets each bound, and goes one beyond.
func TestTheBoundsOfWatches(t *testing.T) {
	s := open(t)
	watch := func(in id.Space, path string) (*spaces.WatchReader, error) {
		return s.Spaces.Watches.Open(t.Context(), s.Origin, testkit.WS, in, path, false, nil)
	}
	refused := func(what string, err error) {
		t.Helper()
		if fault.CodeOf(err) != "too_many_watches" || fault.KindOf(err) != fault.Exhausted {
			t.Errorf("%s: got %v, want too_many_watches", what, err)
		}
	}
	var open []*spaces.WatchReader
	const each = spaces.MaxWorkspaceWatches / spaces.MaxWatches
	for range each {
		in := s.Space().ID
		folders(t, s, in, spaces.MaxWatches+1)
		for i := range spaces.MaxWatches {
			r, err := watch(in, fmt.Sprint("f", i))
			if err != nil {
				t.Fatalf("watch %d of the workspace: %v", len(open)+1, err)
			}
			open = append(open, r)
		}
		_, err := watch(in, fmt.Sprint("f", spaces.MaxWatches))
		refused("one folder more than a space may have", err)
		for i := 1; i < spaces.MaxWatchReaders; i++ {
			r, err := watch(in, "f0")
			if err != nil {
				t.Fatalf("reader %d of a folder: %v", i+1, err)
			}
			defer r.Close()
		}
		_, err = watch(in, "f0")
		refused("one reader more than a folder may have", err)
	}
	other := s.Space().ID
	_, err := watch(other, ".")
	refused("one folder more than a workspace may have", err)
	open[1].Close() // its watch waits for a reader to come back, and ends for a new one
	r, err := watch(other, ".")
	if err != nil {
		t.Fatalf("where a watch has no reader: %v", err)
	}
	r.Close()
	for i, r := range open {
		if i != 1 {
			r.Close()
		}
	}
}

// TestACursorThatNobodyGaveSaysSo goes on after cursors of another daemon.
func TestACursorThatNobodyGaveSaysSo(t *testing.T) {
	s := open(t)
	in := s.Space().ID
	for _, after := range []uint64{0, 1, 1 << 63} {
		r, err := s.Spaces.Watches.Open(t.Context(), s.Origin, testkit.WS, in, ".", true, &after)
		if err != nil {
			t.Fatal(err)
		}
		told, err := r.Next(t.Context())
		r.Close()
		if err != nil || told.Kind != spaces.WatchOverflow || told.Reason != "events_lost" {
			t.Errorf("after %d: %+v, %v; want overflow", after, told, err)
		}
	}
	s.Spaces.Watches.Close()
	if _, err := s.Spaces.Watches.Open(t.Context(), s.Origin, testkit.WS, in, ".", true, nil); fault.CodeOf(err) !=
		"daemon_stopping" {
		t.Errorf("of a daemon that stops: %v", err)
	}
}
