package journaltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

func stamps(t *testing.T, d Driver) {
	l := open(t, d)
	said := time.Date(2025, 5, 5, 5, 5, 5, 123_456_789, time.FixedZone("east", 3600))
	full := InRoom(Room, "one").About("note", "n1").In("run_01ARZ3NDEKTSV4RRFFQ69G5FAV", "step_01ARZ3NDEKTSV4RRFFQ69G5FAV")
	full.ID, full.OccurredAt, full.Correlation, full.Causation = "01890a5d-ac96-774b-bcce-b302099a8057", said, "asked by a client",
		"01890a5d-ac96-774b-bcce-b302099a8058"
	full.Zone, full.Redaction, full.ContainsSecrets = event.HighStakes, event.RedactPartial, true
	full.Mission, full.Thread, full.IdempotencyKey = "mission", "th_01ARZ3NDEKTSV4RRFFQ69G5FAV", "key"
	full.PolicyContext, full.ModelContext, full.Display = json.RawMessage(`{ "b": 1.0, "a": "<" }`), json.RawMessage(`{"m":[]}`),
		json.RawMessage(`{}`)
	full.Version = 3
	other := Draft("two")
	other.Actor, other.Principal = event.Actor{Type: id.Service, ID: "dlp"}, ""
	before := full

	got := appendAll(t, l, Batch(full, Draft("free"), other))
	if full.PolicyContext == nil || string(full.PolicyContext) != string(before.PolicyContext) {
		t.Errorf("the caller's draft was changed: %s", full.PolicyContext)
	}
	for i, e := range got {
		if e.Seq != uint64(i)+1 || e.ID == "" || e.RecordedAt.IsZero() || e.Chain.HashVersion != journal.HashVersion ||
			len(e.Chain.Salt) != journal.SaltBytes {
			t.Errorf("event %d: %+v", i+1, e)
		}
	}
	if e := got[0]; e.ID != full.ID || !e.OccurredAt.Equal(said.Truncate(time.Microsecond)) || e.OccurredAt.Location() != time.UTC ||
		e.Correlation != full.Correlation || string(e.PolicyContext) != `{"a":"<","b":1}` {
		t.Errorf("what the draft says was not kept: %+v", e)
	}
	if got[1].Correlation == "" || got[1].Correlation != got[2].Correlation || got[1].OccurredAt != got[1].RecordedAt {
		t.Errorf("what the drafts leave open was not filled in alike: %+v, %+v", got[1], got[2])
	}
	if got[0].StreamSeq != 1 || got[1].StreamSeq != 1 || got[2].StreamSeq != 2 {
		t.Errorf("places in the streams: %d %d %d, want 1 1 2", got[0].StreamSeq, got[1].StreamSeq, got[2].StreamSeq)
	}
	if bytes.Equal(got[0].Chain.Salt, got[1].Chain.Salt) {
		t.Error("two events have the same salt")
	}
	sameEvents(t, read(t, l, journal.Query{}), got)
	for _, want := range got {
		e, err := l.Get(t.Context(), Workspace, want.ID)
		if err != nil {
			t.Fatal(err)
		}
		sameEvents(t, []event.Event{e}, []event.Event{want})
	}
	if _, err := l.Get(t.Context(), Workspace, "01890a5d-ac96-774b-bcce-b302099a8059"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("an event that is not there: %v, want %v", err, journal.ErrNotFound)
	}
	if _, err := l.Get(t.Context(), Workspace, "nonsense"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("an id that is none: %v, want %v", err, journal.ErrNotFound)
	}
	again := full
	again.IdempotencyKey = ""
	if _, err := l.Append(t.Context(), Batch(again)); fault.CodeOf(err) != "event_exists" {
		t.Errorf("an id that is taken: %v, want event_exists", err)
	}
	again.ID = "01890a5d-ac96-774b-bcce-b302099a80ff"
	if _, err := l.Append(t.Context(), Batch(again, again)); fault.CodeOf(err) != "event_exists" {
		t.Errorf("an id twice in one batch: %v, want event_exists", err)
	}
	must(t, CheckChains(t.Context(), l, Workspace))
}

