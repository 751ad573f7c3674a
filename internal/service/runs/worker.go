package runs

import (
	"context"
	"errors"
	"slices"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// follow wakes the workers of a workspace's runs when their questions are answered, and when waiting runs can start. It starts from a place
// of the log and returns when ctx ends.
func (x *Service) follow(ctx context.Context, ws id.Workspace, head uint64) {
	for ctx.Err() == nil {
		for e, err := range journal.Tail(ctx, x.Log, journal.Query{Workspace: ws, From: head + 1, Types: wakers()}) {
			if ctx.Err() != nil {
				return
			}
			if errors.Is(err, journal.ErrClosed) {
				break // until it is open again
			}
			if err != nil {
				x.Logger.Error("follow answers", "code", "answers_not_followed", "workspace", ws, "error", err)
				break
			}
			head = e.Seq
			switch {
			case e.Type == space.EventResumed:
				x.Lifted(ws)
			case !slices.Contains(policy.AnswerEvents, e.Type):
				x.wakeFull(ws)
				if e.EntityType == run.EntityType && slices.Contains(endings, e.Type) {
					x.endChildren(ctx, ws, e.Run, orphans(e))
				}
			case e.Run != "":
				x.wake(e.Run)
			}
		}
		again, stop := x.Clock.NewTimer(followAgain)
		select {
		case <-again:
		case <-ctx.Done():
		}
		stop()
	}
}

// followAgain is how long after a read error the answers are followed again.
const followAgain = time.Second

// wakers are the events after which a run that waits may go on: its question is answered, there may be room for it, or
// its space is resumed.
func wakers() []string {
	return slices.Concat(policy.AnswerEvents, run.LoadEvents, []string{workspace.EventUpdated, space.EventResumed})
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
	doc, version, err := x.History.Load(ctx, e.workspace, e.run)
	if err == nil && !doc.Status.Ended() {
		r := x.executionOf(nil, doc, version, nil)
		err = r.finish(ctx, run.EventFailed, r.origin, message(cause))
	}
	if err != nil {
		x.Logger.Error("the end of a run cannot be recorded", "code", "run_end_not_recorded", "run", e.run, "error", err)
	}
}

// errPaused means that a paused space keeps a run from going on: it stays as it is until the space is resumed.
var errPaused = fault.New(fault.Waiting, space.ErrPaused.Code, "the space is paused; the run waits until it is resumed")

// execute executes operations until the run ends, waits for a person, or ctx ends. It returns an error if the log could not be written or
// read; every other error is a result.
func (x *Service) execute(ctx context.Context, e *entry) (run.Status, error) {
	r, err := x.load(ctx, e)
	if err != nil {
		return "", err
	}
	if e.recovered {
		e.recovered = false
		if err := x.Frames.MakeUp(ctx, r.doc); err != nil {
			x.Logger.Warn("make up for lost live output", "code", "output_not_made_up", "run", e.run, "error", err)
		}
	}
	for !r.doc.Status.Ended() {
		if ctx.Err() != nil {
			return r.doc.Status, ctx.Err()
		}
		err := r.step(ctx)
		answered := true
		if err == nil && r.doc.Status == run.AwaitingApproval {
			answered, err = r.resume(ctx)
		}
		if err != nil && !errors.Is(err, errOrphaned) || !answered { // the next step ends a run whose parent has ended
			return r.doc.Status, err
		}
	}
	return r.doc.Status, nil
}

// load reads a run and its operations.
func (x *Service) load(ctx context.Context, e *entry) (*execution, error) {
	if c := e.creation; c != nil {
		draft := c.batch.Drafts[0]
		doc, err := run.Evolve(run.Run{}, event.Event{Header: draft.Header, Data: draft.Data}) // as it will be
		r := x.executionOf(e, doc, 0, c.ops)
		r.creation = c
		if err != nil {
			r.answer(run.Run{}, err)
			return nil, errNoRun
		}
		return r, nil
	}
	doc, version, err := x.History.Load(ctx, e.workspace, e.run)
	if e.recovered && errors.Is(err, projection.ErrNotFound) {
		x.forget(e)
		return nil, errNoRun // the log was shut before it had it
	}
	if err != nil {
		return nil, err
	}
	ops := e.ops
	if !doc.Input.Inline { // nor while it waits for a person
		e.ops = nil
	}
	if ops == nil || doc.Redacted {
		if ops, err = x.History.Operations(ctx, doc); err != nil {
			return nil, err
		}
	}
	return x.executionOf(e, doc, version, ops), nil
}

func (x *Service) executionOf(e *entry, doc run.Run, version uint64, ops []run.Operation) *execution {
	origin := event.Origin{Principal: doc.Agent, Token: doc.Token, Correlation: doc.Correlation}
	return &execution{record: record{x: x, doc: doc, version: version, origin: origin, entry: e}, ops: ops}
}

// errNoRun means that the request did not become a run. The caller has its reason.
var errNoRun = errors.New("there is no such run")

// forget removes the frames of a run that was not created.
func (x *Service) forget(e *entry) {
	if e.announced != "" {
		x.Frames.Forget(e.run, e.announced)
	}
}
