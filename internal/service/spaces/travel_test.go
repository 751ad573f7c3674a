package spaces_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
)

// told is a space in which a run has written one file after the other.
type told struct {
	*testkit.Stack
	in  id.Space
	run run.Run
}

func tell(t *testing.T) told {
	t.Helper()
	s := open(t)
	in := s.SpaceOf(spaces.Request{Name: "told", Env: map[string]string{"TOKEN": "secret"}}).ID
	doc := s.Start(in, `[
		{"type":"createFile","id":"a","path":"f","content":"first"},
		{"type":"shell","id":"b","command":"echo second > f; mkdir d; false"},
		{"type":"readFile","id":"c","path":"f"},
		{"type":"deleteFile","id":"d","path":"f"}
	]`)
	return told{s, in, s.Ended(doc.ID)}
}

// step is the step of an operation of the story.
func (s told) step(operation string) string {
	i := slices.IndexFunc(s.run.Operations, func(p run.Progress) bool { return p.ID == operation })
	return string(s.run.Operations[i].Step)
}

func (s told) rewind(to string) (space.Rewound, error) {
	return s.Spaces.Snapshots.Rewind(s.Context(), s.Origin, testkit.WS, s.in, to)
}

// now is the hash of the files as they are.
func (s told) now(t *testing.T) event.Digest {
	t.Helper()
	doc, err := s.Spaces.Catalog.Space(s.Context(), testkit.WS, s.in)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := s.Spaces.Living.Keep(s.Context(), doc)
	if err != nil {
		t.Fatal(err)
	}
	return kept.Root
}

func TestSnapshotOfEachOperation(t *testing.T) {
	s := tell(t)
	var made []string
	for _, e := range s.Events(0) {
		if r, ok, err := space.RecordedIn(e); err != nil {
			t.Fatal(err)
		} else if ok {
			made = append(made, e.Type+" "+r.Operation)
		}
	}
	want := []string{"space.ready ", "run.started ", "tool.succeeded a", "tool.failed b", "tool.succeeded d"}
	if !slices.Equal(made, want) {
		t.Errorf("snapshots are recorded by %q, want %q", made, want)
	}
	ops := s.run.Operations
	if ops[0].Snapshot.IsZero() || ops[0].Snapshot == ops[1].Snapshot || !ops[2].Snapshot.IsZero() || ops[3].Snapshot != s.now(t) {
		t.Errorf("the operations have %v, %v, %v, %v", ops[0].Snapshot, ops[1].Snapshot, ops[2].Snapshot, ops[3].Snapshot)
	}
	past, err := s.Spaces.Snapshots.List(s.Context(), testkit.WS, s.in, "", 100)
	if err != nil || len(past.Recorded) != 5 || past.Recorded[0].Operation != "d" || past.Recorded[0].Step != id.Step(s.step("d")) ||
		past.Bytes == 0 {
		t.Errorf("%d are listed, %v", len(past.Recorded), err)
	}
	for _, r := range past.Recorded {
		if !past.Kept[r.Root] {
			t.Errorf("%s after %q is not kept", r.Root, r.Operation)
		}
	}
	page, err := s.Spaces.Snapshots.List(s.Context(), testkit.WS, s.in, past.Recorded[1].Event, 2)
	if err != nil || len(page.Recorded) != 2 || page.Recorded[0] != past.Recorded[2] {
		t.Errorf("the list goes on with %v, %v", page.Recorded, err)
	}
}

