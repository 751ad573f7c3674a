package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/projection"
)

// Every field that selects is served by an index, in every combination, and nothing is sorted.
func TestEveryQueryUsesAnIndex(t *testing.T) {
	setup := journaltest.NewSetup(journaltest.Notes(1))
	log, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "log.db"), Definitions: setup.Definitions, Clock: setup.Clock,
		IDs: id.NewSource(time.Now, rand.Reader), Entropy: rand.Reader})
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
		err := log.views.reading(t.Context(), func(c *connection) error {
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
	for step := range strings.SplitSeq(explain(findOrphans, []any{int64(seqBits)}), "\n") {
		if strings.HasPrefix(step, "SCAN events") || strings.HasPrefix(step, "SCAN streams") {
			t.Errorf("a start reads all of the log: %s", step)
		}
	}
	for mask := range 512 {
		q := journal.Query{Workspace: journaltest.Workspace, From: 5, Before: 90, Limit: 10}
		kind := int64(0)
		if mask&1 != 0 {
			q.Stream, kind = event.RoomStream(q.Workspace, "room_1"), postedStream
		}
		if mask&64 != 0 {
			q.Thread, kind = "th_1", postedThread
		}
		if mask&2 != 0 {
			q.Correlation, kind = "cor_1", postedCorrelation
		}
		if mask&4 != 0 {
			q.EntityType, q.EntityID, kind = "note", "n1", postedEntity
		}
		if mask&8 != 0 {
			q.Run, kind = "run_1", postedRun
		}
		if mask&256 != 0 {
			q.Causation, kind = "01890a5d-ac96-774b-bcce-b302099a8058", postedCausation
		}
		if mask&128 != 0 {
			q.Step, kind = "step_1", postedStep
		}
		if mask&16 != 0 {
			q.Types = []string{"note.written", "note.read"}
		}
		q.Last = mask&32 != 0
		s := selectionOf(q, 1, 7)
		if s.kind != kind {
			t.Errorf("%+v is served by postings of kind %d, want %d", q, s.kind, kind)
		}
		check(fmt.Sprintf("%+v", q), explain(s.rangeSQL(), slices.Concat([]any{s.lowest, s.highest}, s.args, []any{int64(1)})),
			"SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)")
		check(fmt.Sprintf("%+v", q), explain(s.oneSQL(), slices.Concat([]any{s.lowest}, s.args)), "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)")
	}
	for _, last := range []bool{false, true} {
		check("postings", explain(postingsSQL(last), []any{int64(1), "7", int64(3), int64(9)}),
			"SEARCH postings USING PRIMARY KEY (kind=? AND key=? AND first>? AND first<?)",
			"SEARCH postings USING PRIMARY KEY (kind=? AND key=? AND first<?)")
	}
	for mask := range 8 {
		q := projection.Query{Workspace: journaltest.Workspace, Name: "notes", Newest: mask&1 != 0, Limit: 10}
		want := "sqlite_autoindex_documents_1 (projection=? AND workspace=?"
		if mask&2 != 0 {
			q.After = "n1"
		}
		if mask&4 != 0 {
			q.Index, want = projection.Index{Name: "sum", Value: "0"},
				"SEARCH n USING PRIMARY KEY (projection=? AND workspace=? AND name=? AND value=?"
		}
		sql, args := listing(q, 1, 0)
		check(fmt.Sprintf("%+v", q), explain(sql, args), want)
	}
}

// Events before and behind the place up to which the postings are written are found alike, and so are those on both sides.
func TestQueriesAcrossTheIndex(t *testing.T) {
	setup := journaltest.NewSetup(journaltest.Notes(1))
	log, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "log.db"), Definitions: setup.Definitions, Clock: setup.Clock,
		IDs: id.NewSource(time.Now, rand.Reader), Entropy: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}()
	// One event of interest in ten, in a batch whose last crosses the threshold, then some more; twice, so that two lots are written.
	const cause = id.Event("01890a5d-ac96-774b-bcce-b302099a8058")
	var want []uint64
	for n := uint64(0); n < 2*indexedAtOnce+50; n += 10 {
		b := event.Batch{Workspace: journaltest.Workspace}
		for i := range 10 {
			draft := journaltest.InRoom("room_other", "x")
			if i == 3 {
				draft = journaltest.InRoom(journaltest.Room, "y").About("note", "n").In("run_1", "step_1")
				draft.Correlation, draft.Thread, draft.Causation = "cor_1", "th_1", cause
				want = append(want, n+4)
			}
			b.Drafts = append(b.Drafts, draft)
		}
		if _, err := log.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	var indexed, head int64
	if err := log.views.reading(t.Context(), func(c *connection) error {
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
		"stream": {Stream: event.RoomStream(journaltest.Workspace, journaltest.Room)}, "run": {Run: "run_1"},
		"correlation": {Correlation: "cor_1"},
		"entity":      {EntityType: "note", EntityID: "n"}, "step": {Step: "step_1"}, "thread": {Thread: "th_1"}, "causation": {Causation: cause},
		"all": {Run: "run_1", Step: "step_1", Thread: "th_1", Correlation: "cor_1", Causation: cause,
			Stream: event.RoomStream(journaltest.Workspace, journaltest.Room), EntityType: "note", EntityID: "n"},
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

// A reader whose context ends in the middle leaves no old snapshot to the next reader.
func TestInterruptedReader(t *testing.T) {
	setup := journaltest.NewSetup(journaltest.Notes(1))
	log, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "log.db"), Definitions: setup.Definitions, Clock: setup.Clock,
		IDs: id.NewSource(time.Now, rand.Reader), Entropy: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}()
	appendOne := func() {
		t.Helper()
		if _, err := log.Append(t.Context(), journaltest.Batch(journaltest.Draft("x"))); err != nil {
			t.Fatal(err)
		}
	}
	appendOne()
	for range readers {
		ctx, cancel := context.WithCancel(t.Context())
		err := log.views.reading(ctx, func(c *connection) error {
			if err := c.exec(`BEGIN`); err != nil {
				return err
			}
			if _, err := c.one(func(*sqlite3.Stmt) {}, `SELECT count(*) FROM events`); err != nil {
				return err
			}
			cancel()
			return c.exec(`COMMIT`)
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want %v", err, context.Canceled)
		}
	}
	appendOne()
	for range readers {
		if events, err := log.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace}); err != nil || len(events) != 2 {
			t.Errorf("%d events, %v, want 2", len(events), err)
		}
	}
}
