// Package sqlite keeps the log and its documents in one SQLite file, durable before it is acknowledged.
//
// Appends pass three goroutines. The planner takes whatever waits as one group and turns it into events and documents, in memory; the
// committer writes the group in one transaction, while the planner plans the next; the syncer waits until the disk has it, once for all
// groups that were written meanwhile, lays the documents as they are now on the shelf, and answers. The documents' tables are written for a
// thousand events at a time. Each batch of a group succeeds or fails alone. Readers have connections of their own.
package sqlite

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
)

// maxGroup is how many batches one transaction takes.
const maxGroup = 1_024

// Journal is a journal and a store of documents in a SQLite file. Close it.
type Journal struct {
	options  Options
	set      *projection.Set
	planner  *journal.Planner
	readOnly bool
	seals    vault.Sealer

	lock   *sqlite3.Conn
	w      *connection // the committer's, or the one of a log that is only read
	ledger ledger      // the planner's, with a connection to read
	wal    walState    // the committer's
	mover  mover
	moving sync.WaitGroup
	watch  watch
	shelf  shelf
	recent recent

	durable durability
	pool    chan *connection // idle readers; nil for one that is not open yet
	reads   sync.RWMutex     // held for reading by readers, for writing by a checkpoint that must not meet any

	queue     chan *request
	unindexed int       // events that the postings do not know; the committer's
	fresh     []located // those of them that were written since the log was opened

	ready   chan struct{} // holds one when the committer waits for a group
	groups  chan *group   // from the planner to the committer, one at a time
	written chan *group   // from the committer to the syncer; closed when the committer ends
	working sync.WaitGroup
	stop    chan struct{} // closed when the planner is to end
	done    chan struct{} // closed when readers are to end

	gate   sync.RWMutex // guards closed; held for reading while a request is put into the queue
	closed bool
	failed atomic.Pointer[fault.Error] // why nothing is accepted, until Mend takes it away
	unsure atomic.Bool                 // what is on the disk is known again only after a restart
}

// request is work for the planner: a batch, or a task that needs the log to stand still.
type request struct {
	ctx    context.Context
	batch  event.Batch
	task   func(ctx context.Context) error
	mends  bool          // the task is to be run although the log is shut
	answer chan struct{} // closed when what follows is decided

	events []event.Event
	use    *journal.Use
	err    error
}

func newJournal(o Options, set *projection.Set) *Journal {
	j := &Journal{
		options: o, set: set, planner: journal.NewPlanner(o.Clock, o.IDs, o.Entropy),
		pool: make(chan *connection, readers), queue: make(chan *request, maxGroup), groups: make(chan *group), written: make(chan *group, 1),
		ready: make(chan struct{}, 1),
		stop:  make(chan struct{}), done: make(chan struct{}),
	}
	j.ledger.set, j.seals.Keys = set, o.Keys
	for range readers {
		j.pool <- nil
	}
	return j
}

// Close records what waits, then shuts the log. It waits for readers to end.
func (j *Journal) Close() error {
	j.gate.Lock()
	was := j.closed
	j.closed = true
	j.gate.Unlock()
	if was {
		return nil
	}
	close(j.stop)
	j.working.Wait()
	if j.mover.ask != nil {
		close(j.mover.ask) // by now nobody asks any more
		j.moving.Wait()
	}
	return j.release()
}

// release gives back everything that open took, also after an open that failed half-way.
func (j *Journal) release() error {
	j.gate.Lock()
	j.closed = true
	j.gate.Unlock()
	close(j.done)
	j.watch.Close()
	var errs []error
	for range cap(j.pool) {
		if r := <-j.pool; r != nil && r != j.w {
			errs = append(errs, r.close())
		}
	}
	if j.ledger.r != nil && j.ledger.r != j.w {
		errs = append(errs, j.ledger.r.close())
	}
	if j.mover.conn != nil {
		errs = append(errs, j.mover.conn.Close())
	}
	if j.w != nil {
		errs = append(errs, j.w.close())
	}
	if j.lock != nil {
		errs = append(errs, j.lock.Close())
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
	if err := j.do(r); err != nil {
		return event.Receipt{}, err
	}
	if r.use != nil {
		events, err := j.Read(ctx, journal.Query{Workspace: b.Workspace, From: r.use.First, Limit: r.use.Count})
		return event.Receipt{Events: events, Replayed: true}, err
	}
	back(r.events)
	return event.Receipt{Events: r.events}, nil
}

// do hands a request over and waits until it is decided: from then on nothing is in doubt, whatever becomes of its context.
func (j *Journal) do(r *request) error {
	r.answer = make(chan struct{})
	if err := j.enqueue(r); err != nil {
		return err
	}
	<-r.answer
	return r.err
}

func (j *Journal) enqueue(r *request) error {
	j.gate.RLock()
	defer j.gate.RUnlock()
	if j.closed || j.readOnly {
		return journal.ErrClosed
	}
	if failed := j.failed.Load(); failed != nil && !r.mends {
		return failed
	}
	select {
	case j.queue <- r:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}