func TestRewindToStepsAndRuns(t *testing.T) {
	s := tell(t)
	for _, c := range []struct{ to, f string }{{s.step("a"), "first"}, {s.step("b"), "second\n"}} {
		done, err := s.rewind(c.to)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.File(s.in, "f"); got != c.f || done.Snapshot.Root != s.now(t) {
			t.Errorf("f holds %q, want %q", got, c.f)
		}
	}
	done, err := s.rewind(string(s.run.ID))
	if err != nil || done.Snapshot.Files != 0 {
		t.Errorf("before the run: %+v, %v", done, err)
	}
	for _, short := range []string{done.From.Hex()[:8], done.From.Hex(), done.From.String()} {
		if _, err := s.rewind(short); err != nil || s.now(t) != done.From {
			t.Errorf("%s: %v", short, err)
		}
	}
	for _, c := range []struct{ to, code string }{
		{done.From.Hex()[:7], "invalid_snapshot"}, {"", "invalid_snapshot"}, {"../../etc/passwd", "invalid_snapshot"},
		{"FFFFFFFF", "invalid_snapshot"},
		{"ffffffff", "snapshot_not_found"}, {"step_01ARZ3NDEKTSV4RRFFQ69G5FAV", "snapshot_not_found"}, {s.step("c"), "snapshot_not_found"},
	} {
		if _, err := s.rewind(c.to); fault.CodeOf(err) != c.code {
			t.Errorf("rewind to %q: %v, want %s", c.to, err, c.code)
		}
	}
	s.Verify()
}

