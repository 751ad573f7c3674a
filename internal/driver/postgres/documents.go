package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/projection"
)

// Document implements projection.Reader.
func (j *Journal) Document(ctx context.Context, ws id.Workspace, name, key string) (projection.Document, error) {
	d, err := j.Lend(ctx, ws, name, key)
	d.Body = slices.Clone(d.Body)
	return d, err
}

// Lend implements projection.Lender.
func (j *Journal) Lend(ctx context.Context, ws id.Workspace, name, key string) (projection.Document, error) {
	def, err := j.folds.set.Lookup(name)
	if err != nil {
		return projection.Document{}, err
	}
	ref := docRef{name, key}
	if !j.db.readOnly {
		now, err := j.prove(ctx, ws)
		if err != nil {
			return projection.Document{}, err
		}
		if d, found := j.shelf.find(ws, now, ref); found {
			return there(d)
		}
	}
	var d projection.Document
	err = j.folds.opening(ctx, func(db querier) error {
		var row document
		var s standing
		if s, row, err = j.folds.readDocument(ctx, db, ws, def, key); err != nil {
			return err
		}
		d = projection.Document{Key: key, Version: row.version, Seq: row.seq}
		if d.Body, err = j.events.unseal(ws, row); err == nil && !j.db.readOnly {
			j.shelf.fill(ws, s, ref, d)
		}
		return err
	})
	if err == nil {
		err = j.listener.settled(ctx, ws, d.Seq)
	}
	if err != nil {
		return projection.Document{}, err
	}
	return there(d)
}

// Documents implements projection.Reader.
func (j *Journal) Documents(ctx context.Context, q projection.Query) (docs []projection.Document, err error) {
	q, err = q.Check()
	if err != nil {
		return nil, err
	}
	def, err := j.folds.set.Lookup(q.Name)
	if err != nil {
		return nil, err
	}
	err = j.folds.opening(ctx, func(db querier) error {
		docs = []projection.Document{}
		no, err := j.events.number(ctx, db, q.Workspace)
		if err != nil || !storable(q.Index.Name) {
			return err
		}
		sql, args := listing(q, def, no)
		rows, err := db.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		known := false
		for rows.Next() {
			var key []byte
			var leaf *int64
			var version, seq *uint64
			var d document
			if err := rows.Scan(&key, &leaf, &version, &seq, &d.body, &d.generation); err != nil {
				return err
			}
			known = true
			if leaf == nil {
				continue // the projection is there and has none of them
			}
			d.leaf, d.version, d.seq = *leaf, *version, *seq
			body, err := j.events.unseal(q.Workspace, d)
			if err != nil {
				return err
			}
			docs = append(docs, projection.Document{Key: string(key), Version: d.version, Seq: d.seq, Body: body})
		}
		if err := rows.Err(); err != nil {
			return err
		}
		if !known {
			return errSuperseded
		}
		return nil
	})
	latest := uint64(0)
	for i := range docs {
		latest = max(latest, docs[i].Seq)
	}
	if err == nil {
		err = j.listener.settled(ctx, q.Workspace, latest)
	}
	return docs, err
}

// Entries implements projection.Indexed.
func (j *Journal) Entries(ctx context.Context, ws id.Workspace, name string) (found []projection.Entry, still bool, err error) {
	if !j.db.readOnly {
		return nil, false, ctx.Err()
	}
	err = j.db.reading(ctx, func(db querier) error {
		no, err := j.events.number(ctx, db, ws)
		if err != nil {
			return err
		}
		rows, err := db.Query(ctx,
			`SELECT n.name, n.value, n.key FROM projections p JOIN entries n ON n.projection = p.no AND n.workspace = $2 WHERE p.name = $1`, name,
			no)
		if err != nil {
			return err
		}
		var index string
		var value, key []byte
		_, err = pgx.ForEachRow(rows, []any{&index, &value, &key}, func() error {
			found = append(found, projection.Entry{Index: projection.Index{Name: index, Value: string(value)}, Key: string(key)})
			return nil
		})
		return err
	})
	return found, err == nil, err
}
