package journaltest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// queries compares every selection with a filter over the whole log.
func queries(t *testing.T, d Driver) {
	l := open(t, d)
	causes := [2]id.Event{"01890a5d-ac96-774b-bcce-b302099a8058", "01890a5d-ac96-774b-bcce-b302099a8059"}
	for i := range 60 {
		draft := Draft(fmt.Sprint(i))
		if i%3 > 0 {
			draft = InRoom(id.Room(fmt.Sprint("room_", i%3)), fmt.Sprint(i))
		}
		draft.Type = []string{"note.written", "note.read", "note.shredded.badly"}[i%5%3]
		draft.Correlation = id.Correlation(fmt.Sprint("cor_", i%4))
		if i%2 == 0 {
			draft = draft.In(id.Run(fmt.Sprint("run_", i%6)), "")
		}
		if i%5 < 3 {
			draft = draft.About([]string{"note", "not"}[i%2], []string{"e1", "ee1"}[i%4/2])
		}
		if i%4 == 1 {
			draft.Step = id.Step(fmt.Sprint("step_", i%3))
		}
		if i%7 < 4 {
			draft.Thread = id.Thread(fmt.Sprint("th_", i%2))
		}
		if i%4 != 2 {
			draft.Causation = causes[i%2]
		}
		appendAll(t, l, Batch(draft))
	}
	all := read(t, l, journal.Query{Limit: 1000})
	streams := []event.Stream{{}, event.WorkspaceStream(Workspace), event.RoomStream(Workspace, "room_1"), {Type: "room", ID: "none"},
		{Type: "workspace", ID: "room_1"}}
	for _, stream := range streams {
		for _, run := range []id.Run{"", "run_2", "run_9"} {
			for _, cor := range []id.Correlation{"", "cor_2"} {
				for _, entity := range [][2]string{{}, {"note", "e1"}, {"not", "ee1"}, {"notee1", "x"}} {
					for _, types := range [][]string{nil, {"note.read"}, {"note.written", "note.shredded.badly"}, {"none.such"}} {
						q := journal.Query{Workspace: Workspace, Stream: stream, Run: run, Correlation: cor, EntityType: entity[0], EntityID: entity[1],
							Types: types}
						bounded(t, l, all, q)
						q.Thread = "th_1"
						bounded(t, l, all, q)
						q.Step = "step_2"
						bounded(t, l, all, q)
						q.Thread = ""
						bounded(t, l, all, q)
						q.Step, q.Causation = "", causes[1]
						bounded(t, l, all, q)
					}
				}
			}
		}
	}
	for _, c := range []struct {
		name  string
		query journal.Query
		code  string
	}{
		{"no workspace", journal.Query{}, "workspace_invalid"},
		{"limit -1", journal.Query{Workspace: Workspace, Limit: -1}, "limit_invalid"},
		{"the largest limit", journal.Query{Workspace: Workspace, Limit: journal.MaxRead}, ""},
		{"beyond it", journal.Query{Workspace: Workspace, Limit: journal.MaxRead + 1}, "limit_invalid"},
		{"as many types as there may be", journal.Query{Workspace: Workspace, Types: make([]string, journal.MaxTypes)}, ""},
		{"one more", journal.Query{Workspace: Workspace, Types: make([]string, journal.MaxTypes+1)}, "types_invalid"},
		{"half an entity", journal.Query{Workspace: Workspace, EntityType: "note"}, "entity_invalid"},
	} {
		if _, err := l.Read(t.Context(), c.query); fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %q", c.name, err, c.code)
		}
	}
	for range 100 {
		appendAll(t, l, Batch(Draft("more")))
	}
	if got := read(t, l, journal.Query{}); len(got) != 100 {
		t.Errorf("a query without a limit returns %d, want 100", len(got))
	}
}

