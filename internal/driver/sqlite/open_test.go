package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
)

// raw runs SQL on a log file, as somebody would who has a shell of SQLite.
func raw(t *testing.T, path, sql string) error {
	t.Helper()
	conn, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	return conn.Exec(sql)
}

// filled makes a log with a few events and returns its path.
func filled(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.db")
	log := open(t, path)
	for range 5 {
		if _, err := log.Append(t.Context(), journaltest.Batch(journaltest.Draft("x").About("note", "n"), journaltest.InRoom(journaltest.Room,
			"y"))); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, path string) *sqlite.Journal {
	t.Helper()
	log, err := sqlite.Open(t.Context(), options(path, journaltest.Notes(1), journaltest.Rooms(1)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return log
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path string) error
		want  error
	}{
		"a log of a newer program": {func(t *testing.T, path string) error { return raw(t, path, `PRAGMA user_version = 6`) }, sqlite.ErrNewer},
		"another program's file": {func(t *testing.T, path string) error { return raw(t, path, `PRAGMA application_id = 7`) },
			sqlite.ErrForeign},
		"a database without a mark": {func(t *testing.T, path string) error {
			return raw(t, path, `PRAGMA application_id = 0; PRAGMA user_version = 0`)
		}, sqlite.ErrForeign},
		"a file that is not a database": {func(_ *testing.T, path string) error {
			return os.WriteFile(path, []byte(strings.Repeat("not a database ", 1000)), 0o600)
		}, sqlite.ErrForeign},
	} {
		t.Run(name, func(t *testing.T) {
			path := filled(t)
			if err := c.spoil(t, path); err != nil {
				t.Fatal(err)
			}
			for kind, open := range map[string]func() (*sqlite.Journal, error){
				"open":           func() (*sqlite.Journal, error) { return sqlite.Open(t.Context(), options(path)) },
				"open read-only": func() (*sqlite.Journal, error) { return sqlite.OpenReadOnly(t.Context(), options(path)) },
			} {
				if log, err := open(); !errors.Is(err, c.want) {
					t.Errorf("%s: %v, want %v", kind, err, c.want)
					if err == nil {
						_ = log.Close()
					}
				}
			}
		})
	}
}

func TestSecondOpener(t *testing.T) {
	path := filled(t)
	log := open(t, path)
	if _, err := sqlite.Open(t.Context(), options(path)); !errors.Is(err, sqlite.ErrInUse) {
		t.Errorf("a second opener: %v, want %v", err, sqlite.ErrInUse)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

func TestReadOnlyWhereNothingIs(t *testing.T) {
	dir := t.TempDir()
	if _, err := sqlite.OpenReadOnly(t.Context(), options(filepath.Join(dir, "log.db"))); err == nil {
		t.Error("a log that is not there was opened")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("looking left %v, %v", entries, err)
	}
}

func TestReadOnly(t *testing.T) {
	path := filled(t)
	writing := open(t, path)
	look, err := sqlite.OpenReadOnly(t.Context(), options(path, journaltest.Notes(1)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := look.Close(); err != nil {
			t.Error(err)
		}
	}()
	// A daemon that goes on writing changes nothing of what is looked at.
	for range 20 {
		if _, err := writing.Append(t.Context(), journaltest.Batch(journaltest.InRoom(journaltest.Room, "more").About("note", "n"))); err != nil {
			t.Fatal(err)
		}
	}
	if err := journaltest.CheckChains(t.Context(), look, journaltest.Workspace); err != nil {
		t.Error(err)
	}
	if n, err := look.Head(t.Context(), journaltest.Workspace); n != 10 || err != nil {
		t.Errorf("head %d, %v, want 10", n, err)
	}
	if doc, err := look.Document(t.Context(), journaltest.Workspace, "notes", "n"); err != nil || doc.Version != 5 {
		t.Errorf("document at version %d, %v, want 5", doc.Version, err)
	}
	for name, call := range map[string]func() error{
		"append": func() error {
			_, err := look.Append(t.Context(), journaltest.Batch(journaltest.Draft("x")))
			return err
		},
		"wait":    func() error { return look.Wait(t.Context(), journaltest.Workspace, 10) },
		"rebuild": func() error { return look.Rebuild(t.Context(), "notes") },
	} {
		if err := call(); !errors.Is(err, journal.ErrClosed) {
			t.Errorf("%s: %v, want %v", name, err, journal.ErrClosed)
		}
	}
}

// An outside reader that holds an old snapshot for long blocks nobody. The write-ahead log grows until the reader ends, then restarts.
func TestReaderOutside(t *testing.T) {
	path := filled(t)
	log := open(t, path)
	look, err := sqlite.OpenReadOnly(t.Context(), options(path))
	if err != nil {
		t.Fatal(err)
	}
	large := func(n int) {
		t.Helper()
		for range n {
			if _, err := log.Append(t.Context(), journaltest.Batch(journaltest.Draft(strings.Repeat("x", 15<<20)))); err != nil {
				t.Fatal(err)
			}
		}
	}
	size := func() int64 {
		t.Helper()
		stat, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return stat.Size()
	}
	large(7)
	if n := size(); n < 100<<20 {
		t.Errorf("the log has %d bytes, want more than 100 MiB: the reader holds it back", n)
	}
	if n, err := look.Head(t.Context(), journaltest.Workspace); n != 10 || err != nil {
		t.Errorf("the reader sees %d events, %v, want 10", n, err)
	}
	if err := look.Close(); err != nil {
		t.Fatal(err)
	}
	large(5)
	if n := size(); n > 100<<20 {
		t.Errorf("the log has %d bytes, want at most 100 MiB after it has begun anew", n)
	}
	if err := journaltest.CheckChains(t.Context(), log, journaltest.Workspace); err != nil {
		t.Error(err)
	}
}

func TestNobodyElseReadsTheFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	log := open(t, path)
	if _, err := log.Append(t.Context(), journaltest.Batch(journaltest.Draft("x"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "-wal"} {
		if stat, err := os.Stat(name); err != nil || stat.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, want mode 0600", filepath.Base(name), stat.Mode(), err)
		}
	}
}

// The log is append-only for every program that opens the file.
func TestAppendOnly(t *testing.T) {
	path := filled(t)
	for _, sql := range []string{
		`UPDATE events SET correlation = 'x'`, `DELETE FROM events`, `DELETE FROM events WHERE place = (SELECT max(place) FROM events)`,
		`UPDATE bodies SET body = x'00'`, `DELETE FROM bodies`,
		`PRAGMA recursive_triggers = ON; REPLACE INTO bodies SELECT place, x'00', NULL FROM bodies`,
		`INSERT INTO bodies SELECT place, x'00', NULL FROM bodies WHERE true ON CONFLICT DO UPDATE SET body = excluded.body`,
	} {
		if err := raw(t, path, sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v, want a refusal", sql, err)
		}
	}
	if err := journaltest.CheckChains(t.Context(), open(t, path), journaltest.Workspace); err != nil {
		t.Error(err)
	}
}

// A damaged entry is never served as if it were whole, and names itself.
func TestDamage(t *testing.T) {
	for name, sql := range map[string]string{
		"a record cut short":  `UPDATE events SET record = substr(record, 1, length(record) - 1) WHERE place & 0xffff = 3`,
		"a record extended":   `UPDATE events SET record = CAST(record || x'00' AS BLOB) WHERE place & 0xffff = 3`,
		"a record emptied":    `UPDATE events SET record = x'' WHERE place & 0xffff = 3`,
		"another time":        `UPDATE events SET recorded_at = recorded_at + 1 WHERE place & 0xffff = 3`,
		"another entity":      `UPDATE events SET entity = 'note' || char(31) || 'm' WHERE place & 0xffff = 3`,
		"an unknown type":     `UPDATE events SET type = 99 WHERE place & 0xffff = 3`,
		"a body that is gone": `DELETE FROM bodies WHERE place & 0xffff = 3`,
		"an id of 15 bytes":   `UPDATE events SET id = substr(id, 2) WHERE place & 0xffff = 3`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filled(t)
			if err := raw(t, path, untie+sql); err != nil {
				t.Fatal(err)
			}
			if err := raw(t, path, tie); err != nil {
				t.Fatal(err)
			}
			log := open(t, path)
			_, err := log.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace})
			damage, ok := errors.AsType[*journal.Damage](err)
			if !ok || damage.Seq != 3 || fault.CodeOf(err) != "log_damaged" {
				t.Errorf("read: %v, want the damage of event 3", err)
			}
			if events, err := log.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace, From: 4}); err != nil || len(events) != 7 {
				t.Errorf("what lies behind: %d events, %v", len(events), err)
			}
		})
	}
}

