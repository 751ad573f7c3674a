package journaltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// NoteDoc is the document of the suite's events.
type NoteDoc struct {
	Texts []string `json:"texts"`
	Sum   int      `json:"sum"`
}

// Notes folds events by the entity that they are about. The text "fail" fails, the text "huge" makes a document that is too large; from
// version 2 on the texts are in capitals.
func Notes(version int) projection.Definition {
	return projection.Define("notes", version,
		func(e event.Event) []string {
			if e.EntityType != "note" {
				return nil
			}
			return []string{e.EntityID}
		},
		func(doc NoteDoc, _ string, e event.Event) (NoteDoc, error) {
			note, err := event.Decode[Note](e)
			switch {
			case err != nil:
				return doc, err
			case note.Text == "fail":
				return doc, errors.New("told to fail")
			case note.Text == "huge":
				note.Text = strings.Repeat("x", projection.MaxBodyBytes)
			case version > 1:
				note.Text = strings.ToUpper(note.Text)
			}
			doc.Texts = append(slices.Clone(doc.Texts), note.Text)
			doc.Sum += note.N
			return doc, nil
		},
		func(doc NoteDoc) []projection.Index {
			entries := []projection.Index{{Name: "texts", Value: fmt.Sprint(len(doc.Texts))}, {Name: "sum", Value: fmt.Sprint(doc.Sum)}}
			if doc.Sum > 10 {
				entries = append(entries, projection.Index{Name: "large", Value: ""})
			}
			return entries
		})
}

// RoomDoc is the document of a room.
type RoomDoc struct {
	Events int            `json:"events"`
	ByType map[string]int `json:"by_type"`
	Last   id.Event       `json:"last_event_id"`
}

// Rooms folds every event of a room, and all of them together under the key "all".
func Rooms(version int) projection.Definition {
	return projection.Define("rooms", version,
		func(e event.Event) []string {
			if e.Room == "" {
				return []string{"all"}
			}
			return []string{string(e.Room), "all", "all"}
		},
		func(doc RoomDoc, _ string, e event.Event) (RoomDoc, error) {
			byType := map[string]int{}
			for k, v := range doc.ByType {
				byType[k] = v
			}
			byType[e.Type]++
			return RoomDoc{Events: doc.Events + 1, ByType: byType, Last: e.ID}, nil
		}, nil)
}

func documents(t *testing.T, d Driver) {
	l := open(t, d, Notes(1), Rooms(1))
	if _, err := l.Document(t.Context(), Workspace, "notes", "n"); !errors.Is(err, projection.ErrNotFound) {
		t.Errorf("no document yet: %v, want %v", err, projection.ErrNotFound)
	}
	if _, err := l.Document(t.Context(), Workspace, "none", "n"); fault.CodeOf(err) != "unknown_projection" {
		t.Errorf("no projection: %v, want unknown_projection", err)
	}
	appendAll(t, l, Batch(Draft("a").About("note", "n"), Draft("elsewhere").About("task", "n"), Draft("b").About("note", "n")))
	doc, version, err := projection.Load[NoteDoc](t.Context(), l, Workspace, "notes", "n")
	if err != nil || version != 2 || !slices.Equal(doc.Texts, []string{"a", "b"}) {
		t.Errorf("document %+v at version %d, %v", doc, version, err)
	}
	raw, err := l.Document(t.Context(), Workspace, "notes", "n")
	if err != nil || raw.Key != "n" || raw.Seq != 3 || string(raw.Body) != `{"texts":["a","b"],"sum":0}` {
		t.Errorf("document %+v, %s, %v", raw, raw.Body, err)
	}
	// A key that Keys returns twice is folded once.
	all, version, err := projection.Load[RoomDoc](t.Context(), l, Workspace, "rooms", "all")
	if err != nil || version != 3 || all.Events != 3 {
		t.Errorf("document %+v at version %d, %v", all, version, err)
	}
	appendAll(t, l, Batch(InRoom(Room, "c")))
	if all, _, err := projection.Load[RoomDoc](t.Context(), l, Workspace, "rooms", "all"); err != nil || all.Events != 4 {
		t.Errorf("document %+v, %v, want 4 events", all, err)
	}
	sameAfterRebuild(t, l, "notes", "rooms")
	// A reader after an append sees its changes, while others append.
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			key := fmt.Sprint("w", w)
			for i := range 20 {
				if _, err := l.Append(t.Context(), Batch(Draft("x").About("note", key))); err != nil {
					t.Error(err)
					return
				}
				doc, err := l.Document(t.Context(), Workspace, "notes", key)
				if err != nil || doc.Version != uint64(i)+1 {
					t.Errorf("after append %d the document is %+v, %v", i+1, doc, err)
					return
				}
			}
		})
	}
	wg.Wait()
	sameAfterRebuild(t, l, "notes", "rooms")
}

