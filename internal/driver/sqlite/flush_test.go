package sqlite_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"pgregory.net/rapid"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/memory"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
)

// dead copies the files of a log that is open and does nothing, as a killed daemon leaves them.
func dead(t testing.TB, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "log.db")
	for _, suffix := range []string{"", "-wal"} {
		raw, err := os.ReadFile(path + suffix)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(to+suffix, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// lag returns how many events the tables of a file lag behind, looked at from outside.
func lag(t testing.TB, path string) (events, documents int) {
	t.Helper()
	conn, err := sqlite3.OpenFlags("file:"+path, sqlite3.OPEN_READONLY|sqlite3.OPEN_URI)
	if err != nil {
		t.Fatal(err)
	}
	for sql, n := range map[string]*int{`SELECT coalesce(sum(head - flushed), 0) FROM workspaces`: &events,
		`SELECT count(*) FROM documents`: &documents} {
		s, _, err := conn.Prepare(sql)
		if err != nil {
			t.Fatal(err)
		}
		if s.Step() {
			*n = s.ColumnInt(0)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	return events, documents
}

// still opens a log whose committer never tidies up, so that its files can be copied.
func still(t testing.TB, setup journaltest.Setup, path string) *sqlite.Journal {
	t.Helper()
	log, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, Definitions: setup.Definitions, Clock: stampsOnly{setup.Clock},
		IDs: setup.IDs, Entropy: setup.Entropy})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// asked is a random list.
func asked(r *rapid.T) projection.Query {
	q := projection.Query{Workspace: journaltest.Workspace, Name: "notes", Newest: rapid.Bool().Draw(r, "newest"), Limit: rapid.IntRange(1,
		5).Draw(r, "limit")}
	if rapid.Bool().Draw(r, "goes on") {
		q.After = fmt.Sprint("n", rapid.IntRange(0, 8).Draw(r, "after"))
	}
	switch rapid.IntRange(0, 2).Draw(r, "index") {
	case 1:
		q.Index = projection.Index{Name: "texts", Value: fmt.Sprint(rapid.IntRange(1, 3).Draw(r, "texts"))}
	case 2:
		q.Index = projection.Index{Name: "sum", Value: "0"}
	}
	return q
}

// With any part of the documents in the tables, every list, document and end of a stream equals that of a log in memory: in the running
// daemon, in one that comes after a kill, and for a reader of the file from outside.
func TestListsWhileTheTablesLag(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		disk, mem := journaltest.NewSetup(journaltest.Notes(1), journaltest.Rooms(1)), journaltest.NewSetup(journaltest.Notes(1),
			journaltest.Rooms(1))
		model, err := memory.NewJournal(mem.Definitions, mem.Clock, mem.IDs, mem.Entropy)
		if err != nil {
			r.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "log.db")
		log := still(t, disk, path)
		defer func() { _ = log.Close() }()
		compare := func(who string, of *sqlite.Journal) {
			q := asked(r)
			got, err := of.Documents(t.Context(), q)
			want, wantErr := model.Documents(t.Context(), q)
			if err != nil || wantErr != nil || text(got) != text(want) {
				r.Fatalf("%s, %+v\n got %s, %v\nwant %s, %v", who, q, text(got), err, text(want), wantErr)
			}
			key := fmt.Sprint("n", rapid.IntRange(0, 9).Draw(r, "key"))
			doc, err := of.Document(t.Context(), journaltest.Workspace, "notes", key)
			wanted, wantErr := model.Document(t.Context(), journaltest.Workspace, "notes", key)
			if !errors.Is(err, wantErr) || text(doc) != text(wanted) {
				r.Fatalf("%s, %s\n got %s, %v\nwant %s, %v", who, key, text(doc), err, text(wanted), wantErr)
			}
			// The salts differ after a restart, and with them the hashes: the chains are held against themselves.
			if err := journaltest.CheckChains(t.Context(), of, journaltest.Workspace); err != nil {
				r.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 15).Draw(r, "steps") {
			switch rapid.IntRange(0, 7).Draw(r, "step") {
			case 0:
				if err := log.Flush(); err != nil {
					r.Fatal(err)
				}
				if behind, _ := lag(t, path); behind != 0 {
					r.Fatalf("the tables lag %d events behind after a flush", behind)
				}
			case 1:
				left := dead(t, path)
				_ = log.Close()
				path = left
				log = still(t, disk, path)
				if behind, _ := lag(t, path); behind != 0 {
					r.Fatalf("the tables lag %d events behind after the log was opened", behind)
				}
			case 2:
				look, err := sqlite.OpenReadOnly(t.Context(), options(path, journaltest.Notes(1), journaltest.Rooms(1)))
				if err != nil {
					r.Fatal(err)
				}
				compare("from outside", look)
				if got, want := journaltest.Documents(t, look, "notes", "rooms"), journaltest.Documents(t, model, "notes", "rooms"); got != want {
					r.Fatalf("from outside\n got %s\nwant %s", got, want)
				}
				entries, ok, err := look.Entries(t.Context(), journaltest.Workspace, "notes")
				if want := entriesOf(t, model); !ok || err != nil || text(sorted(entries)) != text(want) {
					r.Fatalf("entries\n got %v, %t, %v\nwant %v", sorted(entries), ok, err, want)
				}
				if err := look.Close(); err != nil {
					r.Fatal(err)
				}
			default:
				b := batch(r)
				if rapid.Bool().Draw(r, "plain") {
					b = note(fmt.Sprint("n", rapid.IntRange(0, 9).Draw(r, "note")), "x")
				}
				got, gotErr := log.Append(t.Context(), b)
				want, wantErr := model.Append(t.Context(), b)
				if (gotErr == nil) != (wantErr == nil) || len(got.Events) != len(want.Events) {
					r.Fatalf("append\n got %s, %v\nwant %s, %v", text(got), gotErr, text(want), wantErr)
				}
				compare("running", log)
			}
		}
	})
}

func sorted(entries []projection.Entry) []projection.Entry {
	slices.SortFunc(entries, func(a, b projection.Entry) int { return strings.Compare(text(a), text(b)) })
	return entries
}

// entriesOf are the entries that the documents of a log in memory are found under.
func entriesOf(t testing.TB, log *memory.Journal) []projection.Entry {
	t.Helper()
	def := journaltest.Notes(1)
	docs, err := log.Documents(t.Context(), projection.Query{Workspace: journaltest.Workspace, Name: "notes", Limit: projection.MaxDocuments})
	if err != nil {
		t.Fatal(err)
	}
	var entries []projection.Entry
	for _, d := range docs {
		state, err := def.Restore(d.Key, d.Body, d.Version, d.Seq)
		if err != nil {
			t.Fatal(err)
		}
		_, indexes, err := state.Encode()
		if err != nil {
			t.Fatal(err)
		}
		for _, index := range indexes {
			entries = append(entries, projection.Entry{Index: index, Key: d.Key})
		}
	}
	return sorted(entries)
}

// The tables are written with the event that makes a thousand and twenty-four, and not with the one before.
func TestTablesLagSoFar(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	log := still(t, journaltest.NewSetup(journaltest.Notes(1)), path)
	defer func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
		if behind, documents := lag(t, path); behind != 0 || documents != 3 {
			t.Errorf("closed: %d events behind, %d documents, want 0 and 3", behind, documents)
		}
	}()
	many := note("n", "x")
	for len(many.Drafts) < journal.MaxBatch {
		many.Drafts = append(many.Drafts, many.Drafts[0])
	}
	for left := sqlite.FlushedAtOnce - 1; left > 0; left -= len(many.Drafts) {
		many.Drafts = many.Drafts[:min(left, len(many.Drafts))]
		if _, err := log.Append(t.Context(), many); err != nil {
			t.Fatal(err)
		}
	}
	if behind, documents := lag(t, path); behind != sqlite.FlushedAtOnce-1 || documents != 0 {
		t.Errorf("%d events behind and %d documents, want %d and none", behind, documents, sqlite.FlushedAtOnce-1)
	}
	for i := range 2 {
		if _, err := log.Append(t.Context(), note(fmt.Sprint("n", i), "x")); err != nil {
			t.Fatal(err)
		}
		if behind, documents := lag(t, path); behind != i || documents != 2 {
			t.Errorf("event %d: %d events behind and %d documents, want %d and 2", sqlite.FlushedAtOnce+i, behind, documents, i)
		}
	}
}

// Large documents are written before there are as many events.
func TestTablesLagByBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	log := still(t, journaltest.NewSetup(journaltest.Notes(1)), path)
	defer func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}()
	for n := 1; ; n++ {
		if _, err := log.Append(t.Context(), note("n", strings.Repeat("x", 200<<10))); err != nil {
			t.Fatal(err)
		}
		if behind, _ := lag(t, path); behind == 0 {
			if n != 6 { // 0.2 + 0.4 + ... MiB
				t.Errorf("written with event %d, want 6", n)
			}
			return
		}
	}
}

