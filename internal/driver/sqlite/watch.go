package sqlite

import (
	"context"
	"slices"
	"sync"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// watch knows the committed head of every workspace and wakes who waits for it to move.
type watch struct {
	mu     sync.Mutex // guards all below
	heads  map[id.Workspace]*watched
	closed bool
}

type watched struct {
	no    int64 // 0 for a workspace that is waited for and has no event yet
	head  uint64
	grown chan struct{} // closed and replaced when the head moves; nil while nobody waits
}

func (w *watch) load(tenants map[id.Workspace]*tenant) {
	for ws, t := range tenants {
		w.set(ws, t.no, t.head)
	}
}

func (w *watch) set(ws id.Workspace, no int64, head uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.heads[ws]
	if at == nil {
		at = &watched{}
		w.heads[ws] = at
	}
	at.no, at.head = no, head
	if at.grown != nil {
		close(at.grown)
		at.grown = nil
	}
}

func (w *watch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, at := range w.heads {
		if at.grown != nil {
			close(at.grown)
			at.grown = nil
		}
	}
}

// open is the opposite of close, for a log that was shut for a time.
func (w *watch) open() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = false
}

// get returns the number and the head of a workspace, zeros for one without events.
func (w *watch) get(ws id.Workspace) (no int64, head uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := w.heads[ws]; at != nil {
		return at.no, at.head
	}
	return 0, 0
}

// names returns the numbers of every workspace that has an event.
func (w *watch) all() []id.Workspace {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := []id.Workspace{}
	for ws, at := range w.heads {
		if at.head > 0 {
			found = append(found, ws)
		}
	}
	slices.Sort(found)
	return found
}

func (w *watch) wait(ctx context.Context, ws id.Workspace, after uint64) error {
	for {
		w.mu.Lock()
		if w.closed {
			w.mu.Unlock()
			return journal.ErrClosed
		}
		at := w.heads[ws]
		if at == nil {
			at = &watched{}
			w.heads[ws] = at
		}
		if at.head > after {
			w.mu.Unlock()
			return nil
		}
		if at.grown == nil {
			at.grown = make(chan struct{})
		}
		grown := at.grown
		w.mu.Unlock()
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
