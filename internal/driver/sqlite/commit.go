package sqlite

import (
	"errors"
	"time"
)

// commit is the committer's loop. While nothing comes it tidies up.
func (j *Journal) commit() {
	defer close(j.written)
	for {
		g, ok := j.nextGroup()
		if !ok {
			return
		}
		if g.task != nil {
			before := &group{done: make(chan struct{})}
			j.written <- before
			<-before.done
			g.task()
			close(g.done)
			continue
		}
		var err error
		if failed := j.failed.Load(); failed != nil {
			err = failed
		} else if len(g.batches) > 0 || g.flush != nil {
			if j.options.Committed != nil {
				g.began = j.options.Clock.Now()
			}
			if err = j.write(g); err != nil {
				err = j.fail(err)
				j.durable.end()
				j.unshelve(false)
				if !j.w.conn.GetAutocommit() {
					_ = j.w.exec(`ROLLBACK`) // the transaction is lost either way
				}
			}
		}
		if err != nil {
			answer(g.requests, err)
		} else {
			j.durable.handed(g)
			j.written <- g
		}
		j.wal.afterGroup(j)
	}
}

func (j *Journal) nextGroup() (*group, bool) {
	j.ready <- struct{}{}
	for tidied := false; ; tidied = true {
		select {
		case g, ok := <-j.groups:
			return g, ok
		default:
		}
		var quiet <-chan time.Time
		release := func() {}
		if !tidied && j.wal.waiting() >= walTidy {
			quiet, release = j.options.Clock.NewTimer(walQuiet)
		}
		select {
		case g, ok := <-j.groups:
			release()
			return g, ok
		case <-quiet:
			j.wal.checkpoint(j, false)
		}
	}
}

// write records a group in one transaction.
func (j *Journal) write(g *group) error {
	w := j.w
	if err := w.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	if err := j.put(g); err != nil {
		return err
	}
	return j.durable.later(func() error { return w.exec(`COMMIT`) })
}

// transact runs do, in the committer's place, in a transaction of its own: all of it is recorded, durably, or nothing. Where it is not
// known which of the two, the journal is shut.
func (j *Journal) transact(do func() error) error {
	if err := j.w.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	if err := do(); err != nil {
		if undo := j.w.exec(`ROLLBACK`); undo != nil {
			err = errors.Join(err, j.fail(undo))
		}
		return err
	}
	if err := j.w.exec(`COMMIT`); err != nil {
		return j.fail(err)
	}
	return nil
}

// put writes a group into the transaction that is open.
func (j *Journal) put(g *group) error {
	w := j.w
	for _, t := range g.types {
		if err := w.exec(`INSERT INTO types (no, name) VALUES (?, ?)`, t.no, t.name); err != nil {
			return err
		}
	}
	written := len(j.fresh)
	var err error
	if j.fresh, err = w.insertBatches(g.batches, j.fresh); err != nil {
		return err
	}
	for i := range g.streams {
		if err := w.insertStream(&g.streams[i]); err != nil {
			return err
		}
	}
	for _, t := range g.tenants {
		sql, args := `UPDATE workspaces SET head = ?, last = ? WHERE no = ?`, []any{t.head, t.last[:], t.no}
		if t.fresh {
			sql, args = `INSERT INTO workspaces (head, last, no, name, indexed, flushed) VALUES (?, ?, ?, ?, 0, 0)`, append(args, string(t.name))
		}
		if err := w.exec(sql, args...); err != nil {
			return err
		}
	}
	if g.flush != nil {
		if err := w.flush(g.flush); err != nil {
			return err
		}
	}
	j.unindexed += len(j.fresh) - written
	if j.unindexed >= indexedAtOnce {
		if err := j.index(); err != nil {
			return err
		}
	}
	return nil
}
