// Package postgres keeps the log and its documents in a database of PostgreSQL, which several daemons may share.
//
// What waits to be appended to a workspace is one group: it is planned and folded in memory, and written in one transaction that begins by
// taking the workspace's row from the event it was planned on to its own last one. Where another daemon was first, that fails, and the
// group is planned anew with the row held. Each commit tells its workspace and place to everybody who listens. Nothing that is kept in
// memory is believed unless the row says that it is of now.
package postgres

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/node"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
)

// Options say what to open.
type Options struct {
	Address     string                  // of the database: a URL postgres://… or a list of parameters, as libpq takes it
	Definitions []projection.Definition // of the documents
	Clock       event.Clock
	IDs         *id.Source
	Entropy     io.Reader                  // of the salts
	Alone       bool                       // takes the database for this daemon: others that do so wait until it ends
	Member      *Membership                // works on the database together with others that do; not with Alone
	Unlock      func() (vault.Keys, error) // gives the keys, once this daemon may work on the database; nil where Keys has them
	Waits       func()                     // is told, once, when another daemon has the database; may be nil
	Existing    bool                       // there has to be a log already: a database without one is ErrEmpty and stays as it is
	// that bodies and documents are sealed under, the same for every daemon of the database; nil leaves them as they are
	Keys vault.Keys

	Committed func(batches int, took time.Duration) // is called after each durable commit, which waits for it; may be nil
}

// Journal is a journal and a store of documents in a database. Close it.
type Journal struct {
	options  Options
	set      *projection.Set
	seals    vault.Sealer
	readOnly bool

	reads    *pgxpool.Pool
	writes   *pgxpool.Pool
	view     view // of a log that is only read
	heads    journal.Heads
	prover   rounds[proof]        // how workspaces stand
	recaller rounds[recollection] // what keys were used for
	nos      numbers
	numbered sync.Map // the numbers of workspaces
	nonces   nonces
	shelf    shelf
	survey   survey

	reign   int64                       // of this daemon, or of the members of which it is one; 0 for neither
	member  int64                       // its number among them; 0 for none
	drops   chan struct{}               // holds a token while a member has yet to drop what was destroyed
	crown   *pgx.Conn                   // with the locks that go with it
	folding atomic.Pointer[folding]     // how documents are folded in the database
	working sync.WaitGroup              // lanes, the listener, provers
	ctx     context.Context             // ends when the journal is closed
	stop    context.CancelCauseFunc     // with journal.ErrClosed
	failed  atomic.Pointer[fault.Error] // why the last try to reach the database failed; nil after one that did not

	mu     sync.Mutex // guards closed and lanes
	closed bool
	lanes  map[id.Workspace]*lane
}

var (
	_ journal.Journal    = (*Journal)(nil)
	_ journal.Redactor   = (*Journal)(nil)
	_ journal.Adopter    = (*Journal)(nil)
	_ journal.Keyed      = (*Journal)(nil)
	_ journal.Hasher     = (*Journal)(nil)
	_ projection.Store   = (*Journal)(nil)
	_ projection.Lender  = (*Journal)(nil)
	_ projection.Indexed = (*Journal)(nil)
)

// request is a batch that waits to be appended.
type request struct {
	ctx    context.Context
	batch  event.Batch
	answer chan struct{} // closed when what follows is decided

	events []event.Event
	use    *journal.Use
	err    error
}

func newJournal(o Options, set *projection.Set) *Journal {
	j := &Journal{options: o, set: set, lanes: map[id.Workspace]*lane{}, drops: make(chan struct{}, 1)}
	j.seals.Keys = o.Keys
	j.ctx, j.stop = context.WithCancelCause(context.Background())
	return j
}

// Append implements journal.Journal.
func (j *Journal) Append(ctx context.Context, b event.Batch) (event.Receipt, error) {
	b, err := journal.Check(b)
	if err != nil {
		return event.Receipt{}, err
	}
	b, back := journal.Own(b)
	r := &request{ctx: ctx, batch: b, answer: make(chan struct{})}
	if err := j.enqueue(r); err != nil {
		return event.Receipt{}, err
	}
	<-r.answer // from here on nothing is in doubt, whatever becomes of the context
	if r.err != nil {
		return event.Receipt{}, r.err
	}
	if r.use != nil {
		events, err := j.Read(ctx, journal.Query{Workspace: b.Workspace, From: r.use.First, Limit: r.use.Count})
		return event.Receipt{Events: events, Replayed: true}, err
	}
	back(r.events)
	return event.Receipt{Events: r.events}, nil
}

// enqueue puts a request into its workspace's lane, and sets that to work where it rests.
func (j *Journal) enqueue(r *request) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed || j.readOnly {
		return journal.ErrClosed
	}
	l := j.lanes[r.batch.Workspace]
	if l == nil {
		j.makeRoom()
		l = newLane(j, r.batch.Workspace)
		j.lanes[r.batch.Workspace] = l
	}
	l.waiting = append(l.waiting, r)
	if l.full != nil && len(l.waiting) >= l.wanted {
		close(l.full)
		l.full = nil
	}
	if !l.busy {
		l.busy = true
		j.working.Go(l.work)
	}
	return nil
}

