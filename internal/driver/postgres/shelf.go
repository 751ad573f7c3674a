package postgres

import (
	"sync"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/projection"
)

// What the shelf keeps of one workspace.
const (
	shelvedDocuments = 4_096
	shelvedBytes     = 16 << 20 // of all bodies together
	shelvedBody      = 64 << 10 // of one; a larger one is read anew each time
	shelvedTenants   = 256      // workspaces
)

// shelf keeps documents that were read, as they are at one place of their workspace's log. Who looks there has proven before how far the
// log has come: a shelf that lags behind that is of no use to him, however little.
type shelf struct {
	mu sync.Mutex // guards all below
	of map[id.Workspace]*shelved
}

type shelved struct {
	standing
	expected uint64                         // up to which our own lane is just appending; 0 for nothing
	docs     map[docRef]projection.Document // Version 0 for one that is not there
	bytes    int
}

func newShelved(s standing) *shelved {
	return &shelved{standing: s, docs: map[docRef]projection.Document{}}
}

// find returns a document of a workspace that was proven to stand so.
func (s *shelf) find(ws id.Workspace, now standing, ref docRef) (projection.Document, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.of[ws]
	if at == nil {
		return projection.Document{}, false
	}
	if at.no == now.no && at.epoch == now.epoch && at.head >= now.head {
		doc, found := at.docs[ref]
		return doc, found
	}
	if at.epoch > now.epoch || at.epoch == now.epoch && now.head <= at.expected {
		return projection.Document{}, false // it is about to be of now
	}
	delete(s.of, ws)
	return projection.Document{}, false
}

// fill puts a document there that was read when the workspace stood so.
func (s *shelf) fill(ws id.Workspace, then standing, ref docRef, doc projection.Document) {
	if then.no == 0 || len(doc.Body) > shelvedBody {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.of[ws]
	if at == nil {
		if s.of == nil || len(s.of) >= shelvedTenants {
			s.of = map[id.Workspace]*shelved{}
		}
		at = newShelved(then)
		s.of[ws] = at
	}
	if at.standing == then {
		at.put(ref, doc)
	}
}

func (s *shelved) put(ref docRef, doc projection.Document) {
	if was, known := s.docs[ref]; known {
		s.bytes -= len(was.Body)
	}
	s.docs[ref] = doc
	s.bytes += len(doc.Body)
	for other, was := range s.docs {
		if len(s.docs) <= shelvedDocuments && s.bytes <= shelvedBytes {
			return
		}
		s.bytes -= len(was.Body)
		delete(s.docs, other)
	}
}

// expect is told up to which place a lane is about to append, and 0 when it has done so or failed.
func (s *shelf) expect(ws id.Workspace, head uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.of[ws]; at != nil {
		at.expected = head
	}
}

// lay puts there what a group of our own has changed, which has taken the workspace from one place to another.
func (s *shelf) lay(ws id.Workspace, was, now standing, g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.of[ws]
	if at == nil {
		return
	}
	if at.standing != was {
		delete(s.of, ws)
		return
	}
	at.standing = now
	for _, f := range g.docs {
		ref := docRef{f.ref.Name, f.ref.Key}
		doc := projection.Document{Key: f.ref.Key, Version: f.state.Version, Seq: f.state.Seq, Body: f.body}
		if _, known := at.docs[ref]; known && len(f.body) <= shelvedBody {
			at.put(ref, doc)
		} else if known {
			at.bytes -= len(at.docs[ref].Body)
			delete(at.docs, ref)
		}
	}
}

// clear forgets everything.
func (s *shelf) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of = nil
}
