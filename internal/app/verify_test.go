package app_test

import (
	"log/slog"
	"path/filepath"
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

// What an event is filed under stands beside the record that the chain covers; a verification holds one against the other.
func TestVerifyNamesWhatIsFiledElsewhere(t *testing.T) {
	const untie = `DROP TRIGGER events_no_update; `
	for name, c := range map[string]struct {
		sql, kind string
		seq       uint64
	}{
		"another stream":             {`INSERT INTO streams SELECT 9, workspace, 'room', 'room_x', 0, hash FROM streams LIMIT 1; UPDATE events SET stream = 9 WHERE place & 0xffff = 2`, audit.StreamMismatch, 2},
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
