// Package fulltexttest is the conformance suite of full-text indexes.
package fulltexttest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/fulltext"
)

// Driver makes the indexes that are tested.
type Driver struct {
	// Open returns an empty index; the driver closes it when the test ends.
	Open func(t *testing.T) fulltext.Index
	// Holds reports whether anything of an index that outlives it has a text; nil for one that has no files.
	Holds func(t *testing.T, i fulltext.Index, text string) bool
}

// The workspaces of the suite.
const (
	one id.Workspace = "ws_one"
	two id.Workspace = "ws_two"
)

// texts are in several languages, and lie one place apart.
var texts = []string{
	"The quick brown fox jumps over the lazy dog", "ein Übermaß an GRÖSSE", "日本語の文章です", "東京都に住んでいます", "deploy failed: exit code 17",
	"x", "a b", "100% \"quoted\" AND (NOT) NEAR* ^text -minus", "tabs\tand\nlines", "中文全文搜索", "foxes", "🦀 crab", "", "İstanbul ﬁne",
}

// Run runs the suite.
func Run(t *testing.T, d Driver) {
	for name, test := range map[string]func(*testing.T, Driver){
		"finds what a scan finds": scans, "follows the log": follows, "forgets": forgets, "looks where it is told to": within,
		"workspaces are apart": apart, "many at once": many,
	} {
		t.Run(name, func(t *testing.T) { test(t, d) })
	}
}

func take(t *testing.T, i fulltext.Index, ws id.Workspace, upTo uint64, entries ...fulltext.Entry) {
	t.Helper()
	if err := i.Take(t.Context(), ws, upTo, entries); err != nil {
		t.Fatal(err)
	}
}

func find(t *testing.T, i fulltext.Index, ws id.Workspace, q string, before uint64, limit int) []uint64 {
	t.Helper()
	words, err := fulltext.Words(q)
	if err != nil {
		t.Fatal(err)
	}
	hits, err := i.Search(t.Context(), fulltext.Query{Workspace: ws, Words: words, Before: before, Limit: limit})
	if err != nil {
		t.Fatalf("%q: %v", q, err)
	}
	places := []uint64{}
	for _, h := range hits {
		if h.Key != key(h.Place) {
			t.Errorf("%q: place %d has the key %q", q, h.Place, h.Key)
		}
		places = append(places, h.Place)
	}
	return places
}

func key(place uint64) string { return fmt.Sprint("msg_", place) }

func same(t *testing.T, what string, got []uint64, want ...uint64) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// scans compares every query with what looking at every text finds.
func scans(t *testing.T, d Driver) {
	i := d.Open(t)
	var entries []fulltext.Entry
	for n, text := range texts {
		place := uint64(3*n + 1)
		entries = append(entries, fulltext.Entry{Place: place, Key: key(place), Text: text})
	}
	take(t, i, one, 100, entries...)
	for _, q := range []string{
		"fox", "FOX", "ox", "own fo", "quick lazy", "lazy quick", "dog fox cat", "日本", "本語", "東京", "京都", "全文", "文搜", "の文", "größe", "ÜBER",
		"exit code", "17",
		"a b", "b a", "x x", "100%", `"quoted"`, "and (not)", "near*", "^text", "-minus", "s and", "and lines", "foxes", "🦀 ", "🦀 c", "i̇", "ﬁ",
		"ne", "zz", "th", "e q",
	} {
		words, err := fulltext.Words(q)
		if err != nil {
			continue
		}
		var want []uint64
		for _, e := range slices.Backward(entries) {
			if fulltext.Matches(e.Text, words) {
				want = append(want, e.Place)
			}
		}
		same(t, q, find(t, i, one, q, 0, 100), want...)
		if len(want) > 1 {
			same(t, q+", one", find(t, i, one, q, 0, 1), want[0])
			same(t, q+", the next", find(t, i, one, q, want[0], 1), want[1])
		}
	}
}

