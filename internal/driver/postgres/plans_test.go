package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/postgres"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/testkit/pgtest"
)

// TestAnAppendReadsOnlyItsOwnDocuments counts what the server reads of its tables while a log grows of which the planner has no
// statistics, and whose queries were planned when it was empty, as those of a new daemon are. It once read every document for each batch.
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
	mostRead(t, conn, 8*int64(events))
}

// mostRead fails where more rows of a table were read than so many, since the database was made.
func mostRead(t *testing.T, conn *pgx.Conn, most int64) {
	t.Helper()
	rows, err := conn.Query(t.Context(),
		`SELECT relname, coalesce(seq_tup_read, 0) + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid) FROM pg_stat_user_tables t
		WHERE relname IN ('documents', 'streams', 'events', 'bodies', 'batches', 'entries')`)
	if err != nil {
		t.Fatal(err)
	}
	var table string
	var read int64
	tables := 0
	if _, err := pgx.ForEachRow(rows, []any{&table, &read}, func() error {
		if tables++; read > most {
			t.Errorf("%d rows of %s were read, want at most %d", read, table, most)
		}
		return nil
	}); err != nil || tables != 6 {
		t.Errorf("counted in %d tables: %v", tables, err)
	}
}

// TestAReadReadsOnlyWhatItShows asks for the events of a run, a step, a thread, an entity, a correlation and a stream, and for documents
// by an index, with queries that were planned when there was nothing of the kind. It once read the whole workspace for each of them.
func TestAReadReadsOnlyWhatItShows(t *testing.T) {
	server := pgtest.Start(t, "autovacuum=off")
	address := server.Database()
	reader, err := postgres.Open(t.Context(), optionsAt(address, nil))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	ids := journaltest.NewSetup().IDs
	var all []journal.Query
	var notes []string
	write := func(batches, together int) {
		t.Helper()
		for range batches {
			var drafts []event.Draft
			for range together {
				d := journaltest.InRoom(id.New[id.Room](ids), "text")
				entity := fmt.Sprint("note ", len(notes))
				d = d.About("note", entity).In(id.New[id.Run](ids), id.New[id.Step](ids))
				d.Thread, d.Correlation = id.New[id.Thread](ids), id.New[id.Correlation](ids)
				drafts, notes = append(drafts, d), append(notes, entity)
				all = append(all, journal.Query{Run: d.Run}, journal.Query{Step: d.Step}, journal.Query{Thread: d.Thread},
					journal.Query{Correlation: d.Correlation},
					journal.Query{EntityType: "note", EntityID: entity}, journal.Query{Stream: d.Stream})
			}
			if _, err := reader.Append(t.Context(), journaltest.Batch(drafts...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	ask := func(times, want int) { // for what was written last, or for what is not there
		t.Helper()
		for n := range times {
			queries := []journal.Query{
				{Run: id.New[id.Run](ids)}, {Step: id.New[id.Step](ids)}, {Thread: id.New[id.Thread](ids)}, {Correlation: id.New[id.Correlation](ids)},
				{EntityType: "note", EntityID: "none"}, {Stream: event.RoomStream(journaltest.Workspace, id.New[id.Room](ids))},
			}
			if want > 0 {
				queries = all[len(all)-6*(n+1):][:6]
			}
			for _, q := range queries {
				q.Workspace, q.Limit = journaltest.Workspace, 10
				for _, q.Last = range []bool{false, true} {
					for _, q.Before = range []uint64{0, 1 << 30} {
						for _, q.From = range []uint64{0, 1} {
							if found, err := reader.Read(t.Context(), q); err != nil || len(found) != want {
								t.Fatalf("%+v: %d events, %v; want %d", q, len(found), err, want)
							}
						}
					}
				}
			}
			for _, index := range []projection.Index{{Name: "texts", Value: "1"}, {Name: "texts", Value: "2"}} {
				_, err := reader.Documents(t.Context(), projection.Query{Workspace: journaltest.Workspace, Name: "notes", Index: index, Limit: 4})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for range 2 {
		var drafts []event.Draft
		for range 100 {
			drafts = append(drafts, journaltest.InRoom(journaltest.Room, "text"))
		}
		if _, err := reader.Append(t.Context(), journaltest.Batch(drafts...)); err != nil {
			t.Fatal(err)
		}
	}
	ask(10, 0)
	write(10, 500)
	turn := time.NewTicker(5 * time.Millisecond)
	defer turn.Stop()
	for known, limit := false, time.Now().Add(time.Minute); !known; <-turn.C { // nothing but the driver itself makes the server look
		if err := conn.QueryRow(t.Context(), `SELECT reltuples > 500 FROM pg_class WHERE oid = 'agentbox.events'::regclass`).Scan(
			&known); err != nil || time.Now().After(limit) {
			t.Fatalf("the server does not know of what was written: %v", err)
		}
	}
	ask(20, 1)
	if err := reader.Close(); err != nil { // with which its connections tell what they counted
		t.Fatal(err)
	}
	mostRead(t, conn, 8*int64(len(notes)))
}

// TestARangeIsReadToItsEndAndNoFurther reads pieces of a long log, as audit, gc and redaction do: a few places with room
// in the answer for many more. It once read on to the end of the log for each of them.
func TestARangeIsReadToItsEndAndNoFurther(t *testing.T) {
	server := pgtest.Start(t, "autovacuum=off")
	address := server.Database()
	j, err := postgres.Open(t.Context(), optionsAt(address, nil))
	if err != nil {
		t.Fatal(err)
	}
	ids := journaltest.NewSetup().IDs
	r, thread := id.New[id.Run](ids), id.New[id.Thread](ids)
	const events = 4_000
	for range events / 500 {
		var drafts []event.Draft
		for range 500 {
			d := journaltest.InRoom(journaltest.Room, "text").About("note", "one").In(r, "")
			d.Thread, d.Correlation = thread, "cor_one"
			drafts = append(drafts, d)
		}
		if _, err := j.Append(t.Context(), journaltest.Batch(drafts...)); err != nil {
			t.Fatal(err)
		}
	}
	first, err := j.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	asked := 0
	for n := range 10 {
		for _, q := range []journal.Query{
			{}, {Types: []string{first[0].Type}}, {Run: r}, {Thread: thread}, {Correlation: "cor_one"}, {EntityType: "note", EntityID: "one"},
			{Stream: first[0].Stream},
		} {
			for _, q.Last = range []bool{false, true} {
				for _, q.From = range []uint64{uint64(1 + n), events - 20} {
					q.Workspace, q.Before, q.Limit = journaltest.Workspace, q.From+5, journal.MaxRead
					asked++
					if found, err := j.Read(t.Context(), q); err != nil || len(found) != 5 || q.Place(&found[0]) != q.From {
						t.Fatalf("%+v: %d events, %v", q, len(found), err)
					}
					q.Before = q.From // nothing
					if found, err := j.Read(t.Context(), q); err != nil || len(found) != 0 {
						t.Fatalf("%+v: %d events, %v", q, len(found), err)
					}
				}
			}
		}
	}
	if err := j.Close(); err != nil { // with which its connections tell what they counted
		t.Fatal(err)
	}
	var read int64
	if err := conn.QueryRow(t.Context(),
		`SELECT coalesce(seq_tup_read, 0) + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid) FROM pg_stat_user_tables t
		WHERE relname = 'events'`).Scan(&read); err != nil {
		t.Fatal(err)
	}
	if most := int64(2*events + 20*asked); read > most {
		t.Errorf("for %d times five events %d rows were read, want at most %d", asked, read, most)
	}
}
