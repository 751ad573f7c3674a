package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/fault"
	"agentbox/internal/kernel/journal"
)

// A daemon that takes the database for itself holds an advisory lock for as long as its connection lasts, and has a number that stands in
// the row of the log: its reign. The lock says when the next one may begin; the number, which every transaction that writes compares,
// says that the one before has ended, also to that one, when it was stopped for an hour and goes on. Members hold the lock together, and
// have one reign together.

// crownLock is the advisory lock of the daemon that has the database exclusively.
const crownLock = 0x41676279

// errDeposed means that another daemon has taken the database.
var errDeposed = fault.New(journal.ErrClosed.Kind, journal.ErrClosed.Code,
	"another daemon has taken the database of the log since; this one does nothing more").
	With("start it again: it stands by until the other one ends")

// standbyPause is how long a standby daemon waits after it lost the server, so that the active daemon reconnects first.
const standbyPause = 5 * time.Second

// wait takes the lock, when whoever has it ends.
func (j *Journal) wait(ctx context.Context) error {
	told := false
	for {
		err := j.crownOnce(ctx, &told)
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

func (j *Journal) crownOnce(ctx context.Context, told *bool) (err error) {
	conn, err := pgx.ConnectConfig(ctx, j.reads.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		if j.crown = conn; err != nil {
			j.crown = nil
			err = errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
		}
	}()
	free := false
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock`+j.shared()+`($1)`, crownLock).Scan(&free); err != nil || free {
		return err
	}
	if !*told && j.options.Waits != nil {
		j.options.Waits()
	}
	*told = true
	_, err = conn.Exec(ctx, `SELECT pg_advisory_lock`+j.shared()+`($1)`, crownLock)
	return err
}

// shared is what distinguishes the lock of a member from that of a daemon that has the database for itself.
func (j *Journal) shared() string {
	if j.options.Member != nil {
		return "_shared"
	}
	return ""
}

// begin begins a reign. It waits for running writes of the last reign; later ones are rejected.
func (j *Journal) begin(ctx context.Context) error {
	return pgx.BeginFunc(ctx, j.writes, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `LOCK TABLE projections IN EXCLUSIVE MODE`); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `UPDATE log SET reign = reign + 1, together = false RETURNING reign`).Scan(&j.reign)
	})
}

// reignPeriod is how often a lock that was lost is tried again.
const reignPeriod = 200 * time.Millisecond

// Reign returns nil when ctx ends, and an error as soon as another daemon has taken the database. A connection that is lost is made
// again, and the reign goes on where nobody else has begun one meanwhile. It is called once, for a journal that was opened alone or as a
// member's.
func (j *Journal) Reign(ctx context.Context) error {
	for ctx.Err() == nil {
		if j.crown != nil {
			_, err := j.crown.WaitForNotification(ctx) // which comes never; it ends with the connection
			if ctx.Err() != nil {
				return nil
			}
			_ = errors.Join(err, j.crown.Close(context.WithoutCancel(ctx)))
			j.crown = nil
		}
		deposed, err := j.again(ctx)
		err = j.trouble(err)
		if deposed && err == nil {
			j.failed.Store(errDeposed)
			err = errDeposed
		}
		if deposed {
			return err
		}
		if err == nil && j.member != 0 {
			_ = j.told() // keys may have been destroyed while nobody waited for this member, which drops them beside this
		}
		select {
		case <-time.After(reignPeriod):
		case <-ctx.Done():
		}
	}
	return nil
}

// again tries to take the locks once more, under the same reign. It reports whether another one has begun.
func (j *Journal) again(ctx context.Context) (deposed bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, j.reads.Config().ConnConfig)
	if err != nil {
		return false, err
	}
	free, reign := false, int64(0)
	err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock`+j.shared()+`($1), reign FROM log`, crownLock).Scan(&free, &reign)
	if err == nil && free && reign == j.reign && j.member != 0 {
		if err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1, $2)`, memberLock, int32(j.member)).Scan(&free); err == nil && free {
			err = j.enter(ctx, conn) // an operator may have given this member up
		}
	}
	if err == nil && free && reign == j.reign {
		j.crown = conn
		return false, nil
	}
	// The lock may be held by our own lost connection, of which the server does not know yet that it is lost.
	return err == nil && reign != j.reign || codeOf(err) == codeRemoved, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}
