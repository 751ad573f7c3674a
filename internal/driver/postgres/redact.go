package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// redaction takes the data of events out of the database.
type redaction struct {
	db       *database
	events   *events
	folds    *folds
	together *Members
	blank    func() *ledger // makes a ledger of this log
}

// The steps of a redaction, as its row says.
const (
	redactionRecorded = iota
	redactionReplaced // the body is deleted, and the documents that it had touched are others under other keys
	redactionDone     // and the keys of the old data are destroyed
)

// Unfinished implements journal.Redactor.
func (j *Journal) Unfinished(ctx context.Context, ws id.Workspace) (seqs []uint64, err error) {
	err = j.db.reading(ctx, func(db querier) error {
		seqs = nil
		no, err := j.events.number(ctx, db, ws)
		if err != nil {
			return err
		}
		rows, err := db.Query(ctx, `SELECT seq FROM redactions WHERE workspace = $1 AND done < 2 ORDER BY seq LIMIT $2`, no, journal.MaxBatch)
		if err != nil {
			return err
		}
		var seq uint64
		_, err = pgx.ForEachRow(rows, []any{&seq}, func() error {
			seqs = append(seqs, seq)
			return nil
		})
		return err
	})
	return seqs, err
}

// Redact implements journal.Redactor. Appends to the workspace wait until the documents are folded again. The old data stay in dead rows,
// in the write-ahead log, on standbys and in backups. Nobody can read them there: they were sealed, and their keys are destroyed last.
func (j *Journal) Redact(ctx context.Context, ws id.Workspace, seqs []uint64) error {
	seqs, err := journal.CheckRedaction(seqs)
	if err != nil || len(seqs) == 0 {
		return err
	}
	done := true
	var now standing
	if err := j.folds.alone(ctx, func(tx pgx.Tx) (err error) {
		done, now, err = j.redaction.replace(ctx, tx, ws, seqs)
		return err
	}); err != nil || done {
		return err
	}
	j.shelf.begins(ws, now)
	return j.redaction.destroy(context.WithoutCancel(ctx), ws, seqs)
}

// replace deletes bodies and replaces what documents had of them. It reports whether nothing is left to be done, else how the workspace
// then stands.
func (rd *redaction) replace(ctx context.Context, tx pgx.Tx, ws id.Workspace, seqs []uint64) (done bool, now standing, err error) {
	if err := rd.folds.enter(ctx, tx); err != nil {
		return false, now, err
	}
	if now, err = rd.events.readStanding(ctx, tx, ws, true); err != nil {
		return false, now, err
	}
	if now.no == 0 {
		return false, now, journal.ErrNotFound
	}
	open, left, err := recordedOf(ctx, tx, now.no, seqs)
	if err != nil || len(open) == 0 {
		return left == 0, now, err
	}
	l := rd.blank()
	l.ws, l.db, l.ctx, l.set, l.standing, l.folding = ws, tx.Conn(), ctx, rd.folds.set, now, rd.folds.folding.Load()
	l.forget()
	r := newRefolding(l, open)
	if err := r.run(); err != nil {
		return false, now, err
	}
	if _, err := tx.Exec(ctx, `UPDATE redactions SET done = $3 WHERE workspace = $1 AND seq = ANY($2)`, now.no, open,
		redactionReplaced); err != nil {
		return false, now, err
	}
	err = tx.QueryRow(ctx, `UPDATE workspaces SET epoch = epoch + 1 WHERE no = $1 RETURNING epoch`, now.no).Scan(&now.epoch)
	return false, now, err
}

// recordedOf returns those of the events whose data are there, and how many more have keys that are there. The redaction of all has to be
// recorded.
func recordedOf(ctx context.Context, tx pgx.Tx, no int64, seqs []uint64) (open []uint64, left int, err error) {
	rows, err := tx.Query(ctx, `SELECT seq, done FROM redactions WHERE workspace = $1 AND seq = ANY($2) ORDER BY seq`, no, seqs)
	if err != nil {
		return nil, 0, err
	}
	found := 0
	var seq uint64
	var step int
	if _, err := pgx.ForEachRow(rows, []any{&seq, &step}, func() error {
		found++
		switch step {
		case redactionRecorded:
			open = append(open, seq)
		case redactionReplaced:
			left++
		}
		return nil
	}); err != nil {
		return nil, 0, err
	}
	if found < len(seqs) {
		return nil, 0, journal.ErrUnrecorded
	}
	return open, left, nil
}

