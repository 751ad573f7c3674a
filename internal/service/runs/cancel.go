package runs

import (
	"context"
	"errors"
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// ErrEnded refuses what only a run that goes on can take.
var ErrEnded = fault.New(fault.Conflict, "run_already_ended", "the run has ended")

// Cancel ends a run. It ends an effect under way at once, with every process of it, and no further operation begins. It acts first and
// records after. It returns when the run has ended, or when ctx ends; then the run still ends.
func (x *Service) Cancel(ctx context.Context, origin event.Origin, ws id.Workspace, runID id.Run, reason string) error {
	doc, err := x.Find(ctx, ws, runID)
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
	if doc, err = x.Find(ctx, ws, runID); err == nil && doc.Status != run.Cancelled {
		err = ErrEnded // by itself, a moment before
	}
	return err
}

// cancelling marks a run as being cancelled, before anybody checks whether a worker has it. A daemon that has just started may take the run
// up after that. Then the run enters its queue as cancelled, and no worker begins anything of it. Nil takes the mark back.
func (x *Service) cancelling(r id.Run, c *cancellation) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c == nil {
		delete(x.cancels, r)
		return
	}
	x.cancels[r] = c
}

// end records the end of a run that no worker has.
func (x *Service) end(ctx context.Context, ws id.Workspace, runID id.Run, origin event.Origin, reason string) error {
	for {
		doc, version, err := projection.Load[run.Run](ctx, x.Docs, ws, run.Projection, string(runID))
		if err != nil || doc.Status.Ended() {
			return err
		}
		r := x.executionOf(nil, doc, version, nil)
		if err := r.finish(ctx, run.EventCancelled, origin, reason); !errors.Is(err, journal.ErrConflict) {
			return err
		}
	}
}

// dequeue takes a run out of its queue if no worker has taken it yet.
func (x *Service) dequeue(e *entry) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	q := x.queues[e.lane()]
	if q == nil {
		return false
	}
	i := slices.Index(q.runs, e)
	if i < 1 {
		return false
	}
	q.runs = slices.Delete(q.runs, i, i+1)
	close(e.done)
	return true
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
	left := func(status run.Status) projection.Index {
		return projection.Index{Name: "space_status", Value: string(s) + " " + string(status)}
	}
	err := x.each(ctx, left, func(doc run.Run) error { return x.end(ctx, doc.Workspace, doc.ID, c.origin, c.reason) })
	if err == nil {
		return nil
	}
	x.mu.Lock()
	delete(x.ending, s)
	x.mu.Unlock()
	return errors.Join(err, x.each(ctx, left, x.requeue(ctx)))
}

// mark cancels the queued runs that match, ends their effects, wakes their workers and returns them.
func (x *Service) mark(match func(*entry) bool, origin event.Origin, reason string) (found []*entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.queues {
		for _, e := range q.runs {
			if match(e) {
				found = append(found, e)
			}
		}
	}
	slices.SortFunc(found, func(a, b *entry) int { return strings.Compare(string(a.run), string(b.run)) }) // the map has no order
	for _, e := range found {
		if e.cancel == nil {
			e.cancel = &cancellation{origin: origin, reason: reason}
		}
		if u, ok := x.effects[e.run]; ok {
			u.end(errCancelled)
		}
		select {
		case x.queues[e.lane()].wake <- struct{}{}:
		default:
		}
	}
	return found
}

func (x *Service) cancelled(e *entry) *cancellation {
	x.mu.Lock()
	defer x.mu.Unlock()
	return e.cancel
}

// requeueAll puts every run that has not ended into its queue, in the order in which they were asked for.
func (x *Service) requeueAll(ctx context.Context) error {
	if err := x.each(ctx, byStatus, x.requeue(ctx)); err != nil {
		return err
	}
	late, err := x.endOpening(ctx)
	for _, e := range late {
		x.endOrphan(ctx, e)
	}
	return err
}

// Recover puts the runs of a workspace that have not ended into their queues: of one whose log came from elsewhere.
func (x *Service) Recover(ctx context.Context, ws id.Workspace) error {
	x.mu.Lock()
	running := x.base != nil
	x.mu.Unlock()
	if !running {
		return nil // Run will, of every workspace
	}
	return x.eachIn(ctx, ws, byStatus, x.requeue(ctx))
}

func (x *Service) requeue(ctx context.Context) func(run.Run) error {
	return func(doc run.Run) error {
		if doc.Engine {
			return nil // no worker of a space has it
		}
		if mine, err := x.mine(ctx, doc); err != nil || !mine {
			return err // another daemon drives it, or will when it comes back
		}
		e := newEntry(doc, true)
		if err := x.enqueue(ctx, e); err != nil {
			return err
		}
		x.endOrphan(ctx, e)
		return nil
	}
}

// mine reports whether the space of a run is this daemon's.
func (x *Service) mine(ctx context.Context, doc run.Run) (bool, error) {
	if x.Mine == nil {
		return true, nil
	}
	s, err := x.Spaces.Space(ctx, doc.Workspace, doc.Space)
	if err != nil {
		return false, err
	}
	return x.Mine(ctx, s)
}

func byStatus(status run.Status) projection.Index {
	return projection.Index{Name: "status", Value: string(status)}
}

// each calls a function for every run that has not ended and that an index has under its status.
func (x *Service) each(ctx context.Context, of func(run.Status) projection.Index, do func(run.Run) error) error {
	workspaces, err := x.Log.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, ws := range workspaces {
		if err := x.eachIn(ctx, ws, of, do); err != nil {
			return err
		}
	}
	return nil
}

// eachIn is each for one workspace.
func (x *Service) eachIn(ctx context.Context, ws id.Workspace, of func(run.Status) projection.Index, do func(run.Run) error) error {
	for _, status := range []run.Status{run.Running, run.AwaitingApproval, run.Queued} {
		if err := x.eachOf(ctx, projection.Query{Workspace: ws, Name: run.Projection, Index: of(status), Limit: 1000}, do); err != nil {
			return err
		}
	}
	return nil
}

func (x *Service) eachOf(ctx context.Context, q projection.Query, do func(run.Run) error) error {
	for {
		docs, err := projection.List[run.Run](ctx, x.Docs, q)
		if err != nil {
			return err
		}
		for _, doc := range docs {
			if err := do(doc); err != nil {
				return err
			}
			q.After = string(doc.ID)
		}
		if len(docs) < q.Limit {
			return nil
		}
	}
}
