package audit

import (
	"context"
	"iter"
	"runtime"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/merkle"
)

// piece is a sequence of events with the computed hashes of each.
type piece struct {
	from, before uint64 // places
	events       []event.Event
	sums         []sums
	err          error // of the read
}

// sums are the expected hashes of an event.
type sums struct {
	hash, commitment event.Digest
	leaf             merkle.Hash
}

func sumsOf(e *event.Event) sums {
	return sums{journal.HashOf(e), journal.Commit(e.Chain.Salt, e.Data), merkle.LeafHash(e.Seq, e.Chain.Hash)}
}

// whole reports whether every place of the piece has its event.
func (p *piece) whole() bool { return p.err == nil && uint64(len(p.events)) == p.before-p.from }

// pieces reads the events of a workspace between two places, and hashes them, on every processor at once; it yields them in order.
func pieces(ctx context.Context, log journal.Journal, ws id.Workspace, from, before uint64) iter.Seq[*piece] {
	return func(yield func(*piece) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var working sync.WaitGroup
		defer working.Wait()
		defer cancel()
		type job struct {
			piece *piece
			done  chan struct{}
		}
		workers := runtime.GOMAXPROCS(0)
		jobs, order := make(chan job), make(chan job, 2*workers)
		working.Go(func() {
			defer close(order)
			defer close(jobs)
			for at := from; at < before; at += journal.MaxRead {
				j := job{&piece{from: at, before: min(at+journal.MaxRead, before)}, make(chan struct{})}
				select {
				case order <- j:
				case <-ctx.Done():
					return
				}
				select {
				case jobs <- j:
				case <-ctx.Done():
					return
				}
			}
		})
		for range workers {
			working.Go(func() {
				for j := range jobs {
					j.piece.read(ctx, log, ws)
					close(j.done)
				}
			})
		}
		for j := range order {
			select {
			case <-j.done:
			case <-ctx.Done():
				return // the caller sees the error in the context
			}
			if !yield(j.piece) {
				return
			}
		}
	}
}

func (p *piece) read(ctx context.Context, log journal.Journal, ws id.Workspace) {
	p.events, p.err = log.Read(ctx, journal.Query{Workspace: ws, From: p.from, Before: p.before, Limit: journal.MaxRead})
	p.sums = make([]sums, len(p.events))
	for i := range p.events {
		p.sums[i] = sumsOf(&p.events[i])
	}
}
