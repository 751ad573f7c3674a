package postgres

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
)

// folds keeps the documents: it folds the log into their tables when a definition is new, and says how they are folded now.
type folds struct {
	db       *database
	reign    *reign
	together *Members
	blank    func() *ledger // makes a ledger of this log
	set      *projection.Set
	folding  atomic.Pointer[folding] // how documents are folded in the database
}

// errStale means that the documents are older than the keys.
var errStale = fault.New(fault.Internal, "documents_stale",
	"a document of the log cannot be read any more: its key was destroyed after this copy of the database was made").
	With("restore the database without its documents, which are folded anew: pg_dump with --exclude-table-data for agentbox.documents, " +
		"agentbox.entries and agentbox.projections")

func there(d projection.Document) (projection.Document, error) {
	if d.Version == 0 {
		return projection.Document{}, projection.ErrNotFound
	}
	return d, nil
}

// opening is reading, once more where a key was destroyed between a row and its opening: then a redaction has just put another row there.
func (fs *folds) opening(ctx context.Context, fn func(querier) error) error {
	err := fs.db.reading(ctx, fn)
	if errors.Is(err, vault.ErrForgotten) {
		err = fs.db.reading(ctx, fn)
	}
	if errors.Is(err, vault.ErrForgotten) {
		return errStale
	}
	return err
}

// readDocument reads a document, empty where there is none, and how its workspace stood at that moment.
func (fs *folds) readDocument(ctx context.Context, db querier, ws id.Workspace, def projection.Definition, key string) (s standing,
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

// Current returns those of the definitions whose documents the database holds in their version.
func (j *Journal) Current(ctx context.Context) (current []projection.Definition, err error) {
	err = j.db.reading(ctx, func(db querier) error {
		live, err := projections(ctx, db)
		current = nil
		for _, def := range j.folds.set.Definitions() {
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

// refold finds out how the database keeps documents, after another daemon has folded them anew. If that daemon has other definitions, this
// one stops.
func (fs *folds) refold(ctx context.Context) error {
	return fs.db.reading(ctx, func(db querier) error {
		f := &folding{nos: map[string]int64{}}
		if err := db.QueryRow(ctx, `SELECT folds FROM log`).Scan(&f.folds); err != nil {
			return err
		}
		found, err := projections(ctx, db) // read later: where they are newer than folds, the next append says so
		if err != nil {
			return err
		}
		for _, def := range fs.set.Definitions() {
			if found[def.Name].version != def.Version {
				return errSuperseded
			}
			f.nos[def.Name] = found[def.Name].no
		}
		fs.folding.Store(f)
		return nil
	})
}

// enter begins a transaction that writes, and finds out how documents are folded for as long as it lasts.
func (fs *folds) enter(ctx context.Context, db querier) error {
	if _, err := db.Exec(ctx, `SELECT enter(0, $1, $2)`, fs.reign.no, fs.together.no); err != nil {
		return err
	}
	var folds int64
	if err := db.QueryRow(ctx, `SELECT folds FROM log`).Scan(&folds); err != nil || folds == fs.folding.Load().folds {
		return err
	}
	return fs.refold(ctx)
}

// Rebuild implements projection.Store. Appends to any daemon of the database wait until it is done.
func (j *Journal) Rebuild(ctx context.Context, name string) error {
	def, err := j.folds.set.Lookup(name)
	if err != nil {
		return err
	}
	if err := j.folds.alone(ctx, func(tx pgx.Tx) error { return j.folds.rebuild(ctx, tx, []projection.Definition{def}, nil) }); err != nil {
		return err
	}
	j.shelf.clear()
	return j.folds.refold(ctx)
}

// alone runs a long transaction of this daemon's own, in a connection of its own.
func (fs *folds) alone(ctx context.Context, do func(pgx.Tx) error) error {
	if fs.db.readOnly || fs.db.ctx.Err() != nil {
		return journal.ErrClosed
	}
	err := pgx.BeginFunc(ctx, fs.db.writes, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
			return err
		}
		return do(tx)
	})
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return fs.db.trouble(err)
}

// open makes the documents agree with the definitions: it rebuilds documents of a new version and drops those that nobody defines any
// more. A daemon of another version that still runs finds out when it appends next.
func (fs *folds) open(ctx context.Context) error {
	err := fs.alone(ctx, func(tx pgx.Tx) error {
		found, err := projections(ctx, tx)
		if err != nil {
			return err
		}
		var changed []projection.Definition
		for _, def := range fs.set.Definitions() {
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
		return fs.rebuild(ctx, tx, changed, dropped)
	})
	if err != nil {
		return err
	}
	return fs.refold(ctx)
}

// rebuild folds projections anew beside the live ones, swaps them in, and drops the live ones and those named, all in one transaction.
// Others go on reading the live ones meanwhile.
func (fs *folds) rebuild(ctx context.Context, tx pgx.Tx, defs []projection.Definition, dropped []string) error {
	if _, err := tx.Exec(ctx, `LOCK TABLE projections IN EXCLUSIVE MODE`); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `SELECT enter(0, $1, $2)`, fs.reign.no, fs.together.no); err != nil {
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
	if err := fs.foldAll(ctx, tx, defs, beside); err != nil {
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
func (fs *folds) foldAll(ctx context.Context, tx pgx.Tx, defs []projection.Definition, into *folding) error {
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
		l := fs.blank()
		l.ws, l.db, l.ctx, l.set, l.standing, l.folding = ws, tx.Conn(), ctx, set, s, into
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
		events, err := l.j.events.read(ctx, l.db, journal.Query{Workspace: l.ws, From: from, Limit: journal.MaxRead}, s.no)
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
