// Package sqlite keeps the log and its documents in one SQLite file, durable before it is acknowledged.
//
// One goroutine, the committer, owns the only connection that writes: it takes whatever appends wait into one transaction, so that one
// write to the disk serves them all, and each of them succeeds or fails alone. Readers have connections of their own.
package sqlite

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// maxGroup is how many batches one transaction takes.
const maxGroup = 1_024

// Journal is a journal and a store of documents in a SQLite file. Close it.
type Journal struct {
	options  Options
	set      *projection.Set
	planner  *journal.Planner
	readOnly bool

	lock   *sqlite3.Conn
	w      *writer // the committer's, or the one of a log that is only read
	ledger ledger
	wal    walState
	watch  watch
	pool   chan *writer // idle readers; nil for one that is not open yet
	reads  sync.RWMutex // held for reading by readers, for writing by a checkpoint that must not meet any

	queue   chan *request
	working sync.WaitGroup // the committer
	stop    chan struct{}  // closed when the committer is to end
	done    chan struct{}  // closed when readers are to end

	gate   sync.RWMutex // guards closed; held for reading while a request is put into the queue
	closed bool
	failed atomic.Pointer[fault.Error] // why nothing is accepted any more
}

// request is work for the committer: a batch, or a task that needs the log to stand still.
type request struct {
	ctx    context.Context
	batch  event.Batch
	task   func(ctx context.Context) error
	answer chan answer

	events []event.Event
	use    *journal.Use
	err    error
}

type answer struct {
	events []event.Event
	use    *journal.Use
	err    error
}

