package app_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/app"
	"agentbox/internal/service/audit"
)

// A verification names what was changed also where the change keeps the documents from being folded.
func TestVerifyNamesWhatKeepsDocumentsFromBeingFolded(t *testing.T) {
	const untie = `DROP TRIGGER events_no_update; DROP TRIGGER events_no_delete; `
	for name, c := range map[string]struct{ sql, want string }{
		"the last event is dropped":    {`DELETE FROM events WHERE place = (SELECT max(place) FROM events)`, audit.SeqGap},
		"the head is beyond the end":   {`UPDATE workspaces SET head = head + 1`, audit.SeqGap},
		"the type of events is turned": {`UPDATE types SET name = 'key.forged' WHERE name = 'key.issued'`, audit.EventHashMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a, err := app.Open(t.Context(), app.Default(dir), app.Clock{}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			conn, err := sqlite3.Open(filepath.Join(dir, "log.db"))
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.Exec(untie + c.sql); err != nil {
				t.Fatal(err)
			}
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			audits, err := app.Verify(t.Context(), app.Default(dir))
			if err != nil || len(audits) != 1 || audits[0].Log.OK {
				t.Fatalf("got %+v, %v, want a finding", audits, err)
			}
			if got := audits[0].Log.Findings[0].Kind; got != c.want {
				t.Errorf("the first finding is %s, want %s", got, c.want)
			}
		})
	}
}

// The index columns of an event stand beside the record that the chain covers. A verification holds one against the other.
func TestVerifyNamesWhatIsFiledElsewhere(t *testing.T) {
	const untie = `DROP TRIGGER events_no_update; `
	for name, c := range map[string]struct {
		sql, kind string
		seq       uint64
	}{
		"another stream": {`INSERT INTO streams SELECT 9, workspace, 'room', 'room_x', 0, hash FROM streams LIMIT 1; UPDATE events ` +
			`SET stream = 9 WHERE place & 0xffff = 2`, audit.StreamMismatch, 2},
		"a stream that there is not": {`UPDATE events SET stream = 9 WHERE place & 0xffff = 1`, audit.StreamMismatch, 1},
		"another event's key":        {`UPDATE event_keys SET seq = 2`, audit.KeyMismatch, 1},
		"a key dropped":              {`DELETE FROM event_keys`, audit.KeyMismatch, 1},
		"a key added":                {`INSERT INTO event_keys SELECT workspace, 'made up', 2 FROM event_keys`, audit.KeyMismatch, 2},
		"a key of no event":          {`INSERT INTO event_keys SELECT workspace, 'made up', 99 FROM event_keys`, audit.KeyMismatch, 99},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a, err := app.Open(t.Context(), app.Default(dir), app.Clock{}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			conn, err := sqlite3.Open(filepath.Join(dir, "log.db"))
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.Exec(untie + c.sql); err != nil {
				t.Fatal(err)
			}
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			audits, err := app.Verify(t.Context(), app.Default(dir))
			if err != nil || len(audits) != 1 || audits[0].OK() || len(audits[0].Filed) == 0 {
				t.Fatalf("got %+v, %v, want a finding", audits, err)
			}
			if got := audits[0].Filed[0]; got.Kind != c.kind || got.Seq != c.seq {
				t.Errorf("the first finding is %s of event %d, want %s of %d", got.Kind, got.Seq, c.kind, c.seq)
			}
		})
	}
}

