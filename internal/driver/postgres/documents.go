package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
)

// errStale means that the documents are older than the keys.
var errStale = fault.New(fault.Internal, "documents_stale",
	"a document of the log cannot be read any more: its key was destroyed after this copy of the database was made").
	With("restore the database without its documents, which are folded anew: pg_dump with --exclude-table-data for agentbox.documents, " +
		"agentbox.entries and agentbox.projections")

// Document implements projection.Reader.
func (j *Journal) Document(ctx context.Context, ws id.Workspace, name, key string) (projection.Document, error) {
	d, err := j.Lend(ctx, ws, name, key)
	d.Body = slices.Clone(d.Body)
	return d, err
}

// Lend implements projection.Lender.
func (j *Journal) Lend(ctx context.Context, ws id.Workspace, name, key string) (projection.Document, error) {
	def, err := j.set.Lookup(name)
	if err != nil {
		return projection.Document{}, err
	}
	ref := docRef{name, key}
	if !j.readOnly {
		now, err := j.prove(ctx, ws)
		if err != nil {
			return projection.Document{}, err
		}
		if d, found := j.shelf.find(ws, now, ref); found {
			return there(d)
		}
	}
	var d projection.Document
	err = j.opening(ctx, func(db querier) error {
		var row document
		var s standing
		if s, row, err = j.readDocument(ctx, db, ws, def, key); err != nil {
			return err
		}
		d = projection.Document{Key: key, Version: row.version, Seq: row.seq}
		if d.Body, err = j.unseal(ws, row); err == nil && !j.readOnly {
			j.shelf.fill(ws, s, ref, d)
		}
		return err
	})
	if err == nil {
		err = j.settled(ctx, ws, d.Seq)
	}
	if err != nil {
		return projection.Document{}, err
	}
	return there(d)
}

func there(d projection.Document) (projection.Document, error) {
	if d.Version == 0 {
		return projection.Document{}, projection.ErrNotFound
	}
	return d, nil
}

// opening is reading, once more where a key was destroyed between a row and its opening: then a redaction has just put another row there.
func (j *Journal) opening(ctx context.Context, fn func(querier) error) error {
	err := j.reading(ctx, fn)
	if errors.Is(err, vault.ErrForgotten) {
		err = j.reading(ctx, fn)
	}
	if errors.Is(err, vault.ErrForgotten) {
		return errStale
	}
	return err
}

// readDocument reads a document, empty where there is none, and how its workspace stood at that moment.
func (j *Journal) readDocument(ctx context.Context, db querier, ws id.Workspace, def projection.Definition, key string) (s standing,
	d document, err error) {
	var no, head, epoch, leaf *int64
	var version, seq *uint64
	err = db.QueryRow(ctx, `SELECT w.no, w.head, w.epoch, d.leaf, d.version, d.seq, d.body, d.generation FROM projections p
		LEFT JOIN workspaces w ON w.name = $3 LEFT JOIN documents d ON d.projection = p.no AND d.workspace = w.no AND d.key = $4 WHERE p.name =
			$1 AND p.version = $2`,
		def.Name, def.Version, string(ws), []byte(key)).Scan(&no, &head, &epoch, &leaf, &version, &seq, &d.body, &d.generation)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, d, errSuperseded
	}
	if err == nil && no != nil {
		s = standing{*no, uint64(*head), *epoch}
	}
	if err == nil && leaf != nil {
		d.leaf, d.version, d.seq = *leaf, *version, *seq
	}
	return s, d, err
}

