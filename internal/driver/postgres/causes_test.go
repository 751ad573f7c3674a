package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/postgres"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/testkit/pgtest"
)

// TestCausesOfAnOldDatabase opens a database as a version left it that had no index of causes. The redactions of then are found by what
// they redact, and so is each event that comes after.
func TestCausesOfAnOldDatabase(t *testing.T) {
	address := pgtest.Start(t).Database()
	open := func() *postgres.Journal {
		t.Helper()
		j, err := postgres.Open(t.Context(), optionsAt(address, nil))
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	redact := func(j *postgres.Journal, target event.Event) event.Event {
		t.Helper()
		said, err := j.Append(t.Context(), journaltest.Batch(event.RedactionOf(event.Origin{Principal: journaltest.User}, target, "told to",
			nil)))
		if err == nil {
			err = j.Redact(t.Context(), journaltest.Workspace, []uint64{target.Seq})
		}
		if err != nil {
			t.Fatal(err)
		}
		return said.Events[0]
	}
	j := open()
	var notes []event.Event
	for range 4 {
		made, err := j.Append(t.Context(), journaltest.Batch(journaltest.Draft("private").About("note", "n")))
		if err != nil {
			t.Fatal(err)
		}
		notes = append(notes, made.Events[0])
	}
	old := map[id.Event]event.Event{notes[0].ID: redact(j, notes[0]), notes[2].ID: redact(j, notes[2])}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	// The additions of the migration are removed, so that the tables are those of before it.
	for _, sql := range []string{`ALTER TABLE agentbox.events DROP COLUMN causation`,
		`DELETE FROM agentbox.goose_db_version WHERE version_id >= 3`} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second opens what the first has brought up to date
		j = open()
		old[notes[3].ID] = redact(j, notes[3])
		for _, note := range notes {
			found, err := j.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace, Causation: note.ID,
				Types: []string{event.RedactedType}, Limit: 10})
			want, redacted := old[note.ID]
			if err != nil || (len(found) > 0) != redacted || redacted && found[len(found)-1].ID != want.ID {
				t.Errorf("what redacts %d: got %d events, %v, want %t", note.Seq, len(found), err, redacted)
			}
		}
		if wrong, err := j.Foreign(t.Context()); err != nil || len(wrong) > 0 {
			t.Errorf("the schema is not as the program makes it: %q, %v", wrong, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