// A verification reads the snapshots that events name, as much as it is told, and says what is damaged and what it left out.
func TestVerifyReadsSnapshots(t *testing.T) {
	live := t.TempDir()
	a, stop := serve(t, live)
	busy(t, a)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	each := func(t *testing.T, pattern []string, change func(file string) error) {
		for _, file := range glob(t, pattern...) {
			if err := change(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		reads  int64
		kind   string // of a finding; "" for none
		says   string // of what was not checked
	}{
		"as they are":  {func(*testing.T, string) {}, app.SnapshotBytes, "", ""},
		"none is read": {func(*testing.T, string) {}, 0, "", "were not read in full"},
		"a byte is turned": {func(t *testing.T, dir string) {
			each(t, []string{dir, "spaces", "spc_*", "snapshots", "0*"}, func(file string) error {
				raw, err := os.ReadFile(file)
				if err == nil && len(raw) > 10 {
					raw[len(raw)-10] ^= 1                                      // of the last content, before its checksum
					durable := strings.Replace(file, ".sealing", ".sealed", 1) // of one that is not, the torn end is cut off
					err = errors.Join(os.Remove(file), os.WriteFile(durable, raw, 0o600))
				}
				return err
			})
		}, app.SnapshotBytes, audit.SnapshotDamaged, ""},
		"the list is gone": {func(t *testing.T, dir string) {
			each(t, []string{dir, "spaces", "spc_*", "snapshots", "kept"}, os.Remove)
		}, app.SnapshotBytes, "", "the newest snapshots of 1 spaces are not here"},
		"a copy without the files of spaces": {func(t *testing.T, dir string) {
			each(t, []string{dir, "spaces"}, os.RemoveAll)
		}, app.SnapshotBytes, "", "the files of 1 spaces are not on this host"},
		"the files are elsewhere": {func(t *testing.T, dir string) {
			each(t, []string{dir, "spaces", "spc_*"}, os.RemoveAll)
			each(t, []string{dir, "node"}, func(file string) error {
				return os.WriteFile(file, []byte("node_00000000000000000000000001\n"), 0o600)
			})
		}, app.SnapshotBytes, "", "the files of 1 spaces are not on this host"},
		"the folder was removed": {func(t *testing.T, dir string) {
			each(t, []string{dir, "spaces", "spc_*"}, os.RemoveAll)
		}, app.SnapshotBytes, "", "the folders of 1 living spaces are gone from this data directory"},
		"the keys of all contents are gone": {func(t *testing.T, dir string) {
			each(t, []string{dir, "keys", "blobs*"}, os.Remove)
		}, app.SnapshotBytes, "", "folders and files of snapshots cannot be opened"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copied(t, live)
			c.change(t, dir)
			p, err := app.OpenProofs(app.Default(dir), "")
			if err != nil {
				t.Fatal(err)
			}
			p.Reads.Bytes = c.reads
			audits, err := p.Verify(t.Context())
			if err != nil || len(audits) != 1 {
				t.Fatalf("got %+v, %v", audits, err)
			}
			found, unchecked := audits[0].Findings(), strings.Join(slices.Concat(audits[0].Unchecked(), audits[0].Notes()), "\n")
			if c.kind == "" && len(found) > 0 || c.kind != "" && (len(found) == 0 || found[0].Kind != c.kind || audits[0].OK()) {
				t.Errorf("found %+v, unchecked %q, want %q", found, unchecked, c.kind)
			}
			if (c.says == "") != (unchecked == "") && c.kind == "" || !strings.Contains(unchecked, c.says) {
				t.Errorf("unchecked is %q, want %q", unchecked, c.says)
			}
			if gone := len(audits[0].Unchecked()) > 0; name == "the folder was removed" && !gone {
				t.Error("a removed folder leaves the verification complete")
			}
			if kept := audits[0].Snapshots; name == "as they are" && (kept.Snapshots < 2 || kept.Bytes == 0) {
				t.Errorf("%+v were read, want at least two snapshots", kept)
			}
		})
	}
}

// TestVerifySaysWhichContentsCannotBeOpened removes the keys of all contents behind operations that are too long for their event.
func TestVerifySaysWhichContentsCannotBeOpened(t *testing.T) {
	live := t.TempDir()
	a, stop := serve(t, live)
	operates(t, a, `{"type":"createFile","path":"a","content":"`+strings.Repeat("kept ", 4000)+`"}`)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	verify := func(dir string) app.Audit {
		t.Helper()
		audits, err := app.Verify(t.Context(), app.Default(dir))
		if err != nil || len(audits) != 1 || len(audits[0].Findings()) > 0 {
			t.Fatalf("got %+v, %v", audits, err)
		}
		return audits[0]
	}
	whole := verify(live)
	if whole.Contents.Contents == 0 || len(whole.Unchecked()) > 0 {
		t.Fatalf("with its keys: %d contents, unchecked %q", whole.Contents.Contents, whole.Unchecked())
	}
	for _, file := range glob(t, live, "keys", "blobs*") {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	want := fmt.Sprintf("%d contents that events name cannot be opened", whole.Contents.Contents)
	if got := strings.Join(verify(live).Unchecked(), "\n"); !strings.Contains(got, want) {
		t.Errorf("without them: unchecked %q, want %q", got, want)
	}
}

// TestVerifyWithoutThePublicKey removes signing.pub. The log is not said to be changed, and not said to be intact. One that does not
// continue its checkpoint is found all the same.
func TestVerifyWithoutThePublicKey(t *testing.T) {
	live := t.TempDir()
	c := app.Default(live)
	c.Listen = "127.0.0.1:0"
	ranOnce(t, c, filepath.Join(live, "proofs", "ws_dev", "checkpoint"))
	older := copied(t, live)
	a, stop := serve(t, live)
	operates(t, a, `{"type":"createFile","path":"a","content":"1"}`)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(live, "signing.pub")); err != nil {
		t.Fatal(err)
	}
	audits, err := app.Verify(t.Context(), c)
	if err != nil || len(audits) != 1 {
		t.Fatalf("got %+v, %v", audits, err)
	}
	const want = "the file signing.pub is missing from the data directory"
	if said := strings.Join(audits[0].Unchecked(), "\n"); !audits[0].OK() || !strings.Contains(said, want) {
		t.Errorf("found %+v, unchecked %q", audits[0].Findings(), said)
	}
	for _, file := range glob(t, live, "log.db*") {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range glob(t, older, "log.db*") {
		raw, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(live, filepath.Base(file)), raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(live, "directory.json")); err != nil { // which notes how far the log had come
		t.Fatal(err)
	}
	if audits, err = app.Verify(t.Context(), c); err != nil || audits[0].OK() {
		t.Errorf("a log that was set back: got %+v, %v", audits, err)
	}
}

// TestWithoutKeysNothingIsSaidOfVersions reads a log whose data cannot be opened. No document is compared, so nothing is said of those that
// another version made: a start of the daemon, which it would advise, needs the keys.
func TestWithoutKeysNothingIsSaidOfVersions(t *testing.T) {
	for keyless, want := range map[bool]string{false: "made by another version", true: "no document was compared"} {
		a := app.Audit{Documents: audit.DocumentsReport{Skipped: []string{"runs"}, Unchecked: keyless}}
		if said := a.Unchecked(); len(said) != 1 || !strings.Contains(said[0], want) {
			t.Errorf("without keys %t: got %q, want one sentence with %q", keyless, said, want)
		}
	}
}