// Documents implements projection.Reader.
func (j *Journal) Documents(ctx context.Context, q projection.Query) (docs []projection.Document, err error) {
	q, err = q.Check()
	if err != nil {
		return nil, err
	}
	def, err := j.set.Lookup(q.Name)
	if err != nil {
		return nil, err
	}
	err = j.opening(ctx, func(db querier) error {
		docs = []projection.Document{}
		no, err := j.number(ctx, db, q.Workspace)
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
			body, err := j.unseal(q.Workspace, d)
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
		err = j.settled(ctx, q.Workspace, latest)
	}
	return docs, err
}

// listing writes a query in SQL; the index of the keys, or that of the entries, gives both the selection and the order. There is a row
// without a document where the projection is there and nothing is selected. The documents of entries are looked up one by one, whatever
// the planner knows.
func listing(q projection.Query, def projection.Definition, no int64) (string, []any) {
	args := []any{def.Name, def.Version, no, q.Limit}
	from, key := `documents d WHERE d.projection = p.no AND d.workspace = $3`, `d.key`
	if q.Index != (projection.Index{}) {
		from, key = `entries n WHERE n.projection = p.no AND n.workspace = $3 AND n.name = $5 AND n.value = $6`, `n.key`
		args = append(args, q.Index.Name, []byte(q.Index.Value))
	}
	compare, order := ` > `, ``
	if q.Newest {
		compare, order = ` < `, ` DESC`
	}
	if q.After != "" {
		args = append(args, []byte(q.After))
		from += ` AND ` + key + compare + `$` + string(rune('0'+len(args)))
	}
	from += ` ORDER BY ` + key + order + ` LIMIT $4`
	const columns = `d.key, d.leaf, d.version, d.seq, d.body, d.generation`
	if q.Index == (projection.Index{}) {
		from = `SELECT ` + columns + ` FROM ` + from
	} else {
		from = `SELECT ` + columns + ` FROM (SELECT n.key FROM ` + from + `) n
			CROSS JOIN LATERAL (SELECT ` + columns + ` FROM documents d WHERE d.projection = p.no AND d.workspace = $3 AND d.key = n.key OFFSET 0) d`
	}
	return `SELECT f.key, f.leaf, f.version, f.seq, f.body, f.generation FROM projections p LEFT JOIN LATERAL (` + from + `) f ON true
		WHERE p.name = $1 AND p.version = $2 ORDER BY f.key` + order, args
}

// Entries implements projection.Indexed.
func (j *Journal) Entries(ctx context.Context, ws id.Workspace, name string) (found []projection.Entry, still bool, err error) {
	if !j.readOnly {
		return nil, false, ctx.Err()
	}
	err = j.reading(ctx, func(db querier) error {
		no, err := j.number(ctx, db, ws)
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

// Current returns those of the definitions whose documents the database holds in their version.
func (j *Journal) Current(ctx context.Context) (current []projection.Definition, err error) {
	err = j.reading(ctx, func(db querier) error {
		live, err := projections(ctx, db)
		current = nil
		for _, def := range j.set.Definitions() {
			if live[def.Name].version == def.Version {
				current = append(current, def)
			}
		}
		return err
	})
	return current, err
}

// live is a projection that the database holds.
type live struct {
	no      int64
	version int
}

func projections(ctx context.Context, db querier) (map[string]live, error) {
	rows, err := db.Query(ctx, `SELECT name, no, version FROM projections`)
	if err != nil {
		return nil, err
	}
	found := map[string]live{}
	var name string
	var one live
	_, err = pgx.ForEachRow(rows, []any{&name, &one.no, &one.version}, func() error {
		found[name] = one
		return nil
	})
	return found, err
}

// refold finds out how the database keeps documents, after another daemon has folded them anew. Where it does so by other definitions
// nothing goes on here.
func (j *Journal) refold(ctx context.Context) error {
	return j.reading(ctx, func(db querier) error {
		f := &folding{nos: map[string]int64{}}
		if err := db.QueryRow(ctx, `SELECT folds FROM log`).Scan(&f.folds); err != nil {
			return err
		}
		found, err := projections(ctx, db) // read later: where they are newer than folds, the next append says so
		if err != nil {
			return err
		}
		for _, def := range j.set.Definitions() {
			if found[def.Name].version != def.Version {
				return errSuperseded
			}
			f.nos[def.Name] = found[def.Name].no
		}
		j.folding.Store(f)
		return nil
	})
}

// enter begins a transaction that writes, and finds out how documents are folded for as long as it lasts.
func (j *Journal) enter(ctx context.Context, db querier) error {
	if _, err := db.Exec(ctx, `SELECT enter(0, $1, $2)`, j.reign, j.member); err != nil {
		return err
	}
	var folds int64
	if err := db.QueryRow(ctx, `SELECT folds FROM log`).Scan(&folds); err != nil || folds == j.folding.Load().folds {
		return err
	}
	return j.refold(ctx)
}

// Rebuild implements projection.Store. Whoever appends, to any daemon of the database, waits until it is done.
func (j *Journal) Rebuild(ctx context.Context, name string) error {
	def, err := j.set.Lookup(name)
	if err != nil {
		return err
	}
	if err := j.alone(ctx, func(tx pgx.Tx) error { return j.rebuild(ctx, tx, []projection.Definition{def}, nil) }); err != nil {
		return err
	}
	j.shelf.clear()
	return j.refold(ctx)
}

// alone runs a long transaction of this daemon's own, in a connection of its own.
func (j *Journal) alone(ctx context.Context, do func(pgx.Tx) error) error {
	if j.readOnly || j.ctx.Err() != nil {
		return journal.ErrClosed
	}
	err := pgx.BeginFunc(ctx, j.writes, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
			return err
		}
		return do(tx)
	})
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return j.trouble(err)
}

// openProjections makes the documents agree with the definitions: it rebuilds what has a new version and drops what nobody defines any
// more. A daemon of another version that still runs finds out when it appends next.
func (j *Journal) openProjections(ctx context.Context) error {
	err := j.alone(ctx, func(tx pgx.Tx) error {
		found, err := projections(ctx, tx)
		if err != nil {
			return err
		}
		var changed []projection.Definition
		for _, def := range j.set.Definitions() {
			if found[def.Name].version != def.Version {
				changed = append(changed, def)
			}
			delete(found, def.Name)
		}
		var dropped []string
		for name := range found {
			dropped = append(dropped, name)
		}
		if len(changed)+len(dropped) == 0 {
			return nil
		}
		return j.rebuild(ctx, tx, changed, dropped)
	})
	if err != nil {
		return err
	}
	return j.refold(ctx)
}

// rebuild folds projections anew beside the live ones, swaps them in, and drops the live ones and those named, all in one transaction.
// Others go on reading the live ones meanwhile.
func (j *Journal) rebuild(ctx context.Context, tx pgx.Tx, defs []projection.Definition, dropped []string) error {
	if _, err := tx.Exec(ctx, `LOCK TABLE projections IN EXCLUSIVE MODE`); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `SELECT enter(0, $1, $2)`, j.reign, j.member); err != nil {
		return err
	}
	found, err := projections(ctx, tx)
	if err != nil {
		return err
	}
	for _, def := range defs {
		dropped = append(dropped, def.Name)
	}
	for _, name := range dropped {
		if _, err := tx.Exec(ctx, `DELETE FROM projections WHERE name = $1`, name); err != nil {
			return err
		}
	}
	beside := &folding{nos: map[string]int64{}}
	for _, def := range defs {
		var no int64
		if err := tx.QueryRow(ctx, `INSERT INTO projections (name, version) VALUES ($1, $2) RETURNING no`, def.Name,
			def.Version).Scan(&no); err != nil {
			return err
		}
		beside.nos[def.Name] = no
	}
	if err := j.foldAll(ctx, tx, defs, beside); err != nil {
		return err
	}
	for _, name := range dropped {
		if was, there := found[name]; there {
			for _, sql := range []string{`DELETE FROM entries WHERE projection = $1`, `DELETE FROM documents WHERE projection = $1`} {
				if _, err := tx.Exec(ctx, sql, was.no); err != nil {
					return err
				}
			}
		}
	}
	_, err = tx.Exec(ctx, `UPDATE log SET folds = folds + 1`)
	return err
}

// foldAll folds the whole log.
func (j *Journal) foldAll(ctx context.Context, tx pgx.Tx, defs []projection.Definition, into *folding) error {
	set, err := projection.NewSet(defs)
	if err != nil || len(defs) == 0 {
		return err
	}
	rows, err := tx.Query(ctx, `SELECT name, no, head, epoch FROM workspaces WHERE head > 0 ORDER BY no`)
	if err != nil {
		return err
	}
	tenants := map[id.Workspace]standing{}
	var name string
	var s standing
	if _, err := pgx.ForEachRow(rows, []any{&name, &s.no, &s.head, &s.epoch}, func() error {
		tenants[id.Workspace(name)] = s
		return nil
	}); err != nil {
		return err
	}
	for ws, s := range tenants {
		l := &ledger{j: j, ws: ws, db: tx.Conn(), ctx: ctx, set: set, standing: s, folding: into}
		l.forget()
		if err := l.foldFrom(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// foldFrom folds a workspace's log, from its beginning, and writes the documents down as it goes.
func (l *ledger) foldFrom(ctx context.Context, s standing) error {
	for from := uint64(1); from <= s.head; {
		events, err := l.j.read(ctx, l.db, journal.Query{Workspace: l.ws, From: from, Limit: journal.MaxRead}, s.no)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return fault.New(fault.Internal, "log_damaged", "workspace %s has %d events and none from %d on; run agentbox audit verify", l.ws,
				s.head, from)
		}
		if slices.ContainsFunc(events, func(e event.Event) bool { return e.Withheld == event.Sealed }) {
			return vault.ErrMissing
		}
		from = events[len(events)-1].Seq + 1
		if err := l.begin(ctx, nil, false); err != nil {
			return err
		}
		if err := l.fold(events); err != nil {
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
		if b.Len() > 0 {
			if err := l.db.SendBatch(ctx, b).Close(); err != nil {
				return err
			}
		}
		l.settled()
	}
	return nil
}