// destroy destroys the keys of replaced documents, here and, by the word that is passed, in every daemon that has them in memory. With
// several members a redaction is complete when each of them has confirmed that it dropped the keys.
func (rd *redaction) destroy(ctx context.Context, ws id.Workspace, seqs []uint64) error {
	var no, destroyed int64
	done := func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE redactions SET done = $3 WHERE workspace = $1 AND seq = ANY($2)`, no, seqs, redactionDone)
		return err
	}
	err := rd.folds.alone(ctx, func(tx pgx.Tx) (err error) {
		if err := rd.folds.enter(ctx, tx); err != nil {
			return err
		}
		if no, err = rd.events.number(ctx, tx, ws); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `DELETE FROM condemned WHERE workspace = $1 RETURNING leaf`, no)
		if err != nil {
			return err
		}
		leaves, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		forget := make([]uint64, len(leaves))
		for i, leaf := range leaves {
			forget[i] = uint64(leaf)
		}
		if err := rd.db.seals.Forget(eventTree(ws), seqs...); err != nil {
			return err
		}
		if err := rd.db.seals.Forget(documentTree(ws), forget...); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `UPDATE log SET destroyed = destroyed + 1 RETURNING destroyed`).Scan(&destroyed); err != nil {
			return err
		}
		if rd.together.no == 0 {
			if err := done(tx); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `SELECT pg_notify($1, $2)`, channel, string(ws)+" "+redacted)
		return err
	})
	if err != nil || rd.together.no == 0 {
		return err
	}
	if err := rd.together.dropped(ctx, destroyed); err != nil {
		return err
	}
	return rd.folds.alone(ctx, func(tx pgx.Tx) error {
		if err := rd.folds.enter(ctx, tx); err != nil {
			return err
		}
		return done(tx)
	})
}

// refolding folds the documents again that events have touched, without their data. The workspace's row is held.
type refolding struct {
	l *ledger
	projection.Refolding
}

func newRefolding(l *ledger, seqs []uint64) *refolding {
	return &refolding{l: l, Refolding: projection.Refolding{
		Set: l.set, Seqs: seqs, Limit: journal.MaxRead,
		Read: func(ctx context.Context, t projection.Trace, from uint64) ([]event.Event, error) {
			return l.j.events.read(ctx, l.db, traced(l.ws, t, from), l.no)
		},
		Versions: func(ctx context.Context, refs []projection.Ref) (map[projection.Ref]uint64, error) {
			if err := l.readFolios(ctx, refs); err != nil {
				return nil, err
			}
			versions := make(map[projection.Ref]uint64, len(refs))
			for _, ref := range refs {
				versions[ref] = l.folios[docRef{ref.Name, ref.Key}].state.Version
			}
			return versions, nil
		},
	}}
}

func (r *refolding) run() error {
	l := r.l
	unknown, err := r.Look(l.ctx)
	if err != nil {
		return err
	}
	if _, err := l.db.Exec(l.ctx, `DELETE FROM bodies WHERE workspace = $1 AND seq = ANY($2)`, l.no, r.Seqs); err != nil {
		return err
	}
	if unknown {
		return r.everything()
	}
	if r.Empty() {
		return nil
	}
	if err := r.Fold(l.ctx); err != nil {
		return err
	}
	return r.write()
}

// write replaces the old documents by the newly folded ones, each under a new number and key, and marks the old keys for destruction.
func (r *refolding) write() error {
	l := r.l
	if err := l.begin(l.ctx, nil, false); err != nil {
		return err
	}
	var condemned []int64
	var gone []*folio
	if err := r.Documents(func(ref projection.Ref, state projection.State, isGone bool) error {
		f := l.folios[docRef{ref.Name, ref.Key}]
		if f.leaf == 0 {
			return fmt.Errorf("document %s %s is not there to be folded again", ref.Name, ref.Key)
		}
		condemned = append(condemned, f.leaf)
		if isGone {
			gone = append(gone, f)
			return nil
		}
		f.leaf = 0
		l.save(ref, state)
		return nil
	}); err != nil {
		return err
	}
	g := &group{}
	if err := l.finish(g); err != nil {
		return err
	}
	b := &pgx.Batch{}
	if err := l.writeDocuments(b, g); err != nil {
		return err
	}
	var removed entries
	for _, f := range gone {
		no, key := l.folding.nos[f.ref.Name], []byte(f.ref.Key)
		for _, index := range f.indexes {
			removed.add(no, index.Name, index.Value, key)
		}
		b.Queue(`DELETE FROM documents WHERE projection = $1 AND workspace = $2 AND key = $3`, no, l.no, key)
	}
	removed.remove(b, l.no)
	b.Queue(`INSERT INTO condemned (workspace, leaf) SELECT $1, * FROM unnest($2::bigint[])`, l.no, condemned)
	return l.db.SendBatch(l.ctx, b).Close()
}

// everything folds every document of the workspace anew: it is no longer known which ones had a part of the data.
func (r *refolding) everything() error {
	l := r.l
	for _, sql := range []string{
		`INSERT INTO condemned (workspace, leaf) SELECT workspace, leaf FROM documents WHERE workspace = $1`,
		`DELETE FROM documents WHERE workspace = $1`, `DELETE FROM entries WHERE workspace = $1`,
	} {
		if _, err := l.db.Exec(l.ctx, sql, l.no); err != nil {
			return err
		}
	}
	l.forget()
	return l.foldFrom(l.ctx, l.standing)
}

// traced returns the query for the events that a trace selects, from a place on.
func traced(ws id.Workspace, t projection.Trace, from uint64) journal.Query {
	q := journal.Query{Workspace: ws, From: from, Run: t.Run, EntityType: t.EntityType, EntityID: t.EntityID, Limit: journal.MaxRead}
	if t.Seq > 0 {
		q.Before = t.Seq + 1
	}
	return q
}
