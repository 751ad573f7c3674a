package journaltest

import (
	"bytes"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// elsewhere is a log of 25 events in three streams, of which one bears a key, as another installation recorded it.
func elsewhere(t *testing.T, d Driver) (Log, []event.Event) {
	t.Helper()
	l := open(t, d, counters()...)
	for i := range 8 {
		keyed := Draft("with a key")
		keyed.IdempotencyKey = string(rune('a' + i))
		appendAll(t, l, Batch(Draft("one"), InRoom(Room, "two"), keyed))
	}
	appendAll(t, l, Batch(InRoom("room_01ARZ3NDEKTSV4RRFFQ69G5FAW", "other room")))
	return l, read(t, l, journal.Query{Limit: journal.MaxRead})
}

// counters fold every event, so that adopted documents can be compared.
func counters() []projection.Definition {
	keys := func(e event.Event) []string { return []string{string(e.Room) + "-"} }
	fold := func(n Note, _ string, e event.Event) (Note, error) {
		d, err := event.Decode[Note](e)
		return Note{Text: n.Text + d.Text[:1], N: n.N + 1}, err
	}
	return []projection.Definition{projection.Define("counted", 1, keys, fold, func(n Note) []projection.Index {
		return []projection.Index{{Name: "text", Value: n.Text}}
	})}
}

// another is the setup of another installation, whose ids are others.
func another() Setup {
	s := NewSetup(counters()...)
	s.IDs = id.NewSource(s.Clock.Now, bytes.NewReader(bytes.Repeat([]byte{9}, 1<<16)))
	return s
}

// inChunks yields events, at most n at a time.
func inChunks(events []event.Event, n int) iter.Seq2[[]event.Event, error] {
	return func(yield func([]event.Event, error) bool) {
		for from := 0; from < len(events); from += n {
			if !yield(events[from:min(from+n, len(events))], nil) {
				return
			}
		}
	}
}

// adoption moves a log: the copy has the same bytes and goes on.
func adoption(t *testing.T, d Driver) {
	from, events := elsewhere(t, d)
	for _, n := range []int{1, 7, journal.MaxBatch} {
		setup := another()
		to := d.Open(t, setup)
		appendAll(t, to, Batch(Of(OtherWorkspace, Draft("of another workspace"))))
		head, err := adopt(t, to, inChunks(events, n))
		if err != nil || head != uint64(len(events)) {
			t.Fatalf("in chunks of %d: %d, %v; want %d", n, head, err, len(events))
		}
		if d.Reopen != nil {
			to = d.Reopen(t, to, setup)
		}
		if diff := cmp.Diff(events, read(t, to, journal.Query{Limit: journal.MaxRead})); diff != "" {
			t.Errorf("in chunks of %d: -was +is\n%s", n, diff)
		}
		if diff := cmp.Diff(read(t, from, journal.Query{Stream: event.RoomStream(Workspace, Room)}),
			read(t, to, journal.Query{Stream: event.RoomStream(Workspace, Room)})); diff != "" {
			t.Errorf("a stream: -was +is\n%s", diff)
		}
		q := projection.Query{Workspace: Workspace, Name: "counted", Limit: 10}
		was, err := from.Documents(t.Context(), q)
		if err != nil || len(was) != 3 {
			t.Fatal(was, err)
		}
		is, err := to.Documents(t.Context(), q)
		if diff := cmp.Diff(was, is); diff != "" || err != nil {
			t.Errorf("documents: %v, -was +is\n%s", err, diff)
		}
		if err := CheckChains(t.Context(), to, Workspace); err != nil {
			t.Error(err)
		}
		repeated := Draft("again")
		repeated.IdempotencyKey = "a"
		if _, err := to.Append(t.Context(), Batch(repeated)); !errors.Is(err, journal.ErrKeyConflict) {
			t.Errorf("a key that came along: %v, want %v", err, journal.ErrKeyConflict)
		}
		after := appendAll(t, to, Batch(Draft("goes on")))
		if after[0].Seq != head+1 || CheckChains(t.Context(), to, Workspace) != nil || CheckChains(t.Context(), to, OtherWorkspace) != nil {
			t.Errorf("it goes on at %d, %v", after[0].Seq, CheckChains(t.Context(), to, Workspace))
		}
		if _, err := adopt(t, to, inChunks(events, n)); !errors.Is(err, journal.ErrOccupied) {
			t.Errorf("a second time: %v, want %v", err, journal.ErrOccupied)
		}
	}
}

func adopt(t *testing.T, l Log, chunks iter.Seq2[[]event.Event, error]) (uint64, error) {
	t.Helper()
	return l.Adopt(t.Context(), Workspace, chunks, nil)
}

// adoptionsThatFail leave nothing, and the log as it was.
func adoptionsThatFail(t *testing.T, d Driver) {
	_, events := elsewhere(t, d)
	broken := errors.New("the source broke off")
	changed := func(i int, change func(*event.Event)) iter.Seq2[[]event.Event, error] {
		all := make([]event.Event, len(events))
		copy(all, events)
		change(&all[i])
		return inChunks(all, 4)
	}
	without := func(i int) iter.Seq2[[]event.Event, error] {
		return inChunks(append(append([]event.Event{}, events[:i]...), events[i+1:]...), 4)
	}
	swapped := append([]event.Event{}, events...)
	swapped[9], swapped[10] = swapped[10], swapped[9]
	to := d.Open(t, another())
	mine := appendAll(t, to, Batch(Of(OtherWorkspace, Draft("mine"))))
	for name, c := range map[string]struct {
		chunks iter.Seq2[[]event.Event, error]
		code   string
	}{
		"nothing":        {inChunks(nil, 4), journal.ErrForeign.Code},
		"a gap":          {without(12), journal.ErrForeign.Code},
		"no beginning":   {without(0), journal.ErrForeign.Code},
		"another order":  {inChunks(swapped, 4), journal.ErrForeign.Code},
		"twice":          {inChunks(append(append([]event.Event{}, events...), events...), 4), journal.ErrForeign.Code},
		"a changed byte": {changed(13, func(e *event.Event) { e.Data = []byte(`{"text":"onf"}`) }), journal.ErrForeign.Code},
		"another salt":   {changed(13, func(e *event.Event) { e.Chain.Salt = bytes.Repeat([]byte{1}, 16) }), journal.ErrForeign.Code},
		"another time":   {changed(13, func(e *event.Event) { e.OccurredAt = e.OccurredAt.Add(1e9) }), journal.ErrForeign.Code},
		"another actor":  {changed(13, func(e *event.Event) { e.Actor.ID = "usr_01ARZ3NDEKTSV4RRFFQ69G5FAX" }), journal.ErrForeign.Code},
		"another hash":   {changed(13, func(e *event.Event) { e.Chain.Hash[3] ^= 1 }), journal.ErrForeign.Code},
		"a foreign chain": {changed(24, func(e *event.Event) {
			e.Chain.Prev = events[0].Chain.Hash
			e.Chain.Hash = journal.HashOf(e)
		}), journal.ErrForeign.Code},
		"another workspace":   {changed(0, func(e *event.Event) { *e = mine[0] }), "workspace_mismatch"},
		"no event type":       {changed(24, func(e *event.Event) { e.Type = "X"; e.Chain.Hash = journal.HashOf(e) }), "event_type_invalid"},
		"an id that is there": {changed(24, func(e *event.Event) { e.ID = mine[0].ID; e.Chain.Hash = journal.HashOf(e) }), "event_exists"},
		"a source that breaks off": {func(yield func([]event.Event, error) bool) {
			_ = yield(events[:10], nil) && yield(nil, broken)
		}, ""},
	} {
		_, err := adopt(t, to, c.chunks)
		if err == nil || c.code != "" && fault.CodeOf(err) != c.code || c.code == "" && !errors.Is(err, broken) {
			t.Errorf("%s: got %v, want %q", name, err, c.code)
		}
		if n := head(t, to, Workspace); n != 0 {
			t.Errorf("%s: it left %d events", name, n)
		}
		if docs, err := to.Documents(t.Context(), projection.Query{Workspace: Workspace, Name: "counted", Limit: 10}); err != nil ||
			len(docs) != 0 {
			t.Errorf("%s: it left %d documents, %v", name, len(docs), err)
		}
	}
	appendAll(t, to, Batch(Of(OtherWorkspace, Draft("still works"))))
	if err := CheckChains(t.Context(), to, OtherWorkspace); err != nil {
		t.Error(err)
	}
	if n, err := adopt(t, to, inChunks(events, 4)); err != nil || n != uint64(len(events)) {
		t.Errorf("after all that: %d, %v", n, err)
	}
}

// adoptionOfRedactions moves a log with redacted events. They stay withheld, and documents are the same. A redaction that is recorded but
// not yet done is done in the new place.
func adoptionOfRedactions(t *testing.T, d Driver) {
	from := open(t, d, Notes(1), Rooms(1))
	secret := secretNotes(t, from, 60)
	done, late := secret[:len(secret)-2], secret[len(secret)-2:]
	must(t, from.Redact(t.Context(), Workspace, recordRedactions(t, from, done)))
	recordRedactions(t, from, done[:1]) // twice: the first is what counts
	seqs := recordRedactions(t, from, late)
	events := read(t, from, journal.Query{Limit: journal.MaxRead})
	for _, n := range []int{1, 7, journal.MaxBatch} {
		setup := NewSetup(Notes(1), Rooms(1))
		setup.IDs = another().IDs
		to := d.Open(t, setup)
		if head, err := adopt(t, to, inChunks(events, n)); err != nil || head != uint64(len(events)) {
			t.Fatalf("in chunks of %d: %d, %v; want %d", n, head, err, len(events))
		}
		if d.Reopen != nil {
			to = d.Reopen(t, to, setup)
		}
		if diff := cmp.Diff(events, read(t, to, journal.Query{Limit: journal.MaxRead})); diff != "" {
			t.Errorf("in chunks of %d: -was +is\n%s", n, diff)
		}
		if diff := cmp.Diff(Documents(t, from, "notes", "rooms"), Documents(t, to, "notes", "rooms")); diff != "" {
			t.Errorf("documents: -was +is\n%s", diff)
		}
		if open, err := to.Unfinished(t.Context(), Workspace); err != nil || !slices.Equal(open, seqs) {
			t.Errorf("unfinished are %v, %v; want %v", open, err, seqs)
		}
		must(t, to.Redact(t.Context(), Workspace, seqs))
		forgotten(t, to, secret)
		live := Documents(t, to, "notes", "rooms")
		for _, name := range []string{"notes", "rooms"} {
			must(t, to.Rebuild(t.Context(), name))
		}
		if diff := cmp.Diff(live, Documents(t, to, "notes", "rooms")); diff != "" {
			t.Errorf("rebuilt: -was +is\n%s", diff)
		}
		if err := CheckChains(t.Context(), to, Workspace); err != nil {
			t.Error(err)
		}
	}
}

// adoptionsOfRedactionsThatFail are of events that are withheld, and of which the log says no or another word.
func adoptionsOfRedactionsThatFail(t *testing.T, d Driver) {
	from := open(t, d, Notes(1))
	secret := secretNotes(t, from, 9)
	must(t, from.Redact(t.Context(), Workspace, recordRedactions(t, from, secret)))
	events := read(t, from, journal.Query{Limit: journal.MaxRead})
	at := int(secret[1].Seq) - 1
	setup := NewSetup(Notes(1))
	setup.IDs = another().IDs
	to := d.Open(t, setup)
	for name, c := range map[string]struct {
		change func(*event.Event)
		code   string
	}{
		"other remains":           {func(e *event.Event) { e.Data = []byte(`{"n":2}`) }, journal.ErrForeign.Code},
		"remains that are a text": {func(e *event.Event) { e.Data = []byte(`[1]`) }, "data_invalid"},
		"a salt":                  {func(e *event.Event) { e.Chain.Salt = bytes.Repeat([]byte{1}, 16) }, journal.ErrForeign.Code},
		"another level":           {func(e *event.Event) { e.Redaction = event.RedactNone }, journal.ErrForeign.Code},
		"another level before":    {func(e *event.Event) { e.Chain.Redaction = event.RedactPartial }, journal.ErrForeign.Code},
		"no level before":         {func(e *event.Event) { e.Chain.Redaction = "" }, journal.ErrForeign.Code},
		"a level that is none": {func(e *event.Event) {
			e.Chain.Redaction = "some"
			e.Chain.Hash = journal.HashOf(e)
		}, journal.ErrForeign.Code},
		"said to have its data":     {func(e *event.Event) { e.Withheld = "" }, journal.ErrForeign.Code},
		"sealed":                    {func(e *event.Event) { e.Withheld = event.Sealed }, "log_sealed"},
		"a key that was destroyed":  {func(e *event.Event) { e.Withheld = event.Destroyed }, "log_sealed"},
		"withheld for no reason":    {func(e *event.Event) { e.Withheld = "lost" }, "log_sealed"},
		"another commitment":        {func(e *event.Event) { e.Chain.Commitment[0] ^= 1 }, journal.ErrForeign.Code},
		"a redaction without a log": {nil, "redaction_unrecorded"},
	} {
		all := append([]event.Event{}, events...)
		if c.change == nil {
			all = all[:len(all)-1]
		} else {
			c.change(&all[at])
		}
		if _, err := adopt(t, to, inChunks(all, 4)); fault.CodeOf(err) != c.code {
			t.Errorf("%s: got %v, want %q", name, err, c.code)
		}
		if n := head(t, to, Workspace); n != 0 {
			t.Errorf("%s: it left %d events", name, n)
		}
	}
	forged := append([]event.Event{}, events...) // an event with its data, and a level that its hash does not cover
	forged[1].Chain.Redaction, forged[1].Redaction = forged[1].Redaction, event.RedactFull
	if _, err := adopt(t, to, inChunks(forged, 4)); fault.CodeOf(err) != journal.ErrForeign.Code {
		t.Errorf("a forged level: %v", err)
	}
	last := append([]event.Event{}, events...) // the redaction itself
	last[len(last)-1].Withhold(event.Forgotten, nil)
	if _, err := adopt(t, to, inChunks(last, 4)); fault.CodeOf(err) != journal.ErrForeign.Code {
		t.Errorf("a redaction that was redacted: %v", err)
	}
	if _, err := adopt(t, to, inChunks(events, 4)); err != nil {
		t.Errorf("after all that: %v", err)
	}
}

// adoptionOfKeys moves a log with the idempotency keys of its batches: a repeated request is not done again here.
func adoptionOfKeys(t *testing.T, d Driver) {
	from := open(t, d)
	for _, key := range []string{"c", "a", "b"} {
		b := Batch(Draft("one of "+key), Draft("two"))
		b.Key, b.Digest = key, event.DigestOf([]byte(key))
		appendAll(t, from, b)
	}
	appendAll(t, from, Batch(Draft("without a key")))
	events := read(t, from, journal.Query{Limit: journal.MaxRead})
	keys, err := from.Keys(t.Context(), Workspace, "", 10)
	must(t, err)
	if len(keys) != 3 || keys[0].Key != "a" || keys[0].First != 3 || keys[0].Count != 2 || keys[0].Digest != event.DigestOf([]byte("a")) {
		t.Fatalf("the keys are %+v", keys)
	}
	if page, err := from.Keys(t.Context(), Workspace, "a", 1); err != nil || len(page) != 1 || page[0] != keys[1] {
		t.Errorf("a page of them: %+v, %v", page, err)
	}
	if none, err := from.Keys(t.Context(), OtherWorkspace, "", 10); err != nil || len(none) != 0 {
		t.Errorf("of another workspace: %+v, %v", none, err)
	}
	chunks := func(all ...[]journal.KeyUse) iter.Seq2[[]journal.KeyUse, error] {
		return func(yield func([]journal.KeyUse, error) bool) {
			for _, some := range all {
				if !yield(some, nil) {
					return
				}
			}
		}
	}
	changed := func(change func(*journal.KeyUse)) iter.Seq2[[]journal.KeyUse, error] {
		k := keys[2]
		change(&k)
		return chunks(keys[:2], []journal.KeyUse{k})
	}
	setup := NewSetup()
	setup.IDs = another().IDs
	to := d.Open(t, setup)
	broken := errors.New("the source broke off")
	for name, bad := range map[string]iter.Seq2[[]journal.KeyUse, error]{
		"none in a chunk":      chunks(nil),
		"another order":        chunks(keys[1:], keys[:1]),
		"twice":                chunks(keys, keys[2:]),
		"no key":               chunks([]journal.KeyUse{{Use: keys[0].Use}}),
		"no digest":            changed(func(k *journal.KeyUse) { k.Digest = event.Digest{} }),
		"before the log":       changed(func(k *journal.KeyUse) { k.First = 0 }),
		"behind the log":       changed(func(k *journal.KeyUse) { k.First = 8 }),
		"over the end":         changed(func(k *journal.KeyUse) { k.First, k.Count = 7, 2 }),
		"no events":            changed(func(k *journal.KeyUse) { k.Count = 0 }),
		"more than a batch":    changed(func(k *journal.KeyUse) { k.Count = journal.MaxBatch + 1 }),
		"a control character":  changed(func(k *journal.KeyUse) { k.Key = "z\x00" }),
		"that is far too long": changed(func(k *journal.KeyUse) { k.Key = strings.Repeat("z", journal.MaxTextBytes+1) }),
		"that break off": func(yield func([]journal.KeyUse, error) bool) {
			_ = yield(keys[:1], nil) && yield(nil, broken)
		},
	} {
		if _, err := to.Adopt(t.Context(), Workspace, inChunks(events, 4), bad); err == nil {
			t.Errorf("%s: it was adopted", name)
		}
		if n := head(t, to, Workspace); n != 0 {
			t.Errorf("%s: it left %d events", name, n)
		}
	}
	if _, err := to.Adopt(t.Context(), Workspace, inChunks(events, 4), chunks(keys[:1], keys[1:])); err != nil {
		t.Fatal(err)
	}
	if d.Reopen != nil {
		to = d.Reopen(t, to, setup)
	}
	if is, err := to.Keys(t.Context(), Workspace, "", 10); err != nil || !slices.Equal(is, keys) {
		t.Errorf("the keys are %+v, %v; want %+v", is, err, keys)
	}
	again := Batch(Draft("anything"))
	again.Key, again.Digest = "a", event.DigestOf([]byte("a"))
	receipt, err := to.Append(t.Context(), again)
	if err != nil || !receipt.Replayed || len(receipt.Events) != 2 || receipt.Events[0].Seq != 3 {
		t.Errorf("a repeat: %+v, %v", receipt, err)
	}
	again.Digest = event.DigestOf([]byte("other"))
	if _, err := to.Append(t.Context(), again); !errors.Is(err, journal.ErrKeyConflict) {
		t.Errorf("the key for something else: %v", err)
	}
}
