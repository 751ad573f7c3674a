package sqlite

import (
	"context"
	"errors"
	"iter"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

var _ journal.Adopter = (*Journal)(nil)

// Adopt implements journal.Adopter. It is one transaction of SQLite, in the committer's place: appends wait until it is done.
func (j *Journal) Adopt(ctx context.Context, ws id.Workspace, chunks iter.Seq2[[]event.Event, error]) (head uint64, err error) {
	if _, err := id.ParseWorkspace(string(ws)); err != nil {
		return 0, fault.Wrap(err, fault.Invalid, "workspace_invalid", "that is no workspace")
	}
	err = j.do(&request{ctx: ctx, task: func(ctx context.Context) error {
		j.shelf.clear(false)
		defer func() { j.shelf.clear(j.failed.Load() == nil) }()
		head, err = j.adopt(ctx, ws, chunks)
		// What the ledger has taken is in the file or is not: it is read anew.
		if failed := j.ledger.load(context.WithoutCancel(ctx), j.ledger.r); failed != nil {
			return j.fail(failed)
		}
		if err == nil {
			t := j.ledger.tenants[ws]
			j.watch.set(ws, t.no, t.head)
		}
		return err
	}})
	return head, err
}

// adopt records the chunks in one transaction.
func (j *Journal) adopt(ctx context.Context, ws id.Workspace, chunks iter.Seq2[[]event.Event, error]) (head uint64, err error) {
	if err := j.w.exec(`BEGIN IMMEDIATE`); err != nil {
		return 0, err
	}
	fresh, unindexed := slices.Clone(j.fresh), j.unindexed
	defer func() {
		if err == nil {
			if err = j.w.exec(`COMMIT`); err != nil {
				err = j.fail(err)
			}
			return
		}
		j.fresh, j.unindexed = fresh, unindexed
		if undo := j.w.exec(`ROLLBACK`); undo != nil {
			err = errors.Join(err, j.fail(undo))
		}
	}()
	l := &ledger{set: j.set}
	if err := l.load(ctx, j.w); err != nil { // by the committer's connection, which sees what it has not committed yet
		return 0, err
	}
	if l.tenants[ws] != nil {
		return 0, journal.ErrOccupied
	}
	var log journal.Continuity
	for events, err := range chunks {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return 0, err
		}
		if err := log.Next(ws, events); err != nil {
			return 0, err
		}
		if err := j.adoptChunk(l, ws, events); err != nil {
			return 0, err
		}
	}
	if log.Head() == 0 {
		return 0, fault.New(fault.Invalid, journal.ErrForeign.Code, "there is no event to record")
	}
	return log.Head(), nil
}

func (j *Journal) adoptChunk(l *ledger, ws id.Workspace, events []event.Event) error {
	l.begin()
	for i := range events {
		held, err := l.Holds(events[i].ID)
		if err == nil && held {
			err = fault.New(fault.Conflict, "event_exists", "the log holds an event %s already, in another workspace", events[i].ID)
		}
		if err != nil {
			return err
		}
	}
	planned, err := l.take(journal.Adopted(ws, events), events)
	if err != nil {
		return err
	}
	if err := l.fold(events); err != nil {
		return err
	}
	g := &group{batches: []plannedBatch{planned}}
	if err := l.finish(g, true); err != nil {
		return err
	}
	return j.put(g)
}