// untie takes the triggers away.
const untie = `DROP TRIGGER events_no_update; DROP TRIGGER events_no_delete; DROP TRIGGER bodies_no_update; DROP TRIGGER bodies_no_delete; `

// A log of which a whole workspace was taken away is refused, by who writes and by who verifies: its events would be hidden.
func TestLogWithoutOneOfItsWorkspacesIsRefused(t *testing.T) {
	for name, sql := range map[string]string{
		"its row":                 `DELETE FROM workspaces`,
		"its row and its streams": `DELETE FROM workspaces; DELETE FROM streams`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filled(t)
			if err := raw(t, path, sql); err != nil {
				t.Fatal(err)
			}
			for _, open := range []func(context.Context, sqlite.Options) (*sqlite.Journal, error){sqlite.Open, sqlite.OpenReadOnly} {
				if _, err := open(t.Context(), options(path, journaltest.Notes(1), journaltest.Rooms(1))); fault.CodeOf(err) != "log_damaged" {
					t.Errorf("got %v, want log_damaged", err)
				}
			}
		})
	}
}

// tie puts them back, as somebody would who wants nothing to be seen.
const tie = `CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER bodies_no_update BEFORE UPDATE ON bodies BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER bodies_no_delete BEFORE DELETE ON bodies WHEN NOT EXISTS (SELECT 1 FROM redactions WHERE place = OLD.place)
  BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;`
