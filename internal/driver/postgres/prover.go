package postgres

import (
	"context"
	"sync"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// prover asks how a workspace stands, once for all who want to know at the same time. Whoever asks gets an answer that was read after he asked.
type prover struct {
	mu sync.Mutex // guards of
	of map[id.Workspace]*proving
}

// proving is what is asked about one workspace.
type proving struct {
	busy bool
	next *proof // that nobody has begun to read; nil while nobody waits
}

type proof struct {
	done chan struct{}
	standing
	err error
}

// prove returns how a workspace stands, not earlier than when it was called.
func (j *Journal) prove(ctx context.Context, ws id.Workspace) (standing, error) {
	if err := ctx.Err(); err != nil {
		return standing{}, err
	}
	if j.ctx.Err() != nil {
		return standing{}, journal.ErrClosed
	}
	if j.options.Alone {
		if now, known := j.shelf.knows(ws); known {
			return now, nil
		}
	}
	p := &j.prover
	p.mu.Lock()
	at := p.of[ws]
	if at == nil {
		at = &proving{}
		p.of[ws] = at
	}
	if at.next == nil {
		at.next = &proof{done: make(chan struct{})}
	}
	mine := at.next
	if !at.busy {
		at.busy = j.goes(func() { j.answerProofs(ws, at) })
	}
	busy := at.busy
	p.mu.Unlock()
	if !busy {
		return standing{}, journal.ErrClosed
	}
	select {
	case <-mine.done:
		return mine.standing, mine.err
	case <-ctx.Done():
		return standing{}, ctx.Err()
	}
}

// answerProofs reads for who waits, until nobody does.
func (j *Journal) answerProofs(ws id.Workspace, at *proving) {
	p := &j.prover
	for {
		p.mu.Lock()
		mine := at.next
		at.next = nil
		if mine == nil {
			at.busy = false
			delete(p.of, ws)
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		mine.err = j.reading(j.ctx, func(db querier) (err error) {
			mine.standing, err = j.stand(j.ctx, db, ws, false)
			return err
		})
		if mine.err == nil {
			j.shelf.learns(ws, mine.standing)
		}
		close(mine.done)
	}
}
