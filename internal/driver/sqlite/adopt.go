package sqlite

import (
	"context"
	"errors"
	"iter"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// adoption takes in the log of a workspace as it is.
type adoption struct {
	committer *committer
	folds     *folds
}

var (
	_ journal.Adopter = (*Journal)(nil)
	_ journal.Keyed   = (*Journal)(nil)
)

// Keys implements journal.Keyed.
func (j *Journal) Keys(ctx context.Context, ws id.Workspace, after string, limit int) (keys []journal.KeyUse, err error) {
	no := j.views.watch.number(ws)
	err = j.views.reading(ctx, func(r *connection) error {
		rows, err := r.rows(`SELECT key, digest, first, count FROM batches WHERE workspace = ? AND key > ? ORDER BY key LIMIT ? + 0`, no, after,
			int64(min(limit, journal.MaxBatch)))
		if err != nil {
			return err
		}
		for rows.Step() {
			k := journal.KeyUse{Key: rows.ColumnText(0), Use: journal.Use{First: uint64(rows.ColumnInt64(2)), Count: rows.ColumnInt(3)}}
			copy(k.Digest[:], rows.ColumnRawBlob(1))
			keys = append(keys, k)
		}
		return finish(rows)
	})
	return keys, err
}

// Adopt implements journal.Adopter. It is one transaction of SQLite, in the committer's place: appends wait until it is done.
func (j *Journal) Adopt(ctx context.Context, ws id.Workspace, chunks iter.Seq2[[]event.Event, error], keys iter.Seq2[[]journal.KeyUse,
	error]) (head uint64, err error) {
	if _, err := id.ParseWorkspace(string(ws)); err != nil {
		return 0, fault.Wrap(err, fault.Invalid, "workspace_invalid", "that is not a workspace")
	}
	err = j.planning.do(&request{ctx: ctx, task: func(ctx context.Context) error {
		j.views.unshelve(false)
		defer func() { j.views.unshelve(j.health.failed.Load() == nil) }()
		head, err = j.adoption.run(ctx, ws, chunks, keys)
		// It is unknown whether the ledger's changes are in the file, so it is read anew.
		if failed := j.planning.ledger.load(context.WithoutCancel(ctx), j.planning.ledger.r); failed != nil {
			return j.health.fail(failed)
		}
		if err == nil {
			t := j.planning.ledger.tenants[ws]
			j.views.watch.set(ws, t.no, t.head)
		}
		return err
	}})
	return head, err
}

// run records the chunks in one transaction.
func (ad *adoption) run(ctx context.Context, ws id.Workspace, chunks iter.Seq2[[]event.Event, error], keys iter.Seq2[[]journal.KeyUse,
	error]) (head uint64, err error) {
	fresh, unindexed := slices.Clone(ad.committer.fresh), ad.committer.unindexed
	err = ad.committer.transact(func() error {
		head, err = ad.all(ctx, ws, chunks, keys)
		return err
	})
	if err != nil {
		ad.committer.fresh, ad.committer.unindexed = fresh, unindexed
	}
	return head, err
}

func (ad *adoption) all(ctx context.Context, ws id.Workspace, chunks iter.Seq2[[]event.Event, error], keys iter.Seq2[[]journal.KeyUse,
	error]) (uint64, error) {
	l := &ledger{set: ad.folds.set}
	if err := l.load(ctx, ad.committer.w); err != nil { // by the committer's connection, which sees what it has not committed yet
		return 0, err
	}
	if l.tenants[ws] != nil {
		return 0, journal.ErrOccupied
	}
	var log journal.Continuity
	withheld := map[id.Event]uint64{} // the places of those whose redaction has not come yet
	for events, err := range chunks {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return 0, err
		}
		if err := log.Next(ws, events); err != nil {
			return 0, err
		}
		for i := range events {
			if events[i].Withheld != "" {
				withheld[events[i].ID] = events[i].Seq
			}
		}
		if err := ad.chunk(l, ws, events); err != nil {
			return 0, err
		}
		if err := ad.redactions(l.tenants[ws].no, events, withheld); err != nil {
			return 0, err
		}
	}
	if err := log.End(); err != nil || keys == nil {
		return log.Head(), err
	}
	for some, err := range keys {
		if err == nil {
			err = log.Keys(some)
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return 0, err
		}
		for _, k := range some {
			if err := ad.committer.w.exec(`INSERT INTO batches (workspace, key, digest, first, count) VALUES (?, ?, ?, ?, ?)`, l.tenants[ws].no,
				k.Key,
				k.Digest[:], k.First, int64(k.Count)); err != nil {
				return 0, err
			}
		}
	}
	return log.Head(), nil
}

func (ad *adoption) chunk(l *ledger, ws id.Workspace, events []event.Event) error {
	l.begin()
	for i := range events {
		held, err := l.Holds(events[i].ID)
		if err == nil && held {
			err = fault.New(fault.Conflict, "event_exists", "the log holds an event %s already, in another workspace", events[i].ID)
		}
		if err != nil {
			return err
		}
	}
	recorded := make([]event.Event, len(events))
	for i := range events {
		recorded[i] = events[i].Recorded()
	}
	planned, err := l.apply(journal.Adopted(ws, events), recorded)
	if err != nil {
		return err
	}
	if err := l.fold(events); err != nil {
		return err
	}
	g := &group{batches: []plannedBatch{planned}}
	if err := l.finish(g, true); err != nil {
		return err
	}
	return ad.committer.put(g)
}

// redactions notes the redactions of a chunk, of which the event that they are about may be in it too, and takes away what stood in
// the place of data that came redacted: only then a body may go.
func (ad *adoption) redactions(no int64, events []event.Event, withheld map[id.Event]uint64) error {
	for i := range events {
		if events[i].Type != event.RedactedType {
			continue
		}
		if err := ad.committer.w.insertRedaction(placeOf(no, events[i].Seq), &events[i]); err != nil {
			return err
		}
		seq, ok := withheld[events[i].Causation]
		if !ok {
			continue
		}
		delete(withheld, events[i].Causation)
		if err := ad.committer.w.exec(`DELETE FROM bodies WHERE place = ?`, placeOf(no, seq)); err != nil {
			return err
		}
		if err := ad.committer.w.exec(`UPDATE redactions SET done = ? WHERE place = ?`, int64(redactionDone), placeOf(no, seq)); err != nil {
			return err
		}
	}
	return nil
}