func follows(t *testing.T, d Driver) {
	i := d.Open(t)
	at := func(want uint64) {
		t.Helper()
		if got, err := i.Place(t.Context(), one); err != nil || got != want {
			t.Errorf("the log was taken in up to %d, %v, want %d", got, err, want)
		}
	}
	at(0)
	take(t, i, one, 7)
	at(7)
	take(t, i, one, 9, fulltext.Entry{Place: 8, Key: key(8), Text: "first"})
	at(9)
	same(t, "first", find(t, i, one, "first", 0, 10), 8)
	if err := i.Reset(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	at(0)
	same(t, "after a reset", find(t, i, one, "first", 0, 10))
	take(t, i, one, 9, fulltext.Entry{Place: 8, Key: key(8), Text: "first"})
	same(t, "taken in again", find(t, i, one, "first", 0, 10), 8)
}

func forgets(t *testing.T, d Driver) {
	i := d.Open(t)
	secret := "MARZIPAN with 秘密 and qqzzqq"
	take(t, i, one, 5, fulltext.Entry{Place: 3, Key: key(3), Text: "public MARZI"}, fulltext.Entry{Place: 4, Key: key(4), Text: secret},
		fulltext.Entry{Place: 5, Key: key(5), Text: "public PAN"})
	for _, places := range [][]uint64{{4}, {4, 99}, {}} {
		if err := i.Forget(t.Context(), one, places...); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.Forget(t.Context(), "ws_none", 1); err != nil {
		t.Errorf("in a workspace that is not there: %v", err)
	}
	for _, q := range []string{"marzipan", "秘密", "qqzzqq", "qz"} {
		same(t, q, find(t, i, one, q, 0, 10))
	}
	same(t, "public", find(t, i, one, "public", 0, 10), 5, 3)
	same(t, "marzi", find(t, i, one, "marzi", 0, 10), 3)
	if d.Holds == nil {
		return
	}
	if !d.Holds(t, i, "public marzi") {
		t.Error("what is kept is not found in the files, so that nothing is proven")
	}
	for _, text := range []string{"marzipan", "zipan", "秘密", "qqzzqq"} {
		if d.Holds(t, i, text) {
			t.Errorf("a file has %q still", text)
		}
	}
}

// within searches rooms and threads.
func within(t *testing.T, d Driver) {
	i := d.Open(t)
	const a, b, none = id.Room("room_01M7YNAYM0SMK245AEDNVB5CNW"), id.Room("room_01M7YNAYM0SMK245AEDNVB5CNX"), id.Room("room_01")
	const first, second = id.Thread("th_01M7YNAYM0SMK245AEDNVB5CNW"), id.Thread("th_\"or *")
	entry := func(place uint64, r id.Room, th id.Thread, text string) fulltext.Entry {
		return fulltext.Entry{Place: place, Key: key(place), Room: r, Thread: th, Text: text}
	}
	take(t, i, one, 9, entry(1, a, first, "words of one"), entry(2, a, second, "words of two"), entry(3, b, "", "words of three"),
		entry(4, "", "", "words of none"))
	take(t, i, two, 9, entry(1, a, first, "words of others"))
	for _, s := range []struct {
		what   string
		room   id.Room
		thread id.Thread
		q      string
		before uint64
		want   []uint64
	}{
		{"everywhere", "", "", "words", 0, []uint64{4, 3, 2, 1}},
		{"a room", a, "", "words", 0, []uint64{2, 1}},
		{"another room", b, "", "words", 0, []uint64{3}},
		{"a room whose name another one begins with", none, "", "words", 0, []uint64{}},
		{"a thread", "", first, "words", 0, []uint64{1}},
		{"a thread with an odd name", "", second, "words", 0, []uint64{2}},
		{"a thread of the room", a, second, "words of", 0, []uint64{2}},
		{"a thread of another room", b, second, "words", 0, []uint64{}},
		{"a room, in front of a place", a, "", "words", 2, []uint64{1}},
		{"other words in a room", a, "", "three", 0, []uint64{}},
		{"the name of a room is not a word", "", "", "room_01M7", 0, []uint64{}},
		{"the name of a room is not a word as it is kept", "", "", "726f6f6d", 0, []uint64{}},
	} {
		words, err := fulltext.Words(s.q)
		if err != nil {
			t.Fatal(err)
		}
		hits, err := i.Search(t.Context(), fulltext.Query{Workspace: one, Room: s.room, Thread: s.thread, Words: words, Before: s.before,
			Limit: 10})
		if err != nil {
			t.Errorf("%s: %v", s.what, err)
		}
		got := []uint64{}
		for _, h := range hits {
			got = append(got, h.Place)
		}
		same(t, s.what, got, s.want...)
	}
	if err := i.Forget(t.Context(), one, 1); err != nil {
		t.Fatal(err)
	}
	if hits, err := i.Search(t.Context(), fulltext.Query{Workspace: one, Room: a, Words: []string{"words"}, Limit: 10}); err != nil ||
		len(hits) != 1 || hits[0].Place != 2 {
		t.Errorf("after one was forgotten: %v, %v", hits, err)
	}
}

func apart(t *testing.T, d Driver) {
	i := d.Open(t)
	take(t, i, one, 3, fulltext.Entry{Place: 3, Key: key(3), Text: "shared word"})
	take(t, i, two, 4, fulltext.Entry{Place: 3, Key: key(3), Text: "shared word"}, fulltext.Entry{Place: 4, Key: key(4), Text: "shared word"})
	same(t, "one", find(t, i, one, "shared", 0, 10), 3)
	same(t, "two", find(t, i, two, "shared", 0, 10), 4, 3)
	same(t, "two, in front of 4", find(t, i, two, "shared", 4, 10), 3)
	same(t, "one, in front of 3", find(t, i, one, "shared", 3, 10))
	same(t, "none", find(t, i, "ws_none", "shared", 0, 10))
	if err := i.Forget(t.Context(), one, 3); err != nil {
		t.Fatal(err)
	}
	same(t, "one, forgotten", find(t, i, one, "shared", 0, 10))
	same(t, "two, not forgotten", find(t, i, two, "shared", 0, 10), 4, 3)
	if err := i.Reset(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	if got, err := i.Place(t.Context(), one); err != nil || got != 3 {
		t.Errorf("a reset of the other has moved this one to %d, %v", got, err)
	}
}

func many(t *testing.T, d Driver) {
	i := d.Open(t)
	var working sync.WaitGroup
	for _, ws := range []id.Workspace{one, two} {
		working.Go(func() {
			for n := range 20 {
				from := uint64(n * 50)
				var entries []fulltext.Entry
				for k := range uint64(50) {
					entries = append(entries, fulltext.Entry{Place: from + k + 1, Key: key(from + k + 1), Text: fmt.Sprintf("common number %d", from+k+1)})
				}
				if err := i.Take(t.Context(), ws, from+50, entries); err != nil {
					t.Error(err)
				}
				if hits, err := i.Search(t.Context(), fulltext.Query{Workspace: ws, Words: []string{"common"}, Limit: 10}); err != nil ||
					len(hits) != 10 {
					t.Errorf("%d hits, %v", len(hits), err)
				}
			}
		})
	}
	working.Wait()
	got := find(t, i, two, "common number", 0, fulltext.MaxHits)
	if len(got) != 1000 || got[0] != 1000 || got[999] != 1 {
		t.Errorf("%d are found", len(got))
	}
	same(t, "number 777", find(t, i, one, "number 777", 0, 10), 777)
}
