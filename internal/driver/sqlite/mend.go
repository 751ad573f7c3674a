package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// mending opens the log again after a write that failed.
type mending struct {
	committer *committer
	file      *file
	health    *health
	planning  *planning
	syncer    *syncer
	views     *views
}

// mendingRoom is how many bytes have to be free before a log that was shut is opened again, so that the next append does not shut it.
const mendingRoom = 4 << 20

// The two ways in which a write error shuts the log. Both are journal.ErrClosed.
var (
	errShut = fault.New(journal.ErrClosed.Kind, journal.ErrClosed.Code,
		"the log could not be written, and nothing is done without it; it opens again by itself once its disk is well and has %d "+
			"MiB of room", mendingRoom>>20)
	errUnsure = fault.New(journal.ErrClosed.Kind, journal.ErrClosed.Code,
		"the disk did not keep what was written to the log, and nothing is done without it; see that the disk is well, then start the daemon "+
			"again")
)

// Writable returns nil while the log takes events, else why it does not.
func (j *Journal) Writable() error {
	if failed := j.health.failed.Load(); failed != nil {
		return failed
	}
	return nil
}

// Mend reopens a log that a write error has closed, if that is safe: the disk takes a transaction again, and the log ends exactly where the
// callers were told. Unacknowledged events are gone. An open log is left alone. The error says why the log stays closed.
func (j *Journal) Mend(ctx context.Context) error {
	failed := j.health.failed.Load()
	if failed == nil {
		return nil
	}
	if j.health.unsure.Load() {
		return failed
	}
	if err := j.mending.tryRoom(); err != nil {
		return err
	}
	return j.planning.do(&request{ctx: ctx, mends: true, task: j.mending.run})
}

// tryRoom durably writes as many bytes as must be free, and removes them again.
func (m *mending) tryRoom() error {
	name := m.file.options.Path + ".room"
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("try whether the log has room: %w", err)
	}
	_, err = file.Write(make([]byte, mendingRoom))
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close(), os.Remove(name)); err != nil {
		return fmt.Errorf("try whether the log has room: %w", err)
	}
	return nil
}

// run runs in the committer's place, while the planner waits and the syncer has told of everything.
func (m *mending) run(ctx context.Context) error {
	if m.committer.wal.moving {
		m.committer.wal.moving = false
		<-m.committer.checkpointer.tells // the next request comes when it is needed
	}
	if err := m.syncer.durable.settle(); err != nil {
		return m.health.fail(err)
	}
	if err := m.committer.renewWriter(); err != nil {
		return err
	}
	// A transaction without changes replaces the rest of the failed one in the write-ahead log.
	if err := m.committer.w.conn.Exec(`BEGIN IMMEDIATE; PRAGMA user_version = ` + strconv.Itoa(schemaVersion) + `; COMMIT`); err != nil {
		if !m.committer.w.conn.GetAutocommit() {
			_ = m.committer.w.exec(`ROLLBACK`)
		}
		return fmt.Errorf("try whether the log can be written: %w", err)
	}
	if err := m.committer.countUnindexed(); err != nil {
		return err
	}
	if err := m.committer.recover(ctx); err != nil { // the planner has planned on lost events
		return err
	}
	if err := m.asAcknowledged(); err != nil {
		m.health.unsure.Store(true)
		return err
	}
	m.views.unshelve(true)
	m.syncer.durable.resume()
	m.health.failed.Store(nil)
	m.views.watch.Reopen()
	return nil
}

func (d *durability) isLost() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost
}

// settle makes durable a commit that failed after its sync was left for later, if there is one: nobody has seen it, and its sync is
// missing.
func (d *durability) settle() error {
	g := &group{}
	d.handed(g)
	return d.sync([]*group{g}, func() {})
}

// resume is the opposite of end.
func (d *durability) resume() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = false
}

// asAcknowledged compares the end of every workspace with the acknowledgements: the end is at the acknowledged place, its event has the
// chained hash, and no event follows.
func (m *mending) asAcknowledged() error {
	broken := func(ws id.Workspace, format string, args ...any) error {
		return fault.New(fault.Internal, "log_damaged", "after a write error the log of %s is not the one that was acknowledged: %s", ws,
			fmt.Sprintf(format, args...)).
			With("start the daemon again; agentbox audit verify says what is there")
	}
	for ws, t := range m.planning.ledger.tenants {
		no, head := m.views.watch.number(ws), m.views.watch.Head(ws)
		if no != t.no || head != t.head {
			return broken(ws, "it ends at %d and was acknowledged up to %d", t.head, head)
		}
		last, err := m.committer.w.read(journal.Query{Workspace: ws, From: head, Limit: 2}, no)
		if err != nil {
			return err
		}
		if len(last) != 1 || last[0].Seq != head {
			return broken(ws, "%d events lie from %d on", len(last), head)
		}
		tip, err := m.planning.ledger.Tip(ws, last[0].Stream)
		if err != nil {
			return err
		}
		if tip.Seq != last[0].StreamSeq || tip.Hash != last[0].Chain.Hash {
			return broken(ws, "event %d is not the last of its chain", head)
		}
	}
	for _, ws := range m.views.watch.Workspaces() {
		if m.planning.ledger.tenants[ws] == nil {
			return broken(ws, "it is not there")
		}
	}
	return nil
}
