package sqlite

import (
	"slices"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// Bounds of the cached last events. Followers read them there once the disk has them, and do not read the file.
const (
	recentEvents = 128       // at least, of a workspace
	recentBytes  = 512 << 10 // that they take, of a workspace
	recentTotal  = 16 << 20  // of all workspaces together
	recentHeader = 1 << 10   // what an event takes beside its texts
)

// recent keeps the last events of the workspaces in memory.
type recent struct {
	mu    sync.RWMutex // guards all below
	of    map[id.Workspace]*lately
	bytes int
	off   bool // nothing is kept now
}

// lately are the last events of a workspace, without a gap.
type lately struct {
	events []event.Event // their bytes are nobody else's, and never change
	bytes  int
}

// read answers a query that begins where all that follows is kept; false where the file has to be read.
func (r *recent) read(q journal.Query) (found []event.Event, ok bool) {
	if q.Last || q.Stream != (event.Stream{}) {
		return nil, false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	at := r.of[q.Workspace]
	if at == nil || len(at.events) == 0 || q.From < at.events[0].Seq {
		return nil, false
	}
	found = []event.Event{}
	for i := range at.events {
		if len(found) == q.Limit {
			break
		}
		if e := &at.events[i]; q.Selects(e) {
			found = append(found, event.Clone(*e))
		}
	}
	return found, true
}

// lay adds the events of a commit.
func (r *recent) lay(g *group) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.off {
		return
	}
	for i := range g.batches {
		for _, e := range g.batches[i].events {
			r.add(e)
		}
	}
}

// add puts an event behind those of its workspace. The lock is held.
func (r *recent) add(e event.Event) {
	at := r.of[e.Workspace]
	if at == nil || len(at.events) > 0 && at.events[len(at.events)-1].Seq+1 != e.Seq {
		r.drop(e.Workspace)
		if r.of == nil {
			r.of = map[id.Workspace]*lately{}
		}
		at = &lately{}
		r.of[e.Workspace] = at
	}
	at.events = append(at.events, event.Clone(e))
	at.bytes += takes(&e)
	r.bytes += takes(&e)
	if len(at.events) >= 2*recentEvents || at.bytes > recentBytes {
		r.trim(at)
	}
	for ws := range r.of {
		if r.bytes <= recentTotal {
			break
		}
		if ws != e.Workspace {
			r.drop(ws)
		}
	}
}

// trim takes off the first events of a workspace that it has no room for. The lock is held.
func (r *recent) trim(at *lately) {
	n := max(0, len(at.events)-recentEvents)
	for i := range n {
		at.bytes -= takes(&at.events[i])
		r.bytes -= takes(&at.events[i])
	}
	for at.bytes > recentBytes {
		at.bytes -= takes(&at.events[n])
		r.bytes -= takes(&at.events[n])
		n++
	}
	at.events = slices.Clone(at.events[n:]) // so that nothing holds on to the others
}

// drop takes off the events of a workspace. The lock is held.
func (r *recent) drop(ws id.Workspace) {
	if at := r.of[ws]; at != nil {
		r.bytes -= at.bytes
		delete(r.of, ws)
	}
}

// clear takes off everything; keep says whether anything may be put there from now on.
func (r *recent) clear(keep bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of, r.bytes, r.off = nil, 0, !keep
}

// takes is the size of an event that counts against the bounds.
func takes(e *event.Event) int {
	return recentHeader + len(e.Data) + len(e.PolicyContext) + len(e.ModelContext) + len(e.Display)
}
