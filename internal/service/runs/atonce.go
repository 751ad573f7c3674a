package runs

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
func (x *Service) atOnce(ctx context.Context, q Request, s space.Space, admitted policy.Ruling, batch event.Batch, ops []run.Operation) (doc run.Run, recorded bool, err error) {
	if admitted.Action.Token != "" { // what stands behind it is looked at anew, so that it is recorded apart
		return doc, false, nil
	}
	if batch.Key != "" {
		if _, known, err := journal.Recall(ctx, x.Log, q.Workspace, batch.Key, batch.Digest); known || err != nil {
			return doc, false, nil // who records it says so
		}
	}
	a := &asked{admitted: admitted, batch: batch, answer: make(chan answered, 1)}
	e := &entry{workspace: q.Workspace, space: s.ID, run: admitted.Action.Run, ops: ops, asked: a, done: make(chan struct{})}
	head, err := x.Log.Head(ctx, q.Workspace)
	if err != nil || !x.insertFirst(e, head) {
		return doc, false, nil
	}
	told := <-a.answer // the worker answers whatever happens
	return told.doc, true, told.err
}

// insertFirst puts a run into the queue of its space where that has none. The place in the queue was reserved.
func (x *Service) insertFirst(e *entry, head uint64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.base == nil || x.base.Err() != nil || x.opening || x.queues[e.space] != nil || x.ending[e.space] != nil || x.coming[e.space] != 1 {
		return false
	}
	x.insert(e, head)
	return true
}

// errNoRun means that what was asked for did not become a run; whoever asked has been told why.
var errNoRun = errors.New("there is no such run")

// open records a run that was asked for, and tells so. Where its first operation has begun with it the ride goes on there; else there is no ride, and the
// run goes on as the log has it.
func (x *Service) open(ctx context.Context, e *entry) (*execution, error) {
	a := e.asked
	e.asked = nil
	told := answered{err: errShutdown}
	defer func() { a.answer <- told }()
	if ctx.Err() != nil {
		return nil, errNoRun
	}
	ctx = context.WithoutCancel(ctx) // it is recorded, or it is not
	if x.cancelled(e) == nil {
		r, err := x.openWith(ctx, e, a)
		if err == nil {
			told = answered{doc: r.doc}
			if !r.doc.Input.Inline {
				e.ops = nil
			}
			return r, nil
		}
		if errors.Is(err, journal.ErrClosed) {
			told.err = err
			return nil, err // it may be recorded, so that it is looked for when the log is open again
		}
	}
	_, receipt, err := x.Gate.Begin(ctx, a.admitted, "", a.batch)
	if err == nil {
		told.doc, err = x.recorded(ctx, e.workspace, receipt.Events)
	}
	told.err = err
	switch {
	case errors.Is(err, journal.ErrClosed):
		return nil, err
	case err != nil || receipt.Replayed:
		x.unannounce(e)
		return nil, errNoRun
	}
	return nil, nil
}

// unannounce forgets what was shown of a run that did not come to be.
func (x *Service) unannounce(e *entry) {
	if e.announced == "" {
		return
	}
	if err := x.Live.Forget(e.run, e.announced); err != nil {
		x.Logger.Warn("what was shown of no run is still kept", "code", "output_not_forgotten", "run", e.run, "error", err)
	}
}

// openWith records a run and the intent of its first operation in one commit. Its error says why it cannot.
func (x *Service) openWith(ctx context.Context, e *entry, a *asked) (*execution, error) {
	draft := a.batch.Drafts[0]
	doc, err := run.Evolve(run.Run{}, event.Event{Header: draft.Header, Data: draft.Data}) // as it will be
	if err != nil {
		return nil, err
	}
	s, err := x.Spaces.Space(ctx, e.workspace, e.space)
	if err == nil && s.Status == space.Destroyed {
		err = ErrSpaceNotReady
	}
	if err != nil {
		return nil, err
	}
	r := x.executionOf(e, doc, 0, e.ops)
	if _, err := r.slot(ctx); err != nil {
		return nil, err
	}
	leave, err := x.Spaces.Seize(e.space)
	if err != nil {
		return nil, err
	}
	defer leave()
	r.begun, err = r.startWith(ctx, s, a, r.started(ctx))
	return r, err
}
