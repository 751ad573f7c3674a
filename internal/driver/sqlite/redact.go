package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// redaction takes the data of events out of the file, and out of the documents that were folded from them.
type redaction struct {
	committer *committer
	file      *file
	folds     *folds
	health    *health
	planning  *planning
	views     *views
}

var _ journal.Redactor = (*Journal)(nil)

// truncateTimeout is how long a redaction waits for other programs that read the log, which hold back what it wants to clear.
const truncateTimeout = time.Second

// errHeld means that another program reads the log.
var errHeld = fault.New(fault.Unavailable, "log_held",
	"the data were destroyed, but another program reads an older state of the log, which still holds documents made of them").
	With("end the programs that read the data directory; the daemon clears the rest within a minute, or when it starts")

// insertRedaction notes which event the event.redacted at a place is about. Its own record is written in the same transaction.
func (c *connection) insertRedaction(by int64, e *event.Event) error {
	target, ok := journal.UUIDBytes(e.Causation)
	if !ok {
		return nil
	}
	return c.exec(`INSERT INTO redactions (place, by, done) SELECT place, ?, 0 FROM events WHERE id = ? AND place >> ? = ? ON CONFLICT DO `+
		`NOTHING`,
		by, target[:], int64(seqBits), by>>seqBits)
}

// Unfinished implements journal.Redactor.
func (j *Journal) Unfinished(ctx context.Context, ws id.Workspace) ([]uint64, error) {
	no := j.views.watch.number(ws)
	var seqs []uint64
	err := j.views.reading(ctx, func(r *connection) error {
		rows, err := r.rows(`SELECT place FROM redactions INDEXED BY redactions_open WHERE done < 2 AND place BETWEEN ? AND ? ORDER BY place `+
			`LIMIT ? + 0`,
			placeOf(no, 1), placeOf(no, maxSeq), int64(journal.MaxBatch))
		if err != nil {
			return err
		}
		for rows.Step() {
			seqs = append(seqs, uint64(rows.ColumnInt64(0))&maxSeq)
		}
		return finish(rows)
	})
	return seqs, err
}

// Redact implements journal.Redactor. Appends wait until it is done.
func (j *Journal) Redact(ctx context.Context, ws id.Workspace, seqs []uint64) error {
	no := j.views.watch.number(ws)
	switch {
	case len(seqs) == 0:
		return nil
	case no == 0:
		return journal.ErrNotFound
	}
	seqs, err := journal.CheckRedaction(seqs)
	if err != nil {
		return err
	}
	return j.planning.do(&request{ctx: ctx, task: func(ctx context.Context) error {
		open, uncleared, err := j.redaction.recorded(no, seqs)
		if err != nil || len(open)+len(uncleared) == 0 {
			return err
		}
		if len(open) > 0 {
			if err := j.redaction.forget(context.WithoutCancel(ctx), ws, no, open); err != nil {
				return err
			}
		}
		if err := j.redaction.truncate(); err != nil {
			return err
		}
		return j.redaction.mark(no, append(open, uncleared...))
	}})
}

// forget destroys the keys of bodies, then the bodies and everything made of them.
func (ra *redaction) forget(ctx context.Context, ws id.Workspace, no int64, seqs []uint64) error {
	// The documents that the data touched are found while the data can be read.
	r := ra.refolding(ws, no, seqs)
	unknown, err := r.Look(ctx)
	if err != nil {
		return err
	}
	if ra.file.seals.Keys != nil {
		if err := ra.file.seals.Keys.Forget(treeOf(ws), seqs...); err != nil {
			return err
		}
	}
	ra.views.unshelve(false)
	defer func() { ra.views.unshelve(ra.health.failed.Load() == nil) }()
	if unknown {
		if err := ra.folds.rebuild(ctx, ra.folds.set.Definitions(), nil); err != nil {
			return err
		}
		// From here on no document has anything of the data. Those that this folds anew are the same again.
		if _, err := r.Look(ctx); err != nil {
			return err
		}
		if err := ra.planning.ledger.load(ctx, ra.planning.ledger.r); err != nil {
			return ra.health.fail(err)
		}
	}
	if err := ra.committer.transact(func() error { return ra.destroy(ctx, no, r) }); err != nil {
		return err
	}
	if err := ra.planning.ledger.load(ctx, ra.planning.ledger.r); err != nil {
		return ra.health.fail(err)
	}
	return nil
}

// The steps of a redaction, as its row says.
const (
	redactionRecorded  = iota
	redactionDestroyed // key, body, and what documents had of it
	redactionDone      // and the old data of the write-ahead log
)

