package runs

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
)

// ErrEnded refuses a request that needs a run that has not ended.
var ErrEnded = fault.New(fault.Conflict, "run_already_ended", "the run has ended")

// Cancel ends a run. It ends an effect under way at once, with every process of it, and no further operation begins. It acts first and
// records after. It returns when the run has ended, or when ctx ends; then the run still ends.
func (x *Service) Cancel(ctx context.Context, origin event.Origin, ws id.Workspace, runID id.Run, reason string) error {
	doc, err := x.History.Find(ctx, ws, runID)
	if err != nil {
		return err
	}
	if doc.Status.Ended() {
		return ErrEnded
	}
	if reason == "" {
		reason = "cancelled on request"
	}
	x.cancelling(runID, &cancellation{origin: origin, reason: reason})
	for _, e := range x.mark(func(e *entry) bool { return e.run == runID && e.workspace == ws }, origin, reason) {
		if x.dequeue(e) {
			break
		}
		select {
		case <-e.done: // its worker has ended it, if it could
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := x.end(context.WithoutCancel(ctx), ws, runID, origin, reason); err != nil {
		return err
	}
	x.cancelling(runID, nil)
	if doc, err = x.History.Find(ctx, ws, runID); err == nil && doc.Status != run.Cancelled {
		err = ErrEnded // by itself, a moment before
	}
	return err
}

// end records the end of a run that no worker has.
func (x *Service) end(ctx context.Context, ws id.Workspace, runID id.Run, origin event.Origin, reason string) error {
	for {
		doc, version, err := x.History.Load(ctx, ws, runID)
		if err != nil || doc.Status.Ended() {
			return err
		}
		r := x.executionOf(nil, doc, version, nil)
		if err := r.finish(ctx, run.EventCancelled, origin, reason); !errors.Is(err, journal.ErrConflict) {
			return err
		}
	}
}

// CancelSpace cancels every run of a space. That includes runs that arrive meanwhile, and runs of an earlier daemon that were not taken up
// yet. It returns when none is left, or when ctx ends.
func (x *Service) CancelSpace(ctx context.Context, origin event.Origin, s id.Space, reason string) error {
	origin.Key = "" // it is that of one batch, and there may be many runs
	c := &cancellation{origin: origin, reason: reason}
	x.mu.Lock()
	x.ending[s] = c
	var workers []*queue
	for at, q := range x.queues {
		if at.space == s {
			q.cancel, workers = c, append(workers, q)
		}
	}
	x.mu.Unlock()
	defer func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.ending[s] == c {
			delete(x.ending, s)
		}
	}()
	x.mark(func(e *entry) bool { return e.space == s }, origin, reason)
	for _, q := range workers {
		select {
		case <-q.gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return x.endSpace(context.WithoutCancel(ctx), s, c)
}

// endSpace records the end of the runs of a space that no worker has. If that cannot be recorded, they continue, and so does the space.
func (x *Service) endSpace(ctx context.Context, s id.Space, c *cancellation) error {
	err := x.History.EachOpen(ctx, s, func(doc run.Run) error { return x.end(ctx, doc.Workspace, doc.ID, c.origin, c.reason) })
	if err == nil {
		return nil
	}
	x.mu.Lock()
	delete(x.ending, s)
	x.mu.Unlock()
	return errors.Join(err, x.History.EachOpen(ctx, s, x.requeue(ctx)))
}
