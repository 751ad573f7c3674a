package spaces_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/spaces"
	"agentbox/internal/spaceinit/inittest"
	"agentbox/internal/testkit"
)

// program is the init, built once for all tests of this package.
var program []byte

func TestMain(m *testing.M) {
	var err error
	if program, err = inittest.Build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func open(t testing.TB) *testkit.Stack {
	t.Helper()
	return testkit.Open(t, testkit.Options{Program: program})
}

// texts returns a map of n entries that hold size bytes together.
func texts(n, size int) map[string]string {
	m := map[string]string{}
	for i := range n {
		name := fmt.Sprintf("V%03d", i)
		m[name] = ""
		size -= len(name)
	}
	m["V000"] = strings.Repeat("x", size)
	return m
}

// Each limit of a request at its edge, and one beyond.
func TestCreateLimits(t *testing.T) {
	s := open(t)
	most := s.Options.MaxLimits
	for _, c := range []struct {
		name string
		q    spaces.Request
		ok   bool
	}{
		{"ttl least", spaces.Request{TTL: spaces.MinTTL}, true},
		{"ttl below", spaces.Request{TTL: spaces.MinTTL - 1}, false},
		{"ttl negative", spaces.Request{TTL: -time.Hour}, false},
		{"ttl most", spaces.Request{TTL: spaces.MaxTTL}, true},
		{"ttl beyond", spaces.Request{TTL: spaces.MaxTTL + 1}, false},
		{"name most", spaces.Request{Name: strings.Repeat("ä", spaces.MaxName)}, true},
		{"name beyond", spaces.Request{Name: strings.Repeat("ä", spaces.MaxName+1)}, false},
		{"description most", spaces.Request{Description: strings.Repeat("ä", spaces.MaxDescription)}, true},
		{"description beyond", spaces.Request{Description: strings.Repeat("ä", spaces.MaxDescription+1)}, false},
		{"env most", spaces.Request{Env: texts(spaces.MaxEnv, spaces.MaxEnvBytes)}, true},
		{"env beyond in number", spaces.Request{Env: texts(spaces.MaxEnv+1, spaces.MaxEnvBytes)}, false},
		{"env beyond in bytes", spaces.Request{Env: texts(spaces.MaxEnv, spaces.MaxEnvBytes+1)}, false},
		{"env name", spaces.Request{Env: map[string]string{"1A": "x"}}, false},
		{"env empty name", spaces.Request{Env: map[string]string{"": "x"}}, false},
		{"env nul", spaces.Request{Env: map[string]string{"A": "x\x00"}}, false},
		{"metadata most", spaces.Request{Metadata: texts(spaces.MaxMetadata, spaces.MaxMetaBytes)}, true},
		{"metadata beyond in number", spaces.Request{Metadata: texts(spaces.MaxMetadata+1, spaces.MaxMetaBytes)}, false},
		{"metadata beyond in bytes", spaces.Request{Metadata: texts(spaces.MaxMetadata, spaces.MaxMetaBytes+1)}, false},
		{"metadata no text", spaces.Request{Metadata: map[string]string{"a": "\xff"}}, false},
		{"memory beyond", spaces.Request{Limits: space.Limits{MemoryBytes: most.MemoryBytes + 1}}, false},
		{"memory that nothing starts in", spaces.Request{Limits: space.Limits{MemoryBytes: 16<<20 - 1}}, false},
		{"memory that is just enough", spaces.Request{Limits: space.Limits{MemoryBytes: 16 << 20}}, true},
		{"open files too few", spaces.Request{Limits: space.Limits{OpenFiles: 15}}, false},
		{"open files just enough", spaces.Request{Limits: space.Limits{OpenFiles: 16}}, true},
		{"output too little", spaces.Request{Limits: space.Limits{OutputBytes: 1<<10 - 1}}, false},
		{"output just enough", spaces.Request{Limits: space.Limits{OutputBytes: 1 << 10}}, true},
		{"a file too small", spaces.Request{Limits: space.Limits{FileBytes: 1<<10 - 1}}, false},
		{"a file just enough", spaces.Request{Limits: space.Limits{FileBytes: 1 << 10}}, true},
		{"memory negative", spaces.Request{Limits: space.Limits{MemoryBytes: -1}}, false},
		{"output most", spaces.Request{Limits: space.Limits{OutputBytes: most.OutputBytes}}, true},
		{"output beyond", spaces.Request{Limits: space.Limits{OutputBytes: most.OutputBytes + 1}}, false},
		{"tier", spaces.Request{Tier: "mainframe"}, false},
		{"preset", spaces.Request{Preset: "generous"}, false},
		{"overrides", spaces.Request{Overrides: json.RawMessage(`{"limits":{"file_bytes":0}}`)}, false},
		{"two seeds", spaces.Request{Folder: "/x", Archive: bytes.NewReader(nil)}, false},
		{"a folder that nobody allowed", spaces.Request{Folder: s.Dir}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.q.Workspace = testkit.WS
			doc, err := s.Spaces.Creation.Create(s.Context(), s.Origin, c.q)
			switch kind := fault.KindOf(err); {
			case c.ok && err != nil:
				t.Fatalf("it is refused: %v", err)
			case c.ok:
				if _, err := s.Spaces.Ending.Destroy(s.Context(), s.Origin, testkit.WS, doc.ID); err != nil {
					t.Error(err)
				}
			case err == nil:
				t.Error("it is taken")
			case kind == fault.Internal || kind == fault.Unavailable:
				t.Errorf("it is refused as %s: %v", kind, err)
			}
		})
	}
	left, err := s.Spaces.Catalog.List(s.Context(), testkit.WS, "", "", 10)
	if err != nil || len(left) > 0 {
		t.Errorf("%d spaces are left, %v", len(left), err)
	}
	nothingLeft(t, s)
}