// sameEvents compares events as a client sees them.
func sameEvents(t *testing.T, got, want []event.Event) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		var g, w []byte
		if i < len(got) {
			g, _ = json.Marshal(got[i])
		}
		if i < len(want) {
			w, _ = json.Marshal(want[i])
		}
		if !bytes.Equal(g, w) {
			t.Fatalf("event %d\n got %s\nwant %s", i+1, g, w)
		}
	}
}

func refusesBadBatches(t *testing.T, d Driver) {
	l := open(t, d)
	with := func(change func(*event.Draft)) event.Batch {
		draft := InRoom(Room, "x")
		change(&draft)
		return Batch(draft)
	}
	for _, c := range []struct {
		name  string
		batch event.Batch
		code  string
	}{
		{"no events", event.Batch{Workspace: Workspace}, "batch_empty"},
		{"no workspace", event.Batch{Drafts: []event.Draft{Draft("x")}}, "workspace_invalid"},
		{"another workspace's event", event.Batch{Workspace: OtherWorkspace, Drafts: []event.Draft{Draft("x")}}, "workspace_mismatch"},
		{"a type of one word", with(func(d *event.Draft) { d.Type = "note" }), "event_type_invalid"},
		{"a type of five words", with(func(d *event.Draft) { d.Type = "a.b.c.d.e" }), "event_type_invalid"},
		{"a type in capitals", with(func(d *event.Draft) { d.Type = "Note.written" }), "event_type_invalid"},
		{"a type with an empty word", with(func(d *event.Draft) { d.Type = "note." }), "event_type_invalid"},
		{"a type that begins with a digit", with(func(d *event.Draft) { d.Type = "1note.written" }), "event_type_invalid"},
		{"a type with a line end", with(func(d *event.Draft) { d.Type = "note.written\n" }), "event_type_invalid"},
		{"a type of 101 bytes", with(func(d *event.Draft) { d.Type = "n." + strings.Repeat("a", 99) }), "event_type_invalid"},
		{"version 0", with(func(d *event.Draft) { d.Version = 0 }), "event_version_invalid"},
		{"another room's stream", with(func(d *event.Draft) { d.Stream.ID = "room_x" }), "stream_mismatch"},
		{"a room's event in the workspace's stream", with(func(d *event.Draft) { d.Stream = event.WorkspaceStream(Workspace) }),
			"stream_mismatch"},
		{"an id that is not a UUID", with(func(d *event.Draft) { d.ID = "evt_1" }), "event_id_invalid"},
		{"a UUID in capitals", with(func(d *event.Draft) { d.ID = "01890A5D-ac96-774b-bcce-b302099a8057" }), "event_id_invalid"},
		{"a time before 1970", with(func(d *event.Draft) {
			d.OccurredAt = time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC)
		}), "occurred_at_invalid"},
		{"a time after 9999", with(func(d *event.Draft) { d.OccurredAt = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) }), "occurred_at_invalid"},
		{"no actor", with(func(d *event.Draft) { d.Actor = event.Actor{} }), "actor_invalid"},
		{"an actor without an id", with(func(d *event.Draft) { d.Actor.ID = "" }), "actor_invalid"},
		{"a principal of another type", with(func(d *event.Draft) { d.Principal = "agt_01M7YNAYM0SM228XA4K3G6VDD4" }), "actor_invalid"},
		{"a person for a service", with(func(d *event.Draft) { d.Actor.Type = id.Service }), "actor_invalid"},
		{"nobody for an agent", with(func(d *event.Draft) { d.Actor.Type = id.Agent; d.Principal = "nobody" }), "actor_invalid"},
		{"no zone", with(func(d *event.Draft) { d.Zone = "" }), "zone_invalid"},
		{"an unknown redaction", with(func(d *event.Draft) { d.Redaction = "some" }), "redaction_level_invalid"},
		{"a text of 257 bytes", with(func(d *event.Draft) { d.Mission = strings.Repeat("m", 257) }), "text_too_long"},
		{"a control character", with(func(d *event.Draft) { d.Correlation = "a\x1b[2J" }), "text_invalid"},
		{"a text that is not UTF-8", with(func(d *event.Draft) { d.Run = "run_\xff" }), "text_invalid"},
		{"an entity without an id", with(func(d *event.Draft) { d.EntityType = "note" }), "entity_invalid"},
		{"no data", with(func(d *event.Draft) { d.Data = nil }), "data_invalid"},
		{"data that is a list", with(func(d *event.Draft) { d.Data = json.RawMessage(`[]`) }), "data_invalid"},
		{"data that breaks off", with(func(d *event.Draft) { d.Data = json.RawMessage(`{"a":`) }), "data_invalid"},
		{"data and more", with(func(d *event.Draft) { d.Data = json.RawMessage(`{}{}`) }), "data_invalid"},
		{"data that is not UTF-8", with(func(d *event.Draft) { d.Data = json.RawMessage("{\"a\":\"\xff\"}") }), "data_invalid"},
		{"a context that is a text", with(func(d *event.Draft) { d.Display = json.RawMessage(`"x"`) }), "context_invalid"},
		{"a context with a number that canonical JSON folds", with(func(d *event.Draft) {
			d.Display = json.RawMessage(`{"n":9007199254740993}`)
		}), "number_not_exact"},
		{"a key without a digest", event.Batch{Workspace: Workspace, Drafts: []event.Draft{Draft("x")}, Key: "k"}, "digest_missing"},
		{"an unknown projection", event.Batch{Workspace: Workspace, Drafts: []event.Draft{Draft("x")},
			Documents: []event.DocumentVersion{{Projection: "none", Key: "k"}}}, "unknown_projection"},
		{"one bad event among good ones", Batch(Draft("good"), with(func(d *event.Draft) { d.Data = nil }).Drafts[0]), "data_invalid"},
	} {
		if _, err := l.Append(t.Context(), c.batch); fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", c.name, err, c.code)
		}
	}
	if n := head(t, l, Workspace); n != 0 {
		t.Errorf("refused batches left %d events", n)
	}
}

