package postgres_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/postgres"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/testkit/pgtest"
)

// TestAnAppendReadsOnlyItsOwnDocuments counts what the server reads of its tables while a log grows of which the planner has no statistics, and
// whose queries were planned when it was empty, as those of a new daemon are. It once read every document for each batch.
func TestAnAppendReadsOnlyItsOwnDocuments(t *testing.T) {
	server := pgtest.Start(t, "autovacuum=off")
	address := server.Database()
	j, err := postgres.Open(t.Context(), optionsAt(address, nil))
	if err != nil {
		t.Fatal(err)
	}
	ids := journaltest.NewSetup().IDs
	events := 0
	add := func(batches, together int) {
		t.Helper()
		for range batches {
			var drafts []event.Draft
			for range together {
				events++
				drafts = append(drafts, journaltest.InRoom(id.New[id.Room](ids), "text").About("note", fmt.Sprint("note ", events)))
			}
			if _, err := j.Append(t.Context(), journaltest.Batch(drafts...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(10, 1)
	add(8, 500)
	add(200, 1)
	if err := j.Close(); err != nil { // with which its connections tell what they counted
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), `SELECT relname, coalesce(seq_tup_read, 0) + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid) FROM pg_stat_user_tables t
		WHERE relname IN ('documents', 'streams', 'events', 'batches', 'entries')`)
	if err != nil {
		t.Fatal(err)
	}
	var table string
	var read int64
	tables := 0
	if _, err := pgx.ForEachRow(rows, []any{&table, &read}, func() error {
		if tables++; read > 8*int64(events) {
			t.Errorf("to append %d events, %d rows of %s were read, want at most %d", events, read, table, 8*events)
		}
		return nil
	}); err != nil || tables != 5 {
		t.Errorf("counted in %d tables: %v", tables, err)
	}
}
