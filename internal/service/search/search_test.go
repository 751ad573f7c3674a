package search_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/room"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/fulltext"
	"agentbox/internal/service/rooms"
	"agentbox/internal/service/search"
)

const (
	ws  = id.DefaultWorkspace
	who = id.Principal("usr_01M7YNAYM0SM228XA4K3G6VDD4")
)

type clock struct{}

func (clock) Now() time.Time                                    { return time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC) }
func (clock) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// shelf is the service with a log.
type shelf struct {
	*search.Service
	t     *testing.T
	log   *memory.Journal
	index *memory.Search
	ids   *id.Source
}

func build(t *testing.T) *shelf {
	t.Helper()
	ids := id.NewSource(clock{}.Now, rand.Reader)
	log, err := memory.NewJournal(rooms.Definitions(), clock{}, ids, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	index := memory.NewSearch()
	return &shelf{search.New(search.Parts{Log: log, Bodies: log, Docs: log, Index: index}), t, log, index, ids}
}

// say posts messages, each a text, and returns their events.
func (s *shelf) say(in id.Workspace, texts ...string) []event.Event {
	s.t.Helper()
	b := event.Batch{Workspace: in}
	for _, text := range texts {
		m := id.New[id.Message](s.ids)
		b.Drafts = append(b.Drafts, event.New(room.EventMessageCreated, event.Origin{Principal: who}, in, id.DefaultRoom,
			room.MessageCreated{Message: m, Content: text}).About(room.MessageEntity, string(m)))
	}
	r, err := s.log.Append(s.t.Context(), b)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Events
}

func (s *shelf) find(in id.Workspace, q string, limit int, want ...string) search.Answer {
	s.t.Helper()
	a, err := s.Search(s.t.Context(), in, search.Query{Words: q, Limit: limit})
	if err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for _, r := range a.Results {
		got = append(got, r.Excerpt)
	}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		s.t.Errorf("%q finds %q, want %q", q, got, want)
	}
	return a
}

// A search finds every earlier message, even if nobody has indexed it before.
func TestASearchFindsWhatWasThere(t *testing.T) {
	s := build(t)
	for n := range 30 {
		s.say(ws, fmt.Sprint("message ", n, "."))
		if a := s.find(ws, fmt.Sprint("sage ", n, "."), 5, fmt.Sprint("message ", n, ".")); a.Indexed < a.Head || a.Head != uint64(n+1) {
			t.Errorf("of %d events %d are searched", a.Head, a.Indexed)
		}
	}
	a := s.find(ws, "message", 2, "message 29.", "message 28.")
	if len(a.Results) != 2 || a.Results[0].Sender != string(who) || a.Results[0].Room != id.DefaultRoom || a.Results[0].Type != "message" {
		t.Errorf("got %+v", a.Results)
	}
	s.say("ws_other", "message of others")
	s.find("ws_other", "message", 5, "message of others")
	s.find("ws_none", "message", 5)
	if _, err := s.Search(t.Context(), ws, search.Query{Words: " x ", Limit: 5}); !errors.Is(err, fulltext.ErrTooShort) {
		t.Errorf("one character: %v", err)
	}
	s.say(ws, strings.Repeat("long ", 1000)+"needle")
	long, err := s.Search(t.Context(), ws, search.Query{Words: "needle", Limit: 0})
	if err != nil || len(long.Results) != 1 || utf8.RuneCountInString(long.Results[0].Excerpt) != search.ExcerptChars ||
		!strings.Contains(long.Results[0].Excerpt, "needle") {
		t.Errorf("got %+v, %v", long, err)
	}
}

