package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// recollection holds the earlier uses of some keys. One round trip looks them all up.
type recollection struct {
	keys []string
	uses map[string]*journal.Use
	err  error
}

func (r *recollection) of(key string) (journal.Use, bool, error) {
	if use := r.uses[key]; use != nil && r.err == nil {
		return *use, true, nil
	}
	return journal.Use{}, false, r.err
}

// Used implements journal.Journal.
func (j *Journal) Used(ctx context.Context, ws id.Workspace, key string) (journal.Use, bool, error) {
	if err := ctx.Err(); err != nil {
		return journal.Use{}, false, err
	}
	if !storable(key) {
		return journal.Use{}, false, nil
	}
	if j.db.readOnly {
		mine := &recollection{keys: []string{key}}
		j.recall(ws, mine)
		return mine.of(key)
	}
	if j.db.ctx.Err() != nil {
		return journal.Use{}, false, journal.ErrClosed
	}
	r, err := j.recaller.ask(ctx, j.queue, ws, func(r *recollection) { r.keys = append(r.keys, key) }, func(r *recollection) {
		j.recall(ws,
			r)
	})
	if err != nil {
		return journal.Use{}, false, err
	}
	return r.of(key)
}

// recall reads what keys were used for.
func (j *Journal) recall(ws id.Workspace, r *recollection) {
	r.err = j.db.reading(j.db.ctx, func(db querier) error {
		no, err := j.events.number(j.db.ctx, db, ws)
		if err != nil || no == 0 {
			return err
		}
		rows, err := db.Query(j.db.ctx, selectUses, no, r.keys)
		if err != nil {
			return err
		}
		r.uses = map[string]*journal.Use{}
		return scanUses(rows, r.uses)
	})
}

// verify looks up the keys of requests that are refused, for they were presumed to be new: a repeat is not refused for what has changed
// since.
func (l *ledger) verify(ctx context.Context, requests []*request) error {
	if !l.presumes {
		return nil
	}
	var keys []string
	for _, r := range requests {
		if r.err != nil && r.batch.Key != "" {
			keys = append(keys, r.batch.Key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	rows, err := l.db.Query(ctx, selectUses, l.no, keys)
	if err != nil {
		return err
	}
	used := map[string]*journal.Use{}
	if err := scanUses(rows, used); err != nil {
		return err
	}
	if len(used) > 0 {
		return errMoved
	}
	return nil
}

// selectUses finds batches by their keys, each by itself: of a table that it knows nothing of, the planner would read the whole workspace
// for a few.
const selectUses = `SELECT b.key, b.digest, b.first, b.count FROM unnest($2::text[]) u (key)
	CROSS JOIN LATERAL (SELECT * FROM batches b WHERE b.workspace = $1 AND b.key = u.key OFFSET 0) b`

func scanUses(rows pgx.Rows, uses map[string]*journal.Use) error {
	var key string
	var use journal.Use
	_, err := pgx.ForEachRow(rows, []any{&key, (*digest)(&use.Digest), &use.First, &use.Count}, func() error {
		found := use
		uses[key] = &found
		return nil
	})
	return err
}
