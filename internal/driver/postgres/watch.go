package postgres

import (
	"context"
	"sync"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// watch knows how far every workspace has come at least, and wakes who waits for one to go on.
type watch struct {
	mu     sync.Mutex // guards all below
	heads  map[id.Workspace]*watched
	closed bool
}

type watched struct {
	head  uint64
	grown chan struct{} // closed and replaced when the head moves; nil while nobody waits
}

// set notes that a workspace has come so far. What comes late, because several tell it, changes nothing.
func (w *watch) set(ws id.Workspace, head uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.heads[ws]
	if at == nil {
		at = &watched{}
		w.heads[ws] = at
	}
	if head <= at.head {
		return
	}
	at.head = head
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