func limitsOfABatch(t *testing.T, d Driver) {
	l := open(t, d)
	data := func(size int) json.RawMessage {
		return json.RawMessage(`{"text":"` + strings.Repeat("x", size-len(`{"text":""}`)) + `"}`)
	}
	many := func(n int) event.Batch {
		return Batch(slices.Repeat([]event.Draft{Draft("x")}, n)...)
	}
	sized := func(sizes ...int) event.Batch {
		b := event.Batch{Workspace: Workspace}
		for _, size := range sizes {
			draft := Draft("")
			draft.Data = data(size)
			b.Drafts = append(b.Drafts, draft)
		}
		return b
	}
	context := func(size int) event.Batch {
		draft := Draft("")
		draft.Display = data(size)
		return Batch(draft)
	}
	for _, c := range []struct {
		name  string
		batch event.Batch
		code  string
	}{
		{"as many events as there may be", many(journal.MaxBatch), ""},
		{"one more", many(journal.MaxBatch + 1), "batch_too_large"},
		{"data at its limit", sized(journal.MaxDataBytes), ""},
		{"data beyond it", sized(journal.MaxDataBytes + 1), "data_too_large"},
		{"a batch at its limit", sized(16<<20, 16<<20, 16<<20, 16<<20), ""},
		{"a batch beyond it", sized(16<<20, 16<<20, 16<<20, 16<<20, 100), "batch_too_large"},
		{"a context at its limit", context(journal.MaxContextBytes), ""},
		{"a context beyond it", context(journal.MaxContextBytes + 1), "context_too_large"},
	} {
		receipt, err := l.Append(t.Context(), c.batch)
		if fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %q", c.name, err, c.code)
		}
		if err != nil {
			continue
		}
		last := receipt.Events[len(receipt.Events)-1]
		if e, err := l.Get(t.Context(), Workspace, last.ID); err != nil || !bytes.Equal(e.Data, last.Data) {
			t.Errorf("%s: read back %d bytes, %v, want %d", c.name, len(e.Data), err, len(last.Data))
		}
	}
	must(t, CheckChains(t.Context(), l, Workspace))
}

