package app_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/app"
	"agentbox/internal/service/auditor"
)

// A verification names what was changed also where the change keeps the documents from being folded.
func TestVerifyNamesWhatKeepsDocumentsFromBeingFolded(t *testing.T) {
	const untie = `DROP TRIGGER events_no_update; DROP TRIGGER events_no_delete; `
	for name, c := range map[string]struct{ sql, want string }{
		"the last event is dropped":    {`DELETE FROM events WHERE place = (SELECT max(place) FROM events)`, auditor.SeqGap},
		"the head is beyond the end":   {`UPDATE workspaces SET head = head + 1`, auditor.SeqGap},
		"the type of events is turned": {`UPDATE types SET name = 'key.forged' WHERE name = 'key.issued'`, auditor.EventHashMismatch},
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
