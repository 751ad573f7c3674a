package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/vault"
)

// Limits of one transaction: the number of batches, and the bytes of data after which it takes no further batch.
const (
	maxGroup      = 1_024
	maxGroupBytes = 16 << 20
)

// retries is how often a group is planned anew because the log was not as it was believed to be; from the second time on the workspace's
// row is held meanwhile, so that only an id that two workspaces take at once can be in the way.
const retries = 5

// lane takes the appends of a workspace, one group at a time.
type lane struct {
	j  *Journal
	ws id.Workspace

	waiting []*request    // these three are guarded by the journal's lock
	busy    bool          // a goroutine works
	rests   chan struct{} // closed when it ends; nil while nobody wants to know
	wanted  int           // requests that the lane waits for
	full    chan struct{} // closed when so many wait; nil while the lane does not

	took    time.Duration // by the last commit
	planner *journal.Planner
	ledger  ledger
}

func newLane(j *Journal, ws id.Workspace) *lane {
	return &lane{j: j, ws: ws, planner: journal.NewPlanner(j.db.options.Clock, j.db.options.IDs, j.db.options.Entropy), ledger: ledger{j: j,
		ws:  ws,
		set: j.folds.set}}
}

// work appends the waiting batches, until none waits.
func (l *lane) work() {
	for taken := l.j.queue.take(l); len(taken) > 0; taken = l.j.queue.take(l) {
		err := l.together(taken)
		l.gather(len(taken))
		if err == nil {
			continue
		}
		if _, spoilt := errors.AsType[*spoiltError](err); !spoilt || len(taken) == 1 {
			answer(taken, err)
			continue
		}
		// A failed fold may have spoilt the shared documents of the group, so each batch is planned alone.
		for i := range taken {
			if err := l.together(taken[i : i+1]); err != nil {
				answer(taken[i:i+1], err)
			}
		}
	}
}

// maxPatience bounds how long a group is let grow.
const maxPatience = 5 * time.Millisecond

// gather lets the next group grow for as long as the last commit took, up to so many requests. Those who were just answered together come
// back together; a commit costs the database as much for one of them as for ten. A single request does not wait.
func (l *lane) gather(answered int) {
	if answered < 2 {
		return
	}
	full := l.j.queue.awaits(l, 2*answered)
	if full == nil {
		return
	}
	patience := time.NewTimer(min(l.took, maxPatience))
	defer patience.Stop()
	select {
	case <-full:
	case <-patience.C:
	}
}

// spoiltError is the error of a fold: it is that of one batch, and nobody knows of which.
type spoiltError struct{ error }

// Unwrap returns what failed.
func (e *spoiltError) Unwrap() error { return e.error }

func answer(requests []*request, err error) {
	if spoilt, ok := errors.AsType[*spoiltError](err); ok {
		err = spoilt.error
	}
	for _, r := range requests {
		if err != nil {
			r.events, r.use, r.err = nil, nil, err
		}
		close(r.answer)
	}
}

// together records requests in one transaction and answers them; where it returns an error none is answered and nothing is recorded.
func (l *lane) together(requests []*request) error {
	for n := 0; ; n++ {
		err := l.try(requests, n > 0)
		if err == nil {
			l.j.db.failed.Store(nil)
			return nil
		}
		l.ledger.known = false // its group is in the database or is not
		_, spoilt := errors.AsType[*spoiltError](err)
		again := false
		switch code := codeOf(err); {
		case errors.Is(err, errMoved), code == codeMoved, code == "23505", code == "40001", code == "40P01":
			again = true
		case spoilt || errors.Is(err, vault.ErrForgotten):
			again = n == 0 // it may be because the log was not as it was believed to be
		case lost(err):
			again = n == 0 // nothing was recorded, which was found out; the connection may be one of before the server was started again
			l.j.db.writes.Reset()
		case code == codeSuperseded:
			if err := l.j.folds.refold(l.j.db.ctx); err != nil {
				return l.j.db.trouble(err)
			}
			again = true
		}
		if !again || n == retries {
			return l.j.db.trouble(err)
		}
	}
}

