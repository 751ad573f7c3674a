package sqlite

import (
	"slices"
	"sync"

	"agentbox/internal/kernel/projection"
)

// What the shelf keeps. A document that is read again and again is found there instead of in the file.
const (
	shelvedDocuments = 4_096
	shelvedBytes     = 16 << 20 // of all bodies together
	shelvedBody      = 64 << 10 // of one; a larger one is read anew each time
)

// shelf keeps documents that were read by their key, exactly as they are in the file. What a commit changes is taken off before the file
// changes and laid back after it has, before anybody hears of the commit; meanwhile it is read from the file. A reader who puts a document
// there says so before he reads it, and does it only if nothing has happened to its place since.
type shelf struct {
	mu     sync.RWMutex // guards all below
	places map[projection.Ref]*place
	bytes  int
	off    bool // nothing is kept now
}

// place is where one document lies, or will lie.
type place struct {
	full bool // else a reader is reading the document, or a commit is changing it
	doc  projection.Document
	by   *group // that changes the document; nil for a reader's
	back bool   // of one that a commit changes: it was there before, and is to be there again
}

// find returns a document. Where it is not there, mine is the place that the caller may fill with what he reads, or nil if he may not.
func (s *shelf) find(ref projection.Ref) (doc projection.Document, found bool, mine *place) {
	s.mu.RLock()
	at, off := s.places[ref], s.off
	if at != nil && at.full {
		doc, found = at.doc, true
	}
	s.mu.RUnlock()
	if found {
		doc.Body = slices.Clone(doc.Body) // the caller's own
		return doc, true, nil
	}
	if at != nil || off {
		return doc, false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off || s.places[ref] != nil {
		return doc, false, nil
	}
	if s.places == nil {
		s.places = map[projection.Ref]*place{}
	}
	mine = &place{}
	s.places[ref] = mine
	return doc, false, mine
}

// fill lays what was read into the place that find gave, or gives that back where nothing was read.
func (s *shelf) fill(ref projection.Ref, mine *place, doc projection.Document, found bool) {
	if mine == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places[ref] != mine {
		return // a commit has taken it
	}
	if !found || len(doc.Body) > shelvedBody {
		delete(s.places, ref)
		return
	}
	doc.Body = slices.Clone(doc.Body)
	s.set(ref, doc)
	s.bound()
}

// set lays a document into a place. The lock is held.
func (s *shelf) set(ref projection.Ref, doc projection.Document) {
	s.places[ref] = &place{full: true, doc: doc}
	s.bytes += len(doc.Body)
}

// bound takes off any documents until the rest is within bounds. The lock is held.
func (s *shelf) bound() {
	for ref, at := range s.places {
		if len(s.places) <= shelvedDocuments && s.bytes <= shelvedBytes {
			return
		}
		if at.full {
			s.bytes -= len(at.doc.Body)
			delete(s.places, ref)
		}
	}
}

// take takes off what a commit is about to change, so that nobody finds it or puts it there.
func (s *shelf) take(g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places == nil {
		s.places = map[projection.Ref]*place{}
	}
	for i := range g.docs {
		at := s.places[g.docs[i].ref]
		taken := &place{by: g, back: at != nil && (at.by == nil || at.back)}
		if at != nil && at.full {
			s.bytes -= len(at.doc.Body)
		}
		s.places[g.docs[i].ref] = taken
	}
}

// lay puts what a commit has changed back where it was taken from, unless the next one has taken it meanwhile.
func (s *shelf) lay(g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range g.docs {
		d := &g.docs[i]
		at := s.places[d.ref]
		if at == nil || at.by != g {
			continue
		}
		if !at.back || len(d.body) > shelvedBody {
			delete(s.places, d.ref)
			continue
		}
		s.set(d.ref, projection.Document{Key: d.ref.Key, Version: d.version, Seq: d.seq, Body: d.body})
	}
	s.bound()
}

// clear takes everything off; keep says whether anything may be put there from now on.
func (s *shelf) clear(keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places, s.bytes, s.off = nil, 0, !keep
}
