package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// queue holds the waiting appends, in one lane for each workspace, and everything that Close waits for.
type queue struct {
	db      *database
	open    func(ws id.Workspace) *lane
	working sync.WaitGroup // lanes, the listener, provers

	mu     sync.Mutex // guards closed and lanes
	closed bool
	lanes  map[id.Workspace]*lane
}

// request is a batch that waits to be appended.
type request struct {
	ctx    context.Context
	batch  event.Batch
	answer chan struct{} // closed when the fields below are set

	events []event.Event
	use    *journal.Use
	err    error
}

// enqueue puts a request into its workspace's lane, and sets that to work where it rests.
func (q *queue) enqueue(r *request) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.db.readOnly {
		return journal.ErrClosed
	}
	l := q.lanes[r.batch.Workspace]
	if l == nil {
		q.makeRoom()
		l = q.open(r.batch.Workspace)
		q.lanes[r.batch.Workspace] = l
	}
	l.waiting = append(l.waiting, r)
	if l.full != nil && len(l.waiting) >= l.wanted {
		close(l.full)
		l.full = nil
	}
	if !l.busy {
		l.busy = true
		q.working.Go(l.work)
	}
	return nil
}

// awaits returns a channel that closes when so many requests wait in a lane; nil where they do already, or the log is closed.
func (q *queue) awaits(l *lane, wanted int) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.full = nil
	if len(l.waiting) >= wanted || q.closed {
		return nil
	}
	l.wanted, l.full = wanted, make(chan struct{})
	return l.full
}

// goes runs something until it ends, which Close waits for; false once the log is closed.
func (q *queue) goes(work func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.working.Go(work)
	return true
}

// keptLanes is how many workspaces' ends and documents are kept in memory for their next append.
const keptLanes = 256

// makeRoom gives up lanes that rest, where there are many. The lock is held.
func (q *queue) makeRoom() {
	for ws, l := range q.lanes {
		if len(q.lanes) < keptLanes {
			return
		}
		if !l.busy {
			delete(q.lanes, ws)
		}
	}
}

// take removes the waiting requests of a lane, up to a bound, and puts an empty lane to rest.
func (q *queue) take(l *lane) []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(l.waiting) && n < maxGroup && (n == 0 || bytes < maxGroupBytes) {
		for i := range l.waiting[n].batch.Drafts {
			bytes += len(l.waiting[n].batch.Drafts[i].Data)
		}
		n++
	}
	if n == 0 && l.rests != nil {
		close(l.rests)
		l.rests = nil
	}
	taken := slices.Clone(l.waiting[:n])
	clear(l.waiting[:n])
	l.waiting = append(l.waiting[:0], l.waiting[n:]...)
	l.busy = n > 0
	return taken
}

// settle waits until no lane works.
func (q *queue) settle() {
	for _, l := range q.resting() {
		select {
		case <-l:
		case <-time.After(closingTime):
			return
		}
	}
}

// closingTime is how long Close waits for a database that does not answer before it gives up the waiting requests.
const closingTime = 10 * time.Second

// resting returns a channel for each lane that works, which is closed when it has answered everybody.
func (q *queue) resting() (all []chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lanes {
		if l.busy {
			l.rests = make(chan struct{})
			all = append(all, l.rests)
		}
	}
	return all
}
