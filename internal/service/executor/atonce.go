package executor

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
)

// asked is a run that is not in the log yet. Its worker records it, together with its beginning where it can.
type asked struct {
	admitted policy.Ruling
	batch    event.Batch
	answer   chan answered // holds one
}

// answered is what whoever asked for a run is told: the run, or why there is none.
type answered struct {
	doc run.Run
	err error
}

// atOnce has a run recorded by the worker of its space, where no other run is in the way: then what it is, that it begins, and its first operation's
// intent are one commit. Recorded is false where it has to be recorded first.
func (x *Executor) atOnce(ctx context.Context, q Request, s space.Space, admitted policy.Ruling, batch event.Batch, ops []run.Operation) (doc run.Run, recorded bool, err error) {
	if batch.Key != "" {
		if _, known, err := journal.Recall(ctx, x.Log, q.Workspace, batch.Key, batch.Digest); known || err != nil {
			return doc, false, nil // who records it says so
		}
	}
	a := &asked{admitted: admitted, batch: batch, answer: make(chan answered, 1)}
	e := &entry{workspace: q.Workspace, space: s.ID, run: admitted.Action.Run, ops: ops, asked: a, done: make(chan struct{})}
	head, err := x.Log.Head(ctx, q.Workspace)
	if err != nil || !x.alone(e, head) {
		return doc, false, nil
	}
	told := <-a.answer // the worker answers whatever happens
	return told.doc, true, told.err
}

// alone puts a run into the queue of its space where that has none. The place in the queue was reserved.
func (x *Executor) alone(e *entry, head uint64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.base == nil || x.base.Err() != nil || x.opening || x.queues[e.space] != nil || x.ending[e.space] != nil || x.coming[e.space] != 1 {
		return false
	}
	x.line(e, head)
	return true
}

// errNoRun means that what was asked for did not become a run; whoever asked has been told why.
var errNoRun = errors.New("there is no such run")

// open records a run that was asked for, and tells so. Where its first operation has begun with it the ride goes on there; else there is no ride, and the
// run goes on as the log has it.
func (x *Executor) open(ctx context.Context, e *entry) (*ride, error) {
	a := e.asked
	e.asked = nil
	told := answered{err: errShutdown}
	defer func() { a.answer <- told }()
	if ctx.Err() != nil {
		return nil, errNoRun
	}
	ctx = context.WithoutCancel(ctx) // it is recorded, or it is not
	if x.cancelled(e) == nil {
		if r := x.openWith(ctx, e, a); r != nil {
			told = answered{doc: r.doc}
			return r, nil
		}
	}
	_, receipt, err := x.Gate.Begin(ctx, a.admitted, "", a.batch)
	if err == nil {
		told.doc, err = x.first(ctx, e.workspace, receipt.Events)
	}
	if told.err = err; err != nil || receipt.Replayed {
		return nil, errNoRun
	}
	return nil, nil
}

// openWith records a run and the intent of its first operation in one commit. It returns nil where it cannot.
func (x *Executor) openWith(ctx context.Context, e *entry, a *asked) *ride {
	draft := a.batch.Drafts[0]
	doc, err := run.Evolve(run.Run{}, event.Event{Header: draft.Header, Data: draft.Data}) // as it will be
	if err != nil {
		return nil
	}
	s, err := x.Spaces.Space(ctx, e.workspace, e.space)
	if err != nil || s.Status == space.Destroyed {
		return nil
	}
	r := x.rideOf(e, doc, 0, e.ops)
	if _, err := r.room(ctx); err != nil {
		return nil
	}
	leave, err := x.Spaces.Seize(e.space)
	if err != nil {
		return nil
	}
	defer leave()
	if r.begun, err = r.startWith(ctx, s, a, r.started(ctx)); err != nil {
		return nil
	}
	return r
}
