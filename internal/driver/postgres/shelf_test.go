package postgres

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/projection"
)

// TestTheShelfShowsNothingOld writes, reads and reads anew at random, far beyond what the shelf keeps, and compares what it shows.
func TestTheShelfShowsNothingOld(t *testing.T) {
	const ws, keys = id.Workspace("ws_a"), 12_000
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, now := &shelf{}, standing{no: 1, head: 1}
		s.learns(ws, now)
		truth := map[docRef]projection.Document{}
		sizes := []int{10, 500, youngBody, youngBody + 1, shelvedBody, shelvedBody + 1}
		hits := 0
		for range 60_000 {
			ref := docRef{"runs", strconv.Itoa(int(float64(keys) * r.Float64() * r.Float64()))}
			switch r.IntN(3) {
			case 0:
				was := now
				now.head++
				size := sizes[0]
				if r.IntN(20) == 0 {
					size = sizes[r.IntN(len(sizes))]
				}
				doc := projection.Document{Key: ref.key, Version: truth[ref].Version + 1, Seq: now.head, Body: make([]byte, size)}
				truth[ref] = doc
				f := &folio{ref: projection.Ref{Name: ref.name, Key: ref.key}, state: projection.State{Version: doc.Version, Seq: doc.Seq},
					body: doc.Body}
				s.lay(ws, was, now, &group{docs: []*folio{f}})
			case 1:
				if doc, found := s.find(ws, now, ref); found {
					hits++
					if doc.Version != truth[ref].Version || doc.Seq != truth[ref].Seq {
						t.Fatalf("seed %d: of %s the shelf shows version %d, it is at %d", seed, ref.key, doc.Version, truth[ref].Version)
					}
				} else {
					s.fill(ws, now, ref, truth[ref])
				}
			default:
				if r.IntN(1000) == 0 {
					s.clear()
				}
			}
			at := s.of[ws]
			bytes := 0
			if len(at.docs) > shelvedDocuments || len(at.young) > youngDocuments || len(at.born) > youngDocuments || at.bytes > shelvedBytes ||
				at.youngBytes > youngBytes {
				t.Fatalf("it keeps %d and %d documents, %d bytes", len(at.docs), len(at.young), at.bytes)
			}
			if r.IntN(5000) == 0 {
				for _, doc := range at.docs {
					bytes += len(doc.Body)
				}
				for _, doc := range at.young {
					bytes += len(doc.Body)
				}
				if bytes != at.bytes+at.youngBytes {
					t.Fatalf("it keeps %d bytes and believes in %d and %d", bytes, at.bytes, at.youngBytes)
				}
			}
		}
		if hits < 1000 {
			t.Errorf("seed %d: only %d documents were on the shelf", seed, hits)
		}
	}
}

// TestWhatWasWrittenIsFoundOnce finds a document that nobody has read, and none after so many others.
func TestWhatWasWrittenIsFoundOnce(t *testing.T) {
	const ws = id.Workspace("ws_a")
	s, now := &shelf{}, standing{no: 1, head: 1}
	s.learns(ws, now)
	write := func(key string) {
		was := now
		now.head++
		s.lay(ws, was, now, &group{docs: []*folio{{ref: projection.Ref{Name: "runs", Key: key}, state: projection.State{Version: 1,
			Seq: now.head}, body: []byte(key)}}})
	}
	write("early")
	write("late")
	for n := range youngDocuments - 1 {
		write(strconv.Itoa(n))
	}
	if _, found := s.find(ws, now, docRef{"runs", "early"}); found {
		t.Error("what was written first is still there")
	}
	doc, found := s.find(ws, now, docRef{"runs", "late"})
	if !found || string(doc.Body) != "late" {
		t.Errorf("got %q, %v", doc.Body, found)
	}
	if s.of[ws].bytes != len("late") {
		t.Error("what was read is not among what is read")
	}
}
