package postgres

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/node"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/vault"
)

// database is this daemon's access to PostgreSQL: its connections, and whether they work.
type database struct {
	options  Options
	seals    vault.Sealer
	readOnly bool

	reads  *pgxpool.Pool
	writes *pgxpool.Pool
	view   view                        // of a log that is only read
	failed atomic.Pointer[fault.Error] // why the last try to reach the database failed; nil after one that did not
	ctx    context.Context             // ends when the journal is closed
	stop   context.CancelCauseFunc     // with journal.ErrClosed
}

// readTries is how often a read is tried on another connection after one was lost.
const readTries = 3

// view is a read-only state of the log.
type view struct {
	mu   sync.Mutex // one reads at a time
	conn *pgx.Conn
}

func (v *view) close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.conn == nil {
		return nil
	}
	return v.conn.Close(context.Background())
}

// reading lends a connection to fn, which may be called again on another one.
func (d *database) reading(ctx context.Context, fn func(querier) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.ctx.Err() != nil {
		return journal.ErrClosed
	}
	if d.readOnly {
		d.view.mu.Lock()
		defer d.view.mu.Unlock()
		return d.trouble(fn(d.view.conn))
	}
	var err error
	for range readTries {
		conn, refused := d.reads.Acquire(ctx)
		if err = refused; err == nil {
			err = fn(conn)
			conn.Release()
		}
		if err == nil || !lost(err) || ctx.Err() != nil || d.ctx.Err() != nil {
			break
		}
		d.reads.Reset() // what took one connection may have taken those that rest
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return d.trouble(err)
}

func (d *database) inTurn(ctx context.Context, do func() error) (err error) {
	conn, err := pgx.ConnectConfig(ctx, d.reads.Config().ConnConfig) // the lock ends with it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, openingLock); err != nil {
		return err
	}
	return do()
}

// openingLock is the advisory lock of opening.
const openingLock = 0x41676278 // "Agbx"

// trouble says what an error of the database means to a caller, and notes one that anybody would meet.
func (d *database) trouble(err error) error {
	_, said := errors.AsType[*fault.Error](err)
	_, unmet := errors.AsType[*pgconn.ConnectError](err) // which may be a deadline of its own, and nobody's else
	switch {
	case err == nil || said:
		return err
	case errors.Is(context.Cause(d.ctx), journal.ErrClosed) && (lost(err) || errors.Is(err, context.Canceled)):
		return journal.ErrClosed
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && !unmet:
		return err
	case codeOf(err) == codeDeposed:
		d.failed.Store(errDeposed)
		return errDeposed
	case codeOf(err) == codeRemoved:
		d.failed.Store(node.ErrRemoved)
		return node.ErrRemoved
	case codeOf(err) == codeSuperseded:
		return errSuperseded
	case lost(err) || full(err):
		why := away(err)
		d.failed.Store(why)
		return why
	}
	return err
}