func TestRewindWaitsForNoRun(t *testing.T) {
	s := tell(t)
	busy := s.Start(s.in, `[{"type":"shell","command":"echo begun; sleep 60"}]`)
	s.Prints(busy.ID, "begun")
	if _, err := s.rewind(s.step("a")); !errors.Is(err, spaces.ErrBusy) {
		t.Errorf("while a command runs: %v, want %v", err, spaces.ErrBusy)
	}
	if _, err := s.Spaces.Snapshots.Diff(s.Context(), s.Origin, testkit.WS, s.in, "", "", 10); !errors.Is(err, spaces.ErrBusy) {
		t.Errorf("what the files are while a command runs: %v, want %v", err, spaces.ErrBusy)
	}
	if _, err := s.Spaces.Creation.Fork(s.Context(), s.Origin, spaces.Fork{Workspace: testkit.WS, Space: s.in}); !errors.Is(err,
		spaces.ErrBusy) {
		t.Errorf("a fork of what the files are while a command runs: %v, want %v", err, spaces.ErrBusy)
	}
	if c, err := s.Spaces.Snapshots.Diff(s.Context(), s.Origin, testkit.WS, s.in, s.step("a"), s.step("b"), 10); err != nil ||
		len(c.Differences) != 2 {
		t.Errorf("two snapshots can be compared all the same: %v, %v", c.Differences, err)
	}
	if _, err := s.Spaces.Creation.Fork(s.Context(), s.Origin, spaces.Fork{Workspace: testkit.WS, Space: s.in, At: s.step("a")}); err != nil {
		t.Errorf("a fork of a snapshot can be made all the same: %v", err)
	}
	if err := s.Runs.Cancel(s.Context(), s.Origin, testkit.WS, busy.ID, ""); err != nil {
		t.Fatal(err)
	}
	waits := s.Start(s.in, `[{"type":"shell","command":"rm -r d"}]`)
	s.Rest(waits.ID)
	if _, err := s.rewind(s.step("a")); !errors.Is(err, spaces.ErrBusy) {
		t.Errorf("while a run waits for a person: %v, want %v", err, spaces.ErrBusy)
	}
	if err := s.Runs.Cancel(s.Context(), s.Origin, testkit.WS, waits.ID, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.rewind(s.step("a")); err != nil {
		t.Errorf("after that: %v", err)
	}
	s.Verify()
}

func TestDiffShowsNoHashOfWhatMayNotBeRead(t *testing.T) {
	s := tell(t)
	doc, err := s.Spaces.Catalog.Space(s.Context(), testkit.WS, s.in)
	if err != nil {
		t.Fatal(err)
	}
	_, dir, err := s.Store.Open(s.in, doc.UID, doc.Limits)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".git/config", "plain"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("1234\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, leave, err := s.Spaces.Living.Occupy(s.Context(), testkit.WS, s.in, true)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	c, err := s.Spaces.Snapshots.Diff(s.Context(), s.Origin, testkit.WS, s.in, s.step("d"), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, d := range c.Differences {
		seen[d.Path] = d.After != nil && !d.After.Digest.IsZero()
	}
	if hash, ok := seen[".git/config"]; !ok || hash || !seen["plain"] {
		t.Errorf("hashes are shown of %v", seen)
	}
}

func TestWhoMayRewind(t *testing.T) {
	s := tell(t)
	before := s.now(t)
	agent := event.Origin{Principal: s.run.Agent}
	if _, err := s.Spaces.Snapshots.Rewind(s.Context(), agent, testkit.WS, s.in, s.step("a")); fault.KindOf(err) != fault.Denied {
		t.Errorf("an agent rewinds its own space: %v", err)
	}
	if _, err := s.Spaces.Creation.Fork(s.Context(), agent, spaces.Fork{Workspace: testkit.WS,
		Space: s.in}); fault.KindOf(err) != fault.Denied {
		t.Errorf("an agent forks its own space: %v", err)
	}
	if _, err := s.Gate.KillSwitch.Throw(s.Context(), s.Origin, testkit.WS, "test"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.rewind(s.step("a")); fault.CodeOf(err) != policy.ReasonKillSwitch {
		t.Errorf("with the kill switch thrown: %v", err)
	}
	if _, err := s.Spaces.Snapshots.Diff(s.Context(), s.Origin, testkit.WS, s.in, s.step("a"), s.step("b"), 10); err != nil {
		t.Errorf("looking goes on: %v", err)
	}
	if now := s.now(t); now != before {
		t.Errorf("the files are %v, want %v", now, before)
	}
	if doc, err := s.Spaces.Catalog.Space(s.Context(), testkit.WS, s.in); err != nil || !doc.Rewinding.IsZero() {
		t.Errorf("the space says that it is being rewound: %+v, %v", doc, err)
	}
	s.Verify()
}

// A daemon dies at each append of a rewind; the next one finds the old files or the new ones, and the log says which.
func TestRewindAndDeath(t *testing.T) {
	for _, death := range []testkit.Death{testkit.Recorded, testkit.Unconfirmed} {
		for n := 1; n <= 2; n++ {
			s := tell(t)
			old, target := s.now(t), s.step("a")
			left := n
			s.Log.DieAt(func(event.Receipt) testkit.Death {
				if left--; left == 0 {
					return death
				}
				return testkit.Survive
			})
			_, _ = s.rewind(target)
			s.Crash()
			now := s.now(t)
			if now != old && now != s.run.Operations[0].Snapshot {
				t.Errorf("death %v at append %d: the files are %v, neither old nor new", death, n, now)
			}
			doc, err := s.Spaces.Catalog.Space(s.Context(), testkit.WS, s.in)
			if err != nil || !doc.Rewinding.IsZero() {
				t.Errorf("death %v at append %d: the space is still being rewound: %v", death, n, err)
			}
			events := s.Events(0)
			begun, ended := 0, 0
			for _, e := range events {
				switch e.Type {
				case space.EventRewindBegun:
					begun++
				case space.EventRewound, space.EventRewindFailed:
					ended++
					r, ok, err := space.RecordedIn(e)
					if err != nil || !ok || r.Root != now || (e.Type == space.EventRewound) != (now != old) {
						t.Errorf("death %v at append %d: %s says %v, the files are %v", death, n, e.Type, r.Root, now)
					}
				}
			}
			if begun != 1 || ended != 1 {
				t.Errorf("death %v at append %d: %d began and %d ended", death, n, begun, ended)
			}
			if _, err := s.rewind(target); err != nil || s.File(s.in, "f") != "first" {
				t.Errorf("death %v at append %d: again: %v", death, n, err)
			}
			s.Verify()
		}
	}
}

func TestForkInheritsNoSecret(t *testing.T) {
	s := tell(t)
	q := spaces.Fork{Workspace: testkit.WS, Space: s.in, At: s.step("b"), Name: "fork", Key: "once"}
	fork, err := s.Spaces.Creation.Fork(s.Context(), s.Origin, q)
	if err != nil {
		t.Fatal(err)
	}
	if len(fork.Env) != 0 || fork.ForkedFrom != s.in || fork.ForkedAt != s.run.Operations[1].Snapshot || fork.UID != 0 &&
		fork.UID == s.uid(t) {
		t.Errorf("the fork is %+v", fork)
	}
	again, err := s.Spaces.Creation.Fork(s.Context(), s.Origin, q)
	if err != nil || again.ID != fork.ID {
		t.Errorf("the same request again: %v, %v, want %v", again.ID, err, fork.ID)
	}
	q.At = s.step("a")
	if _, err := s.Spaces.Creation.Fork(s.Context(), s.Origin, q); fault.KindOf(err) != fault.Conflict {
		t.Errorf("another request under the same key: %v", err)
	}
	doc := s.Ended(s.Start(fork.ID, `[{"type":"shell","command":"env; cat f; echo fork > f"}]`).ID)
	out := *s.Results(doc.ID)[0].Stdout
	if !strings.HasSuffix(out, "second\n") || strings.Contains(out, "secret") || doc.Agent == s.run.Agent {
		t.Errorf("in the fork %s sees %q", doc.Agent, out)
	}
	if _, err := s.Spaces.Snapshots.Rewind(s.Context(), s.Origin, testkit.WS, fork.ID, s.run.Operations[0].Snapshot.String()); fault.CodeOf(
		err) != "snapshot_not_found" {
		t.Errorf("the fork is rewound to the other space's past: %v", err)
	}
	if _, err := s.Spaces.Ending.Destroy(s.Context(), s.Origin, testkit.WS, s.in); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Spaces.Snapshots.Rewind(s.Context(), s.Origin, testkit.WS, fork.ID, string(doc.ID)); err != nil ||
		s.File(fork.ID, "f") != "second\n" {
		t.Errorf("the fork without the other space: %v", err)
	}
	if _, err := s.Spaces.Creation.Fork(s.Context(), s.Origin, spaces.Fork{Workspace: testkit.WS, Space: s.in,
		At: s.step("a")}); !errors.Is(err,
		spaces.ErrDestroyed) {
		t.Errorf("a fork of what is gone: %v", err)
	}
	s.Verify()
	nothingLeft(t, s.Stack)
}

func (s told) uid(t *testing.T) int {
	t.Helper()
	doc, err := s.Spaces.Catalog.Space(s.Context(), testkit.WS, s.in)
	if err != nil {
		t.Fatal(err)
	}
	return doc.UID
}

// A daemon that dies while it makes a fork leaves nothing of it, and the same request makes it.
func TestForkAndDeath(t *testing.T) {
	for n := 1; n <= 3; n++ {
		s := tell(t)
		left := n
		s.Log.DieAt(func(event.Receipt) testkit.Death {
			if left--; left == 0 {
				return testkit.Unconfirmed
			}
			return testkit.Survive
		})
		q := spaces.Fork{Workspace: testkit.WS, Space: s.in, At: s.step("a"), Key: "k"}
		if _, err := s.Spaces.Creation.Fork(s.Context(), s.Origin, q); err == nil {
			t.Fatalf("append %d: the daemon did not die", n)
		}
		s.Crash()
		fork, err := s.Spaces.Creation.Fork(s.Context(), s.Origin, q)
		if err != nil || fork.Status != space.Ready || s.File(fork.ID, "f") != "first" {
			t.Errorf("append %d: again: %+v, %v", n, fork.Status, err)
		}
		living, err := s.Spaces.Catalog.List(s.Context(), testkit.WS, "", "", 10)
		if err != nil || len(living) != 2 {
			t.Errorf("append %d: %d spaces live, %v", n, len(living), err)
		}
		nothingLeft(t, s.Stack)
		s.Verify()
	}
}

// A fork costs what it changes, and neither it nor the space that it came of knows of the other.
func TestForksShareFiles(t *testing.T) {
	s := tell(t)
	frozen := filepath.Join(s.Dir, "spaces", ".frozen", string(s.in))
	shares := disk.Sharing(s.Dir) == nil
	waits := s.Start(s.in, `[{"type":"shell","command":"echo busy > x; echo begun; while test ! -e go; do sleep 0.01; `+
		`done"},{"type":"shell","command":"cat x"}]`)
	s.Prints(waits.ID, "begun")
	busy, err := s.Spaces.Creation.Fork(s.Context(), s.Origin, spaces.Fork{Workspace: testkit.WS, Space: s.in, At: s.step("b")})
	if err != nil || s.File(busy.ID, "f") != "second\n" {
		t.Errorf("a fork of a space that is at work: %v", err)
	}
	if _, err := os.Lstat(frozen); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the files of a space that is at work were moved: %v", err)
	}
	doc, err := s.Spaces.Catalog.Space(s.Context(), testkit.WS, s.in)
	if err != nil {
		t.Fatal(err)
	}
	living, err := s.Spaces.Living.Instance(s.Context(), doc)
	if err != nil {
		t.Fatal(err)
	}
	s.letGo(t)
	if doc := s.Ended(waits.ID); doc.Status != run.Succeeded || *s.Results(doc.ID)[1].Stdout != "busy\n" {
		t.Errorf("the run ends as %s, %+v", doc.Status, s.Results(doc.ID))
	}
	forks := make([]id.Space, 2)
	for i := range forks {
		fork, err := s.Spaces.Creation.Fork(s.Context(), s.Origin, spaces.Fork{Workspace: testkit.WS, Space: s.in, At: s.step("b")})
		if err != nil {
			t.Fatal(err)
		}
		forks[i] = fork.ID
	}
	if _, err := os.Lstat(frozen); (err == nil) != shares {
		t.Errorf("whether files can be shared here: %v; the frozen tree: %v", shares, err)
	}
	if shares {
		<-living.Done() // nothing may run any more among files that others share
	}
	s.Ended(s.Start(forks[0], `[{"type":"shell","command":"cat f; echo fork > f; mkdir only"}]`).ID)
	s.Ended(s.Start(s.in, `[{"type":"shell","command":"test ! -e f && echo origin > f && test ! -e only"}]`).ID)
	for sp, want := range map[id.Space]string{forks[0]: "fork\n", forks[1]: "second\n", s.in: "origin\n"} {
		if got := s.File(sp, "f"); got != want {
			t.Errorf("%s holds %q, want %q", sp, got, want)
		}
	}
	s.Crash()
	for sp, want := range map[id.Space]string{forks[0]: "fork\n", forks[1]: "second\n", s.in: "origin\n"} {
		doc := s.Ended(s.Start(sp, `[{"type":"shell","command":"cat f"}]`).ID)
		if got := *s.Results(doc.ID)[0].Stdout; got != want {
			t.Errorf("after a crash, a command in %s sees %q, want %q", sp, got, want)
		}
	}
	s.Verify()
	nothingLeft(t, s.Stack)
}

// letGo makes the file for which a command of the space waits.
func (s told) letGo(t *testing.T) {
	t.Helper()
	_, dir, err := s.Store.Open(s.in, s.uid(t), space.DefaultLimits())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "go"), nil, 0o644)
	}
	if uid := s.uid(t); err == nil && uid != 0 {
		err = os.Chown(filepath.Join(dir, "go"), uid, uid)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A snapshot that cannot be made is no reason to hide what an operation did.
func TestOperationWithoutSnapshot(t *testing.T) {
	s := open(t)
	in := s.SpaceOf(spaces.Request{Limits: space.Limits{DiskBytes: 1 << 20}}).ID
	doc := s.Ended(s.Start(in, `[{"type":"shell","command":"truncate -s 2M sparse"},{"type":"shell","command":"rm sparse"}]`).ID)
	var codes []string
	for _, e := range s.Events(0) {
		if e.Type != run.EventSucceeded {
			continue
		}
		ended, err := event.Decode[run.Ended](e)
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, ended.Kept.Error)
	}
	if doc.Status != run.Succeeded || !slices.Equal(codes, []string{"snapshot_too_large", ""}) {
		t.Errorf("the run has %s; its operations say %q", doc.Status, codes)
	}
}
