// Package sqlite keeps the log and its documents in one SQLite file, durable before it is acknowledged.
//
// Appends pass three goroutines. The planner takes all waiting batches as one group and turns it into events and documents, in memory; the
// committer writes the group in one transaction, while the planner plans the next; the syncer waits until the disk has it, once for all
// groups that were written meanwhile, lays the documents as they are now on the shelf, and answers. The documents' tables are written for a
// thousand events at a time. Each batch of a group succeeds or fails alone. Readers have connections of their own.
package sqlite

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// maxGroup is how many batches one transaction takes.
const maxGroup = 1_024

// Journal is a journal and a store of documents in a SQLite file. Close it.
type Journal struct {
	file      *file
	health    *health
	views     *views
	planning  *planning
	committer *committer
	syncer    *syncer
	mending   *mending
	folds     *folds
	redaction *redaction
	adoption  *adoption
}

func newJournal(o Options, set *projection.Set) *Journal {
	fl := &file{options: o}
	fl.seals.Keys = o.Keys
	v := &views{file: fl, pool: make(chan *connection, readers), done: make(chan struct{})}
	h := &health{views: v}
	cm := &committer{file: fl, health: h, views: v, groups: make(chan *group), written: make(chan *group, 1), ready: make(chan struct{}, 1)}
	sy := &syncer{committer: cm, file: fl, health: h, views: v}
	p := &planning{
		committer: cm, file: fl, health: h, syncer: sy, planner: journal.NewPlanner(o.Clock, o.IDs, o.Entropy),
		queue: make(chan *request, maxGroup), stop: make(chan struct{}),
	}
	p.ledger.set = set
	fl.committer, v.syncer, h.syncer, cm.syncer, cm.planning = cm, sy, sy, sy, p
	folded := &folds{committer: cm, file: fl, planning: p, views: v, set: set}
	for range readers {
		v.pool <- nil
	}
	return &Journal{
		file: fl, health: h, views: v, planning: p, committer: cm, syncer: sy, folds: folded,
		mending:   &mending{committer: cm, file: fl, health: h, planning: p, syncer: sy, views: v},
		redaction: &redaction{committer: cm, file: fl, folds: folded, health: h, planning: p, views: v},
		adoption:  &adoption{committer: cm, folds: folded},
	}
}

// Close records the waiting batches and then shuts the log. It waits for readers to end.
func (j *Journal) Close() error {
	j.planning.closing.Lock()
	was := j.planning.closed
	j.planning.closed = true
	j.planning.closing.Unlock()
	if was {
		return nil
	}
	close(j.planning.stop)
	j.planning.working.Wait()
	if j.committer.checkpointer.ask != nil {
		close(j.committer.checkpointer.ask) // by now nobody asks any more
		j.committer.moving.Wait()
	}
	return j.release()
}

// release gives back everything that open took, also after an open that failed half-way.
func (j *Journal) release() error {
	j.planning.closing.Lock()
	j.planning.closed = true
	j.planning.closing.Unlock()
	close(j.views.done)
	j.views.watch.Close()
	var errs []error
	for range cap(j.views.pool) {
		if r := <-j.views.pool; r != nil && r != j.committer.w {
			errs = append(errs, r.close())
		}
	}
	if j.planning.ledger.r != nil && j.planning.ledger.r != j.committer.w {
		errs = append(errs, j.planning.ledger.r.close())
	}
	if j.committer.checkpointer.conn != nil {
		errs = append(errs, j.committer.checkpointer.conn.Close())
	}
	if j.committer.w != nil {
		errs = append(errs, j.committer.w.close())
	}
	if j.file.lock != nil {
		errs = append(errs, j.file.lock.Close())
	}
	return errors.Join(errs...)
}

// Append implements journal.Journal.
func (j *Journal) Append(ctx context.Context, b event.Batch) (event.Receipt, error) {
	b, err := journal.Check(b)
	if err != nil {
		return event.Receipt{}, err
	}
	b, back := journal.Own(b)
	r := &request{ctx: ctx, batch: b}
	if err := j.planning.do(r); err != nil {
		return event.Receipt{}, err
	}
	if r.use != nil {
		events, err := j.Read(ctx, journal.Query{Workspace: b.Workspace, From: r.use.First, Limit: r.use.Count})
		return event.Receipt{Events: events, Replayed: true}, err
	}
	back(r.events)
	return event.Receipt{Events: r.events}, nil
}
