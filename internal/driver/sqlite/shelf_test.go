package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"agentbox/internal/domain/event"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/projection"
)

func note(key, text string) event.Batch {
	return journaltest.Batch(journaltest.Draft(text).About("note", key))
}

// openNotes opens a log of notes.
func openNotes(t *testing.T, vfsName string) (*sqlite.Journal, string) {
	t.Helper()
	o := options(filepath.Join(t.TempDir(), "log.db"), journaltest.Notes(1))
	o.VFS = vfsName
	log, err := sqlite.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return log, o.Path
}

// document reads a note by its key, and by a list, which is read from the file.
func document(t *testing.T, log *sqlite.Journal, key string) (byKey, listed projection.Document) {
	t.Helper()
	byKey, err := log.Document(t.Context(), journaltest.Workspace, "notes", key)
	if err != nil {
		t.Error(err)
	}
	docs, err := log.Documents(t.Context(), projection.Query{Workspace: journaltest.Workspace, Name: "notes"})
	if err != nil {
		t.Error(err)
	}
	for _, d := range docs {
		if d.Key == key {
			listed = d
		}
	}
	return byKey, listed
}

// Readers, by key or by list, see documents grow. They never see a version older than the last acknowledged one or than one they saw
// before. One version always has the same bytes.
func TestReadersSeeDocumentsGrow(t *testing.T) {
	log, _ := openNotes(t, "")
	const keys, events = 3, 60
	var acknowledged [keys]atomic.Uint64
	var bodies sync.Map
	var writing, reading sync.WaitGroup
	written := make(chan struct{})
	for k := range keys {
		if _, err := log.Append(t.Context(), note(fmt.Sprint(k), "0")); err != nil {
			t.Fatal(err)
		}
		acknowledged[k].Store(1)
		writing.Go(func() {
			for i := range events {
				if _, err := log.Append(t.Context(), note(fmt.Sprint(k), fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
				acknowledged[k].Add(1)
			}
		})
		for range 2 {
			reading.Go(func() {
				least := uint64(0)
				for done := false; !done; {
					select {
					case <-written:
						done = true
					default:
					}
					least = max(least, acknowledged[k].Load())
					byKey, listed := document(t, log, fmt.Sprint(k))
					for _, d := range []projection.Document{byKey, listed} {
						if d.Version < least {
							t.Errorf("got version %d of %d, want %d or later", d.Version, k, least)
						}
						least = max(least, d.Version)
						seen := fmt.Sprint(d.Seq, string(d.Body))
						if first, _ := bodies.LoadOrStore(fmt.Sprint(k, "@", d.Version), seen); first != seen {
							t.Errorf("version %d of %d: got %s, then %s", d.Version, k, first, seen)
						}
					}
				}
				if least != events+1 {
					t.Errorf("got version %d of %d at the end, want %d", least, k, events+1)
				}
			})
		}
	}
	writing.Wait()
	close(written)
	reading.Wait()
}

// A reader may change the bytes of the document that it got; other readers do not see the change.
func TestDocumentsAreTheReadersOwn(t *testing.T) {
	log, _ := openNotes(t, "")
	if _, err := log.Append(t.Context(), note("n", "x")); err != nil {
		t.Fatal(err)
	}
	_, want := document(t, log, "n")
	for range 3 {
		got, _ := document(t, log, "n")
		if string(got.Body) != string(want.Body) || got.Seq != want.Seq || got.Version != want.Version || got.Key != want.Key {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		clear(got.Body)
	}
}

// A commit that fails changes no document that anybody reads.
func TestFailedCommitShowsNothing(t *testing.T) {
	f := &faults{VFSFilename: vfs.Find("").(vfs.VFSFilename), call: "write", err: sqlite3.FULL}
	vfs.Register("faulty-shelf", f)
	defer vfs.Unregister("faulty-shelf")
	log, _ := openNotes(t, "faulty-shelf")
	if _, err := log.Append(t.Context(), note("n", "kept")); err != nil {
		t.Fatal(err)
	}
	before, _ := document(t, log, "n")
	f.armed.Store(true)
	if _, err := log.Append(t.Context(), note("n", "lost")); !errors.Is(err, journal.ErrClosed) {
		t.Fatalf("got %v, want %v", err, journal.ErrClosed)
	}
	f.armed.Store(false)
	for range 2 {
		if got, listed := document(t, log, "n"); got.Version != 1 || string(got.Body) != string(before.Body) ||
			string(listed.Body) != string(before.Body) {
			t.Errorf("got %d %s, listed %s, want 1 %s", got.Version, got.Body, listed.Body, before.Body)
		}
	}
}

// A rebuild replaces what was read before it.
func TestRebuildReplacesWhatWasRead(t *testing.T) {
	log, path := openNotes(t, "")
	for _, text := range []string{"a", "b"} {
		if _, err := log.Append(t.Context(), note("n", text)); err != nil {
			t.Fatal(err)
		}
	}
	listed, err := log.Documents(t.Context(), projection.Query{Workspace: journaltest.Workspace, Name: "notes"})
	if err != nil || len(listed) != 1 {
		t.Fatalf("got %d notes, %v", len(listed), err)
	}
	want := listed[0]
	if err := log.Rebuild(t.Context(), "notes"); err != nil { // the table holds everything
		t.Fatal(err)
	}
	conn, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conn.Exec(`UPDATE documents SET body = CAST('{"wrong":true}' AS BLOB)`), conn.Close()); err != nil {
		t.Fatal(err)
	}
	wrong := `{"wrong":true}`
	for range 2 { // from the file, then perhaps not
		if got, listed := document(t, log, "n"); string(got.Body) != wrong || string(listed.Body) != wrong {
			t.Fatalf("got %s, listed %s, want %s in the file", got.Body, listed.Body, wrong)
		}
	}
	if err := log.Rebuild(t.Context(), "notes"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, listed := document(t, log, "n"); string(got.Body) != string(want.Body) || string(listed.Body) != string(want.Body) {
			t.Errorf("got %s, listed %s, want %s", got.Body, listed.Body, want.Body)
		}
	}
}

// A document that is too large to be kept, and more documents than are kept, are read all the same.
func TestMoreThanIsKept(t *testing.T) {
	log, _ := openNotes(t, "")
	if _, err := log.Append(t.Context(), note("large", strings.Repeat("x", 100<<10))); err != nil {
		t.Fatal(err)
	}
	const many = 5_000
	for from := 0; from < many; from += 1_000 {
		b := note("0", "")
		b.Drafts = nil
		for i := range 1_000 {
			b.Drafts = append(b.Drafts, journaltest.Draft("x").About("note", fmt.Sprintf("n%d", from+i)))
		}
		if _, err := log.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		for i := range many {
			if d, err := log.Document(t.Context(), journaltest.Workspace, "notes", fmt.Sprintf("n%d", i)); err != nil || d.Version != 1 {
				t.Fatalf("note %d: got version %d, %v", i, d.Version, err)
			}
		}
		if d, err := log.Document(t.Context(), journaltest.Workspace, "notes", "large"); err != nil || len(d.Body) < 100<<10 {
			t.Fatalf("got %d bytes, %v", len(d.Body), err)
		}
	}
	if _, err := log.Append(t.Context(), note("large", "small")); err != nil {
		t.Fatal(err)
	}
	if got, listed := document(t, log, "large"); got.Version != 2 || listed.Key == "large" && string(listed.Body) != string(got.Body) {
		t.Errorf("got %+v, listed %+v", got.Version, listed.Version)
	}
}

// A key that has no document is asked of the file once, and is found as soon as somebody makes its document.
func TestAnAbsentDocumentIsRemembered(t *testing.T) {
	log, _ := openNotes(t, "")
	for range 2 {
		if _, err := log.Document(t.Context(), journaltest.Workspace, "notes", "later"); !errors.Is(err, projection.ErrNotFound) {
			t.Fatalf("got %v, want projection.ErrNotFound", err)
		}
	}
	if _, err := log.Append(t.Context(), note("later", "here")); err != nil {
		t.Fatal(err)
	}
	if byKey, listed := document(t, log, "later"); byKey.Version != 1 || listed.Version != 1 {
		t.Errorf("got versions %d by key and %d in a list, want 1 and 1", byKey.Version, listed.Version)
	}
}

// More absent keys than are kept are asked for: all of them stay absent, and documents that were read stay in memory.
func TestAbsentDocumentsAreBounded(t *testing.T) {
	log, _ := openNotes(t, "")
	if _, err := log.Append(t.Context(), note("there", "here")); err != nil {
		t.Fatal(err)
	}
	for i := range 2_100 {
		if _, err := log.Document(t.Context(), journaltest.Workspace, "notes", fmt.Sprint("none", i)); !errors.Is(err, projection.ErrNotFound) {
			t.Fatalf("key %d: got %v, want projection.ErrNotFound", i, err)
		}
	}
	if n := sqlite.Absences(log); n < 1 || n > 1_024 {
		t.Errorf("%d absent keys are kept, want 1 to 1,024", n)
	}
	if _, err := log.Append(t.Context(), note("none2099", "here")); err != nil {
		t.Fatal(err)
	}
	if byKey, _ := document(t, log, "none2099"); byKey.Version != 1 {
		t.Errorf("got version %d, want 1", byKey.Version)
	}
	if byKey, _ := document(t, log, "there"); byKey.Version != 1 {
		t.Errorf("got version %d, want 1", byKey.Version)
	}
}