func documentLists(t *testing.T, d Driver) {
	l := open(t, d, Notes(1))
	for i := range 30 {
		draft := event.New("note.written", event.Origin{Principal: User}, Workspace, "", Note{Text: "x", N: i % 3}).About("note",
			fmt.Sprintf("n%02d", i%12))
		appendAll(t, l, Batch(draft))
	}
	appendAll(t, l, Batch(Of(OtherWorkspace, Draft("x").About("note", "n00"))))
	all, err := l.Documents(t.Context(), projection.Query{Workspace: Workspace, Name: "notes", Limit: 1000})
	must(t, err)
	if len(all) != 12 {
		t.Fatalf("%d documents, want 12", len(all))
	}
	for _, index := range []projection.Index{{}, {Name: "texts", Value: "3"}, {Name: "texts", Value: "2"}, {Name: "sum", Value: "3"},
		{Name: "large"}, {Name: "none", Value: "3"}} {
		for _, newest := range []bool{false, true} {
			for _, after := range []string{"", "n", "n05", "n05x", "o"} {
				for _, limit := range []int{0, 1, 5, 1000} {
					q := projection.Query{Workspace: Workspace, Name: "notes", Index: index, After: after, Newest: newest, Limit: limit}
					want := []string{}
					for _, doc := range all {
						note, _, err := projection.Load[NoteDoc](t.Context(), l, Workspace, "notes", doc.Key)
						must(t, err)
						has := slices.Contains([]projection.Index{{}, {Name: "texts", Value: fmt.Sprint(len(note.Texts))},
							{Name: "sum", Value: fmt.Sprint(note.Sum)}}, index) || index.Name == "large" && note.Sum > 10
						if has && (after == "" || !newest && doc.Key > after || newest && doc.Key < after) {
							want = append(want, doc.Key)
						}
					}
					if newest {
						slices.Reverse(want)
					}
					if limit > 0 {
						want = want[:min(limit, len(want))]
					}
					docs, err := l.Documents(t.Context(), q)
					must(t, err)
					got := []string{}
					for _, doc := range docs {
						got = append(got, doc.Key)
					}
					if !slices.Equal(got, want) {
						t.Fatalf("%+v\n got %v\nwant %v", q, got, want)
					}
				}
			}
		}
	}
	for limit, code := range map[int]string{-1: "limit_invalid", projection.MaxDocuments: "", projection.MaxDocuments + 1: "limit_invalid"} {
		if _, err := l.Documents(t.Context(), projection.Query{Workspace: Workspace, Name: "notes", Limit: limit}); fault.CodeOf(err) != code {
			t.Errorf("limit %d: %v, want %q", limit, err, code)
		}
	}
	if _, err := l.Documents(t.Context(), projection.Query{Workspace: Workspace, Name: "none"}); fault.CodeOf(err) != "unknown_projection" {
		t.Errorf("no projection: %v, want unknown_projection", err)
	}
}

// A batch whose fold fails is refused, and nothing of it remains, not even in what other batches of the same moment fold.
func foldsThatFail(t *testing.T, d Driver) {
	l := open(t, d, Notes(1), Rooms(1))
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 10 {
				text := "good"
				if (w+i)%5 == 0 {
					text = "fail"
				}
				_, err := l.Append(t.Context(), Batch(Draft("good").About("note", "n"), Draft(text).About("note", "n")))
				if (err != nil) != (text == "fail") {
					t.Errorf("%s: %v", text, err)
				}
			}
		})
	}
	wg.Wait()
	if _, err := l.Append(t.Context(), Batch(Draft("huge").About("note", "huge"))); fault.CodeOf(err) != "document_too_large" {
		t.Errorf("a document beyond its limit: %v, want document_too_large", err)
	}
	for size, code := range map[int]string{projection.MaxKeyBytes: "", projection.MaxKeyBytes + 1: "text_too_long"} {
		if _, err := l.Append(t.Context(), Batch(Draft("x").About("note", strings.Repeat("k", size)))); fault.CodeOf(err) != code {
			t.Errorf("a document key of %d bytes: %v, want %q", size, err, code)
		}
	}
	if got := head(t, l, Workspace); got != 2*128+1 {
		t.Errorf("%d events, want %d", got, 2*128+1)
	}
	must(t, CheckChains(t.Context(), l, Workspace))
	sameAfterRebuild(t, l, "notes", "rooms")
}

