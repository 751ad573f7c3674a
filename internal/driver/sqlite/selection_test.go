package sqlite

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/projection"
)

// Every field that selects is served by an index, in every combination, and nothing is sorted.
func TestEveryQueryUsesAnIndex(t *testing.T) {
	setup := journaltest.NewSetup(journaltest.Notes(1))
	log, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "log.db"), Definitions: setup.Definitions, Clock: setup.Clock, IDs: id.NewSource(time.Now, rand.Reader), Entropy: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}()
	explain := func(sql string, args []any) string {
		t.Helper()
		var plan []string
		err := log.reading(t.Context(), func(c *connection) error {
			rows, err := c.rows("EXPLAIN QUERY PLAN "+sql, args...)
			if err != nil {
				return err
			}
			for rows.Step() {
				plan = append(plan, rows.ColumnText(3))
			}
			return finish(rows)
		})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(plan, "\n")
	}
	check := func(what, plan string, wants ...string) {
		t.Helper()
		for _, step := range strings.Split(plan, "\n") {
			if strings.HasPrefix(step, "SCAN") || strings.Contains(step, "TEMP B-TREE") || strings.Contains(step, "AUTOMATIC") {
				t.Errorf("%s: %s in\n%s", what, step, plan)
			}
		}
		for _, want := range wants {
			if !strings.Contains(plan, want) {
				t.Errorf("%s: no %q in\n%s", what, want, plan)
			}
		}
	}
	for mask := range 64 {
		q := journal.Query{Workspace: journaltest.Workspace, From: 5, Before: 90, Limit: 10}
		want := "SEARCH events USING INTEGER PRIMARY KEY"
		if mask&1 != 0 {
			q.Stream, want = event.RoomStream(q.Workspace, "room_1"), "by_stream USING PRIMARY KEY (stream=? AND stream_seq>? AND stream_seq<?)"
		}
		if mask&2 != 0 {
			q.Correlation, want = "cor_1", "by_correlation USING PRIMARY KEY (correlation=? AND place>? AND place<?)"
		}
		if mask&4 != 0 {
			q.EntityType, q.EntityID, want = "note", "n1", "by_entity USING PRIMARY KEY (entity=? AND place>? AND place<?)"
		}
		if mask&8 != 0 {
			q.Run, want = "run_1", "by_run USING PRIMARY KEY (run=? AND place>? AND place<?)"
		}
		if mask&16 != 0 {
			q.Types = []string{"note.written", "note.read"}
		}
		q.Last = mask&32 != 0
		all := ""
		for _, part := range selection(q, 1) {
			plan := explain(part.sql, append(part.args, int64(q.Limit)))
			check(fmt.Sprintf("%+v", q), plan)
			all += plan
		}
		check(fmt.Sprintf("%+v", q), all, want)
	}
	for mask := range 8 {
		q := projection.Query{Workspace: journaltest.Workspace, Name: "notes", Newest: mask&1 != 0, Limit: 10}
		want := "sqlite_autoindex_documents_1 (projection=? AND workspace=?"
		if mask&2 != 0 {
			q.After = "n1"
		}
		if mask&4 != 0 {
			q.Index, want = projection.Index{Name: "sum", Value: "0"}, "SEARCH n USING PRIMARY KEY (projection=? AND workspace=? AND name=? AND value=?"
		}
		sql, args := listing(q, 1)
		check(fmt.Sprintf("%+v", q), explain(sql, args), want)
	}
}

// What lies before and behind the place up to which the tables by_... are filled is found alike, and so is what lies on both sides.
func TestQueriesAcrossTheIndex(t *testing.T) {
	setup := journaltest.NewSetup(journaltest.Notes(1))
	log, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "log.db"), Definitions: setup.Definitions, Clock: setup.Clock, IDs: id.NewSource(time.Now, rand.Reader), Entropy: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}()
	// One event of interest in ten, in a batch whose last crosses the threshold, then some more; twice, so that two fills lie behind.
	var want []uint64
	for n := uint64(0); n < 2*indexedAtOnce+50; n += 10 {
		b := event.Batch{Workspace: journaltest.Workspace}
		for i := range 10 {
			draft := journaltest.InRoom("room_other", "x")
			if i == 3 {
				draft = journaltest.InRoom(journaltest.Room, "y").About("note", "n").In("run_1", "")
				draft.Correlation = "cor_1"
				want = append(want, n+4)
			}
			b.Drafts = append(b.Drafts, draft)
		}
		if _, err := log.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	var indexed, head int64
	if err := log.reading(t.Context(), func(c *connection) error {
		rows, err := c.rows(`SELECT indexed, head FROM workspaces`)
		if err != nil {
			return err
		}
		rows.Step()
		indexed, head = rows.ColumnInt64(0), rows.ColumnInt64(1)
		return finish(rows)
	}); err != nil {
		t.Fatal(err)
	}
	if indexed < 2*indexedAtOnce || indexed >= head {
		t.Fatalf("%d of %d events are indexed, want some and not all", indexed, head)
	}
	for name, q := range map[string]journal.Query{
		"stream": {Stream: event.RoomStream(journaltest.Workspace, journaltest.Room)}, "run": {Run: "run_1"}, "correlation": {Correlation: "cor_1"},
		"entity": {EntityType: "note", EntityID: "n"}, "all": {Run: "run_1", Correlation: "cor_1", Stream: event.RoomStream(journaltest.Workspace, journaltest.Room), EntityType: "note", EntityID: "n"},
	} {
		q.Workspace = journaltest.Workspace
		for _, limit := range []int{1, 3, 100, 1000} {
			for _, last := range []bool{false, true} {
				for _, from := range []int{0, 1, 102, 203, 204, 205, 206, 207, len(want) - 1} {
					q.Limit, q.Last, q.From = limit, last, uint64(from)+1
					if q.Stream == (event.Stream{}) {
						q.From = want[from]
					}
					events, err := log.Read(t.Context(), q)
					if err != nil {
						t.Fatal(err)
					}
					expected := want[from:]
					if n := len(expected); n > limit && last {
						expected = expected[n-limit:]
					} else if n > limit {
						expected = expected[:limit]
					}
					got := []uint64{}
					for _, e := range events {
						got = append(got, e.Seq)
					}
					if fmt.Sprint(got) != fmt.Sprint(expected) {
						t.Fatalf("%s, from %d, limit %d, last %v\n got %v\nwant %v", name, q.From, limit, last, got, expected)
					}
				}
			}
		}
	}
}
