package runs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/spaces"
	"agentbox/internal/spaceinit/inittest"
	"agentbox/internal/testkit"
)

// mostHeap is what the daemon's own memory may grow to while inits flood it, several at a time.
const mostHeap = 256 << 20

// TestHostileInits has the namespace tier start inits that lie, hang and flood, below real services of runs and spaces, a real gate and a
// real log. Each operation has one result, which is true as far as the daemon can know; the space ends or goes on, and runs the next
// operation; a neighbour notices nothing; and the daemon's memory is bounded.
func TestHostileInits(t *testing.T) {
	s, neighbour := openHostile(t)
	hostileCommands(t, s, neighbour)
	hostileCancels(t, s)
	hostileStarts(t, s)
}

// hostileCommands runs commands in spaces of inits that misbehave when they are asked for one.
func hostileCommands(t *testing.T, s *testkit.Stack, neighbour space.Space) {
	for _, c := range []struct {
		does string
		want string // the result of the first operation, as brief tells it
	}{
		{"names another command", ended},
		{"ends it twice", "shell success=false exit=3"},
		{"sends a frame too large", ended},
		{"claims a frame of 4 GiB", ended},
		{"sends half a frame and dies", ended},
		{"sends garbage", ended},
		{"floods", ""}, // whether the bound of output or that of what is under way is met first is for the two threads to decide
		{"floods after the end", "shell success=false exit=3"},
		{"floods with empty credit", ended},
		{"floods with single bytes", ""},
		{"never stops printing", `limit="output_bytes"`},
		{"says nothing of it", `exit=124 limit="timeout_ms"`},
		{"does not even listen", `exit=124 limit="timeout_ms"`},
		{"prints and dies", `stdout="begun\n"`},
		{"prints and hangs up", `stdout="begun\n"`},
		{"starts it twice", ended},
		{"answers what nobody asked", ended},
		{"claims to be its input", ended},
		{"ends it by an unknown death", ended},
		{"starts what it has refused", ""},
		{"hands descriptors over", "shell success=false exit=3"},
	} {
		t.Run(c.does, func(t *testing.T) {
			t.Parallel()
			in := s.SpaceOf(spaces.Request{Folder: hostileFolder(s, c.does), Limits: space.Limits{OutputBytes: 1 << 20}})
			timeout := 60_000 // so that what an init does is what ends its command, also where the machine is slow
			if strings.Contains(c.want, "timeout_ms") {
				timeout = 1000
			}
			doc := s.Start(in.ID, fmt.Sprintf(`[{"type":"shell","command":"ls","timeout":%d},{"type":"shell","command":"echo fine"},`+
				`{"type":"shell","command":"echo fine"}]`, timeout))
			beside := s.Start(neighbour.ID, `[{"type":"shell","command":"echo beside"}]`)
			doc, beside = s.Ended(doc.ID), s.Ended(beside.ID)
			if r := s.Results(beside.ID); len(r) != 1 || !r[0].OK() || *r[0].Stdout != "beside\n" {
				t.Errorf("the neighbour: got %v", r)
			}
			r := s.Results(doc.ID)
			if len(r) != 3 {
				t.Fatalf("got %d results, want one for each operation", len(r))
			}
			if got := brief(r[0]); !strings.Contains(got, c.want) || r[0].OK() {
				t.Errorf("got %.300s, want a failure with %q", got, c.want)
			}
			// An init that acts after the end of its command may end the space under the next command, and not under another.
			if !r[1].OK() && r[1].ReasonCode != ended {
				t.Errorf("the next operation: got %.300s", brief(r[1]))
			}
			if !r[2].OK() || *r[2].Stdout != "fine\n" {
				t.Errorf("the one after: got %.300s", brief(r[2]))
			}
			oneResultEach(t, s, doc)
			if _, err := s.Spaces.Ending.Destroy(s.Context(), s.Origin, testkit.WS, in.ID); err != nil {
				t.Error(err)
			}
		})
	}
}

// ended is what the result of an operation says whose space ended under it.
const ended = "space_ended"

// hostileCancels cancels runs: each ends as cancelled, once, whatever its init says afterwards, or if it says nothing.
func hostileCancels(t *testing.T, s *testkit.Stack) {
	for _, does := range []string{"answers after it was killed", "prints and is not to be killed", "does not even listen"} {
		t.Run("cancelled: "+does, func(t *testing.T) {
			t.Parallel()
			in := s.SpaceOf(spaces.Request{Folder: hostileFolder(s, does)})
			doc := s.Start(in.ID, `[{"type":"shell","command":"ls","timeout":3600000},{"type":"shell","command":"echo fine"}]`)
			if does == "does not even listen" {
				invoked(t, s, doc.ID)
			} else {
				s.Prints(doc.ID, "begun")
			}
			if err := s.Runs.Cancel(s.Context(), s.Origin, testkit.WS, doc.ID, ""); err != nil {
				t.Fatal(err)
			}
			if doc = s.Find(doc.ID); doc.Status != run.Cancelled {
				t.Errorf("got %s, want cancelled", doc.Status)
			}
			oneResultEach(t, s, doc)
			next := s.Ended(s.Start(in.ID, `[{"type":"shell","command":"echo fine"}]`).ID)
			if r := s.Results(next.ID); !r[0].OK() {
				t.Errorf("the next run: got %s", brief(r[0]))
			}
			if _, err := s.Spaces.Ending.Destroy(s.Context(), s.Origin, testkit.WS, in.ID); err != nil {
				t.Error(err)
			}
		})
	}
}

