package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// mergedAtOnce is how many events are kept in memory to be put in order; where there are more the whole log is read, which is in order.
const mergedAtOnce = 50_000

// The steps of a redaction, as its row says.
const (
	redactionRecorded = iota
	redactionReplaced // the body is deleted, and the documents that it had touched are others under other keys
	redactionDone     // and the keys of what was there are destroyed
)

// Unfinished implements journal.Redactor.
func (j *Journal) Unfinished(ctx context.Context, ws id.Workspace) (seqs []uint64, err error) {
	err = j.reading(ctx, func(db querier) error {
		seqs = nil
		no, err := j.number(ctx, db, ws)
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

// Redact implements journal.Redactor. Who appends to the workspace waits until the documents are folded anew. What was there stays in dead
// rows, in the write-ahead log, on standbys and in backups, and cannot be read there: it was sealed, and its keys are destroyed last.
func (j *Journal) Redact(ctx context.Context, ws id.Workspace, seqs []uint64) error {
	switch {
	case len(seqs) == 0:
		return nil
	case len(seqs) > journal.MaxBatch:
		return fault.New(fault.Exhausted, "batch_too_large", "at most %d events are redacted at a time, not %d", journal.MaxBatch, len(seqs))
	}
	seqs = slices.Compact(slices.Sorted(slices.Values(seqs)))
	done := true
	var now standing
	if err := j.alone(ctx, func(tx pgx.Tx) (err error) {
		done, now, err = j.replace(ctx, tx, ws, seqs)
		return err
	}); err != nil || done {
		return err
	}
	j.shelf.begins(ws, now)
	return j.destroy(context.WithoutCancel(ctx), ws, seqs)
}

// replace deletes bodies and replaces what documents had of them. It reports whether nothing is left to be done, else how the workspace then
// stands.
func (j *Journal) replace(ctx context.Context, tx pgx.Tx, ws id.Workspace, seqs []uint64) (done bool, now standing, err error) {
	if err := j.enter(ctx, tx); err != nil {
		return false, now, err
	}
	if now, err = j.stand(ctx, tx, ws, true); err != nil {
		return false, now, err
	}
	if now.no == 0 {
		return false, now, journal.ErrNotFound
	}
	open, left, err := recordedOf(ctx, tx, now.no, seqs)
	if err != nil || len(open) == 0 {
		return left == 0, now, err
	}
	l := &ledger{j: j, ws: ws, set: j.set, db: tx.Conn(), ctx: ctx, standing: now, folding: j.folding.Load()}
	l.forget()
	r := &refolding{l: l, seqs: open}
	if err := r.run(); err != nil {
		return false, now, err
	}
	if _, err := tx.Exec(ctx, `UPDATE redactions SET done = $3 WHERE workspace = $1 AND seq = ANY($2)`, now.no, open, redactionReplaced); err != nil {
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

// destroy destroys the keys of what was replaced, here and, by the word that is passed, in every daemon that has them in memory. Where members
// work together a redaction is done when each of them has said that it has dropped them.
func (j *Journal) destroy(ctx context.Context, ws id.Workspace, seqs []uint64) error {
	var no, destroyed int64
	done := func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE redactions SET done = $3 WHERE workspace = $1 AND seq = ANY($2)`, no, seqs, redactionDone)
		return err
	}
	err := j.alone(ctx, func(tx pgx.Tx) (err error) {
		if err := j.enter(ctx, tx); err != nil {
			return err
		}
		if no, err = j.number(ctx, tx, ws); err != nil {
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
		if err := j.seals.Forget(eventTree(ws), seqs...); err != nil {
			return err
		}
		if err := j.seals.Forget(documentTree(ws), forget...); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `UPDATE log SET destroyed = destroyed + 1 RETURNING destroyed`).Scan(&destroyed); err != nil {
			return err
		}
		if j.member == 0 {
			if err := done(tx); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `SELECT pg_notify($1, $2)`, channel, string(ws)+" "+redacted)
		return err
	})
	if err != nil || j.member == 0 {
		return err
	}
	if err := j.dropped(ctx, destroyed); err != nil {
		return err
	}
	return j.alone(ctx, func(tx pgx.Tx) error {
		if err := j.enter(ctx, tx); err != nil {
			return err
		}
		return done(tx)
	})
}

// refolding folds the documents anew that events have touched, without their data. The workspace's row is held.
type refolding struct {
	l    *ledger
	seqs []uint64

	touched map[projection.Ref]int // how many of the events had touched the document
	where   []journal.Query        // that find every event which touched one of them, as a rule
	still   map[projection.Ref]int // how many of them touch it without their data
	states  map[projection.Ref]projection.State
}

func (r *refolding) run() error {
	l := r.l
	unknown, err := r.look()
	if err != nil {
		return err
	}
	if _, err := l.db.Exec(l.ctx, `DELETE FROM bodies WHERE workspace = $1 AND seq = ANY($2)`, l.no, r.seqs); err != nil {
		return err
	}
	if unknown {
		return r.everything()
	}
	if len(r.touched) == 0 {
		return nil
	}
	if err := r.lookAgain(); err != nil {
		return err
	}
	whole, err := r.through(r.where)
	if err != nil {
		return err
	}
	if !whole {
		// A document has been touched by events that nothing ties to those which are redacted: the whole log tells them.
		if _, err := r.through([]journal.Query{{}}); err != nil {
			return err
		}
	}
	return r.write()
}

// look finds the documents that the events have touched, while their data can be read. An event and the others that touched the same document
// have their run or their entity in common, as a rule; through finds out where they have not. Unknown are they where data cannot be read any
// more: then the database is older than its keys.
func (r *refolding) look() (unknown bool, err error) {
	r.touched = map[projection.Ref]int{}
	asked := map[string]bool{}
	ask := func(name string, q journal.Query) {
		if !asked[name] {
			asked[name] = true
			r.where = append(r.where, q)
		}
	}
	err = r.each(func(e event.Event, refs []projection.Ref) {
		unknown = unknown || e.Withheld != ""
		for _, ref := range refs {
			r.touched[ref]++
			if ref.Key == string(e.ID) {
				ask("event "+string(e.ID), journal.Query{From: e.Seq, Before: e.Seq + 1})
				continue
			}
			if e.Run != "" && ref.Key != e.EntityID {
				ask("run "+string(e.Run), journal.Query{Run: e.Run})
			}
			if e.EntityID != "" && ref.Key != string(e.Run) {
				ask("entity "+journal.EntityText(&e), journal.Query{EntityType: e.EntityType, EntityID: e.EntityID})
			}
		}
	})
	return unknown, err
}

// lookAgain finds the documents that the events touch without their data.
func (r *refolding) lookAgain() error {
	r.still = map[projection.Ref]int{}
	return r.each(func(_ event.Event, refs []projection.Ref) {
		for _, ref := range refs {
			r.still[ref]++
		}
	})
}

// each calls f for each of the events that are redacted.
func (r *refolding) each(f func(event.Event, []projection.Ref)) error {
	for _, seq := range r.seqs {
		found, err := r.read(journal.Query{From: seq, Before: seq + 1, Limit: 1})
		if err != nil {
			return err
		}
		for _, e := range found {
			refs, err := r.l.set.Touched(e)
			if err != nil {
				return err
			}
			f(e, refs)
		}
	}
	return nil
}

func (r *refolding) read(q journal.Query) ([]event.Event, error) {
	q.Workspace = r.l.ws
	return r.l.j.read(r.l.ctx, r.l.db, q, r.l.no)
}

// through folds what the queries find, in the order of the log, each event once. It reports whether every document was folded from as many
// events as before, but for those that touch it no more.
func (r *refolding) through(queries []journal.Query) (whole bool, err error) {
	var events []event.Event
	seen := map[uint64]bool{}
	r.states = map[projection.Ref]projection.State{}
	for _, q := range queries {
		for q.From, q.Limit = max(q.From, 1), journal.MaxRead; ; {
			if err := r.l.ctx.Err(); err != nil {
				return false, err
			}
			found, err := r.read(q)
			if err != nil {
				return false, err
			}
			for i := range found {
				q.From = found[i].Seq + 1
				if !seen[found[i].Seq] {
					seen[found[i].Seq] = true
					events = append(events, found[i])
				}
			}
			if len(queries) == 1 { // then they come in order, and need not be kept
				if err := r.fold(events); err != nil {
					return false, err
				}
				events = events[:0]
				clear(seen)
			}
			if len(events) > mergedAtOnce {
				return false, nil
			}
			if len(found) < q.Limit {
				break
			}
		}
	}
	slices.SortFunc(events, func(a, b event.Event) int { return int(int64(a.Seq) - int64(b.Seq)) })
	if err := r.fold(events); err != nil {
		return false, err
	}
	refs := make([]projection.Ref, 0, len(r.touched))
	for ref := range r.touched {
		refs = append(refs, ref)
	}
	if err := r.l.readFolios(r.l.ctx, refs); err != nil {
		return false, err
	}
	for ref, had := range r.touched {
		if was := r.l.folios[docRef{ref.Name, ref.Key}].state.Version; r.states[ref].Version+uint64(had-r.still[ref]) != was {
			return false, nil
		}
	}
	return true, nil
}

func (r *refolding) fold(events []event.Event) error {
	for i := range events {
		refs, err := r.l.set.Touched(events[i])
		if err != nil {
			return err
		}
		for _, ref := range refs {
			if r.touched[ref] == 0 {
				continue
			}
			state, begun := r.states[ref]
			if !begun {
				def, err := r.l.set.Lookup(ref.Name)
				if err != nil {
					return err
				}
				if state, err = def.Restore(ref.Key, nil, 0, 0); err != nil {
					return err
				}
			}
			if r.states[ref], err = state.Fold(events[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// write puts what was folded in the place of what was there, each document under a new number and key, and condemns the old ones.
func (r *refolding) write() error {
	l := r.l
	if err := l.begin(l.ctx, nil, false); err != nil {
		return err
	}
	var condemned []int64
	var gone []*folio
	for ref := range r.touched {
		f := l.folios[docRef{ref.Name, ref.Key}]
		if f.leaf == 0 {
			return fmt.Errorf("document %s %s is not there to be folded anew", ref.Name, ref.Key)
		}
		condemned = append(condemned, f.leaf)
		state, folded := r.states[ref]
		if !folded {
			gone = append(gone, f)
			continue
		}
		f.leaf = 0
		l.save(ref, state)
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

// everything folds every document of the workspace anew: which ones had something of the data cannot be told any more.
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