// nothingLeft checks that no destroyed space has a directory.
func nothingLeft(t *testing.T, s *testkit.Stack) {
	t.Helper()
	kept, err := s.Store.List(s.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range kept {
		doc, err := s.Spaces.Catalog.Space(s.Context(), testkit.WS, one)
		if err != nil || doc.Status == space.Destroyed {
			t.Errorf("the directory of %s is left; %s %v", one, doc.Status, err)
		}
	}
}

func TestUpdateAndExtend(t *testing.T) {
	s := open(t)
	doc := s.SpaceOf(spaces.Request{Name: "one", Description: "d", Env: map[string]string{"A": "1"}, Metadata: map[string]string{"m": "1"}})
	name, long := "two", strings.Repeat("x", spaces.MaxName+1)
	got, err := s.Spaces.Settings.Update(s.Context(), s.Origin, testkit.WS, doc.ID, spaces.Change{Name: &name,
		Metadata: &map[string]string{"n": "2"}})
	if err != nil || got.Name != "two" || got.Description != "d" || !maps.Equal(got.Env, doc.Env) || !maps.Equal(got.Metadata,
		map[string]string{"n": "2"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := s.Spaces.Settings.Update(s.Context(), s.Origin, testkit.WS, doc.ID,
		spaces.Change{Name: &long}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a name that is too long: %v", err)
	}
	for _, by := range []time.Duration{spaces.MinTTL - 1, spaces.MaxTTL + 1, 0, -time.Hour} {
		if _, err := s.Spaces.Settings.Extend(s.Context(), s.Origin, testkit.WS, doc.ID, by); fault.KindOf(err) != fault.Invalid {
			t.Errorf("extended by %s: %v", by, err)
		}
	}
	before := s.Clock.Now()
	got, err = s.Spaces.Settings.Extend(s.Context(), s.Origin, testkit.WS, doc.ID, spaces.MaxTTL)
	if err != nil || got.ExpiresAt.Before(before.Add(spaces.MaxTTL)) || got.ExpiresAt.After(s.Clock.Now().Add(spaces.MaxTTL)) {
		t.Errorf("ends at %s, %v", got.ExpiresAt, err)
	}
	s.Tick(spaces.MaxTTL - time.Hour)
	if doc, _ := s.Spaces.Catalog.Space(s.Context(), testkit.WS, doc.ID); doc.Status != space.Ready {
		t.Errorf("before its time is over it is %s", doc.Status)
	}
	s.Tick(2 * time.Hour)
	doc, err = s.Spaces.Catalog.Space(s.Context(), testkit.WS, doc.ID)
	if err != nil || doc.Status != space.Destroyed || doc.Reason != "expired" {
		t.Errorf("after its time it is %s (%s), %v", doc.Status, doc.Reason, err)
	}
	if _, err := s.Spaces.Settings.Update(s.Context(), s.Origin, testkit.WS, doc.ID, spaces.Change{Name: &name}); !errors.Is(err,
		spaces.ErrDestroyed) {
		t.Errorf("update of what is gone: %v", err)
	}
	if _, err := s.Spaces.Settings.Extend(s.Context(), s.Origin, testkit.WS, doc.ID, time.Hour); !errors.Is(err, spaces.ErrDestroyed) {
		t.Errorf("extension of what is gone: %v", err)
	}
	if _, err := s.Spaces.Files.Read(s.Context(), s.Origin, testkit.WS, doc.ID, "x", spaces.Any); !errors.Is(err, spaces.ErrDestroyed) {
		t.Errorf("a file of what is gone: %v", err)
	}
	nothingLeft(t, s)
}

func TestSeeds(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "seed")
	if err := os.MkdirAll(filepath.Join(folder, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "sub", "f"), []byte("from the folder"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := testkit.Open(t, testkit.Options{Program: program, Sources: []string{filepath.Dir(folder)}})
	doc := s.SpaceOf(spaces.Request{Folder: folder})
	if got := s.File(doc.ID, "sub/f"); got != "from the folder" {
		t.Errorf("got %q", got)
	}
	packed := archive(t, "a/b", "from the archive")
	doc = s.SpaceOf(spaces.Request{Archive: bytes.NewReader(packed), ArchiveHash: event.DigestOf(packed)})
	if got := s.File(doc.ID, "a/b"); got != "from the archive" {
		t.Errorf("got %q", got)
	}
}

func archive(t *testing.T, name, content string) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	f, err := w.Create(name)
	if err == nil {
		_, err = f.Write([]byte(content))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// A request that failed has not used up its key; one that succeeded has.
func TestTrapIdempotencyKeyBurntByAFailure(t *testing.T) {
	s := testkit.Open(t, testkit.Options{Program: program, MaxSpaces: 1})
	create := func(packed []byte) (space.Space, error) {
		return s.Spaces.Creation.Create(s.Context(), s.Origin, spaces.Request{
			Workspace: testkit.WS, Archive: bytes.NewReader(packed), ArchiveHash: event.DigestOf(packed), Key: "k",
		})
	}
	for _, bad := range []string{"no archive", "no archive", "none either"} {
		if _, err := create([]byte(bad)); fault.CodeOf(err) != space.ErrArchiveInvalid.Code {
			t.Fatalf("a bad archive: %v", err)
		}
	}
	good := archive(t, "f", "x")
	first, err := create(good)
	if err != nil || first.Status != space.Ready {
		t.Fatalf("the corrected request: %s, %v", first.Status, err)
	}
	again, err := create(good)
	if err != nil || again.ID != first.ID {
		t.Errorf("the repeated request, while the workspace is full: %s, %v; want %s", again.ID, err, first.ID)
	}
	if _, err := create(archive(t, "f", "y")); fault.CodeOf(err) != "idempotency_conflict" {
		t.Errorf("another request with the same key: %v", err)
	}
	s.Restart()
	if again, err = create(good); err != nil || again.ID != first.ID {
		t.Errorf("after a restart: %s, %v; want %s", again.ID, err, first.ID)
	}
	nothingLeft(t, s)
}

// However many ask at once, no more spaces are made than may be.
func TestTrapSpaceQuotaUnderConcurrency(t *testing.T) {
	const may = 5
	s := testkit.Open(t, testkit.Options{Program: program, MaxSpaces: may})
	var wait sync.WaitGroup
	var mu sync.Mutex
	made, full := 0, 0
	for range 50 {
		wait.Go(func() {
			_, err := s.Spaces.Creation.Create(s.Context(), s.Origin, spaces.Request{Workspace: testkit.WS})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				made++
			case fault.CodeOf(err) == "quota_exceeded":
				full++
			default:
				t.Errorf("create: %v", err)
			}
		})
	}
	wait.Wait()
	if made != may || full != 50-may {
		t.Errorf("%d were made and %d refused; want %d and %d", made, full, may, 50-may)
	}
	distinct(t, s)
}

// distinct checks that no two living spaces share a host uid, and returns the uids.
func distinct(t *testing.T, s *testkit.Stack) []int {
	t.Helper()
	living, err := s.Spaces.Catalog.List(s.Context(), testkit.WS, "", "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	var uids []int
	for _, doc := range living {
		if doc.UID != 0 {
			uids = append(uids, doc.UID)
		}
	}
	slices.Sort(uids)
	if len(slices.Compact(slices.Clone(uids))) != len(uids) {
		t.Errorf("living spaces share a host uid: %v", uids)
	}
	return uids
}

// A host uid is given to one living space at a time: not while spaces come and go, not when one is destroyed twice at once, not after a
// restart or a crash.
func TestHostUIDsAreNotShared(t *testing.T) {
	s := open(t)
	for round := range 4 {
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				if _, err := s.Spaces.Creation.Create(s.Context(), s.Origin, spaces.Request{Workspace: testkit.WS}); err != nil {
					t.Errorf("create: %v", err)
				}
			})
		}
		living, err := s.Spaces.Catalog.List(s.Context(), testkit.WS, space.Ready, "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range living[:len(living)/2] {
			for range 3 { // at once
				wait.Go(func() {
					if _, err := s.Spaces.Ending.Destroy(s.Context(), s.Origin, testkit.WS, doc.ID); err != nil {
						t.Errorf("destroy: %v", err)
					}
				})
			}
		}
		wait.Wait()
		distinct(t, s)
		if round%2 == 0 {
			s.Restart()
		} else {
			s.Crash()
		}
	}
	distinct(t, s)
	ended := map[id.Space]int{}
	for _, e := range s.Events(0) {
		if e.Type == space.EventDestroyed {
			ended[id.Space(e.EntityID)]++
		}
	}
	for one, n := range ended {
		if n != 1 {
			t.Errorf("%s was destroyed %d times", one, n)
		}
	}
	s.Verify()
}

// A crash at each append of a creation leaves a space that is ready or nothing of it: no directory, no host uid, no place in the quota.
func TestCrashInTheMiddleOfCreate(t *testing.T) {
	for _, death := range []testkit.Death{testkit.Recorded, testkit.Unconfirmed} {
		s := testkit.Open(t, testkit.Options{Program: program, MaxSpaces: 1})
		ready, died := false, 0
		for n := 1; !ready; n++ {
			left := n
			s.Log.DieAt(func(event.Receipt) testkit.Death {
				if left--; left == 0 {
					return death
				}
				return testkit.Survive
			})
			_, err := s.Spaces.Creation.Create(s.Context(), s.Origin, spaces.Request{Workspace: testkit.WS, Key: fmt.Sprint("k", n)})
			select {
			case <-s.Log.Gone():
				died++
				s.Crash()
			default:
				if err != nil {
					t.Fatalf("create: %v", err)
				}
			}
			living, err := s.Spaces.Catalog.List(s.Context(), testkit.WS, "", "", 10)
			if err != nil {
				t.Fatal(err)
			}
			kept, err := s.Store.List(s.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(kept) != len(living) || len(living) > 0 && living[0].Status != space.Ready {
				t.Errorf("after a crash at append %d there are %d directories, and the spaces %+v", n, len(kept), living)
			}
			if ready = len(living) > 0; ready && died < 2 {
				t.Errorf("only %d crashes left no space", died)
			}
		}
		for _, e := range s.Events(0) { // there is one place: each space had the host uid that the one before gave back
			if e.Type != space.EventCreated {
				continue
			}
			d, err := event.Decode[space.Created](e)
			if uids := distinct(t, s); err != nil || len(uids) > 0 && d.UID != uids[0] {
				t.Errorf("%s had the host uid %d, want %v; %v", d.Space, d.UID, uids, err)
			}
		}
		s.Verify()
	}
}

// A change of a file that a crash interrupted is closed as unknown at the next start.
func TestCrashInTheMiddleOfAFileChange(t *testing.T) {
	s := open(t)
	doc := s.Space()
	s.Log.DieAt(func(r event.Receipt) testkit.Death {
		if r.Events[0].Type == space.EventFileBegun {
			return testkit.Recorded
		}
		return testkit.Survive
	})
	content := []byte("x")
	_, err := s.Spaces.Files.Write(s.Context(), s.Origin, testkit.WS, doc.ID, "f", false, "", event.DigestOf(content), 1,
		bytes.NewReader(content))
	if fault.KindOf(err) != fault.Unavailable {
		t.Errorf("the write that could not be recorded: %v", err)
	}
	s.Crash()
	var last space.FileEnded
	for _, e := range s.Events(0) {
		if e.Type == space.EventFileEnded {
			if last, err = event.Decode[space.FileEnded](e); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !last.Unknown || last.OK {
		t.Errorf("the change ended as %+v, want unknown", last)
	}
	s.Verify()
}

// A request with an idempotency key writes its file once, also where the daemon died before the write or behind it; the repeat gets the
// entry that the first made, and a file that was there before is still none that the request made.
func TestCrashInTheMiddleOfAFileChangeThatIsSentAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		death testkit.Death
	}{
		{"before the write", testkit.Unconfirmed},
		{"behind the write", testkit.Recorded},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			doc := s.Space()
			content := []byte("once")
			origin := s.Origin
			origin.Key, origin.Command = "key", event.DigestOf(content)
			write := func() (space.Entry, error) {
				return s.Spaces.Files.Write(s.Context(), origin, testkit.WS, doc.ID, "f", false, "", event.DigestOf(content), int64(len(content)),
					bytes.NewReader(content))
			}
			s.Log.DieAt(func(r event.Receipt) testkit.Death {
				if r.Events[0].Type == space.EventFileBegun {
					return c.death
				}
				return testkit.Survive
			})
			if _, err := write(); fault.KindOf(err) != fault.Unavailable {
				t.Fatalf("the write that was cut off: %v", err)
			}
			s.Crash()
			first, err := write()
			if err != nil || first.Path != "f" || first.Size != 4 {
				t.Fatalf("got %+v, %v, want the file", first, err)
			}
			head := len(s.Events(0))
			if again, err := write(); err != nil || again != first || len(s.Events(0)) != head {
				t.Errorf("again: got %+v, %v and %d events more, want %+v", again, err, len(s.Events(0))-head, first)
			}
			s.Crash()
			if again, err := write(); err != nil || again != first {
				t.Errorf("after a restart: got %+v, %v, want %+v", again, err, first)
			}
			origin.Command = event.DigestOf([]byte("something else"))
			if _, err := write(); !errors.Is(err, journal.ErrKeyConflict) {
				t.Errorf("the key for something else: %v", err)
			}
			origin.Key, origin.Command = "another", event.DigestOf(content)
			for range 2 { // the refusal has not used up the key, and the file is none that this request made
				if _, err := write(); !errors.Is(err, space.ErrFileExists) {
					t.Errorf("another request: %v, want file_exists", err)
				}
			}
			s.Verify()
		})
	}
}

// Requests over the API pass the gate like everything else.
func TestTrapFilesSkipPolicy(t *testing.T) {
	s := open(t)
	doc := s.SpaceOf(spaces.Request{Preset: "restrictive"})
	content := []byte("x")
	_, err := s.Spaces.Files.Write(s.Context(), s.Origin, testkit.WS, doc.ID, "f", false, "", event.DigestOf(content), 1,
		bytes.NewReader(content))
	if fault.KindOf(err) != fault.Denied {
		t.Errorf("a write under the restrictive policy: %v", err)
	}
	standard := s.Space()
	for _, path := range []string{".git/hooks/pre-commit", "a/.git/HEAD", ".git/config"} {
		if _, err := s.Spaces.Files.Write(s.Context(), s.Origin, testkit.WS, standard.ID, path, false, "", event.DigestOf(content), 1,
			bytes.NewReader(content)); fault.KindOf(err) != fault.Denied {
			t.Errorf("a write of %s: %v", path, err)
		}
	}
	denied := 0
	for _, e := range s.Events(0) {
		if e.Type == policy.DeniedType {
			denied++
		}
	}
	if denied != 4 {
		t.Errorf("%d refusals were recorded, want 4", denied)
	}
}

// Spaces and their policy live in the log, not in the process: a restart changes nothing.
func TestTrapSpacesAreLostAtRestart(t *testing.T) {
	s := testkit.Open(t, testkit.Options{Program: program, SQLite: true})
	doc := s.SpaceOf(spaces.Request{Name: "kept", Overrides: json.RawMessage(`{"limits":{"file_bytes":3}}`)})
	first := s.Start(doc.ID, `[{"type":"createFile","path":"f","content":"abc"}]`)
	if s.Ended(first.ID); !s.Results(first.ID)[0].OK() {
		t.Fatalf("got %+v", s.Results(first.ID))
	}
	s.Restart()
	if got := s.File(doc.ID, "f"); got != "abc" {
		t.Errorf("the file holds %q", got)
	}
	again, err := s.Spaces.Catalog.Space(s.Context(), testkit.WS, doc.ID)
	if err != nil || again.Name != "kept" || again.Bundle != doc.Bundle {
		t.Errorf("got %+v, %v", again, err)
	}
	second := s.Start(doc.ID, `[{"type":"createFile","path":"g","content":"abcd"}]`)
	s.Ended(second.ID)
	if r := s.Results(second.ID)[0]; r.Type != run.ResPolicyDenied {
		t.Errorf("the policy was forgotten: %+v", r)
	}
}

// A space of another workspace is not there.
func TestTrapSpaceIsReachedAcrossWorkspaces(t *testing.T) {
	s := open(t)
	doc := s.Space()
	const other = id.Workspace("ws_other")
	if _, err := s.Spaces.Catalog.Space(s.Context(), other, doc.ID); fault.CodeOf(err) != "space_not_found" {
		t.Errorf("look: %v", err)
	}
	if _, err := s.Spaces.Ending.Destroy(s.Context(), s.Origin, other, doc.ID); fault.CodeOf(err) != "space_not_found" {
		t.Errorf("destroy: %v", err)
	}
	if _, err := s.Spaces.Files.List(s.Context(), s.Origin, other, doc.ID, ".", false); fault.CodeOf(err) != "space_not_found" {
		t.Errorf("files: %v", err)
	}
	if _, _, err := s.Spaces.Living.Occupy(s.Context(), other, doc.ID, false); fault.CodeOf(err) != "space_not_found" {
		t.Errorf("occupy: %v", err)
	}
}