// A batch that cannot be folded takes back what it has changed in memory, and nothing of what was acknowledged before it and is not in
// the tables.
func TestRefusedBatchLeavesWhatTheTablesLagBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	log := still(t, journaltest.NewSetup(journaltest.Notes(1)), path)
	defer func() { _ = log.Close() }()
	for i := range 3 {
		if _, err := log.Append(t.Context(), note("n", "x")); err != nil {
			t.Fatal(err)
		}
		b := note("n", "x")
		b.Drafts = append(b.Drafts, note("n", "fail").Drafts...)
		if _, err := log.Append(t.Context(), b); err == nil {
			t.Fatal("a batch that cannot be folded was recorded")
		}
		byKey, listed := document(t, log, "n")
		if byKey.Version != uint64(i+1) || text(byKey) != text(listed) {
			t.Errorf("got %s, listed %s, want version %d", text(byKey), text(listed), i+1)
		}
	}
	if err := journaltest.CheckChains(t.Context(), log, journaltest.Workspace); err != nil {
		t.Error(err)
	}
}

// Events that a killed daemon's tables lack cannot be folded without the keys. A reader gets an error, and no older documents.
func TestLaggingDocumentsNeedTheKeys(t *testing.T) {
	setup := journaltest.NewSetup(journaltest.Notes(1))
	path := filepath.Join(t.TempDir(), "log.db")
	o := sqlite.Options{Path: path, Definitions: setup.Definitions, Clock: stampsOnly{setup.Clock}, IDs: setup.IDs, Entropy: setup.Entropy,
		Keys: memory.NewKeys(rand.Reader)}
	log, err := sqlite.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	if _, err := log.Append(t.Context(), note("n", "x")); err != nil {
		t.Fatal(err)
	}
	o.Path = dead(t, path)
	for _, keys := range []vault.Keys{nil, o.Keys} {
		o.Keys = keys
		look, err := sqlite.OpenReadOnly(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := look.Document(t.Context(), journaltest.Workspace, "notes", "n")
		if keys == nil && !errors.Is(err, vault.ErrMissing) || keys != nil && (err != nil || doc.Version != 1) {
			t.Errorf("with keys %t: got version %d, %v", keys != nil, doc.Version, err)
		}
		if err := look.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A log of version 2, whose tables never lag behind, is read as it is and goes on as one of version 3.
func TestLogOfVersion2(t *testing.T) {
	path := filled(t)
	if err := raw(t, path,
		`ALTER TABLE workspaces DROP COLUMN flushed; ALTER TABLE workspaces DROP COLUMN last; PRAGMA user_version = 2`); err != nil {
		t.Fatal(err)
	}
	look, err := sqlite.OpenReadOnly(t.Context(), options(path, journaltest.Notes(1)))
	if err != nil {
		t.Fatal(err)
	}
	before := journaltest.Documents(t, look, "notes")
	if err := look.Close(); err != nil {
		t.Fatal(err)
	}
	log := open(t, path)
	if got := journaltest.Documents(t, log, "notes"); got != before || before == "" {
		t.Errorf("got %s, want %s", got, before)
	}
	if _, err := log.Append(t.Context(), event.Batch(note("new", "x"))); err != nil {
		t.Fatal(err)
	}
	if behind, _ := lag(t, path); behind != 1 {
		t.Errorf("%d events behind, want 1", behind)
	}
}

// An upgrade whose new fold fails leaves documents that the old program folds to the same again.
func TestFailedUpgradeOfALogThatWasKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	log := still(t, journaltest.NewSetup(journaltest.Notes(1), journaltest.Rooms(1)), path)
	defer func() { _ = log.Close() }()
	for range 5 {
		if _, err := log.Append(t.Context(), note("n", "x")); err != nil {
			t.Fatal(err)
		}
	}
	path = dead(t, path)
	broken := projection.Define("notes", 2, func(event.Event) []string { return []string{"n"} },
		func(map[string]int, string, event.Event) (map[string]int, error) {
			return nil, errors.New("told to fail")
		}, nil)
	if l, err := sqlite.Open(t.Context(), options(path, broken, journaltest.Rooms(1))); err == nil {
		_ = l.Close()
		t.Fatal("a log was opened whose documents cannot be folded")
	}
	if doc, _ := document(t, open(t, path), "n"); doc.Version != 5 {
		t.Errorf("the old program reads version %d, want 5", doc.Version)
	}
}

// The file's own claim about its tables is checked against the events and the documents themselves.
func TestTablesSaidToLagOtherwise(t *testing.T) {
	path := filled(t)
	if err := raw(t, path, `UPDATE workspaces SET flushed = 0`); err != nil {
		t.Fatal(err)
	}
	log := open(t, path)
	if doc, listed := document(t, log, "n"); doc.Version != 5 || listed.Version != 5 {
		t.Errorf("set back: version %d, listed %d, want 5", doc.Version, listed.Version)
	}
	if err := errors.Join(log.Close(), raw(t, path, `UPDATE workspaces SET flushed = head + 1`)); err != nil {
		t.Fatal(err)
	}
	if log, err := sqlite.Open(t.Context(), options(path, journaltest.Notes(1))); fault.CodeOf(err) != "log_damaged" {
		_ = log.Close()
		t.Errorf("set forward: %v, want log_damaged", err)
	}
	look, err := sqlite.OpenReadOnly(t.Context(), options(path, journaltest.Notes(1)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = look.Close() }()
	if found, err := look.Misfiled(t.Context(), journaltest.Workspace, 10); len(found) != 1 || err != nil {
		t.Errorf("set forward: found %v, %v, want one", found, err)
	}
}

// A list reads as many documents as it returns, however many the table lags behind.
func TestListCostsItsLimit(t *testing.T) {
	log := still(t, journaltest.NewSetup(journaltest.Notes(1)), filepath.Join(t.TempDir(), "log.db"))
	defer func() { _ = log.Close() }()
	const many, size = 200, 8 << 10
	for range 2 { // in the table, and newer ones beside it
		for i := range many {
			if _, err := log.Append(t.Context(), note(fmt.Sprintf("n%03d", i), strings.Repeat("x", size))); err != nil {
				t.Fatal(err)
			}
		}
		if doc, _ := document(t, log, "n000"); doc.Version == 1 {
			if err := log.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	q := projection.Query{Workspace: journaltest.Workspace, Name: "notes", Limit: 1}
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if docs, err := log.Documents(b.Context(), q); err != nil || len(docs) != 1 || docs[0].Version != 2 {
				b.Fatal(docs, err)
			}
		}
	})
	if got, most := result.AllocedBytesPerOp(), int64(many*size/4); got > most {
		t.Errorf("a list of one document took %d bytes, want at most %d", got, most)
	}
}
