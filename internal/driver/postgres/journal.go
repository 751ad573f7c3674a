// Package postgres keeps the log and its documents in a database of PostgreSQL, which several daemons may share.
//
// The waiting appends of a workspace are one group. It is planned and folded in memory, and written in one transaction that begins by
// taking the workspace's row from the event it was planned on to its own last one. Where another daemon was first, that fails, and the
// group is planned anew with the row held. Each commit tells its workspace and place to everybody who listens. Nothing that is kept in
// memory is believed unless the row says that it is of now.
package postgres

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
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
	Waits       func()                     // called once if another daemon has the database; may be nil
	Existing    bool                       // there has to be a log already: a database without one is ErrEmpty and stays as it is
	// that bodies and documents are sealed under, the same for every daemon of the database; nil leaves them as they are
	Keys vault.Keys

	Committed func(batches int, took time.Duration) // is called after each durable commit, which waits for it; may be nil
}

// Journal is a journal and a store of documents in a database. Close it.
type Journal struct {
	db        *database
	events    *events
	queue     *queue
	listener  *listener
	reign     *reign
	folds     *folds
	redaction *redaction
	schema    *schema
	// Together is this daemon's work with the other members of the database. Without Options.Member it is a member of nothing.
	Together *Members

	prover   rounds[proof]        // how workspaces stand
	recaller rounds[recollection] // what keys were used for
	shelf    shelf
	survey   survey
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

func newJournal(o Options, set *projection.Set) *Journal {
	db := &database{options: o}
	db.seals.Keys = o.Keys
	db.ctx, db.stop = context.WithCancelCause(context.Background())
	j := &Journal{db: db, events: &events{db: db}, schema: &schema{db: db}}
	blank := func() *ledger { return &ledger{j: j} }
	j.queue = &queue{db: db, lanes: map[id.Workspace]*lane{}, open: func(ws id.Workspace) *lane { return newLane(j, ws) }}
	j.reign = &reign{db: db}
	j.Together = &Members{db: db, drops: make(chan struct{}, 1), reign: j.reign, shelf: &j.shelf}
	j.folds = &folds{db: db, set: set, blank: blank, reign: j.reign, together: j.Together}
	j.listener = &listener{db: db, reign: j.reign, together: j.Together}
	j.redaction = &redaction{db: db, blank: blank, events: j.events, folds: j.folds, together: j.Together}
	j.reign.folds, j.reign.together = j.folds, j.Together
	j.Together.folds, j.Together.listener = j.folds, j.listener
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
	if err := j.queue.enqueue(r); err != nil {
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

// Close records the waiting batches, as far as it reaches the database, and then shuts the log.
func (j *Journal) Close() error {
	j.queue.mu.Lock()
	was := j.queue.closed
	j.queue.closed = true
	j.queue.mu.Unlock()
	if was {
		return nil
	}
	return j.release()
}

// release gives back everything that open took, also after an open that failed half-way.
func (j *Journal) release() error {
	j.queue.settle()
	j.db.stop(journal.ErrClosed)
	j.listener.heads.Close()
	j.queue.working.Wait()
	err := j.db.view.close()
	if j.reign.lockConn != nil {
		err = errors.Join(err, j.reign.lockConn.Close(context.Background()))
	}
	for _, pool := range []*pgxpool.Pool{j.db.reads, j.db.writes} {
		if pool != nil {
			pool.Close()
		}
	}
	return err
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

// Writable returns nil while the log takes events, as far as is known; else why it does not.
func (j *Journal) Writable() error {
	if failed := j.db.failed.Load(); failed != nil {
		return failed
	}
	return nil
}

// Mend tries whether the database takes a transaction again. Of a log that has no trouble it asks nothing.
func (j *Journal) Mend(ctx context.Context) error { return j.reign.mend(ctx) }