// awaits returns what is closed when so many requests wait in a lane; nil where they do already, or the log is closed.
func (j *Journal) awaits(l *lane, wanted int) <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	l.full = nil
	if len(l.waiting) >= wanted || j.closed {
		return nil
	}
	l.wanted, l.full = wanted, make(chan struct{})
	return l.full
}

// goes runs something until it ends, which Close waits for; false once the log is closed.
func (j *Journal) goes(work func()) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return false
	}
	j.working.Go(work)
	return true
}

// keptLanes is how many workspaces' ends and documents are kept in memory for their next append.
const keptLanes = 256

// makeRoom gives up lanes that rest, where there are many. The lock is held.
func (j *Journal) makeRoom() {
	for ws, l := range j.lanes {
		if len(j.lanes) < keptLanes {
			return
		}
		if !l.busy {
			delete(j.lanes, ws)
		}
	}
}

// take takes what waits in a lane, up to a bound, and puts the lane to rest where nothing does.
func (j *Journal) take(l *lane) []*request {
	j.mu.Lock()
	defer j.mu.Unlock()
	n, bytes := 0, 0
	for n < len(l.waiting) && n < maxGroup && (n == 0 || bytes < maxGroupBytes) {
		for i := range l.waiting[n].batch.Drafts {
			bytes += len(l.waiting[n].batch.Drafts[i].Data)
		}
		n++
	}
	if n == 0 && l.rests != nil {
		close(l.rests)
		l.rests = nil
	}
	taken := slices.Clone(l.waiting[:n])
	clear(l.waiting[:n])
	l.waiting = append(l.waiting[:0], l.waiting[n:]...)
	l.busy = n > 0
	return taken
}

// Close records what waits, as far as the database can be reached, then shuts the log.
func (j *Journal) Close() error {
	j.mu.Lock()
	was := j.closed
	j.closed = true
	j.mu.Unlock()
	if was {
		return nil
	}
	return j.release()
}

// release gives back everything that open took, also after an open that failed half-way.
func (j *Journal) release() error {
	j.settle()
	j.stop(journal.ErrClosed)
	j.heads.Close()
	j.working.Wait()
	err := j.view.close()
	if j.crown != nil {
		err = errors.Join(err, j.crown.Close(context.Background()))
	}
	for _, pool := range []*pgxpool.Pool{j.reads, j.writes} {
		if pool != nil {
			pool.Close()
		}
	}
	return err
}

// closingTime is how long Close waits for a database that does not answer before it gives up what waits.
const closingTime = 10 * time.Second

// settle waits until no lane works.
func (j *Journal) settle() {
	for _, l := range j.resting() {
		select {
		case <-l:
		case <-time.After(closingTime):
			return
		}
	}
}

// resting returns a channel for each lane that works, which is closed when it has answered everybody.
func (j *Journal) resting() (all []chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.lanes {
		if l.busy {
			l.rests = make(chan struct{})
			all = append(all, l.rests)
		}
	}
	return all
}

// away is the fault of a database that cannot be reached. It is journal.ErrClosed.
func away(err error) *fault.Error {
	return fault.Wrap(err, journal.ErrClosed.Kind, journal.ErrClosed.Code,
		"the database of the log cannot be reached or does not take anything, and nothing is done without it; it is tried again and again").
		With("see that PostgreSQL runs, has room, and lets this daemon in")
}

// errSuperseded means that another daemon folds documents otherwise.
var errSuperseded = fault.New(journal.ErrClosed.Kind, journal.ErrClosed.Code,
	"another daemon of this database is of another version and keeps its documents in another form; nothing is done until this daemon is of "+
		"that version too").
	With("start this daemon again with the version of the newest daemon of the database")

// trouble says what an error of the database means to a caller, and notes one that anybody would meet.
func (j *Journal) trouble(err error) error {
	_, said := errors.AsType[*fault.Error](err)
	_, unmet := errors.AsType[*pgconn.ConnectError](err) // which may be a deadline of its own, and nobody's else
	switch {
	case err == nil || said:
		return err
	case errors.Is(context.Cause(j.ctx), journal.ErrClosed) && (lost(err) || errors.Is(err, context.Canceled)):
		return journal.ErrClosed
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && !unmet:
		return err
	case codeOf(err) == codeDeposed:
		j.failed.Store(errDeposed)
		return errDeposed
	case codeOf(err) == codeRemoved:
		j.failed.Store(node.ErrRemoved)
		return node.ErrRemoved
	case codeOf(err) == codeSuperseded:
		return errSuperseded
	case lost(err) || full(err):
		why := away(err)
		j.failed.Store(why)
		return why
	}
	return err
}

// Writable returns nil while the log takes events, as far as is known; else why it does not.
func (j *Journal) Writable() error {
	if failed := j.failed.Load(); failed != nil {
		return failed
	}
	return nil
}

// Mend tries whether the database takes a transaction again. Of a log that has no trouble it asks nothing.
func (j *Journal) Mend(ctx context.Context) error {
	if j.failed.Load() == nil {
		return nil
	}
	conn, err := j.writes.Acquire(ctx)
	if err != nil {
		return j.trouble(err)
	}
	defer conn.Release()
	err = pgx.BeginFunc(ctx, conn.Conn(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT enter(0, $1, $2)`, j.reign, j.member); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE log SET one = one`)
		return err
	})
	if err != nil {
		return j.trouble(err)
	}
	j.failed.Store(nil)
	return nil
}