// mark notes that redactions are done.
func (ra *redaction) mark(no int64, seqs []uint64) error {
	err := ra.committer.transact(func() error {
		for _, seq := range seqs {
			if err := ra.committer.w.exec(`UPDATE redactions SET done = ? WHERE place = ?`, int64(redactionDone), placeOf(no, seq)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return ra.health.fail(err)
	}
	return nil
}

// recorded returns those of the events whose data are there, and those of which only something in the write-ahead log may be left. The
// redaction of all has to be recorded.
func (ra *redaction) recorded(no int64, seqs []uint64) (open, uncleared []uint64, err error) {
	for _, seq := range seqs {
		step := int64(0)
		found, err := ra.committer.w.one(func(s *sqlite3.Stmt) { step = s.ColumnInt64(0) }, `SELECT done FROM redactions WHERE place = ?`,
			placeOf(no, seq))
		switch {
		case err != nil:
			return nil, nil, err
		case !found:
			return nil, nil, journal.ErrUnrecorded
		case step == redactionRecorded:
			open = append(open, seq)
		case step == redactionDestroyed:
			uncleared = append(uncleared, seq)
		}
	}
	return open, uncleared, nil
}

// refolding returns what folds the documents again that events have touched.
func (ra *redaction) refolding(ws id.Workspace, no int64, seqs []uint64) *projection.Refolding {
	return &projection.Refolding{
		Set: ra.folds.set, Seqs: seqs, Limit: journal.MaxRead,
		Read: func(_ context.Context, t projection.Trace, from uint64) ([]event.Event, error) {
			return ra.committer.w.read(traced(ws, t, from), no)
		},
		Versions: func(_ context.Context, refs []projection.Ref) (map[projection.Ref]uint64, error) {
			versions := make(map[projection.Ref]uint64, len(refs))
			for _, ref := range refs {
				if _, err := ra.committer.w.one(func(s *sqlite3.Stmt) { versions[ref] = uint64(s.ColumnInt64(0)) },
					`SELECT version FROM documents WHERE projection = ? AND workspace = ? AND key = ?`,
					ra.planning.ledger.projections[ref.Name], no, ref.Key); err != nil {
					return nil, err
				}
			}
			return versions, nil
		},
	}
}

// destroy deletes bodies and folds the documents again that they had touched. It runs in a transaction.
func (ra *redaction) destroy(ctx context.Context, no int64, r *projection.Refolding) error {
	for _, seq := range r.Seqs {
		if err := ra.committer.w.exec(`DELETE FROM bodies WHERE place = ?`, placeOf(no, seq)); err != nil {
			return err
		}
		if err := ra.committer.w.exec(`UPDATE redactions SET done = ? WHERE place = ?`, int64(redactionDestroyed), placeOf(no, seq)); err != nil {
			return err
		}
	}
	if err := r.Fold(ctx); err != nil {
		return err
	}
	return r.Documents(func(ref projection.Ref, state projection.State, gone bool) error {
		return ra.replaceDocument(no, ref, state, gone)
	})
}

// replaceDocument replaces an old document by the newly folded one.
func (ra *redaction) replaceDocument(no int64, ref projection.Ref, state projection.State, gone bool) error {
	def, err := ra.folds.set.Lookup(ref.Name)
	if err != nil {
		return err
	}
	d := plannedDocument{projection: ra.planning.ledger.projections[ref.Name], tenantNo: no, ref: ref}
	var was projection.Document
	found, err := ra.committer.w.one(func(s *sqlite3.Stmt) { d.no, was = s.ColumnInt64(4), scanDocument(s) },
		`SELECT key, version, seq, body, no FROM documents WHERE projection = ? AND workspace = ? AND key = ?`, d.projection, no, ref.Key)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("document %s %s is not there to be folded again", ref.Name, ref.Key)
	}
	old, err := def.Restore(ref.Key, was.Body, was.Version, was.Seq)
	if err != nil {
		return err
	}
	_, removed, err := old.Encode()
	if err != nil {
		return err
	}
	if gone {
		d.removed = removed
		if err := ra.committer.w.writeDocument(&d); err != nil {
			return err
		}
		return ra.committer.w.exec(`DELETE FROM documents WHERE no = ?`, d.no)
	}
	var entries []projection.Index
	if d.body, entries, err = state.Encode(); err != nil {
		return err
	}
	d.version, d.seq, d.added, d.removed = state.Version, state.Seq, without(entries, removed), without(removed, entries)
	return ra.committer.w.writeDocument(&d)
}

// truncate moves the whole write-ahead log into the database and makes it empty, for it holds the documents as they were. It runs in the
// committer's place.
func (ra *redaction) truncate() error {
	if ra.committer.wal.moving {
		ra.committer.wal.moving = false
		ra.committer.wal.checkpointed(ra.committer, <-ra.committer.checkpointer.tells)
	}
	ra.views.reads.Lock()
	defer ra.views.reads.Unlock()
	if err := ra.committer.w.conn.BusyTimeout(truncateTimeout); err != nil {
		return err
	}
	_, _, err := ra.committer.w.conn.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	if again := ra.committer.w.conn.BusyTimeout(busyTimeout); again != nil {
		return errors.Join(err, again)
	}
	if errors.Is(err, sqlite3.BUSY) {
		return errHeld
	}
	if err != nil {
		return ra.health.fail(err)
	}
	ra.committer.wal.pages, ra.committer.wal.moved = 0, 0
	return nil
}

// traced returns the query for the events that a trace selects, from a place on.
func traced(ws id.Workspace, t projection.Trace, from uint64) journal.Query {
	q := journal.Query{Workspace: ws, From: from, Run: t.Run, EntityType: t.EntityType, EntityID: t.EntityID, Limit: journal.MaxRead}
	if t.Seq > 0 {
		q.Before = t.Seq + 1
	}
	return q
}
