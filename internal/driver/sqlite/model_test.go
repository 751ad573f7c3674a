package sqlite_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/memory"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
)

// After any appends, the file and the memory give the same answers, the same events and the same documents, byte for byte, over restarts.
func TestSameAsMemory(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			r.Fatal(err)
		}
		disk, mem := journaltest.NewSetup(journaltest.Notes(1), journaltest.Rooms(1)), journaltest.NewSetup(journaltest.Notes(1),
			journaltest.Rooms(1))
		model, err := memory.NewJournal(mem.Definitions, mem.Clock, mem.IDs, mem.Entropy)
		if err != nil {
			r.Fatal(err)
		}
		open := func() *sqlite.Journal {
			// Neither the timers of the committer nor a restart may use up the clock that stamps.
			log, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(dir, "log.db"), Definitions: disk.Definitions,
				Clock: stampsOnly{disk.Clock}, IDs: disk.IDs, Entropy: disk.Entropy})
			if err != nil {
				r.Fatal(err)
			}
			return log
		}
		log := open()
		defer func() { _ = log.Close() }()
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			switch rapid.IntRange(0, 9).Draw(r, "step") {
			case 0:
				name := rapid.SampledFrom([]string{"notes", "rooms"}).Draw(r, "rebuilt")
				if err := log.Rebuild(t.Context(), name); err != nil {
					r.Fatal(err)
				}
			default:
				b := batch(r)
				got, gotErr := log.Append(t.Context(), b)
				want, wantErr := model.Append(t.Context(), b)
				if fault.CodeOf(gotErr) != fault.CodeOf(wantErr) || text(got) != text(want) {
					r.Fatalf("append\n got %s, %v\nwant %s, %v", text(got), gotErr, text(want), wantErr)
				}
			}
		}
		for _, ws := range []id.Workspace{journaltest.Workspace, journaltest.OtherWorkspace} {
			got, gotErr := log.Read(t.Context(), journal.Query{Workspace: ws, Limit: 1000})
			want, wantErr := model.Read(t.Context(), journal.Query{Workspace: ws, Limit: 1000})
			if gotErr != nil || wantErr != nil || text(got) != text(want) {
				r.Fatalf("events\n got %s, %v\nwant %s, %v", text(got), gotErr, text(want), wantErr)
			}
			if err := journaltest.CheckChains(t.Context(), log, ws); err != nil {
				r.Fatal(err)
			}
		}
		if got, want := journaltest.Documents(t, log, "notes", "rooms"), journaltest.Documents(t, model, "notes", "rooms"); got != want {
			r.Fatalf("documents\n got %s\nwant %s", got, want)
		}
	})
}

// stampsOnly is a clock whose timers leave its time alone, and never fire.
type stampsOnly struct{ event.Clock }

func (stampsOnly) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// batch draws a batch that is often refused: by its expectations, its keys, its fold, or because it is malformed.
func batch(r *rapid.T) event.Batch {
	ws := rapid.SampledFrom([]id.Workspace{journaltest.Workspace, journaltest.Workspace, journaltest.OtherWorkspace}).Draw(r, "workspace")
	room := rapid.SampledFrom([]id.Room{"", "room_a", "room_b"})
	b := event.Batch{Workspace: ws}
	for range rapid.IntRange(1, 4).Draw(r, "events") {
		d := journaltest.InRoom(room.Draw(r, "room"), rapid.SampledFrom([]string{"a", "b", "<é>\n", "fail"}).Draw(r, "text"))
		d.Workspace, d.Stream = ws, event.RoomStream(ws, d.Room)
		d.Type = rapid.SampledFrom([]string{"note.written", "note.read", "bad"}).Draw(r, "type")
		if d.Type == "bad" && rapid.IntRange(0, 3).Draw(r, "really") > 0 {
			d.Type = "note.written"
		}
		if rapid.Bool().Draw(r, "about") {
			d = d.About("note", fmt.Sprint("n", rapid.IntRange(0, 2).Draw(r, "note")))
		}
		if rapid.IntRange(0, 4).Draw(r, "keyed") == 0 {
			d.IdempotencyKey = fmt.Sprint(rapid.IntRange(0, 9).Draw(r, "event key"))
		}
		if rapid.IntRange(0, 4).Draw(r, "run") == 0 {
			d = d.In("run_1", "step_1")
			d.Display = json.RawMessage(`{"z":1,"a":[1.50,"\u00e9"]}`)
		}
		b.Drafts = append(b.Drafts, d)
	}
	if rapid.IntRange(0, 2).Draw(r, "batch keyed") == 0 {
		b.Key, b.Digest = fmt.Sprint(rapid.IntRange(0, 3).Draw(r, "key")), event.DigestOf([]byte(fmt.Sprint(rapid.IntRange(0, 1).Draw(r,
			"command"))))
	}
	if rapid.IntRange(0, 3).Draw(r, "expects") == 0 {
		b.Streams = []event.StreamVersion{{Stream: event.RoomStream(ws, room.Draw(r, "stream")), Version: uint64(rapid.IntRange(0, 4).Draw(r,
			"version"))}}
	}
	if rapid.IntRange(0, 3).Draw(r, "expects document") == 0 {
		b.Documents = []event.DocumentVersion{{Projection: "notes", Key: "n1", Version: uint64(rapid.IntRange(0, 4).Draw(r, "document version"))}}
	}
	return b
}
