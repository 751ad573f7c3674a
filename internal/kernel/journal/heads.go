package journal

import (
	"context"
	"slices"
	"sync"

	"agentbox/internal/domain/id"
)

// Heads holds how far each workspace's log has come, and wakes those who wait for one to grow. The zero value is ready, and every workspace
// in it is empty. All methods may be called at the same time.
type Heads struct {
	mu     sync.Mutex // guards all below
	heads  map[id.Workspace]*head
	closed bool
}

type head struct {
	seq   uint64        // 0 for a workspace that somebody waits for and that has no event yet
	grown chan struct{} // closed and removed when the head moves; nil while nobody waits
}

// at returns the head of a workspace, made where there is none. The lock is held.
func (h *Heads) at(ws id.Workspace) *head {
	if h.heads == nil {
		h.heads = map[id.Workspace]*head{}
	}
	if h.heads[ws] == nil {
		h.heads[ws] = &head{}
	}
	return h.heads[ws]
}

func (a *head) wake() {
	if a.grown != nil {
		close(a.grown)
		a.grown = nil
	}
}

// Advance records that a workspace has come to seq. A number that is not beyond the known one changes nothing.
func (h *Heads) Advance(ws id.Workspace, seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.at(ws)
	if seq <= at.seq {
		return
	}
	at.seq = seq
	at.wake()
}

// Head returns the sequence number of a workspace's last event, 0 for a workspace without events.
func (h *Heads) Head(ws id.Workspace) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := h.heads[ws]; at != nil {
		return at.seq
	}
	return 0
}

// Workspaces returns every workspace that has an event, in order.
func (h *Heads) Workspaces() []id.Workspace {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := []id.Workspace{}
	for ws, at := range h.heads {
		if at.seq > 0 {
			found = append(found, ws)
		}
	}
	slices.Sort(found)
	return found
}

// Wait returns once the workspace has an event beyond after. It returns ErrClosed after Close, and the context's error when that ends
// first.
func (h *Heads) Wait(ctx context.Context, ws id.Workspace, after uint64) error {
	for {
		grown, err := h.next(ws, after)
		if grown == nil {
			return err
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// next returns a channel that is closed when the head moves, nil where it lies beyond after already or the log is closed.
func (h *Heads) next(ws id.Workspace, after uint64) (<-chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	at := h.at(ws)
	if at.seq > after {
		return nil, nil
	}
	if at.grown == nil {
		at.grown = make(chan struct{})
	}
	return at.grown, nil
}

// Close ends every Wait with ErrClosed, those to come too.
func (h *Heads) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, at := range h.heads {
		at.wake()
	}
}

// Reopen is the opposite of Close, for a log that was closed for a time. It keeps the heads.
func (h *Heads) Reopen() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = false
}
