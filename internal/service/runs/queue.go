package runs

import (
	"context"
	"errors"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// queue holds the runs of one space that have not ended, the one under way first. The executor's mutex guards it.
type queue struct {
	lane   lane
	runs   []*entry
	cancel *cancellation // set when the space ends: later runs are cancelled too
	full   bool          // the run under way waits for room in its workspace
	wake   chan struct{} // holds at most one token: look again
	gone   chan struct{} // closed when its worker has ended
}

// lane names a queue: that of a space, or that of one background run of it, which has no other.
type lane struct {
	space id.Space
	run   id.Run // "" for the queue of the space
}

// anyRun stands for every background run of a space.
const anyRun id.Run = "*"

// entry is a run in its queue.
type entry struct {
	workspace id.Workspace
	space     id.Space
	beside    bool // it is a background run
	run       id.Run
	parent    id.Run          // for which it is executed; "" for none
	creation  *creation       // of a run that is not recorded yet; of the worker alone
	recovered bool            // an earlier daemon may have begun it; of the worker alone
	ops       []run.Operation // the operations of a run that was just created; nil means that the log has them
	announced string          // the operation that was shown to begin, although it may not be recorded yet; of the worker alone
	cancel    *cancellation   // set when somebody cancelled it
	done      chan struct{}   // closed when no worker has it any more
}

func newEntry(doc run.Run, recovered bool) *entry {
	return &entry{workspace: doc.Workspace, space: doc.Space, run: doc.ID, beside: doc.Background, parent: parentOf(doc),
		recovered: recovered, done: make(chan struct{})}
}

// lane returns the queue of the run.
func (e *entry) lane() lane {
	if e.beside {
		return lane{e.space, e.run}
	}
	return lane{space: e.space}
}

type cancellation struct {
	origin event.Origin
	reason string
}

// enqueue appends a run to the queue of its space. It makes sure that a worker runs, and a follower that wakes the worker when a question
// is answered. It reads the follower's place before the worker starts, so that no answer falls between the two. A run that is started while
// the runs of an earlier daemon are taken up comes after them.
func (x *Service) enqueue(ctx context.Context, e *entry) error {
	head, err := x.Log.Head(ctx, e.workspace)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.base == nil: // Run takes it up from the log
	case x.opening && !e.recovered:
		x.late = append(x.late, e)
	default:
		x.insert(e, head)
	}
	return nil
}

// insertFirst puts a run into the queue of its space where that has none. The place in the queue was reserved.
func (x *Service) insertFirst(e *entry, head uint64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.base == nil || x.base.Err() != nil || x.opening || x.queues[e.lane()] != nil || x.ending[e.space] != nil {
		return false
	}
	if !e.beside && x.coming[e.lane()] != 1 {
		return false
	}
	x.insert(e, head)
	return true
}

// insert puts a run into its queue. The lock is held.
func (x *Service) insert(e *entry, head uint64) {
	base := x.base
	if !x.follows[e.workspace] {
		x.follows[e.workspace] = true
		x.workers.Go(func() { x.follow(base, e.workspace, head) })
	}
	q := x.queues[e.lane()]
	if q == nil {
		q = &queue{lane: e.lane(), cancel: x.ending[e.space], wake: make(chan struct{}, 1), gone: make(chan struct{})}
		x.queues[e.lane()] = q
		x.workers.Go(func() { x.work(base, q) })
	}
	if !slices.ContainsFunc(q.runs, func(other *entry) bool { return other.run == e.run }) {
		if e.cancel = q.cancel; e.cancel == nil {
			e.cancel = x.cancels[e.run]
		}
		q.runs = append(q.runs, e)
	}
}

// endOpening puts the runs that were started during recovery behind those that were taken up, and returns them.
func (x *Service) endOpening(ctx context.Context) ([]*entry, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.opening = false
	for _, e := range x.late {
		// A run that was just started has asked nothing: no answer to it can lie in the log already.
		head, err := x.Log.Head(ctx, e.workspace)
		if err != nil {
			return nil, err
		}
		x.insert(e, head)
	}
	late := x.late
	x.late = nil
	return late, nil
}

// reserve takes a place in the queue of a space for a run that is about to be recorded, or refuses. Checking and taking are one step, so
// that two callers cannot both take the last place. The place is given back once the run is in the queue, or will never be.
func (x *Service) reserve(s id.Space, beside bool) (giveBack func(), err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	to := lane{space: s}
	if beside {
		to.run = anyRun
	}
	n := x.coming[to]
	for at, q := range x.queues {
		if at == to || beside && at.space == s && at.run != "" {
			n += len(q.runs)
		}
	}
	switch {
	case beside && n >= run.MaxBackground:
		return nil, fault.New(fault.Exhausted, "quota_exceeded",
			"%d background runs of this space have not ended, the most that may be; end one: agentbox runs cancel", n)
	case !beside && n >= MaxQueued:
		return nil, fault.New(fault.Exhausted, "quota_exceeded",
			"%d runs of this space have not ended, the most that may be; wait for one to end", n)
	}
	x.coming[to]++
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.coming[to]--; x.coming[to] == 0 {
			delete(x.coming, to)
		}
	}, nil
}

