package gc_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/driver/disk"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/kernel/vault"
	"agentbox/internal/service/redaction"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
)

const secret = "the-secret-that-nobody-shall-read"

func shows(f livestream.Frame) bool { return bytes.Contains(f.Data, []byte(secret)) }

// leaks returns the files below a folder that show the secret, but for the live files of spaces.
func leaks(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && e.Name() == "files" {
			return fs.SkipDir
		}
		if !e.Type().IsRegular() {
			return nil
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(secret)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func redact(t *testing.T, s *testkit.Stack, q redaction.Request) vault.Remains {
	t.Helper()
	q.Reason = "a secret was told"
	receipt, err := s.Redaction.Redact(s.Context(), s.Origin, testkit.WS, q)
	if err != nil {
		t.Fatal(err)
	}
	return receipt.Remains
}

func rewind(s *testkit.Stack, in id.Space, to id.Run) error {
	_, err := s.Spaces.Snapshots.Rewind(s.Context(), s.Origin, testkit.WS, in, string(to))
	return err
}

func TestForgetWhatARunHasBrought(t *testing.T) {
	s := open(t, testkit.Options{})
	in := s.SpaceOf(spaces.Request{Name: "told"}).ID
	s.Ended(s.Start(in, stored(`{"type":"createFile","path":"old.txt","content":"was there before"}`)).ID)
	told := s.Ended(s.Start(in, stored(`
		{"type":"createFile","id":"a","path":"secret.txt","content":"`+secret+`"},
		{"type":"shell","id":"b","command":"cat secret.txt; for i in $(seq 3000); do cat secret.txt; done; cp secret.txt other.txt; echo more >> other.txt; cp old.txt copy.txt"}
	`)).ID)
	later := s.Ended(s.Start(in, stored(`{"type":"createFile","path":"later.txt","content":"later"}`)).ID)
	fork, err := s.Spaces.Creation.Fork(s.Context(), s.Origin, spaces.Fork{Workspace: testkit.WS, Space: in})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Spaces.Snapshots.Sync(s.Context()); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"blobs", "live", "spaces"} {
		if found := leaks(t, filepath.Join(s.Dir, part)); len(found) > 0 {
			t.Errorf("it lies unsealed in %v", found)
		}
	}
	if frames, err := s.Live.Read(s.Context(), told.ID, 1, 1000); err != nil || !slices.ContainsFunc(frames, shows) {
		t.Fatalf("the live output does not hold it before: %v", err)
	}
	backup := filepath.Join(t.TempDir(), "blobs")
	if err := os.CopyFS(backup, os.DirFS(filepath.Join(s.Dir, "blobs"))); err != nil {
		t.Fatal(err)
	}
	remains := redact(t, s, redaction.Request{Run: told.ID})
	if remains.Forgotten < 5 || len(remains.Shared) != 0 || len(remains.Missed) != 0 {
		t.Errorf("it answers %+v", remains)
	}
	want := []string{string(in) + ": other.txt", string(in) + ": secret.txt", string(fork.ID) + ": other.txt", string(fork.ID) +
		": secret.txt"}
	slices.Sort(want)
	if !slices.Equal(remains.Live, want) {
		t.Errorf("live files are %q, want %q", remains.Live, want)
	}
	if _, err := s.Blobs.Open(s.Context(), told.Input.Digest); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("the run's operations: %v, want %v", err, blob.ErrNotFound)
	}
	if _, err := disk.LookAtBlobs(backup, s.Keys).Open(s.Context(), told.Input.Digest); !errors.Is(err, vault.ErrForgotten) {
		t.Errorf("the run's operations in a copy that was made before: %v, want %v", err, vault.ErrForgotten)
	}
	frames, err := s.Live.Read(s.Context(), told.ID, 1, 1000)
	if err != nil || len(frames) < 4 || slices.ContainsFunc(frames, shows) {
		t.Errorf("the live output: %d frames, %v", len(frames), err)
	}
	s.Ended(s.Start(in, stored(`{"type":"deleteFile","path":"secret.txt"},{"type":"deleteFile","path":"other.txt"}`)).ID)
	if err := rewind(s, in, later.ID); !errors.Is(err, vault.ErrForgotten) {
		t.Errorf("rewind to a snapshot with the forgotten files: %v, want %v", err, vault.ErrForgotten)
	}
	if err := rewind(s, in, told.ID); err != nil { // before it
		t.Errorf("rewind to what was before: %v", err)
	}
	if got := s.File(in, "old.txt"); got != "was there before" {
		t.Errorf("a file that was there before holds %q", got)
	}
	intact(t, s, 3)
	if swept := sweep(t, s); swept.Failed != nil {
		t.Errorf("a sweep afterwards: %+v", swept)
	}
}

func TestWhatSomethingElseNamesIsNotForgotten(t *testing.T) {
	s := open(t, testkit.Options{})
	first, second := s.SpaceOf(spaces.Request{Name: "first"}).ID, s.SpaceOf(spaces.Request{Name: "second"}).ID
	write := func(in id.Space, path string) run.Run {
		return s.Ended(s.Start(in, `[{"type":"shell","command":"echo common > `+path+`"}]`).ID)
	}
	ours, theirs := write(first, "ours"), write(second, "theirs")
	remains := redact(t, s, redaction.Request{Run: ours.ID})
	if len(remains.Shared) != 1 || !strings.Contains(remains.Shared[0], string(second)) {
		t.Errorf("it answers %+v, want that %s holds it", remains, second)
	}
	remains = redact(t, s, redaction.Request{Run: theirs.ID})
	if len(remains.Shared) != 1 || !strings.Contains(remains.Shared[0], string(first)) { // where it is a file still
		t.Errorf("it answers %+v, want that %s holds it", remains, first)
	}
	write(first, "before")
	after := write(first, "after")
	if remains = redact(t, s, redaction.Request{Run: after.ID}); len(remains.Live) != 0 || len(remains.Shared) != 0 {
		t.Errorf("what an operation did not bring: %+v", remains)
	}
}