// A search in one room and thread finds no message of another.
func TestASearchLooksWhereItIsToldTo(t *testing.T) {
	s := build(t)
	lab, other := id.New[id.Room](s.ids), id.New[id.Room](s.ids)
	one, two := id.New[id.Thread](s.ids), id.New[id.Thread](s.ids)
	for _, m := range []struct {
		in     id.Room
		thread id.Thread
		text   string
	}{{lab, one, "an apple"}, {lab, two, "a second apple"}, {other, "", "an apple elsewhere"}} {
		key := id.New[id.Message](s.ids)
		draft := event.New(room.EventMessageCreated, event.Origin{Principal: who}, ws, m.in, room.MessageCreated{Message: key, Thread: m.thread,
			Content: m.text}).About(room.MessageEntity, string(key))
		draft.Thread = m.thread
		if _, err := s.log.Append(t.Context(), event.Batch{Workspace: ws, Drafts: []event.Draft{draft}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []struct {
		ask  search.Query
		want string
	}{
		{search.Query{Words: "apple"}, `["an apple elsewhere" "a second apple" "an apple"]`},
		{search.Query{Words: "apple", Room: lab}, `["a second apple" "an apple"]`},
		{search.Query{Words: "apple", Room: lab, Limit: 1}, `["a second apple"]`},
		{search.Query{Words: "apple", Thread: one}, `["an apple"]`},
		{search.Query{Words: "apple", Room: other, Thread: one}, `[]`},
		{search.Query{Words: "apple", Room: other}, `["an apple elsewhere"]`},
	} {
		a, err := s.Search(t.Context(), ws, q.ask)
		got := []string{}
		for _, r := range a.Results {
			got = append(got, r.Excerpt)
		}
		if err != nil || fmt.Sprintf("%q", got) != q.want {
			t.Errorf("%+v: %q, %v; want %s", q.ask, got, err, q.want)
		}
	}
}

// An index that is far behind says how far it has come, and comes further with each step.
func TestAnIndexThatLagsSaysSo(t *testing.T) {
	s := build(t)
	batch := make([]string, 1000)
	for n := range batch {
		batch[n] = "filler"
	}
	for range 25 {
		s.say(ws, batch...)
	}
	s.say(ws, "the last word")
	a, err := s.Search(t.Context(), ws, search.Query{Words: "last word", Limit: 5})
	if err != nil || a.Indexed >= a.Head || len(a.Results) != 0 || a.Head != 25_001 {
		t.Errorf("got %+v, %v, want an answer that says that it is not whole", a, err)
	}
	for range 3 {
		if err := s.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if a := s.find(ws, "last word", 5, "the last word"); a.Indexed != a.Head {
		t.Errorf("got %+v", a)
	}
}

// A redacted message is not found any more, whether or not the index had it, and later indexes do not take it in.
func TestRedactedIsForgotten(t *testing.T) {
	s := build(t)
	old := s.say(ws, "old MARZIPAN", "kept")
	s.find(ws, "marzipan", 5, "old MARZIPAN")
	fresh := s.say(ws, "fresh MARZIPAN") // not taken in yet
	redact := func(e event.Event) {
		t.Helper()
		if _, err := s.log.Append(t.Context(), event.Batch{Workspace: ws, Drafts: []event.Draft{event.RedactionOf(event.Origin{Principal: who}, e,
			"a mistake", nil)}}); err != nil {
			t.Fatal(err)
		}
	}
	redact(old[0])
	redact(fresh[0])
	// Recorded and not yet done: somebody searches in between.
	if _, err := s.ForgetContent(t.Context(), []event.Event{old[0], fresh[0]}); err != nil {
		t.Fatal(err)
	}
	s.find(ws, "marzipan", 5)
	hits, err := s.index.Search(t.Context(), fulltext.Query{Workspace: ws, Words: []string{"marzipan"}, Limit: 5})
	if err != nil || len(hits) != 0 {
		t.Errorf("the index has %v, %v", hits, err)
	}
	if err := s.log.Redact(t.Context(), ws, []uint64{old[0].Seq, fresh[0].Seq}); err != nil {
		t.Fatal(err)
	}
	if err := s.index.Reset(t.Context(), ws); err != nil { // the index is made anew
		t.Fatal(err)
	}
	s.find(ws, "marzipan", 5)
	s.find(ws, "kept", 5, "kept")
	// Another daemon redacts: this one is told by the log alone.
	foreign := s.say(ws, "foreign MARZIPAN")
	s.find(ws, "marzipan", 5, "foreign MARZIPAN")
	redact(foreign[0])
	s.find(ws, "marzipan", 5)
	if hits, err := s.index.Search(t.Context(), fulltext.Query{Workspace: ws, Words: []string{"marzipan"}, Limit: 5}); err != nil ||
		len(hits) != 0 {
		t.Errorf("the index has %v, %v", hits, err)
	}
}

// An index of a longer log than there is belongs to another one, and begins anew.
func TestAnIndexOfAnotherLogBeginsAnew(t *testing.T) {
	s := build(t)
	if err := s.index.Take(t.Context(), ws, 100, []fulltext.Entry{{Place: 100, Key: "msg_x", Text: "ghost"}}); err != nil {
		t.Fatal(err)
	}
	s.say(ws, "real")
	if a := s.find(ws, "real", 5, "real"); a.Indexed != 1 {
		t.Errorf("got %+v", a)
	}
	s.find(ws, "ghost", 5)
}

func TestManyPostAndSearch(t *testing.T) {
	s := build(t)
	var working sync.WaitGroup
	for n := range 4 {
		working.Go(func() {
			for k := range 25 {
				text := fmt.Sprintf("writer%dx%dy", n, k)
				s.say(ws, text)
				if a, err := s.Search(t.Context(), ws, search.Query{Words: text, Limit: 5}); err != nil || len(a.Results) != 1 {
					t.Errorf("%q: %+v, %v", text, a, err)
				}
			}
		})
	}
	working.Wait()
	a, err := s.Search(t.Context(), ws, search.Query{Words: "writer", Limit: 100})
	if err != nil || len(a.Results) != 100 {
		t.Errorf("%d are found, %v", len(a.Results), err)
	}
}