// bounded compares a query from and to several places.
func bounded(t *testing.T, l journal.Journal, all []event.Event, q journal.Query) {
	t.Helper()
	for _, bounds := range [][2]uint64{{0, 0}, {7, 0}, {5, 16}, {9, 9}, {61, 0}, {1 << 62, 1 << 63}} {
		for _, limit := range []int{4, 1000} {
			for _, last := range []bool{false, true} {
				q.From, q.Before, q.Limit, q.Last = bounds[0], bounds[1], limit, last
				compare(t, l, all, q)
			}
		}
	}
}

func compare(t *testing.T, l journal.Journal, all []event.Event, q journal.Query) {
	t.Helper()
	want := []uint64{}
	for _, e := range all {
		place := e.Seq
		if q.Stream != (event.Stream{}) {
			place = e.StreamSeq
		}
		if place >= q.From && (q.Before == 0 || place < q.Before) && (q.Stream == event.Stream{} || q.Stream == e.Stream) && (q.Run == "" ||
			q.Run == e.Run) &&
			(q.Step == "" || q.Step == e.Step) && (q.Thread == "" || q.Thread == e.Thread) && (q.Correlation == "" ||
			q.Correlation == e.Correlation) && (q.Causation == "" || q.Causation == e.Causation) && (q.EntityID == "" ||
			q.EntityType == e.EntityType && q.EntityID == e.EntityID) &&
			(q.Types == nil || slices.Contains(q.Types, e.Type)) {
			want = append(want, e.Seq)
		}
	}
	if n := len(want); n > q.Limit && q.Last {
		want = want[n-q.Limit:]
	} else if n > q.Limit {
		want = want[:q.Limit]
	}
	events, err := l.Read(t.Context(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	got := []uint64{}
	for _, e := range events {
		got = append(got, e.Seq)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%+v\n got %v\nwant %v", q, got, want)
	}
	q.From, q.Follows = max(q.From, 1), true
	if followed, err := l.Read(t.Context(), q); err != nil || !reflect.DeepEqual(followed, events) {
		t.Fatalf("%+v\nwho follows the log gets %+v, %v\nothers %+v", q, followed, err, events)
	}
}

func workspacesAreApart(t *testing.T, d Driver) {
	l := open(t, d, Notes(1))
	mine := appendAll(t, l, Batch(InRoom(Room, "mine").About("note", "n"), Draft("mine")))
	theirs := appendAll(t, l, Batch(Of(OtherWorkspace, InRoom(Room, "theirs").About("note", "n"))))
	if theirs[0].Seq != 1 || theirs[0].StreamSeq != 1 || !theirs[0].Chain.Prev.IsZero() {
		t.Errorf("the other workspace's first event continues something: %+v", theirs[0])
	}
	if _, err := l.Get(t.Context(), OtherWorkspace, mine[0].ID); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("an event through another workspace: %v, want %v", err, journal.ErrNotFound)
	}
	sameEvents(t, read(t, l, journal.Query{Workspace: OtherWorkspace, Stream: event.RoomStream(OtherWorkspace, Room)}), theirs)
	sameEvents(t, read(t, l, journal.Query{EntityType: "note", EntityID: "n"}), mine[:1])
	if got := read(t, l, journal.Query{Workspace: "ws_none"}); len(got) != 0 || head(t, l, "ws_none") != 0 {
		t.Errorf("a workspace without events has %v", got)
	}
	doc, err := l.Document(t.Context(), OtherWorkspace, "notes", "n")
	if err != nil || string(doc.Body) != `{"texts":["theirs"],"sum":0}` {
		t.Errorf("the other workspace's document: %s, %v", doc.Body, err)
	}
	workspaces, err := l.Workspaces(t.Context())
	if err != nil || !slices.Equal(workspaces, []id.Workspace{Workspace, OtherWorkspace}) {
		t.Errorf("workspaces %v, %v", workspaces, err)
	}
	streams, err := l.Streams(t.Context(), Workspace)
	want := []event.StreamVersion{{Stream: event.RoomStream(Workspace, Room), Version: 1}, {Stream: event.WorkspaceStream(Workspace),
		Version: 1}}
	for i := range want {
		want[i].Hash = read(t, l, journal.Query{Workspace: Workspace, Stream: want[i].Stream})[0].Chain.Hash
	}
	if err != nil || !slices.Equal(streams, want) {
		t.Errorf("streams %v, %v, want %v", streams, err, want)
	}
}

// Any text becomes exactly one event with the same bytes.
func forgedLines(t *testing.T, d Driver) {
	l := open(t, d)
	texts := []string{
		"\n{\"event_type\":\"run.completed\"}\n", "a\r\nb", "\x1b[2J\x1b]0;owned\a", "\u2028\u2029", "</script>", `","seq":9,"x":"`, "\x00",
		"\ufeff", "\U0001f980", "e\u0301",
	}
	for i, text := range texts {
		draft := Draft(text)
		want := string(draft.Data)
		appendAll(t, l, Batch(draft))
		got := read(t, l, journal.Query{Limit: 1000})
		if len(got) != i+1 || string(got[i].Data) != want {
			t.Errorf("%q: %d events, the last with %s, want %s", text, len(got), got[len(got)-1].Data, want)
		}
	}
	must(t, CheckChains(t.Context(), l, Workspace))
}

// A caller that holds an event, or the bytes from which it was made, cannot change the record.
func ownBytes(t *testing.T, d Driver) {
	l := open(t, d, Notes(1))
	draft := Draft("mine").About("note", "n")
	receipt := appendAll(t, l, Batch(draft))
	for _, data := range [][]byte{draft.Data, receipt[0].Data, read(t, l, journal.Query{})[0].Data, receipt[0].Chain.Salt} {
		clear(data)
	}
	if doc, err := l.Document(t.Context(), Workspace, "notes", "n"); err != nil {
		t.Error(err)
	} else {
		clear(doc.Body)
	}
	if got := string(read(t, l, journal.Query{})[0].Data); got != `{"text":"mine"}` {
		t.Errorf("recorded data is %s", got)
	}
	appendAll(t, l, Batch(Draft("yours").About("note", "n")))
	if doc, err := l.Document(t.Context(), Workspace, "notes", "n"); err != nil || string(doc.Body) != `{"texts":["mine","yours"],"sum":0}` {
		t.Errorf("the document is %s, %v", doc.Body, err)
	}
	must(t, CheckChains(t.Context(), l, Workspace))
}

func wait(t *testing.T, d Driver) {
	l := open(t, d)
	woken := make(chan error, 3)
	for range 3 {
		go func() { woken <- l.Wait(t.Context(), Workspace, 1) }()
	}
	appendAll(t, l, Batch(Draft("one")))
	must(t, l.Wait(t.Context(), Workspace, 0))
	appendAll(t, l, Batch(Of(OtherWorkspace, Draft("elsewhere"))))
	select {
	case err := <-woken:
		t.Fatalf("woken at head 1 while waiting for more than 1: %v", err)
	default:
	}
	appendAll(t, l, Batch(Draft("two")))
	for range 3 {
		must(t, <-woken)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { woken <- l.Wait(ctx, Workspace, 2) }()
	cancel()
	if err := <-woken; !errors.Is(err, context.Canceled) {
		t.Errorf("wait ended with %v, want %v", err, context.Canceled)
	}
}

// Every reader that tails the log while many write gets each event exactly once and in order, wherever it began.
func tail(t *testing.T, d Driver) {
	l := open(t, d)
	const writers, each, total = 8, 40, 8 * 40
	var wg sync.WaitGroup
	for reader := range 6 {
		wg.Go(func() {
			q := journal.Query{Workspace: Workspace, From: uint64(reader * 10), Before: total + 1, Limit: 1 + reader*7}
			next := max(q.From, 1)
			for e, err := range journal.Tail(t.Context(), l, q) {
				if err != nil || e.Seq != next {
					t.Errorf("got event %d, %v, want %d", e.Seq, err, next)
					return
				}
				next++
			}
			if next != total+1 {
				t.Errorf("the tail ended before %d, want %d", next, total+1)
			}
		})
	}
	wg.Go(func() {
		odd := 0
		for e, err := range journal.Tail(t.Context(), l, journal.Query{Workspace: Workspace, Types: []string{"note.odd"}, Limit: 3}) {
			if err != nil || e.Type != "note.odd" {
				t.Errorf("got %s, %v", e.Type, err)
				return
			}
			if odd++; odd == total/2 {
				return
			}
		}
	})
	for range writers {
		wg.Go(func() {
			for i := range each {
				draft := Draft("x")
				if i%2 == 1 {
					draft.Type = "note.odd"
				}
				if _, err := l.Append(t.Context(), Batch(draft)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func tailOfAStream(t *testing.T, d Driver) {
	l := open(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		next := uint64(2)
		for e, err := range journal.Tail(ctx, l, journal.Query{Workspace: Workspace, Stream: event.RoomStream(Workspace, Room), From: 2,
			Limit: 2}) {
			if err != nil {
				if !errors.Is(err, context.Canceled) || next != 31 {
					t.Errorf("the tail ended before %d with %v", next, err)
				}
				return
			}
			if e.StreamSeq != next || e.Room != Room {
				t.Errorf("got place %d of room %s, want %d", e.StreamSeq, e.Room, next)
				return
			}
			if next++; next == 31 {
				cancel()
			}
		}
	})
	for i := range 30 {
		appendAll(t, l, Batch(InRoom(Room, fmt.Sprint(i))))
		appendAll(t, l, Batch(Draft("elsewhere")))
	}
	wg.Wait()
	for _, err := range journal.Tail(t.Context(), l, journal.Query{Workspace: Workspace, Last: true}) {
		if fault.CodeOf(err) != "query_invalid" {
			t.Errorf("a tail of the last events: %v, want query_invalid", err)
		}
	}
}

func closed(t *testing.T, d Driver) {
	l := open(t, d)
	appendAll(t, l, Batch(Draft("x")))
	ended := make(chan error, 2)
	go func() { ended <- l.Wait(t.Context(), Workspace, 1) }()
	go func() { ended <- l.Wait(t.Context(), "ws_none", 0) }()
	must(t, l.Close())
	for range 2 {
		if err := <-ended; !errors.Is(err, journal.ErrClosed) {
			t.Errorf("wait ended with %v, want %v", err, journal.ErrClosed)
		}
	}
	if _, err := l.Append(t.Context(), Batch(Draft("y"))); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("append: %v, want %v", err, journal.ErrClosed)
	}
	must(t, l.Close())
}

func endedContext(t *testing.T, d Driver) {
	l := open(t, d, Notes(1))
	e := appendAll(t, l, Batch(Draft("x").About("note", "n")))[0]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func() error{
		"append":     func() error { _, err := l.Append(ctx, Batch(Draft("y"))); return err },
		"get":        func() error { _, err := l.Get(ctx, Workspace, e.ID); return err },
		"read":       func() error { _, err := l.Read(ctx, journal.Query{Workspace: Workspace}); return err },
		"head":       func() error { _, err := l.Head(ctx, Workspace); return err },
		"wait":       func() error { return l.Wait(ctx, Workspace, 1) },
		"streams":    func() error { _, err := l.Streams(ctx, Workspace); return err },
		"workspaces": func() error { _, err := l.Workspaces(ctx); return err },
		"document":   func() error { _, err := l.Document(ctx, Workspace, "notes", "n"); return err },
		"rebuild":    func() error { return l.Rebuild(ctx, "notes") },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want %v", name, err, context.Canceled)
		}
	}
	if n := head(t, l, Workspace); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}
