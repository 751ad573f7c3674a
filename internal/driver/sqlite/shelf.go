package sqlite

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/projection"
)

// Limits of the shelf, besides the documents that the tables lack. The shelf serves documents that are read often.
const (
	shelvedDocuments = 4_096
	shelvedBytes     = 16 << 20 // of all bodies together
	shelvedBody      = 64 << 10 // of one; a larger one is read anew each time
	shelvedAbsences  = 1_024    // keys that have no document
)

// shelf keeps documents in memory. It holds all documents that the tables lag behind on, which can be read nowhere else. It also caches
// documents that were read by key. It remembers keys without a document, because decisions ask for the same absent keys each time. A
// commit's changes go to the shelf once the disk has them, before anybody hears of the commit. A reader that wants to cache a document
// reserves the place before it reads. It fills the place only if nothing has happened to it since.
type shelf struct {
	mu     sync.RWMutex // guards all below
	places map[projection.Ref]*place
	behind map[listed]map[string]*place // by key
	kept   int                          // documents that the tables hold too
	bytes  int                          // of their bodies
	absent int                          // keys that have no document
	off    bool                         // none of them is kept now
}

// listed holds the documents of one projection in a workspace, for lists.
type listed struct {
	workspace id.Workspace
	name      string
}

// place is where one document lies, or will lie.
type place struct {
	full    bool // else a reader is reading the document
	behind  bool // the table has an earlier one, or none
	read    atomic.Bool
	doc     projection.Document // of version 0 where the key has none
	indexes []projection.Index  // of one that the table lags behind
}

// find returns a document. Its body belongs to the shelf. Version 0 means that the key has no document. If the document is not on the
// shelf, mine is the place that the caller may fill after reading, or nil if it may not.
func (s *shelf) find(ref projection.Ref) (doc projection.Document, found bool, mine *place) {
	s.mu.RLock()
	at, off := s.places[ref], s.off
	if at != nil && at.full {
		doc, found = at.doc, true
		if !at.read.Load() {
			at.read.Store(true)
		}
	}
	s.mu.RUnlock()
	if found {
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

// fill lays what was read into the place that find gave; a document of version 0 says that there is none. It gives the place back where the
// reading failed.
func (s *shelf) fill(ref projection.Ref, mine *place, doc projection.Document, err error) {
	if mine == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places[ref] != mine {
		return // a commit has taken it
	}
	if err != nil || s.off {
		delete(s.places, ref)
		return
	}
	mine.doc, mine.full = doc, true
	mine.read.Store(true)
	if doc.Version == 0 {
		s.absent++
		s.boundAbsences()
		return
	}
	s.keep(ref, mine)
	s.bound()
}

// boundAbsences takes off all keys without a document once they are too many. The lock is held.
func (s *shelf) boundAbsences() {
	if s.absent <= shelvedAbsences {
		return
	}
	for ref, at := range s.places {
		if at.full && at.doc.Version == 0 {
			delete(s.places, ref)
		}
	}
	s.absent = 0
}

// keep counts a document that the table holds too, or takes it off. The lock is held.
func (s *shelf) keep(ref projection.Ref, at *place) {
	if s.off || len(at.doc.Body) > shelvedBody || !at.read.Load() {
		delete(s.places, ref)
		return
	}
	s.kept++
	s.bytes += len(at.doc.Body)
}

// bound takes off any documents that the tables hold until the rest is within bounds. The lock is held.
func (s *shelf) bound() {
	if s.kept <= shelvedDocuments && s.bytes <= shelvedBytes {
		return
	}
	for ref, at := range s.places {
		if at.full && !at.behind && at.doc.Version > 0 {
			s.kept--
			s.bytes -= len(at.doc.Body)
			delete(s.places, ref)
		}
		if s.kept <= shelvedDocuments && s.bytes <= shelvedBytes {
			return
		}
	}
}

// lay puts there what a commit has changed, and gives free what it has flushed.
func (s *shelf) lay(g *group) {
	if len(g.docs) == 0 && g.flush == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range g.docs {
		s.change(&g.docs[i])
	}
	if g.flush == nil {
		return
	}
	for i := range g.flush.docs {
		d := &g.flush.docs[i]
		at := s.places[d.ref]
		if at == nil || !at.behind || at.doc.Version != d.version {
			continue
		}
		delete(s.behind[listed{d.ref.Workspace, d.ref.Name}], d.ref.Key)
		at.behind, at.indexes = false, nil
		s.keep(d.ref, at)
	}
	s.bound()
}

// change lays a document that the table lags behind. The lock is held.
func (s *shelf) change(d *changedDocument) {
	at := s.places[d.ref]
	doc := projection.Document{Key: d.ref.Key, Version: d.version, Seq: d.seq, Body: d.body}
	if at != nil && at.behind {
		at.doc, at.indexes = doc, d.indexes
		return
	}
	laid := &place{full: true, behind: true, doc: doc, indexes: d.indexes}
	switch {
	case at == nil || !at.full:
	case at.doc.Version == 0:
		s.absent--
	default:
		s.kept--
		s.bytes -= len(at.doc.Body)
	}
	laid.read.Store(at != nil)
	if s.places == nil {
		s.places = map[projection.Ref]*place{}
	}
	s.places[d.ref] = laid
	in := listed{d.ref.Workspace, d.ref.Name}
	if s.behind[in] == nil {
		if s.behind == nil {
			s.behind = map[listed]map[string]*place{}
		}
		s.behind[in] = map[string]*place{}
	}
	s.behind[in][d.ref.Key] = laid
}

// newer returns what the table of a query's projection lags behind.
func (s *shelf) newer(q projection.Query) newer {
	s.mu.RLock()
	defer s.mu.RUnlock()
	at := s.behind[listed{q.Workspace, q.Name}]
	n := newer{seqs: make(map[string]uint64, len(at))}
	for key, p := range at {
		n.seqs[key] = p.doc.Seq
		if selects(q, key, p.indexes) {
			n.docs = append(n.docs, changedDocument{projection.Ref{Workspace: q.Workspace, Name: q.Name, Key: key}, p.doc.Version, p.doc.Seq,
				p.doc.Body, p.indexes})
		}
	}
	slices.SortFunc(n.docs, func(a, b changedDocument) int {
		if q.Newest {
			a, b = b, a
		}
		return cmp.Compare(a.ref.Key, b.ref.Key)
	})
	return n
}

// clear takes off everything that the tables hold; keep says whether anything of it may be put there from now on.
func (s *shelf) clear(keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ref, at := range s.places {
		if !at.behind {
			delete(s.places, ref)
		}
	}
	s.kept, s.bytes, s.absent, s.off = 0, 0, 0, !keep
}
