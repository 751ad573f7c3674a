package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/fault"
	"agentbox/internal/kernel/journal"
)

// reign is this daemon's right to write: it has the database alone, or is one of the members that have it.
type reign struct {
	db       *database
	folds    *folds
	together *Members
	no       int64     // of this daemon, or of the members of which it is one; 0 for neither
	lockConn *pgx.Conn // holds the locks
}

// A daemon that takes the database for itself holds an advisory lock for as long as its connection lasts, and has a number that stands in
// the row of the log: its reign. The lock says when the next one may begin; the number, which every transaction that writes compares,
// says that the one before has ended, also to that one, when it was stopped for an hour and goes on. Members hold the lock together, and
// have one reign together.

// reignLock is the advisory lock of the daemon that has the database exclusively.
const reignLock = 0x41676279

// errDeposed means that another daemon has taken the database.
var errDeposed = fault.New(journal.ErrClosed.Kind, journal.ErrClosed.Code,
	"another daemon has taken the database of the log since; this one does nothing more").
	With("start it again: it stands by until the other one ends")

// standbyPause is how long a standby daemon waits after it lost the server, so that the active daemon reconnects first.
const standbyPause = 5 * time.Second

// wait takes the lock when its holder ends.
func (rg *reign) wait(ctx context.Context) error {
	told := false
	for {
		err := rg.lockOnce(ctx, &told)
		if err == nil || !told || !lost(err) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(standbyPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (rg *reign) lockOnce(ctx context.Context, told *bool) (err error) {
	conn, err := pgx.ConnectConfig(ctx, rg.db.reads.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		if rg.lockConn = conn; err != nil {
			rg.lockConn = nil
			err = errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
		}
	}()
	free := false
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock`+rg.shared()+`($1)`, reignLock).Scan(&free); err != nil || free {
		return err
	}
	if !*told && rg.db.options.Waits != nil {
		rg.db.options.Waits()
	}
	*told = true
	_, err = conn.Exec(ctx, `SELECT pg_advisory_lock`+rg.shared()+`($1)`, reignLock)
	return err
}

// shared distinguishes the lock of a member from that of a daemon that has the database for itself.
func (rg *reign) shared() string {
	if rg.db.options.Member != nil {
		return "_shared"
	}
	return ""
}

// begin begins a reign. It waits for running writes of the last reign; later ones are rejected.
func (rg *reign) begin(ctx context.Context) error {
	return pgx.BeginFunc(ctx, rg.db.writes, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `LOCK TABLE projections IN EXCLUSIVE MODE`); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `UPDATE log SET reign = reign + 1, together = false RETURNING reign`).Scan(&rg.no)
	})
}

// reignPeriod is the interval between attempts to get back a lost lock.
const reignPeriod = 200 * time.Millisecond

// Reign returns nil when ctx ends, and an error as soon as another daemon has taken the database. It renews a lost connection, and the
// reign continues if nobody else has begun one meanwhile. Call it once, for a journal that was opened alone or as a member's.
func (j *Journal) Reign(ctx context.Context) error {
	for ctx.Err() == nil {
		if j.reign.lockConn != nil {
			_, err := j.reign.lockConn.WaitForNotification(ctx) // which comes never; it ends with the connection
			if ctx.Err() != nil {
				return nil
			}
			_ = errors.Join(err, j.reign.lockConn.Close(context.WithoutCancel(ctx)))
			j.reign.lockConn = nil
		}
		deposed, err := j.reign.again(ctx)
		err = j.db.trouble(err)
		if deposed && err == nil {
			j.db.failed.Store(errDeposed)
			err = errDeposed
		}
		if deposed {
			return err
		}
		if err == nil && j.Together.no != 0 {
			_ = j.listener.told() // keys may have been destroyed while nobody waited for this member, which drops them beside this
		}
		select {
		case <-time.After(reignPeriod):
		case <-ctx.Done():
		}
	}
	return nil
}

// again tries to take the locks once more, under the same reign. It reports whether another one has begun.
func (rg *reign) again(ctx context.Context) (deposed bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, rg.db.reads.Config().ConnConfig)
	if err != nil {
		return false, err
	}
	free, reign := false, int64(0)
	err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock`+rg.shared()+`($1), reign FROM log`, reignLock).Scan(&free, &reign)
	if err == nil && free && reign == rg.no && rg.together.no != 0 {
		if err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1, $2)`, memberLock, int32(rg.together.no)).Scan(&free); err == nil && free {
			err = rg.folds.enter(ctx, conn) // an operator may have given this member up
		}
	}
	if err == nil && free && reign == rg.no {
		rg.lockConn = conn
		return false, nil
	}
	// The lock may be held by our own lost connection, of which the server does not know yet that it is lost.
	return err == nil && reign != rg.no || codeOf(err) == codeRemoved, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

// mend tries whether the database takes a transaction again; see Journal.Mend.
func (rg *reign) mend(ctx context.Context) error {
	if rg.db.failed.Load() == nil {
		return nil
	}
	conn, err := rg.db.writes.Acquire(ctx)
	if err != nil {
		return rg.db.trouble(err)
	}
	defer conn.Release()
	err = pgx.BeginFunc(ctx, conn.Conn(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT enter(0, $1, $2)`, rg.no, rg.together.no); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE log SET one = one`)
		return err
	})
	if err != nil {
		return rg.db.trouble(err)
	}
	rg.db.failed.Store(nil)
	return nil
}