func expectedVersions(t *testing.T, d Driver) {
	l := open(t, d, Notes(1))
	expecting := func(version uint64) event.Batch {
		b := Batch(InRoom(Room, "x"))
		b.Streams = []event.StreamVersion{{Stream: event.RoomStream(Workspace, Room), Version: version}}
		return b
	}
	appendAll(t, l, expecting(0))
	appendAll(t, l, expecting(1))
	for _, stale := range []uint64{0, 1, 3} {
		if _, err := l.Append(t.Context(), expecting(stale)); !errors.Is(err, journal.ErrConflict) {
			t.Errorf("expecting %d at 2: %v, want %v", stale, err, journal.ErrConflict)
		}
	}
	folding := func(version uint64) event.Batch {
		b := Batch(Draft("x").About("note", "n"))
		b.Documents = []event.DocumentVersion{{Projection: "notes", Key: "n", Version: version}}
		return b
	}
	appendAll(t, l, folding(0))
	appendAll(t, l, folding(1))
	for _, stale := range []uint64{0, 1, 3} {
		if _, err := l.Append(t.Context(), folding(stale)); !errors.Is(err, journal.ErrConflict) {
			t.Errorf("expecting document %d at 2: %v, want %v", stale, err, journal.ErrConflict)
		}
	}
	both := folding(2)
	both.Streams = []event.StreamVersion{{Stream: event.WorkspaceStream(Workspace), Version: 1}}
	if _, err := l.Append(t.Context(), both); !errors.Is(err, journal.ErrConflict) {
		t.Errorf("one expectation of two fails: %v, want %v", err, journal.ErrConflict)
	}
	if n := head(t, l, Workspace); n != 4 {
		t.Errorf("%d events, want the 4 that were accepted", n)
	}
}

func batchKeys(t *testing.T, d Driver) {
	l := open(t, d, Notes(1))
	keyed := func(key, command string, drafts ...event.Draft) event.Batch {
		b := Batch(drafts...)
		b.Key, b.Digest = key, event.DigestOf([]byte(command))
		return b
	}
	first := appendAll(t, l, keyed("k", "command", Draft("a").About("note", "n"), InRoom(Room, "b")))
	appendAll(t, l, Batch(Draft("between")))
	stale := keyed("k", "command", Draft("a").About("note", "n"))
	stale.Streams = []event.StreamVersion{{Stream: event.WorkspaceStream(Workspace), Version: 0}} // was true the first time
	receipt, err := l.Append(t.Context(), stale)
	if err != nil || !receipt.Replayed {
		t.Fatalf("the same command again: %+v, %v, want the first answer", receipt, err)
	}
	sameEvents(t, receipt.Events, first)
	if _, err := l.Append(t.Context(), keyed("k", "another command", Draft("c"))); !errors.Is(err, journal.ErrKeyConflict) {
		t.Errorf("another command under the key: %v, want %v", err, journal.ErrKeyConflict)
	}
	recalled, known, err := journal.Recall(t.Context(), l, Workspace, "k", event.DigestOf([]byte("command")))
	if err != nil || !known {
		t.Fatalf("recall: %t, %v, want the first answer", known, err)
	}
	sameEvents(t, recalled, first)
	if _, _, err := journal.Recall(t.Context(), l, Workspace, "k", event.DigestOf([]byte("another"))); !errors.Is(err,
		journal.ErrKeyConflict) {
		t.Errorf("recall of another command: %v, want %v", err, journal.ErrKeyConflict)
	}
	if _, known, err := journal.Recall(t.Context(), l, Workspace, "new", event.DigestOf([]byte("command"))); err != nil || known {
		t.Errorf("recall of a new key: %t, %v, want that it is new", known, err)
	}
	if n := head(t, l, Workspace); n != 3 {
		t.Errorf("%d events, want 3", n)
	}
	if doc, err := l.Document(t.Context(), Workspace, "notes", "n"); err != nil || doc.Version != 1 {
		t.Errorf("document %+v, %v, want version 1: a repetition is folded no second time", doc, err)
	}
	// A refusal does not burn the key, whatever refused.
	for i, refused := range []func(*event.Batch){
		func(b *event.Batch) {
			b.Streams = []event.StreamVersion{{Stream: event.WorkspaceStream(Workspace), Version: 99}}
		},
		func(b *event.Batch) { b.Drafts[0].Data = json.RawMessage(`[]`) },
		func(b *event.Batch) { b.Drafts[0] = Draft("fail").About("note", "n") },
	} {
		key := fmt.Sprint("refused ", i)
		bad := keyed(key, "command", Draft("x"))
		refused(&bad)
		if _, err := l.Append(t.Context(), bad); err == nil {
			t.Fatalf("batch %d was not refused", i)
		}
		receipt, err := l.Append(t.Context(), keyed(key, "corrected", Draft("x")))
		if err != nil || receipt.Replayed {
			t.Errorf("corrected retry %d: %+v, %v, want it recorded", i, receipt, err)
		}
	}
	// Keys belong to their workspace.
	other := keyed("k", "another command", Of(OtherWorkspace, Draft("c")))
	if receipt, err := l.Append(t.Context(), other); err != nil || receipt.Replayed {
		t.Errorf("the key in another workspace: %+v, %v, want it recorded", receipt, err)
	}
	long := keyed(strings.Repeat("k", journal.MaxTextBytes), "command", Draft("x"))
	appendAll(t, l, long)
	long.Key += "k"
	if _, err := l.Append(t.Context(), long); fault.CodeOf(err) != "text_too_long" {
		t.Errorf("a key beyond its limit: %v, want text_too_long", err)
	}
}

