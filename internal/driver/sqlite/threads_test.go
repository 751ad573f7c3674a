package sqlite_test

import (
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
)

// A log of version 3, whose postings know neither steps nor threads, is read as it is and finds them by its postings once it was opened.
func TestLogOfVersion3(t *testing.T) {
	path := filled(t)
	log := open(t, path)
	const cause = id.Event("01890a5d-ac96-774b-bcce-b302099a8058")
	batch := event.Batch{Workspace: journaltest.Workspace}
	for n := range journal.MaxBatch {
		draft := journaltest.InRoom(journaltest.Room, "x")
		if draft.Thread = "th_other"; n%100 == 7 {
			draft.Thread, draft.Step, draft.Causation = "th_1", "step_1", cause
		}
		batch.Drafts = append(batch.Drafts, draft)
	}
	for range 2 { // more than are posted at once
		if _, err := log.Append(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := raw(t, path, `DELETE FROM postings WHERE kind > 4; PRAGMA user_version = 3`); err != nil {
		t.Fatal(err)
	}
	finds := func(log *sqlite.Journal) {
		t.Helper()
		for _, q := range []journal.Query{{Thread: "th_1"}, {Causation: cause}, {Step: "step_1"}, {Step: "step_1", Thread: "th_1", Last: true}} {
			q.Workspace = journaltest.Workspace
			if found, err := log.Read(t.Context(), q); err != nil || len(found) != 20 {
				t.Errorf("%+v finds %d events, %v, want 20", q, len(found), err)
			}
		}
	}
	look, err := sqlite.OpenReadOnly(t.Context(), options(path))
	if err != nil {
		t.Fatal(err)
	}
	finds(look)
	if err := look.Close(); err != nil {
		t.Fatal(err)
	}
	log = open(t, path)
	finds(log)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := raw(t, path,
		`CREATE TEMP TABLE found (n INTEGER CHECK (n > 0)); INSERT INTO found SELECT count(*) FROM postings WHERE kind = 5 AND key = 'step_1';
		INSERT INTO found SELECT count(*) FROM postings WHERE kind = 6 AND key = 'th_1';
		INSERT INTO found SELECT count(*) FROM postings WHERE kind = 7 AND key = '01890a5d-ac96-774b-bcce-b302099a8058'`); err != nil {
		t.Errorf("there are no postings of the step and the thread: %v", err)
	}
}