func newJournal(o Options, set *projection.Set) *Journal {
	j := &Journal{
		options: o, set: set, planner: journal.NewPlanner(o.Clock, o.IDs, o.Entropy),
		pool: make(chan *writer, readers), queue: make(chan *request, maxGroup),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	j.ledger.set = set
	j.watch.heads = map[id.Workspace]*watched{}
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
	return j.release()
}

// release gives back everything that open took, also after an open that failed half-way.
func (j *Journal) release() error {
	j.closed = true
	close(j.done)
	j.watch.close()
	var errs []error
	for range cap(j.pool) {
		if r := <-j.pool; r != nil && r != j.w {
			errs = append(errs, r.close())
		}
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
	// The log keeps bytes of its own; the caller gets back his, to do with as he likes.
	theirs := make([][]byte, len(b.Drafts))
	for i := range b.Drafts {
		theirs[i] = b.Drafts[i].Data
		b.Drafts[i].Data = slices.Clone(b.Drafts[i].Data)
	}
	a, err := j.do(&request{ctx: ctx, batch: b})
	if err != nil {
		return event.Receipt{}, err
	}
	if a.use != nil {
		events, err := j.Read(ctx, journal.Query{Workspace: b.Workspace, From: a.use.First, Limit: a.use.Count})
		return event.Receipt{Events: events, Replayed: true}, err
	}
	for i := range a.events {
		a.events[i].Data = theirs[i]
	}
	return event.Receipt{Events: a.events}, nil
}

// do hands a request to the committer and waits until it has decided: from then on nothing is in doubt, whatever becomes of ctx.
func (j *Journal) do(r *request) (answer, error) {
	r.answer = make(chan answer, 1)
	if err := j.enqueue(r); err != nil {
		return answer{}, err
	}
	a := <-r.answer
	return a, a.err
}

func (j *Journal) enqueue(r *request) error {
	j.gate.RLock()
	defer j.gate.RUnlock()
	if j.closed || j.readOnly {
		return journal.ErrClosed
	}
	if failed := j.failed.Load(); failed != nil {
		return failed
	}
	select {
	case j.queue <- r:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// run is the committer.
func (j *Journal) run() {
	group := make([]*request, 0, maxGroup)
	for {
		r := j.next()
		if r == nil {
			return
		}
		group = append(group[:0], r)
	waiting:
		for len(group) < maxGroup {
			select {
			case r := <-j.queue:
				group = append(group, r)
			default:
				break waiting
			}
		}
		j.serve(group)
		for i, r := range group {
			r.answer <- answer{r.events, r.use, r.err}
			group[i] = nil
		}
		j.wal.afterGroup(j)
	}
}

// next returns a request, and nil when the log is to be shut and nothing waits. While nothing comes it tidies up.
func (j *Journal) next() *request {
	for {
		select {
		case r := <-j.queue:
			return r
		default:
		}
		var quiet <-chan time.Time
		release := func() {}
		if j.wal.pages >= walTidy {
			quiet, release = j.options.Clock.NewTimer(walQuiet)
		}
		select {
		case r := <-j.queue:
			release()
			return r
		case <-quiet:
			j.wal.checkpoint(j, false)
		case <-j.stop:
			release()
			select {
			case r := <-j.queue:
				return r
			default:
				return nil
			}
		}
	}
}

// serve decides every request of a group. Tasks run alone, between the batches before and after them.
func (j *Journal) serve(group []*request) {
	for len(group) > 0 {
		n := slices.IndexFunc(group, func(r *request) bool { return r.task != nil })
		switch n {
		case 0:
			j.perform(group[0])
			group = group[1:]
		case -1:
			j.commit(group)
			return
		default:
			j.commit(group[:n])
			group = group[n:]
		}
	}
}

func (j *Journal) perform(r *request) {
	if failed := j.failed.Load(); failed != nil {
		r.err = failed
		return
	}
	r.err = r.task(r.ctx)
}

// commit records a group of batches in one transaction.
func (j *Journal) commit(group []*request) {
	if failed := j.failed.Load(); failed != nil {
		refuse(group, failed)
		return
	}
	err := j.w.exec(`BEGIN IMMEDIATE`)
	if err == nil {
		var alone bool
		if alone, err = j.record(group); alone && err == nil {
			return
		}
	}
	if err == nil {
		err = j.w.exec(`COMMIT`)
	}
	if err != nil {
		refuse(group, j.fail(err))
		return
	}
	j.publish()
}

// record plans the batches of a group and writes what they become. A batch that is refused leaves no trace. Where a document could not be
// folded, alone is true: nothing was written and every batch was recorded in a transaction of its own, for a fold may have spoilt what it shares.
func (j *Journal) record(group []*request) (alone bool, err error) {
	for _, r := range group {
		if r.err = r.ctx.Err(); r.err != nil {
			continue
		}
		if r.events, r.use, r.err = j.planner.Plan(r.batch, &j.ledger); r.err == nil && r.use == nil {
			if r.err = j.ledger.take(r.batch, r.events); r.err == nil {
				r.err = j.ledger.fold(r.events)
			}
			if r.err != nil && j.ledger.broken == nil {
				return true, j.apart(group, r.err)
			}
		}
		if j.ledger.broken != nil {
			return false, j.ledger.broken
		}
	}
	written, err := j.ledger.encode()
	if err != nil {
		return true, j.apart(group, err)
	}
	return false, j.write(group, written)
}

// apart undoes a group and records each of its batches alone; one that is alone already is refused for the cause.
func (j *Journal) apart(group []*request, cause error) error {
	if err := j.w.exec(`ROLLBACK`); err != nil {
		return err
	}
	if err := j.ledger.load(context.Background(), j.w); err != nil {
		return err
	}
	if len(group) == 1 {
		refuse(group, cause)
		return nil
	}
	for _, r := range group {
		r.events, r.use, r.err = nil, nil, nil
		j.commit([]*request{r})
	}
	return nil
}

func refuse(group []*request, err error) {
	for _, r := range group {
		r.events, r.use, r.err = nil, nil, err
	}
}

// fail shuts the log for good: after a write that failed, what is on the disk is known again only after a restart.
func (j *Journal) fail(err error) error {
	failed := fault.Wrap(err, journal.ErrClosed.Kind, journal.ErrClosed.Code, "%s", journal.ErrClosed.Msg)
	j.failed.Store(failed)
	if !j.w.conn.GetAutocommit() {
		_ = j.w.exec(`ROLLBACK`) // the transaction is lost either way
	}
	j.watch.close()
	return failed
}

// publish lets readers and waiters know what was committed.
func (j *Journal) publish() {
	l := &j.ledger
	for _, ws := range l.dirtyTenants {
		t := l.tenants[ws]
		t.dirty = false
		j.watch.set(ws, t.no, t.head)
	}
	for _, ref := range l.dirtyStreams {
		l.streams[ref].dirty, l.streams[ref].made = false, true
	}
	for _, ref := range l.dirtyFolios {
		l.folios[ref].dirty = false
	}
	l.settle()
}
