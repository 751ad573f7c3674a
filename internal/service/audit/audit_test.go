package audit_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/memory"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/audit"
)

const ws = journaltest.Workspace

var definitions = []projection.Definition{journaltest.Notes(1), journaltest.Rooms(1)}

func options(path string) sqlite.Options {
	setup := journaltest.NewSetup()
	return sqlite.Options{Path: path, Definitions: definitions, Clock: setup.Clock, IDs: id.NewSource(time.Now, rand.Reader),
		Entropy: rand.Reader}
}

func open(t *testing.T, path string) *sqlite.Journal {
	t.Helper()
	log, err := sqlite.Open(t.Context(), options(path))
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// fill appends 30 events to three streams, so that event n lies in room n%3, or in the workspace's stream for 0, at number n/3+1 or so.
func fill(t *testing.T, log journal.Journal) {
	t.Helper()
	for n := 1; n <= 30; n++ {
		draft := journaltest.Draft(fmt.Sprint("text ", n))
		if n%3 > 0 {
			draft = journaltest.InRoom(id.Room(fmt.Sprint("room_", n%3)), fmt.Sprint("text ", n))
		}
		if _, err := log.Append(t.Context(), journaltest.Batch(draft.About("note", fmt.Sprint("n", n%4)))); err != nil {
			t.Fatal(err)
		}
	}
}

func tampered(t *testing.T, sql string) *sqlite.Journal {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.db")
	log := open(t, path)
	fill(t, log)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return changed(t, path, sql)
}

// killed is what a daemon that is killed leaves behind: its documents and the ends of its streams are not in their tables.
func killed(t *testing.T, sql string) *sqlite.Journal {
	t.Helper()
	path, left := filepath.Join(t.TempDir(), "log.db"), filepath.Join(t.TempDir(), "log.db")
	o := options(path)
	o.Clock = untimed{o.Clock} // nothing is flushed because nothing comes
	log, err := sqlite.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	fill(t, log)
	other := journaltest.Of(journaltest.OtherWorkspace, journaltest.Draft("x"))
	if _, err := log.Append(t.Context(), journaltest.Batch(other)); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal"} {
		raw, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(left+suffix, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return changed(t, left, sql)
}

type untimed struct{ event.Clock }

func (untimed) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// behind changes a log behind its back and leaves no trace in its schema: what keeps it append-only goes, and comes back.
func behind(t *testing.T, conn *sqlite3.Conn, sql string) {
	t.Helper()
	rows, _, err := conn.Prepare(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name GLOB '[eb]*_no_*'`)
	if err != nil {
		t.Fatal(err)
	}
	var drop, back string
	for rows.Step() {
		drop += "DROP TRIGGER " + rows.ColumnText(0) + "; "
		back += "; " + rows.ColumnText(1)
	}
	if err := errors.Join(rows.Close(), conn.Exec(drop+sql+back)); err != nil {
		t.Fatal(err)
	}
}

// changed opens a log for looking after it was changed behind its back.
func changed(t *testing.T, path, sql string) *sqlite.Journal {
	t.Helper()
	conn, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	behind(t, conn, sql)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	look, err := sqlite.OpenReadOnly(t.Context(), options(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := look.Close(); err != nil {
			t.Error(err)
		}
	})
	return look
}

// The end of a log that was killed is vouched for by its last event's hash; a missing end, another one and a damaged event are found, and
// stay with the workspace that they are in.
func TestLogThatWasKilled(t *testing.T) {
	const last = ` WHERE place = (1 << 40) + 30; `
	end := event.WorkspaceStream(ws)
	for _, c := range []struct {
		name, sql string
		want      *audit.Finding
	}{
		{"whole", ``, nil},
		{"the last event is dropped, and the head set back", `DELETE FROM events` + last + `DELETE FROM bodies` + last +
			`UPDATE workspaces SET head = 29 WHERE no = 1`,
			&audit.Finding{Kind: audit.HeadMismatch, Stream: event.RoomStream(ws, "room_2"), StreamSeq: 10}},
		{"everything that the tables lag behind is dropped",
			`DELETE FROM events WHERE place BETWEEN (1 << 40) + 4 AND (1 << 40) + 30; DELETE FROM bodies WHERE place BETWEEN (1 << 40) + 4 AND (1 ` +
				`<< 40) + 30; UPDATE workspaces SET head = 3, flushed = 3 WHERE no = 1`,
			&audit.Finding{Kind: audit.HeadMismatch, Stream: end, StreamSeq: 1}},
		{"the hash of the last event", `UPDATE workspaces SET last = zeroblob(32) WHERE no = 1`, &audit.Finding{Kind: audit.HeadMismatch,
			Stream: end, StreamSeq: 10}},
		{"the end of a stream is set forward", `UPDATE streams SET head = 11 WHERE id = 'ws_dev'`, &audit.Finding{Kind: audit.Truncated,
			Stream: end, StreamSeq: 11}},
		{"a body is damaged", `UPDATE bodies SET body = x'00'` + last, &audit.Finding{Kind: audit.RecordDamaged, Seq: 30, Stream: end,
			StreamSeq: 10}},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := killed(t, c.sql)
			report, documents, err := audit.Audit(t.Context(), log, log, definitions, ws)
			switch {
			case err != nil:
				t.Fatal(err)
			case c.want == nil:
				if !report.OK || !documents.OK || documents.Documents != 4+3 {
					t.Errorf("got %+v, %+v", report, documents)
				}
			case report.OK || len(report.Findings) == 0:
				t.Errorf("nothing was found")
			default:
				got := report.Findings[0]
				if got.Kind != c.want.Kind || got.Stream != c.want.Stream || got.StreamSeq != c.want.StreamSeq {
					t.Errorf("got %+v, want %+v", got, *c.want)
				}
			}
			report, documents, err = audit.Audit(t.Context(), log, log, definitions, journaltest.OtherWorkspace)
			if err != nil || !report.OK || !documents.OK {
				t.Errorf("the other workspace: %+v, %+v, %v", report, documents, err)
			}
		})
	}
}

func TestWholeLog(t *testing.T) {
	for name, log := range map[string]journaltest.Log{"memory": inMemory(t), "sqlite": open(t, filepath.Join(t.TempDir(), "log.db"))} {
		t.Run(name, func(t *testing.T) {
			fill(t, log)
			report, err := audit.Verify(t.Context(), log, ws)
			if err != nil || !report.OK || report.Checked != 30 || report.Head != 30 || report.Count != 0 {
				t.Errorf("report %+v, %v", report, err)
			}
			if len(report.Streams) != 3 {
				t.Fatalf("%d streams, want 3", len(report.Streams))
			}
			for _, s := range report.Streams {
				last, err := log.Read(t.Context(), journal.Query{Workspace: ws, Stream: s.Stream, Last: true, Limit: 1})
				if err != nil || s.Events != 10 || s.LastSeq != 10 || s.LastHash != last[0].Chain.Hash {
					t.Errorf("stream %+v, %v", s, err)
				}
			}
			docs, err := audit.VerifyProjections(t.Context(), log, log, definitions, ws)
			if err != nil || !docs.OK || docs.Events != 30 || docs.Documents != 4+3 {
				t.Errorf("documents %+v, %v", docs, err)
			}
			empty, err := audit.Verify(t.Context(), log, "ws_none")
			if err != nil || !empty.OK || empty.Checked != 0 {
				t.Errorf("a workspace without events: %+v, %v", empty, err)
			}
			if err := log.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func inMemory(t *testing.T) journaltest.Log {
	t.Helper()
	setup := journaltest.NewSetup(definitions...)
	log, err := memory.NewJournal(setup.Definitions, setup.Clock, setup.IDs, setup.Entropy)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// place is the WHERE clause for the event at place n of the first workspace.
func place(n int) string { return fmt.Sprintf(" WHERE place = (1 << 40) + %d; ", n) }

// Each way to change what was recorded is found, and the first finding names the event.
func TestTampering(t *testing.T) {
	room1 := event.RoomStream(ws, "room_1")
	for _, c := range []struct {
		name, sql string
		want      audit.Finding
	}{
		{"one byte of the data", `UPDATE bodies SET body = CAST(replace(body, CAST('text 13' AS BLOB), CAST('text 14' AS BLOB)) AS BLOB)` +
			place(13),
			audit.Finding{Kind: audit.CommitmentMismatch, Seq: 13, Stream: room1, StreamSeq: 5}},
		{"one byte of the salt", `UPDATE bodies SET body = CAST(x'00' || substr(body, 2) AS BLOB)` + place(13),
			audit.Finding{Kind: audit.CommitmentMismatch, Seq: 13, Stream: room1, StreamSeq: 5}},
		{"the correlation", `UPDATE events SET correlation = 'another'` + place(13), audit.Finding{Kind: audit.EventHashMismatch, Seq: 13,
			Stream: room1, StreamSeq: 5}},
		{"the run", `UPDATE events SET run = 'run_x'` + place(13), audit.Finding{Kind: audit.EventHashMismatch, Seq: 13, Stream: room1,
			StreamSeq: 5}},
		{"the id", `UPDATE events SET id = x'01890a5dac96774bbcceb302099a8057'` + place(13), audit.Finding{Kind: audit.EventHashMismatch, Seq: 13,
			Stream: room1, StreamSeq: 5}},
		{"the type", `INSERT INTO types VALUES (2, 'note.forged'); UPDATE events SET type = 2` + place(13),
			audit.Finding{Kind: audit.EventHashMismatch, Seq: 13, Stream: room1, StreamSeq: 5}},
		{"the number in the stream", `UPDATE events SET stream_seq = 99` + place(13), audit.Finding{Kind: audit.EventHashMismatch, Seq: 13,
			Stream: room1, StreamSeq: 99}},
		{"the entity, which the hash does not cover", `UPDATE events SET entity = 'note' || char(31) || 'n9'` + place(13),
			audit.Finding{Kind: audit.RecordDamaged, Seq: 13}},
		{"the time of recording, which the hash does not cover", `UPDATE events SET recorded_at = 7` + place(13),
			audit.Finding{Kind: audit.RecordDamaged, Seq: 13}},
		{"an event is dropped", `DELETE FROM events` + place(13), audit.Finding{Kind: audit.SeqGap, Seq: 13}},
		{"an event and its body are dropped", `DELETE FROM bodies` + place(13) + `DELETE FROM events` + place(13),
			audit.Finding{Kind: audit.SeqGap, Seq: 13}},
		{"a body is dropped", `DELETE FROM bodies` + place(13), audit.Finding{Kind: audit.RecordDamaged, Seq: 13}},
		{"two events of a stream change places", swap(13, 16), audit.Finding{Kind: audit.EventHashMismatch, Seq: 13, Stream: room1,
			StreamSeq: 6}},
		{"two events of different streams change places", swap(13, 14), audit.Finding{Kind: audit.EventHashMismatch, Seq: 13,
			Stream: event.RoomStream(ws, "room_2"), StreamSeq: 5}},
		{"two bodies change places", `UPDATE bodies SET place = -1` + place(13) + `UPDATE bodies SET place = (1 << 40) + 13` + place(14) +
			`UPDATE bodies SET place = (1 << 40) + 14 WHERE place = -1`,
			audit.Finding{Kind: audit.CommitmentMismatch, Seq: 13, Stream: room1, StreamSeq: 5}},
		{"the last event is dropped", `DELETE FROM events` + place(30), audit.Finding{Kind: audit.SeqGap, Seq: 30}},
		{"the last event and the workspace's head are dropped", `DELETE FROM events` + place(30) + `UPDATE workspaces SET head = 29`,
			audit.Finding{Kind: audit.Truncated, Stream: event.WorkspaceStream(ws), StreamSeq: 10}},
		{"the last event of a stream and its head are dropped", `DELETE FROM events` + place(28) +
			`UPDATE streams SET head = 9 WHERE id = 'room_1'`, audit.Finding{Kind: audit.SeqGap, Seq: 28}},
		{"a whole stream is dropped", `DELETE FROM events WHERE stream = 1`, audit.Finding{Kind: audit.SeqGap, Seq: 1}},
		{"only the head of a stream is set back", `UPDATE streams SET head = 9 WHERE id = 'room_1'`, audit.Finding{Kind: audit.HeadMismatch,
			Stream: room1, StreamSeq: 10}},
		{"one bit of the hash in a stream's head", `UPDATE streams SET hash = CAST(substr(hash, 1, 31) || x'00' AS BLOB) WHERE id = 'room_1'`,
			audit.Finding{Kind: audit.HeadMismatch, Stream: room1, StreamSeq: 10}},
		{"only the head of a stream is dropped", `DELETE FROM streams WHERE id = 'room_1'`, audit.Finding{Kind: audit.HeadMismatch, Stream: room1,
			StreamSeq: 10}},
		{"an event is added", `INSERT INTO events SELECT (1 << 40) + 31, stream, 11, type, randomblob(16), recorded_at, correlation, run, ` +
			`entity, record FROM events` + place(28) +
			`INSERT INTO bodies SELECT (1 << 40) + 31, body, generation FROM bodies` + place(28) +
			`UPDATE workspaces SET head = 31; UPDATE streams SET head = 11 WHERE id = 'room_1'`,
			audit.Finding{Kind: audit.EventHashMismatch, Seq: 31, Stream: room1, StreamSeq: 11}},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := tampered(t, c.sql)
			report, err := audit.Verify(t.Context(), log, ws)
			if err != nil {
				t.Fatal(err)
			}
			if report.OK || report.Count == 0 {
				t.Fatalf("nothing was found: %+v", report)
			}
			got := report.Findings[0]
			if got.Kind != c.want.Kind || got.Seq != c.want.Seq || c.want.StreamSeq != 0 && (got.Stream != c.want.Stream ||
				got.StreamSeq != c.want.StreamSeq) {
				t.Errorf("first finding\n got %+v\nwant %+v", got, c.want)
			}
			if got.Seq == 13 && got.Kind != audit.SeqGap && got.Event == "" {
				t.Errorf("the finding does not name the event: %+v", got)
			}
		})
	}
}

func swap(a, b int) string {
	sql := ""
	for _, table := range []string{"events", "bodies"} {
		sql += fmt.Sprintf("UPDATE %s SET place = -1%sUPDATE %s SET place = (1 << 40) + %d%sUPDATE %s SET place = (1 << 40) + %d WHERE place = "+
			"-1; ", table, place(a), table, a, place(b), table, b)
	}
	return sql
}

// Whichever single bit of a record or a body is turned, the event is named. Every seventh is tried, so that each byte and each position is.
func TestAnyBit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	log := open(t, path)
	fill(t, log)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := conn.Exec(`DROP TRIGGER events_no_update; DROP TRIGGER bodies_no_update`); err != nil {
		t.Fatal(err)
	}
	for table, column := range map[string]string{"events": "record", "bodies": "body"} {
		bytes := column1(t, conn, "SELECT "+column+" FROM "+table+place(13))
		for bit := 0; bit < 8*len(bytes); bit += 7 {
			turned := slices.Clone(bytes)
			turned[bit/8] ^= 1 << (bit % 8)
			if err := conn.Exec(fmt.Sprintf("UPDATE %s SET %s = x'%x'%s", table, column, turned, place(13))); err != nil {
				t.Fatal(err)
			}
			look, err := sqlite.OpenReadOnly(t.Context(), options(path))
			if err != nil {
				t.Fatal(err)
			}
			report, err := audit.Verify(t.Context(), look, ws)
			if err != nil || report.OK || report.Findings[0].Seq != 13 {
				t.Errorf("bit %d of the %s: %+v, %v", bit, column, report.Findings, err)
			}
			if err := look.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.Exec(fmt.Sprintf("UPDATE %s SET %s = x'%x'%s", table, column, bytes, place(13))); err != nil {
			t.Fatal(err)
		}
	}
}

func column1(t *testing.T, conn *sqlite3.Conn, sql string) []byte {
	t.Helper()
	stmt, _, err := conn.Prepare(sql)
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	if !stmt.Step() {
		t.Fatal("no row", stmt.Err())
	}
	return stmt.ColumnBlob(0, nil)
}

func TestTamperedDocuments(t *testing.T) {
	for _, c := range []struct{ name, sql, kind, document string }{
		{"a body", `UPDATE documents SET body = CAST(replace(body, CAST('"sum":0' AS BLOB), CAST('"sum":1' AS BLOB)) AS BLOB) WHERE key = 'n2'`,
			audit.DocumentMismatch, "notes/n2"},
		{"a version", `UPDATE documents SET version = 99 WHERE key = 'n2'`, audit.DocumentMismatch, "notes/n2"},
		{"a place", `UPDATE documents SET seq = 1 WHERE key = 'n2'`, audit.DocumentMismatch, "notes/n2"},
		{"one is dropped", `DELETE FROM documents WHERE key = 'all'`, audit.DocumentMissing, "rooms/all"},
		{"one is added", `INSERT INTO documents SELECT 99, projection, workspace, 'forged', version, seq, body FROM documents WHERE key = 'n2'`,
			audit.DocumentUnfounded, "notes/forged"},
		{"an entry is dropped", `DELETE FROM entries WHERE key = 'n2' AND name = 'sum'`, audit.IndexMismatch, "notes/n2"},
		{"an entry is added", `INSERT INTO entries SELECT projection, workspace, 'texts', '7', key FROM entries WHERE key = 'n2' AND name = ` +
			`'sum'`, audit.IndexMismatch, "notes/n2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := tampered(t, c.sql)
			report, err := audit.VerifyProjections(t.Context(), log, log, definitions, ws)
			if err != nil || report.OK || report.Count != 1 || report.Findings[0].Kind != c.kind || report.Findings[0].Document != c.document {
				t.Errorf("%+v, %v, want %s of %s", report, err, c.kind, c.document)
			}
		})
	}
}

// A log is verified while others append to it, and nothing is found that is not there.
func TestVerifyWhileOthersAppend(t *testing.T) {
	log := open(t, filepath.Join(t.TempDir(), "log.db"))
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					fill(t, log)
				}
			}
		})
	}
	for range 20 {
		report, err := audit.Verify(t.Context(), log, ws)
		if err != nil || !report.OK {
			t.Errorf("%+v, %v", report, err)
		}
		docs, err := audit.VerifyProjections(t.Context(), log, log, definitions, ws)
		if err != nil || !docs.OK {
			t.Errorf("%+v, %v", docs, err)
		}
	}
	close(stop)
	wg.Wait()
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}

// A log with more to find than a report lists counts all of it.
func TestManyFindings(t *testing.T) {
	log := inMemory(t)
	fill(t, log)
	fill(t, log)
	report, err := audit.Verify(t.Context(), forgetful{log}, ws)
	if err != nil || report.OK || report.Count != 120+3 || len(report.Findings) != audit.MaxFindings {
		t.Errorf("%d findings, %d listed, %v, want 120 of events, 3 of heads, and %d", report.Count, len(report.Findings), err, audit.MaxFindings)
	}
}

// forgetful is a log that has lost every hash and whatever was hashed.
type forgetful struct{ journal.Journal }

func (f forgetful) Read(ctx context.Context, q journal.Query) ([]event.Event, error) {
	events, err := f.Journal.Read(ctx, q)
	for i := range events {
		events[i].Chain = event.Chain{}
	}
	return events, err
}
