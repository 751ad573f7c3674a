package sqlite

import (
	"agentbox/internal/domain/fault"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// committer writes groups into the file, one after the other.
type committer struct {
	file     *file
	health   *health
	views    *views
	planning *planning
	syncer   *syncer

	w            *connection // the one that writes, or the one of a log that is only read
	wal          walState
	checkpointer checkpointer
	moving       sync.WaitGroup

	unindexed int       // events that the postings do not know
	fresh     []located // those of them that were written since the log was opened

	ready   chan struct{} // holds one when the committer waits for a group
	groups  chan *group   // from the planner to the committer, one at a time
	written chan *group   // from the committer to the syncer; closed when the committer ends
}

// run is the committer's loop. While nothing comes it tidies up.
func (cm *committer) run() {
	defer close(cm.written)
	for {
		g, ok := cm.next()
		if !ok {
			return
		}
		if g.task != nil {
			before := &group{done: make(chan struct{})}
			cm.written <- before
			<-before.done
			g.task()
			close(g.done)
			continue
		}
		var err error
		if failed := cm.health.failed.Load(); failed != nil {
			err = failed
		} else if len(g.batches) > 0 || g.flush != nil {
			if cm.file.options.Committed != nil {
				g.began = cm.file.options.Clock.Now()
			}
			if err = cm.write(g); err != nil {
				err = cm.health.fail(err)
				cm.syncer.durable.end()
				cm.views.unshelve(false)
				if !cm.w.conn.GetAutocommit() {
					_ = cm.w.exec(`ROLLBACK`) // the transaction is lost either way
				}
			}
		}
		if err != nil {
			answer(g.requests, err)
		} else {
			cm.syncer.durable.handed(g)
			cm.written <- g
		}
		cm.wal.afterGroup(cm)
	}
}

func (cm *committer) next() (*group, bool) {
	cm.ready <- struct{}{}
	for tidied := false; ; tidied = true {
		select {
		case g, ok := <-cm.groups:
			return g, ok
		default:
		}
		var quiet <-chan time.Time
		release := func() {}
		if !tidied && cm.wal.waiting() >= walTidy {
			quiet, release = cm.file.options.Clock.NewTimer(walQuiet)
		}
		select {
		case g, ok := <-cm.groups:
			release()
			return g, ok
		case <-quiet:
			cm.wal.checkpoint(cm, false)
		}
	}
}

// write records a group in one transaction.
func (cm *committer) write(g *group) error {
	w := cm.w
	if err := w.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	if err := cm.put(g); err != nil {
		return err
	}
	return cm.syncer.durable.later(func() error { return w.exec(`COMMIT`) })
}

// transact runs do, in the committer's place, in a transaction of its own: all of it is recorded, durably, or nothing. Where it is not
// known which of the two, the journal is shut.
func (cm *committer) transact(do func() error) error {
	if err := cm.w.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	if err := do(); err != nil {
		if undo := cm.w.exec(`ROLLBACK`); undo != nil {
			err = errors.Join(err, cm.health.fail(undo))
		}
		return err
	}
	if err := cm.w.exec(`COMMIT`); err != nil {
		return cm.health.fail(err)
	}
	return nil
}

// put writes a group into the transaction that is open.
func (cm *committer) put(g *group) error {
	w := cm.w
	for _, t := range g.types {
		if err := w.exec(`INSERT INTO types (no, name) VALUES (?, ?)`, t.no, t.name); err != nil {
			return err
		}
	}
	written := len(cm.fresh)
	var err error
	if cm.fresh, err = w.insertBatches(g.batches, cm.fresh); err != nil {
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
	cm.unindexed += len(cm.fresh) - written
	if cm.unindexed >= indexedAtOnce {
		if err := cm.index(); err != nil {
			return err
		}
	}
	return nil
}

// renewWriter gives the committer a connection that knows nothing of what failed.
func (cm *committer) renewWriter() error {
	conn, err := cm.file.writer()
	if err != nil {
		return err
	}
	if err := cm.syncer.durable.open(conn); err != nil {
		return errors.Join(err, conn.Close())
	}
	old := cm.w
	cm.w = newConnection(conn, &cm.file.seals)
	if !old.conn.GetAutocommit() {
		_ = old.exec(`ROLLBACK`) // the transaction is lost either way
	}
	return old.close()
}

// countUnindexed finds out how far the postings lie behind.
func (cm *committer) countUnindexed() error {
	cm.fresh = nil
	_, err := cm.w.one(func(s *sqlite3.Stmt) { cm.unindexed = s.ColumnInt(0) }, `SELECT sum(head - indexed) FROM workspaces`)
	return err
}

// recover loads the ledger and brings the tables up to the log, in the committer's place. Those of the projections that are named are not
// folded and have to be rebuilt, by this program or by another.
func (cm *committer) recover(ctx context.Context, unfolded ...string) error {
	l, r := &cm.planning.ledger, cm.planning.ledger.r
	if err := l.load(ctx, r); err != nil {
		return err
	}
	for ws, t := range l.tenants {
		if t.flushed > t.head {
			return fault.New(fault.Internal, "log_damaged",
				"workspace %s ends at event %d, and its tables are said to know event %d: a row of it was changed; run agentbox audit verify", ws,
				t.head, t.flushed)
		}
	}
	lagging := l.lagging()
	if len(lagging) == 0 {
		return nil
	}
	if err := cm.w.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	l.r = cm.w // which sees what it has not committed yet
	written, err := l.catchUp(ctx, lagging, cm.put)
	l.r = r
	for _, name := range unfolded {
		if err == nil {
			err = cm.w.exec(`UPDATE projections SET version = 0 WHERE name = ?`, name)
		}
	}
	if err == nil {
		err = cm.w.exec(`COMMIT`)
	}
	if err != nil {
		return errors.Join(err, cm.w.exec(`ROLLBACK`))
	}
	for _, g := range written {
		cm.views.shelf.lay(g)
	}
	return nil
}
