package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// mendingRoom is how many bytes have to be free before a log that was shut is opened again, so that the next append does not shut it.
const mendingRoom = 4 << 20

// The two ways in which a write error shuts the log. Both are journal.ErrClosed.
var (
	errShut = fault.New(journal.ErrClosed.Kind, journal.ErrClosed.Code,
		"the log could not be written, and nothing is done without it; it opens again by itself once its disk is well and has room")
	errUnsure = fault.New(journal.ErrClosed.Kind, journal.ErrClosed.Code,
		"the disk did not keep what was written to the log, and nothing is done without it; see that the disk is well, then start the daemon "+
			"again")
)

// fail shuts the log after a write that failed, until Mend has found out what is on the disk. Where the disk was told to keep what was
// written and did not, nobody in this process can: it may have forgotten that it did not, and a second try would succeed.
func (j *Journal) fail(err error) *fault.Error {
	if errors.Is(err, sqlite3.IOERR_FSYNC) || errors.Is(err, sqlite3.IOERR_DIR_FSYNC) || j.durable.isLost() {
		j.unsure.Store(true)
	}
	why := errShut
	if j.unsure.Load() {
		why = errUnsure
	}
	j.failed.CompareAndSwap(nil, fault.Wrap(err, why.Kind, why.Code, "%s", why.Msg))
	j.watch.Close()
	return j.failed.Load()
}

// Writable returns nil while the log takes events, else why it does not.
func (j *Journal) Writable() error {
	if failed := j.failed.Load(); failed != nil {
		return failed
	}
	return nil
}

// Mend reopens a log that a write error has closed, if that is safe: the disk takes a transaction again, and the log ends exactly where the
// callers were told. Unacknowledged events are gone. An open log is left alone. The error says why the log stays closed.
func (j *Journal) Mend(ctx context.Context) error {
	failed := j.failed.Load()
	if failed == nil {
		return nil
	}
	if j.unsure.Load() {
		return failed
	}
	if err := j.tryRoom(); err != nil {
		return err
	}
	return j.do(&request{ctx: ctx, mends: true, task: j.mend})
}

// tryRoom writes as much as has to be free, durably, and takes it away again.
func (j *Journal) tryRoom() error {
	name := j.options.Path + ".room"
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

// mend runs in the committer's place, while the planner waits and the syncer has told of everything.
func (j *Journal) mend(ctx context.Context) error {
	if j.wal.moving {
		j.wal.moving = false
		<-j.mover.tells // it is asked again when there is need
	}
	if err := j.durable.settle(); err != nil {
		return j.fail(err)
	}
	if err := j.renewWriter(); err != nil {
		return err
	}
	// A transaction that changes nothing takes the place of what the one that failed has left in the write-ahead log.
	if err := j.w.conn.Exec(`BEGIN IMMEDIATE; PRAGMA user_version = ` + strconv.Itoa(schemaVersion) + `; COMMIT`); err != nil {
		if !j.w.conn.GetAutocommit() {
			_ = j.w.exec(`ROLLBACK`)
		}
		return fmt.Errorf("try whether the log can be written: %w", err)
	}
	if err := j.countUnindexed(); err != nil {
		return err
	}
	if err := j.recover(ctx); err != nil { // the planner has planned on what was lost
		return err
	}
	if err := j.asAcknowledged(); err != nil {
		j.unsure.Store(true)
		return err
	}
	j.unshelve(true)
	j.durable.resume()
	j.failed.Store(nil)
	j.watch.Reopen()
	return nil
}

func (d *durability) isLost() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost
}

// settle makes durable a commit that failed after its sync was left for later, if there is one: nobody sees it, and its sync is owed.
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

// renewWriter gives the committer a connection that knows nothing of what failed.
func (j *Journal) renewWriter() error {
	conn, err := j.connectWriter()
	if err != nil {
		return err
	}
	if err := j.durable.open(conn); err != nil {
		return errors.Join(err, conn.Close())
	}
	old := j.w
	j.w = newConnection(conn, &j.seals)
	if !old.conn.GetAutocommit() {
		_ = old.exec(`ROLLBACK`) // the transaction is lost either way
	}
	return old.close()
}

// countUnindexed finds out how far the postings lie behind.
func (j *Journal) countUnindexed() error {
	j.fresh = nil
	_, err := j.w.one(func(s *sqlite3.Stmt) { j.unindexed = s.ColumnInt(0) }, `SELECT sum(head - indexed) FROM workspaces`)
	return err
}

// asAcknowledged compares the end of every workspace with the acknowledgements: the end is at the acknowledged place, its event has the
// chained hash, and no event follows.
func (j *Journal) asAcknowledged() error {
	broken := func(ws id.Workspace, format string, args ...any) error {
		return fault.New(fault.Internal, "log_damaged", "after a write error the log of %s is not the one that was acknowledged: %s", ws,
			fmt.Sprintf(format, args...)).
			With("start the daemon again; agentbox audit verify says what is there")
	}
	for ws, t := range j.ledger.tenants {
		no, head := j.watch.number(ws), j.watch.Head(ws)
		if no != t.no || head != t.head {
			return broken(ws, "it ends at %d and was acknowledged up to %d", t.head, head)
		}
		last, err := j.w.read(journal.Query{Workspace: ws, From: head, Limit: 2}, no)
		if err != nil {
			return err
		}
		if len(last) != 1 || last[0].Seq != head {
			return broken(ws, "%d events lie from %d on", len(last), head)
		}
		tip, err := j.ledger.Tip(ws, last[0].Stream)
		if err != nil {
			return err
		}
		if tip.Seq != last[0].StreamSeq || tip.Hash != last[0].Chain.Hash {
			return broken(ws, "event %d is not the last of its chain", head)
		}
	}
	for _, ws := range j.watch.Workspaces() {
		if j.ledger.tenants[ws] == nil {
			return broken(ws, "it is not there")
		}
	}
	return nil
}