func eventKeys(t *testing.T, d Driver) {
	l := open(t, d)
	keyed := func(key string, draft event.Draft) event.Draft {
		draft.IdempotencyKey = key
		return draft
	}
	appendAll(t, l, Batch(keyed("a", Draft("x")), keyed("b", InRoom(Room, "x"))))
	for name, b := range map[string]event.Batch{
		"in the same stream":  Batch(keyed("a", Draft("y"))),
		"in another stream":   Batch(keyed("b", Draft("y"))),
		"twice in one batch":  Batch(keyed("c", Draft("y")), keyed("c", Draft("z"))),
		"behind a good event": Batch(Draft("y"), keyed("a", Draft("z"))),
	} {
		if _, err := l.Append(t.Context(), b); !errors.Is(err, journal.ErrKeyConflict) {
			t.Errorf("a key %s: %v, want %v", name, err, journal.ErrKeyConflict)
		}
	}
	appendAll(t, l, Batch(keyed("c", Draft("y"))))
	appendAll(t, l, Batch(Of(OtherWorkspace, keyed("a", Draft("x")))))
	if n := head(t, l, Workspace); n != 3 {
		t.Errorf("%d events, want 3", n)
	}
}

func chains(t *testing.T, d Driver) {
	l := open(t, d)
	for i := range 50 {
		draft := Draft(fmt.Sprint(i))
		if i%3 > 0 {
			draft = InRoom(id.Room(fmt.Sprint("room_", i%3)), fmt.Sprint(i))
		}
		appendAll(t, l, Batch(slices.Repeat([]event.Draft{draft}, i%4+1)...))
	}
	must(t, CheckChains(t.Context(), l, Workspace))
}

func manyWriters(t *testing.T, d Driver) {
	l := open(t, d, Notes(1), Rooms(1))
	const writers, each = 64, 20
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				room := id.Room(fmt.Sprint("room_", w%5))
				draft := InRoom(room, fmt.Sprint(i)).About("note", fmt.Sprint("n", w%7))
				b := Batch(slices.Repeat([]event.Draft{draft}, 1+i%3)...)
				if i%4 == 0 {
					b.Key, b.Digest = fmt.Sprintf("%d %d", w, i), event.DigestOf([]byte{byte(i)})
				}
				if _, err := l.Append(t.Context(), b); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	must(t, CheckChains(t.Context(), l, Workspace))
	if got, want := head(t, l, Workspace), uint64(writers*(7+7*2+6*3)); got != want {
		t.Errorf("%d events, want %d", got, want)
	}
	sameAfterRebuild(t, l, "notes", "rooms")
}

// Of many who expect the same version exactly one is served, in whatever order they come.
func oneOfManyWins(t *testing.T, d Driver) {
	l := open(t, d, Notes(1))
	for version := range uint64(10) {
		var wg sync.WaitGroup
		won := make(chan struct{}, 16)
		for range 16 {
			wg.Go(func() {
				b := Batch(Draft("x").About("note", "n"))
				b.Documents = []event.DocumentVersion{{Projection: "notes", Key: "n", Version: version}}
				b.Streams = []event.StreamVersion{{Stream: event.WorkspaceStream(Workspace), Version: version}}
				_, err := l.Append(t.Context(), b)
				if err == nil {
					won <- struct{}{}
				} else if !errors.Is(err, journal.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("%d writers changed version %d, want 1", len(won), version)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