// work drives the runs of one queue, one after the other, until none is left or ctx ends.
func (x *Service) work(ctx context.Context, q *queue) {
	for {
		x.mu.Lock()
		if len(q.runs) == 0 || ctx.Err() != nil {
			rest := q.runs
			delete(x.queues, q.lane)
			x.mu.Unlock()
			x.release(ctx, rest)
			close(q.gone)
			return
		}
		head := q.runs[0]
		x.mu.Unlock()

		status, err := x.execute(ctx, head)
		waiting := x.setFull(q, errors.Is(err, run.ErrFull))
		switch {
		case errors.Is(err, run.ErrFull) && !waiting: // from now on it is woken: it looks once more
		case errors.Is(err, run.ErrFull):
			select {
			case <-q.wake: // there is room, or the run is cancelled
			case <-ctx.Done():
			}
		case errors.Is(err, errNoRun):
			x.pop(q)
		case errors.Is(err, errHeld):
			x.Logger.Info("the kill switch holds a run", "code", "run_held", "run", head.run)
			select {
			case <-q.wake: // the switch is lifted, or the run cancelled
			case <-ctx.Done():
			}
		case errors.Is(err, errPaused):
			select {
			case <-q.wake: // the space is resumed, or the run cancelled
			case <-ctx.Done():
			}
		case errors.Is(err, journal.ErrClosed) && ctx.Err() == nil:
			x.retryLater(ctx, q)
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

// retryLater leaves a run as the log has it, because the log was closed. It retries the run later as if after a restart, because its last
// effects may be unrecorded. Callers that wait for its worker learn that no worker has it. If the space ends, the run is not taken up; then
// the goroutine that ends the space ends the run, once that can be recorded.
func (x *Service) retryLater(ctx context.Context, q *queue) {
	x.mu.Lock()
	head := q.runs[0]
	close(head.done)
	if q.cancel != nil {
		delete(x.cancels, head.run)
		q.runs = q.runs[1:]
		x.mu.Unlock()
		return
	}
	q.runs[0] = &entry{workspace: head.workspace, space: head.space, run: head.run, beside: head.beside, parent: head.parent, recovered: true,
		announced: head.announced, cancel: head.cancel, done: make(chan struct{})}
	x.mu.Unlock()
	again, stop := x.Clock.NewTimer(followAgain)
	defer stop()
	select {
	case <-again:
	case <-q.wake:
	case <-ctx.Done():
	}
}

// release records cancellations that were not recorded before the service ended. The other runs wait for the next start.
func (x *Service) release(ctx context.Context, rest []*entry) {
	for _, e := range rest {
		if e.creation != nil {
			e.creation.answer <- answered{err: errShutdown}
			close(e.done)
			continue
		}
		if c := x.cancelled(e); c != nil {
			if err := x.end(context.WithoutCancel(ctx), e.workspace, e.run, c.origin, c.reason); err != nil {
				x.Logger.Error("the end of a cancelled run cannot be recorded", "code", "cancel_not_recorded", "run", e.run, "error", err)
			}
		}
		close(e.done)
	}
}

// abandon ends a run that cannot go on, for example because its operations cannot be read. When the log cannot be written either, the run
// stays where the log left it, and the next start takes it up.
func (x *Service) abandon(ctx context.Context, e *entry, cause error) {
	x.Logger.Error("run cannot go on", "code", "run_abandoned", "run", e.run, "error", cause)
	doc, version, err := projection.Load[run.Run](ctx, x.Docs, e.workspace, run.Projection, string(e.run))
	if err == nil && !doc.Status.Ended() {
		r := x.executionOf(nil, doc, version, nil)
		err = r.finish(ctx, run.EventFailed, r.origin, message(cause))
	}
	if err != nil {
		x.Logger.Error("the end of a run cannot be recorded", "code", "run_end_not_recorded", "run", e.run, "error", err)
	}
}

func (x *Service) pop(q *queue) {
	x.mu.Lock()
	defer x.mu.Unlock()
	close(q.runs[0].done)
	delete(x.cancels, q.runs[0].run)
	q.runs = q.runs[1:]
}

// errPaused means that a paused space keeps a run from going on: it stays as it is until the space is resumed.
var errPaused = fault.New(fault.Waiting, space.ErrPaused.Code, "the space is paused; the run waits until it is resumed")

// Lifted makes every worker of a workspace look at its run again: the kill switch that held it is lifted, or a paused space resumed.
func (x *Service) Lifted(ws id.Workspace) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.queues {
		if len(q.runs) > 0 && q.runs[0].workspace == ws {
			select {
			case q.wake <- struct{}{}:
			default:
			}
		}
	}
}

// wake makes the worker of a run look at it again.
func (x *Service) wake(r id.Run) {
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