func rebuild(t *testing.T, d Driver) {
	l := open(t, d, Notes(1), Rooms(1))
	for i := range 300 {
		draft := InRoom(id.Room(fmt.Sprint("room_", i%4)), fmt.Sprint(i)).About("note", fmt.Sprint("n", i%9))
		appendAll(t, l, Batch(slices.Repeat([]event.Draft{draft}, 1+i%9)...))
	}
	sameAfterRebuild(t, l, "notes", "rooms")
	if err := l.Rebuild(t.Context(), "none"); fault.CodeOf(err) != "unknown_projection" {
		t.Errorf("no projection: %v, want unknown_projection", err)
	}
	// A rebuilt document goes on as if it had not been rebuilt, also while others append.
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				if _, err := l.Append(t.Context(), Batch(Draft("x").About("note", "n1"))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 5 {
		must(t, l.Rebuild(t.Context(), "notes"))
	}
	wg.Wait()
	sameAfterRebuild(t, l, "notes", "rooms")
}

// sameAfterRebuild rebuilds projections and compares every document with what it was, byte for byte.
func sameAfterRebuild(t *testing.T, l Log, names ...string) {
	t.Helper()
	before := Documents(t, l, names...)
	for _, name := range names {
		must(t, l.Rebuild(t.Context(), name))
	}
	if after := Documents(t, l, names...); after != before {
		t.Errorf("documents after a rebuild\n got %s\nwant %s", after, before)
	}
}

// Documents returns every document of the named projections as text, with keys, versions and places.
func Documents(t testing.TB, l Log, names ...string) string {
	t.Helper()
	var text strings.Builder
	workspaces, err := l.Workspaces(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, ws := range workspaces {
		for _, name := range names {
			docs, err := l.Documents(context.Background(), projection.Query{Workspace: ws, Name: name, Limit: projection.MaxDocuments})
			if err != nil {
				t.Fatal(err)
			}
			for _, doc := range docs {
				fmt.Fprintf(&text, "%s %s %s version %d seq %d %s\n", ws, name, doc.Key, doc.Version, doc.Seq, doc.Body)
			}
		}
	}
	return text.String()
}

func restart(t *testing.T, d Driver) {
	setup := NewSetup(Notes(1), Rooms(1))
	l := d.Open(t, setup)
	keyed := Batch(Draft("a").About("note", "n"), InRoom(Room, "b"))
	keyed.Key, keyed.Digest = "k", event.DigestOf([]byte("command"))
	keyed.Drafts[0].IdempotencyKey = "event key"
	first := appendAll(t, l, keyed)
	appendAll(t, l, Batch(Of(OtherWorkspace, Draft("c"))))
	before := Documents(t, l, "notes", "rooms")
	l = d.Reopen(t, l, setup)
	if after := Documents(t, l, "notes", "rooms"); after != before {
		t.Errorf("documents after a restart\n got %s\nwant %s", after, before)
	}
	sameEvents(t, read(t, l, journal.Query{}), first)
	receipt, err := l.Append(t.Context(), keyed)
	if err != nil || !receipt.Replayed {
		t.Fatalf("the same command after a restart: %+v, %v, want the first answer", receipt, err)
	}
	sameEvents(t, receipt.Events, first)
	taken := Draft("x")
	taken.IdempotencyKey = "event key"
	if _, err := l.Append(t.Context(), Batch(taken)); !errors.Is(err, journal.ErrKeyConflict) {
		t.Errorf("a key from before the restart: %v, want %v", err, journal.ErrKeyConflict)
	}
	for i := range 5 {
		appendAll(t, l, Batch(InRoom(Room, fmt.Sprint(i)).About("note", "n")))
		appendAll(t, l, Batch(Of(OtherWorkspace, Draft("d"))))
		l = d.Reopen(t, l, setup)
	}
	must(t, CheckChains(t.Context(), l, Workspace))
	must(t, CheckChains(t.Context(), l, OtherWorkspace))
	if got := head(t, l, Workspace); got != 7 {
		t.Errorf("%d events, want 7", got)
	}
	sameAfterRebuild(t, l, "notes", "rooms")
}

// A definition with a new version is folded anew when the log is opened; one that is gone leaves nothing, and comes back from the log.
func restartWithNewFold(t *testing.T, d Driver) {
	setup := NewSetup()
	l := d.Open(t, setup.With(Notes(1)))
	for i := range 20 {
		appendAll(t, l, Batch(Draft(fmt.Sprint("text ", i)).About("note", fmt.Sprint("n", i%3))))
	}
	l = d.Reopen(t, l, setup.With(Notes(2), Rooms(1)))
	doc, version, err := projection.Load[NoteDoc](t.Context(), l, Workspace, "notes", "n1")
	if err != nil || version != 7 || doc.Texts[0] != "TEXT 1" {
		t.Errorf("document %+v at version %d, %v, want capitals", doc, version, err)
	}
	if all, _, err := projection.Load[RoomDoc](t.Context(), l, Workspace, "rooms", "all"); err != nil || all.Events != 20 {
		t.Errorf("a new projection: %+v, %v, want 20 events", all, err)
	}
	appendAll(t, l, Batch(Draft("more").About("note", "n1")))
	sameAfterRebuild(t, l, "notes", "rooms")
	before := Documents(t, l, "rooms")
	l = d.Reopen(t, l, setup.With(Rooms(1)))
	if after := Documents(t, l, "rooms"); after != before {
		t.Errorf("documents after a restart\n got %s\nwant %s", after, before)
	}
	if _, err := l.Document(t.Context(), Workspace, "notes", "n1"); fault.CodeOf(err) != "unknown_projection" {
		t.Errorf("a projection that is gone: %v, want unknown_projection", err)
	}
	appendAll(t, l, Batch(Draft("meanwhile").About("note", "n1")))
	l = d.Reopen(t, l, setup.With(Rooms(1), Notes(2)))
	if doc, version, err := projection.Load[NoteDoc](t.Context(), l, Workspace, "notes", "n1"); err != nil || version != 9 ||
		doc.Texts[8] != "MEANWHILE" {
		t.Errorf("a projection that came back: %+v at version %d, %v", doc, version, err)
	}
}
