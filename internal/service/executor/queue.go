package executor

import (
	"context"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/projection"
)

// queue holds the runs of one space that have not ended, the one under way first. The executor's mutex guards it.
type queue struct {
	space id.Space
	runs  []*entry
	wake  chan struct{} // holds at most one token: look again
	gone  chan struct{} // closed when its worker has ended
}

// entry is a run in its queue.
type entry struct {
	workspace id.Workspace
	run       id.Run
	cancel    *cancellation // set when somebody cancelled it
}

type cancellation struct {
	origin event.Origin
	reason string
}

// enqueue puts a run behind the others of its space and makes sure that a worker is there, and somebody who wakes it when a question is
// answered. The follower's place is read before the worker starts, so that no answer falls between the two.
func (x *Executor) enqueue(ctx context.Context, ws id.Workspace, s id.Space, r id.Run) error {
	head, err := x.Log.Head(ctx, ws)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.base == nil {
		return nil // Run takes it up from the log
	}
	if !x.follows[ws] {
		x.follows[ws] = true
		x.workers.Go(func() { x.follow(x.base, ws, head) })
	}
	q := x.queues[s]
	if q == nil {
		q = &queue{space: s, wake: make(chan struct{}, 1), gone: make(chan struct{})}
		x.queues[s] = q
		x.workers.Go(func() { x.work(x.base, q) })
	}
	if !slices.ContainsFunc(q.runs, func(e *entry) bool { return e.run == r }) {
		q.runs = append(q.runs, &entry{workspace: ws, run: r})
	}
	return nil
}

// queued returns how many runs of a space have not ended.
func (x *Executor) queued(s id.Space) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if q := x.queues[s]; q != nil {
		return len(q.runs)
	}
	return 0
}

// work drives the runs of one queue, one after the other, until none is left or ctx ends.
func (x *Executor) work(ctx context.Context, q *queue) {
	for {
		x.mu.Lock()
		if len(q.runs) == 0 || ctx.Err() != nil {
			delete(x.queues, q.space)
			close(q.gone)
			x.mu.Unlock()
			return
		}
		head := q.runs[0]
		x.mu.Unlock()

		status, err := x.drive(ctx, head)
		switch {
		case err != nil && ctx.Err() == nil:
			x.abandon(ctx, head, err)
			x.pop(q)
		case status.Ended():
			x.pop(q)
		case status == run.AwaitingApproval:
			select {
			case <-q.wake:
			case <-ctx.Done():
			}
		}
	}
}

// abandon ends a run that cannot go on, for example because its operations cannot be read. When the log cannot be written either, the run
// stays where the log left it, and the next start takes it up.
func (x *Executor) abandon(ctx context.Context, e *entry, cause error) {
	x.Logger.Error("run cannot go on", "run", e.run, "error", cause)
	doc, version, err := projection.Load[run.Run](ctx, x.Docs, e.workspace, run.Projection, string(e.run))
	if err == nil && !doc.Status.Ended() {
		r := &ride{x: x, doc: doc, version: version, origin: event.Origin{Principal: doc.Agent, Correlation: doc.Correlation}}
		err = r.finish(ctx, run.EventFailed, r.origin, message(cause))
	}
	if err != nil {
		x.Logger.Error("the end of a run cannot be recorded", "run", e.run, "error", err)
	}
}

func (x *Executor) pop(q *queue) {
	x.mu.Lock()
	defer x.mu.Unlock()
	q.runs = q.runs[1:]
}

// poke makes the worker of a run look at it again.
func (x *Executor) poke(r id.Run) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.queues {
		if slices.ContainsFunc(q.runs, func(e *entry) bool { return e.run == r }) {
			select {
			case q.wake <- struct{}{}:
			default:
			}
		}
	}
}
