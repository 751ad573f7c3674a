package postgres

import (
	"sync"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/projection"
)

// Limits of the shelf of one workspace.
const (
	shelvedDocuments = 4_096
	shelvedBytes     = 16 << 20 // of all bodies together
	shelvedBody      = 64 << 10 // of one; a larger one is read anew each time
	shelvedTenants   = 256      // workspaces

	youngDocuments = 1_024     // that were written and that nobody has read since
	youngBytes     = 256 << 10 // of all their bodies together
	youngBody      = 4 << 10   // of one
)

// shelf caches documents as they are at one place of their workspace's log. The caller has checked before how far the log has come. A shelf
// that lags behind that place is useless, however little it lags. If this daemon has the database exclusively, nobody else appends. Then
// the shelf itself is the proof, because each commit updates it before anybody hears of the commit.
type shelf struct {
	mu sync.Mutex // guards all below
	of map[id.Workspace]*shelved
}

// knows returns how a workspace stands, as far as this daemon has taken it; false where it has not looked yet.
func (s *shelf) knows(ws id.Workspace) (standing, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.of[ws]; at != nil {
		return at.standing, true
	}
	return standing{}, false
}

// learns gets the head of a workspace from an earlier query. If the workspace has moved on since, the shelf knows it.
func (s *shelf) learns(ws id.Workspace, then standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[ws] == nil && then.no != 0 {
		s.put(ws, newShelved(then))
	}
}

// begins anew with a workspace, of which all documents may have changed.
func (s *shelf) begins(ws id.Workspace, now standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.of[ws]; at == nil || at.epoch < now.epoch || at.epoch == now.epoch && at.head < now.head {
		s.put(ws, newShelved(now)) // else a lane has gone on from there already
	}
}

// put keeps the number of workspaces with documents within bounds; how they stand is kept of all. The lock is held.
func (s *shelf) put(ws id.Workspace, at *shelved) {
	if s.of == nil {
		s.of = map[id.Workspace]*shelved{}
	}
	if len(s.of)%shelvedTenants == shelvedTenants-1 && s.of[ws] == nil {
		s.empty()
	}
	s.of[ws] = at
}

// empty takes every document off. The lock is held.
func (s *shelf) empty() {
	for _, at := range s.of {
		clear(at.docs)
		at.young, at.born, at.youngBytes = map[docRef]projection.Document{}, nil, 0
		at.bytes = 0
	}
}

type shelved struct {
	standing
	expected uint64                         // up to which our own lane is just appending; 0 for nothing
	docs     map[docRef]projection.Document // Version 0 for one that is not there
	bytes    int

	// Readers often need new documents soon, runs more than messages. So new documents wait here for their first reader, and do not
	// displace documents that are read often.
	young      map[docRef]projection.Document
	youngBytes int
	born       []docRef // the young in their order, and some that were
}

func newShelved(s standing) *shelved {
	return &shelved{standing: s, docs: map[docRef]projection.Document{}, young: map[docRef]projection.Document{}}
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
		if !found {
			if doc, found = at.young[ref]; found {
				at.put(ref, doc)
			}
		}
		return doc, found
	}
	if at.epoch > now.epoch || at.epoch == now.epoch && now.head <= at.expected {
		return projection.Document{}, false // it is about to be of now
	}
	s.of[ws] = newShelved(now)
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
		at = newShelved(then)
		s.put(ws, at)
	}
	if at.standing == then {
		at.put(ref, doc)
	}
}

func (s *shelved) put(ref docRef, doc projection.Document) {
	s.age(ref)
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

// expect gets the place up to which a lane will append, and 0 when the lane has appended or failed.
func (s *shelf) expect(ws id.Workspace, head uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.of[ws]; at != nil {
		at.expected = head
	}
}

// lay puts the changes of a group of our own on the shelf. The group took the workspace from one place to another.
func (s *shelf) lay(ws id.Workspace, was, now standing, g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.of[ws]
	if at == nil || at.standing != was {
		s.put(ws, newShelved(now))
		return
	}
	at.standing = now
	for _, f := range g.docs {
		ref := docRef{f.ref.Name, f.ref.Key}
		doc := projection.Document{Key: f.ref.Key, Version: f.state.Version, Seq: f.state.Seq, Body: f.body}
		switch _, known := at.docs[ref]; {
		case known && len(f.body) <= shelvedBody:
			at.put(ref, doc)
		case known:
			at.bytes -= len(at.docs[ref].Body)
			delete(at.docs, ref)
		default:
			at.bear(ref, doc)
		}
	}
}

// bear takes in a document that was written, and lets go of those that were written first where there are too many.
func (s *shelved) bear(ref docRef, doc projection.Document) {
	_, known := s.young[ref]
	s.age(ref)
	if len(doc.Body) > youngBody {
		return
	}
	s.young[ref] = doc
	s.youngBytes += len(doc.Body)
	if !known {
		s.born = append(s.born, ref)
	}
	for len(s.born) > youngDocuments || s.youngBytes > youngBytes {
		s.age(s.born[0])
		s.born = s.born[1:]
	}
}

// age takes a document from the young.
func (s *shelved) age(ref docRef) {
	if doc, known := s.young[ref]; known {
		s.youngBytes -= len(doc.Body)
		delete(s.young, ref)
	}
}

// clear takes every document off.
func (s *shelf) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.empty()
}