// errMoved means that others have appended since the ledger was read.
var errMoved = errors.New("the workspace has moved on")

// try plans requests and records them. Where hold is set the workspace's row is taken before and nobody else can append meanwhile.
func (l *lane) try(requests []*request, hold bool) error {
	ctx, j := l.j.db.ctx, l.j
	conn, err := j.db.writes.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // which closes it where a transaction is left open
	db := conn.Conn()
	if hold {
		if _, err := db.Exec(ctx, `BEGIN`); err != nil {
			return err
		}
	}
	if err := l.ledger.look(ctx, db, hold); err != nil {
		return err
	}
	g := &group{}
	if err := l.plan(ctx, g, requests, !hold); err != nil {
		return err
	}
	began := j.db.options.Clock.Now()
	switch {
	case len(g.batches) > 0:
		j.shelf.expect(l.ws, l.ledger.head)
		err := l.commit(ctx, db, g, hold)
		j.shelf.expect(l.ws, 0)
		if err != nil {
			return err
		}
		if l.took = j.db.options.Clock.Now().Sub(began); j.db.options.Committed != nil {
			j.db.options.Committed(len(g.batches), l.took)
		}
		l.ledger.settled()
		j.shelf.lay(l.ws, l.ledger.was, l.ledger.standing, g)
		j.listener.heads.Advance(l.ws, l.ledger.head)
		j.grew(int(l.ledger.head - l.ledger.was.head))
	case hold:
		if _, err := db.Exec(ctx, `ROLLBACK`); err != nil {
			return err
		}
	default:
		// A refusal must rest on the current log.
		if err := l.ledger.still(ctx, db); err != nil {
			return err
		}
	}
	answer(requests, nil)
	return nil
}

// plan turns requests into rows to write.
func (l *lane) plan(ctx context.Context, g *group, requests []*request, presumes bool) error {
	if err := l.ledger.begin(ctx, requests, presumes); err != nil {
		return err
	}
	for _, r := range requests {
		r.events, r.use = nil, nil
		if r.err = r.ctx.Err(); r.err != nil {
			continue
		}
		r.events, r.use, r.err = l.planner.Plan(r.batch, &l.ledger)
		if l.ledger.broken != nil {
			return l.ledger.broken
		}
		if r.err != nil || r.use != nil {
			continue
		}
		if err := l.ledger.apply(r.batch, r.events); err != nil {
			return err
		}
		if err := l.ledger.fold(r.events); err != nil {
			return err
		}
		g.batches = append(g.batches, recorded{r.batch, r.events})
	}
	if err := l.ledger.verify(ctx, requests); err != nil {
		return err
	}
	return l.ledger.finish(g)
}

// commit writes a group and makes it durable, in one round trip.
func (l *lane) commit(ctx context.Context, db *pgx.Conn, g *group, held bool) error {
	b := &pgx.Batch{}
	if !held {
		b.Queue(`BEGIN`)
	}
	if err := l.ledger.write(b, g); err != nil {
		return err
	}
	b.Queue(`COMMIT`)
	err := db.SendBatch(ctx, b).Close()
	if err == nil {
		return nil
	}
	if refused(err) {
		_, undo := db.Exec(ctx, `ROLLBACK`)
		if undo != nil {
			_ = db.Close(ctx)
		}
		return err
	}
	_ = db.Close(ctx)
	committed, unknown := l.j.events.outcome(l.ws, g.batches[0].events[0].ID)
	switch {
	case unknown != nil:
		return unknown
	case committed:
		return nil
	}
	return err
}

// errUnknown means that a connection was lost while it committed, and the log was closed before anybody could find out what became of it.
var errUnknown = fault.New(journal.ErrClosed.Kind, journal.ErrClosed.Code,
	"the database was lost while it recorded this, and whether it did is not known; ask again with the same idempotency key")

// group is the content of one transaction.
type group struct {
	batches []recorded
	docs    []*folio // changed, encoded
}

type recorded struct {
	event.Batch
	events []event.Event
}
