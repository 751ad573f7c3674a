package runs_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
)

// A space whose init is killed from outside ends, with its command, and the next command starts it again.
func TestSpaceWhoseInitDiesIsStartedAgain(t *testing.T) {
	s := open(t)
	doc := s.Start(s.Space().ID, `[{"type":"shell","command":"echo kept > f; echo begun; sleep 3600"},{"type":"shell","command":"cat f"}]`)
	s.Prints(doc.ID, "begun")
	killInits(t)
	doc = s.Ended(doc.ID)
	r := s.Results(doc.ID)
	if doc.Status != run.Succeeded || r[0].OK() || !r[1].OK() || *r[1].Stdout != "kept\n" {
		t.Errorf("got %s: %s; %s", doc.Status, brief(r[0]), brief(r[1]))
	}
	started := 0
	for _, e := range s.Events(0) {
		if e.Type == space.EventStarted {
			started++
		}
	}
	if started != 2 {
		t.Errorf("the space was started %d times, want 2", started)
	}
}

// killInits kills the children of this process that are PID 1 of a namespace.
func killInits(t *testing.T) {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, list := range lists {
		pids, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, pid := range strings.Fields(string(pids)) {
			status, err := os.ReadFile("/proc/" + pid + "/status")
			if err != nil || !inNamespace(string(status)) {
				continue
			}
			n, err := strconv.Atoi(pid)
			if err != nil {
				t.Fatal(err)
			}
			child, err := os.FindProcess(n)
			if err == nil {
				err = child.Kill()
			}
			if err != nil {
				t.Fatal(err)
			}
			killed++
		}
	}
	if killed != 1 {
		t.Fatalf("there are %d inits, want 1", killed)
	}
}

// inNamespace reports whether a process is PID 1 of a PID namespace below this one.
func inNamespace(status string) bool {
	for line := range strings.SplitSeq(status, "\n") {
		if rest, ok := strings.CutPrefix(line, "NSpid:"); ok {
			pids := strings.Fields(rest)
			return len(pids) > 1 && pids[len(pids)-1] == "1"
		}
	}
	return false
}

// full is a store of contents that can become full.
type full struct {
	blob.Store
	now atomic.Bool
}

func (f *full) Put(ctx context.Context, content io.Reader, most int64) (blob.Ref, error) {
	if f.now.Load() {
		return blob.Ref{}, space.ErrDiskFull
	}
	return f.Store.Put(ctx, content, most)
}

// A long result that cannot be kept is recorded without its long texts, so that each effect has a result.
func TestLongResultThatCannotBeKept(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, Idle: true})
	contents := &full{Store: s.Blobs}
	s.Runs.Blobs = contents
	s.Run()
	doc := s.Start(s.Space().ID,
		`[{"type":"shell","command":"while ! test -e go; do sleep 0.01; done; head -c 200000 /dev/zero | tr '\\0' `+
			`x"},{"type":"message","content":"end"}]`)
	contents.now.Store(true)
	if _, err := s.Spaces.Files.Write(s.Context(), s.Origin, testkit.WS, doc.Space, "go", false, "", event.DigestOf(nil), 0,
		strings.NewReader("")); err != nil {
		t.Fatal(err)
	}
	doc = s.Ended(doc.ID)
	r := s.Results(doc.ID)
	if doc.Status != run.Succeeded || !r[0].OK() || r[0].Stdout != nil || len(r[0].Omitted) != 1 || r[0].Omitted[0] != "stdout" || !r[1].OK() {
		t.Errorf("got %s: %+v", doc.Status, r)
	}
}

// A cancel that comes between the permit and the effect is not lost: the effect ends from the beginning.
func TestCancelBetweenPermitAndEffect(t *testing.T) {
	t.Parallel()
	s := open(t)
	in := s.SpaceOf(spaces.Request{TTL: time.Hour}).ID
	for range 20 {
		var cancels sync.WaitGroup
		ctx, runs, origin := s.Context(), s.Runs, s.Origin
		s.Log.DieAt(func(r event.Receipt) testkit.Death {
			for _, e := range r.Events {
				if e.Type == run.EventInvoked {
					cancels.Go(func() {
						if err := runs.Cancel(ctx, origin, testkit.WS, e.Run, "enough"); err != nil {
							t.Errorf("cancel: %v", err)
						}
					})
				}
			}
			return testkit.Survive
		})
		doc := s.Start(in, `[{"type":"shell","command":"sleep 3600","timeout":3600000},{"type":"shell","command":"sleep 3600"}]`)
		doc = s.Ended(doc.ID)
		cancels.Wait()
		if r := s.Results(doc.ID); doc.Status != run.Cancelled || len(r) != 1 || r[0].OK() {
			t.Fatalf("got %s with %+v, want cancelled with one result that failed", doc.Status, r)
		}
	}
	s.Log.DieAt(nil)
	s.Verify()
}

// The daemon's end leaves no process of a command behind, and none of a space.
func TestNoProcessIsLeftBehind(t *testing.T) {
	t.Parallel()
	s := open(t)
	doc := s.Start(s.Space().ID,
		`[{"type":"shell","command":"(trap '' TERM INT HUP; setsid sleep 3600) & echo begun; sleep 3600","timeout":3600000}]`)
	s.Prints(doc.ID, "begun")
	var uid int
	living, err := s.Spaces.Catalog.List(s.Context(), testkit.WS, "", "", 1)
	if err != nil {
		t.Fatal(err)
	}
	if uid = living[0].UID; uid == 0 {
		t.Skip("without a host uid of its own, a space's processes cannot be told from others")
	}
	if n := processesOf(t, uid); n < 2 {
		t.Errorf("%d processes run as the space's user, want the init's and the command's", n)
	}
	s.Restart()
	if n := processesOf(t, uid); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if _, err := disk.OpenSpaces(s.Context(), filepath.Join(s.Dir, "spaces"), s.Keys, strings.NewReader("")); err != nil {
		t.Errorf("the folder of the spaces cannot be opened again: %v", err)
	}
}

// processesOf counts the processes of a host user.
func processesOf(t *testing.T, uid int) int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range all {
		status, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		if strings.Contains(string(status), "\nUid:\t"+strconv.Itoa(uid)+"\t") {
			n++
		}
	}
	return n
}
