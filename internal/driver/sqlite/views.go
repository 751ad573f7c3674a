package sqlite

import (
	"context"
	"errors"
	"sync"

	"agentbox/internal/kernel/journal"
)

// views are the readers' connections, and the memory of the last writes.
type views struct {
	file   *file
	syncer *syncer
	watch  watch
	shelf  shelf
	recent recent
	pool   chan *connection // idle readers; nil for one that is not open yet
	done   chan struct{}    // closed when readers are to end
	reads  sync.RWMutex     // held for reading by readers, for writing by a checkpoint that must not meet any
}

// reading lends a connection to fn, within which it sees what was committed before. It returns when the disk has what fn may have seen.
func (v *views) reading(ctx context.Context, fn func(*connection) error) error {
	err := v.lending(ctx, fn)
	if late := v.syncer.durable.wait(ctx); err == nil {
		err = late
	}
	return unopened(err)
}

// lending is reading without waiting for durability; the caller waits for the disk.
func (v *views) lending(ctx context.Context, fn func(*connection) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var r *connection
	select {
	case <-v.done:
		return journal.ErrClosed
	default:
	}
	select {
	case r = <-v.pool:
	case <-v.done:
		return journal.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { v.pool <- r }()
	if r == nil {
		opened, err := v.file.reader()
		if err != nil {
			return unopened(err)
		}
		r = opened
	}
	v.reads.RLock()
	defer v.reads.RUnlock()
	r.conn.SetInterrupt(ctx)
	err := fn(r)
	r.conn.SetInterrupt(context.Background())
	if !v.file.readOnly && !r.conn.GetAutocommit() {
		// The context ended before the snapshot was given back; the next reader must not get it.
		err = errors.Join(err, r.exec(`ROLLBACK`))
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// unshelve takes everything out of memory that can be read from the file; keep says whether anything of it may be kept from now on.
func (v *views) unshelve(keep bool) {
	v.shelf.clear(keep)
	v.recent.clear(keep)
}