// hostileStarts makes spaces whose inits cannot be brought to say that they stand: they are not made, and leave nothing.
func hostileStarts(t *testing.T, s *testkit.Stack) {
	for _, does := range []string{"says nothing", "dies at once", "greets in garbage", "greets with a flood", "greets as another version",
		"hangs up at once"} {
		t.Run(does, func(t *testing.T) {
			t.Parallel()
			_, err := s.Spaces.Creation.Create(s.Context(), s.Origin, spaces.Request{Workspace: testkit.WS, Name: does, Folder: hostileFolder(s,
				does)})
			if fault.CodeOf(err) != "space_not_started" {
				t.Errorf("got %v, want space_not_started", err)
			}
		})
	}
	t.Cleanup(func() {
		if left, err := s.Spaces.Catalog.List(context.Background(), testkit.WS, "", "", 100); err != nil || len(left) != 1 { // the neighbour
			t.Errorf("spaces left: %v, %v", left, err)
		}
	})
}

// openHostile opens a stack whose init is the hostile one, with a space whose init is not, and holds the daemon at its end against what
// it had open then.
func openHostile(t *testing.T) (*testkit.Stack, space.Space) {
	t.Helper()
	hostile, err := inittest.Hostile("agentbox/internal/service/runs/testdata/hostile", program)
	if err != nil {
		t.Fatal(err)
	}
	sources := t.TempDir()
	s := testkit.Open(t, testkit.Options{Program: hostile, SQLite: true, Sources: []string{sources}})
	neighbour := s.Space()
	before := descriptors(t, s)
	watched, stop := context.WithCancel(context.Background())
	peak := make(chan uint64)
	go func() {
		var most uint64
		var m runtime.MemStats
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			case <-watched.Done():
				peak <- most
				return
			}
		}
	}()
	t.Cleanup(func() { // after the subtests
		stop()
		most := <-peak
		t.Logf("heap at most %d MiB", most>>20)
		if most > mostHeap {
			t.Errorf("the daemon took %d MiB, more than %d", most>>20, mostHeap>>20)
		}
		if after := descriptors(t, s); after > before {
			t.Errorf("the daemon had %d descriptors of spaces open, and %d after", before, after)
		}
	})
	return s, neighbour
}

// descriptors counts what this process has open beside the files of the stack, some of which are kept open.
func descriptors(t *testing.T, s *testkit.Stack) (n int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if name, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && !strings.HasPrefix(name, s.Dir) {
			n++
		}
	}
	return n
}

// hostileFolder returns a folder from which a space begins whose init does that.
func hostileFolder(s *testkit.Stack, does string) string {
	s.T.Helper()
	dir := filepath.Join(s.Options.Sources[0], strings.ReplaceAll(does, " ", "-"))
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "hostile"), []byte(does), 0o644)); err != nil {
		s.T.Fatal(err)
	}
	return dir
}

// oneResultEach holds the log against a run: each operation that was invoked has exactly one result event, and none has one that was not.
func oneResultEach(t *testing.T, s *testkit.Stack, doc run.Run) {
	t.Helper()
	invoked, results := map[id.Step]int{}, map[id.Step]int{}
	for _, e := range s.Events(0) {
		if e.Run != doc.ID {
			continue
		}
		switch e.Type {
		case run.EventInvoked:
			invoked[e.Step]++
		case run.EventSucceeded, run.EventErred, run.EventUnknown:
			results[e.Step]++
		}
	}
	for step, n := range invoked {
		if n != 1 || results[step] != 1 {
			t.Errorf("step %s was invoked %d times and has %d results, want one of each", step, n, results[step])
		}
	}
	if len(results) != len(invoked) || len(invoked) == 0 {
		t.Errorf("got %d results of %d invoked operations", len(results), len(invoked))
	}
}

// invoked waits until an operation of a run has begun.
func invoked(t *testing.T, s *testkit.Stack, r id.Run) {
	t.Helper()
	for seen := uint64(0); ; {
		for _, e := range s.Events(seen) {
			if seen = e.Seq; e.Run == r && e.Type == run.EventInvoked {
				return
			}
		}
		if err := s.Log.Wait(s.Context(), testkit.WS, seen); err != nil {
			t.Fatal(err)
		}
	}
}
