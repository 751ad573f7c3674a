package postgres

import (
	"context"
	"sync"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// rounds ask the database about workspaces. All callers that wait at the same time share one query. Every caller gets an answer that was
// read after its call. The zero value is ready.
type rounds[T any] struct {
	mu sync.Mutex // guards of, and every round that nobody has begun to answer
	of map[id.Workspace]*asking[T]
}

// asking is a query about one workspace.
type asking[T any] struct {
	busy bool
	next *round[T] // that nobody has begun to answer; nil while nobody waits
}

type round[T any] struct {
	done  chan struct{}
	asked T
}

// ask adds to the next round of a workspace, and returns it when it is answered. One goroutine calls answer for each round. All callers
// pass the same answer.
func (r *rounds[T]) ask(ctx context.Context, q *queue, ws id.Workspace, add, answer func(*T)) (*T, error) {
	r.mu.Lock()
	if r.of == nil {
		r.of = map[id.Workspace]*asking[T]{}
	}
	at := r.of[ws]
	if at == nil {
		at = &asking[T]{}
		r.of[ws] = at
	}
	if at.next == nil {
		at.next = &round[T]{done: make(chan struct{})}
	}
	mine := at.next
	add(&mine.asked)
	if !at.busy {
		at.busy = q.goes(func() { r.run(ws, at, answer) })
	}
	busy := at.busy
	r.mu.Unlock()
	if !busy {
		return nil, journal.ErrClosed
	}
	select {
	case <-mine.done:
		return &mine.asked, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run answers round after round, until nobody waits.
func (r *rounds[T]) run(ws id.Workspace, at *asking[T], answer func(*T)) {
	for {
		r.mu.Lock()
		mine := at.next
		at.next = nil
		if mine == nil {
			at.busy = false
			delete(r.of, ws)
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		answer(&mine.asked)
		close(mine.done)
	}
}
