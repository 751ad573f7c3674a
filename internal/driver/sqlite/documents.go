package sqlite

import (
	"context"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
)

var (
	_ projection.Store  = (*Journal)(nil)
	_ projection.Lender = (*Journal)(nil)
)

// foldedAtOnce is how many events a rebuild folds before it writes the documents down.
const foldedAtOnce = journal.MaxRead

// Document implements projection.Reader.
func (j *Journal) Document(ctx context.Context, ws id.Workspace, name, key string) (projection.Document, error) {
	d, err := j.Lend(ctx, ws, name, key)
	d.Body = slices.Clone(d.Body)
	return d, err
}

// Lend implements projection.Lender.
func (j *Journal) Lend(ctx context.Context, ws id.Workspace, name, key string) (projection.Document, error) {
	if _, err := j.folds.set.Lookup(name); err != nil {
		return projection.Document{}, err
	}
	if err := ctx.Err(); err != nil {
		return projection.Document{}, err
	}
	select {
	case <-j.views.done:
		return projection.Document{}, journal.ErrClosed
	default:
	}
	if err := j.folds.lookAhead(ctx, ws); err != nil {
		return projection.Document{}, err
	}
	ref := projection.Ref{Workspace: ws, Name: name, Key: key}
	d, found, mine := j.views.shelf.find(ref)
	if found {
		return present(d)
	}
	no := j.views.watch.number(ws)
	err := j.views.reading(ctx, func(r *connection) error {
		_, err := r.one(func(s *sqlite3.Stmt) { d = scanDocument(s) },
			`SELECT d.key, d.version, d.seq, d.body FROM projections p JOIN documents d ON d.projection = p.no AND d.workspace = ? AND d.key = ? `+
				`WHERE p.name = ?`,
			no, key, name)
		return err
	})
	j.views.shelf.fill(ref, mine, d, err)
	if err != nil {
		return projection.Document{}, err
	}
	return present(d)
}

// present returns a document that was found, and ErrNotFound for version 0, which no document has.
func present(d projection.Document) (projection.Document, error) {
	if d.Version == 0 {
		return projection.Document{}, projection.ErrNotFound
	}
	return d, nil
}

// Documents implements projection.Reader.
func (j *Journal) Documents(ctx context.Context, q projection.Query) ([]projection.Document, error) {
	q, err := q.Check()
	if err != nil {
		return nil, err
	}
	if _, err := j.folds.set.Lookup(q.Name); err != nil {
		return nil, err
	}
	if err := j.folds.lookAhead(ctx, q.Workspace); err != nil {
		return nil, err
	}
	var docs []projection.Document
	no := j.views.watch.number(q.Workspace)
	newer := j.views.shelf.newer(q)
	err = j.views.reading(ctx, func(r *connection) error {
		return r.snapshot(func() error {
			docs, err = r.list(q, no, newer)
			return err
		})
	})
	return docs, err
}

// Entries implements projection.Indexed.
func (j *Journal) Entries(ctx context.Context, ws id.Workspace, name string) (entries []projection.Entry, still bool, err error) {
	if !j.file.readOnly {
		return nil, false, ctx.Err()
	}
	if err := j.folds.lookAhead(ctx, ws); err != nil {
		return nil, false, err
	}
	no := j.views.watch.number(ws)
	newer := j.views.shelf.newer(projection.Query{Workspace: ws, Name: name})
	for _, c := range newer.docs {
		for _, index := range c.indexes {
			entries = append(entries, projection.Entry{Index: index, Key: c.ref.Key})
		}
	}
	err = j.views.reading(ctx, func(r *connection) error {
		rows, err := r.rows(`SELECT name, value, key FROM entries WHERE projection = (SELECT no FROM projections WHERE name = ?) AND workspace `+
			`= ?`, name, no)
		if err != nil {
			return err
		}
		for rows.Step() {
			index := projection.Index{Name: rows.ColumnText(0), Value: rows.ColumnText(1)}
			if e := (projection.Entry{Index: index, Key: rows.ColumnText(2)}); newer.seqs[e.Key] == 0 {
				entries = append(entries, e)
			}
		}
		return finish(rows)
	})
	return entries, true, err
}

// listing writes a query in SQL; the index of the keys, or that of the entries, gives both the selection and the order. It returns so
// many more than the query's limit.
func listing(q projection.Query, no int64, more int) (string, []any) {
	table, key := `documents d INDEXED BY sqlite_autoindex_documents_1`, `d.key`
	where, args := `d.projection = (SELECT no FROM projections WHERE name = ?) AND d.workspace = ?`, []any{q.Name, no}
	if q.Index != (projection.Index{}) {
		table, key = `entries n CROSS JOIN documents d INDEXED BY sqlite_autoindex_documents_1 ON d.projection = n.projection AND d.workspace `+
			`= n.workspace AND d.key = n.key`, `n.key`
		where = `n.projection = (SELECT no FROM projections WHERE name = ?) AND n.workspace = ? AND n.name = ? AND n.value = ?`
		args = append(args, q.Index.Name, q.Index.Value)
	}
	compare, order := ` > ?`, ``
	if q.Newest {
		compare, order = ` < ?`, ` DESC`
	}
	if q.After != "" {
		where += ` AND ` + key + compare
		args = append(args, q.After)
	}
	args = append(args, int64(q.Limit+more))
	return `SELECT d.key, d.version, d.seq, d.body FROM ` + table + ` WHERE ` + where + ` ORDER BY ` + key + order + ` LIMIT ? + 0`, args
}

func scanDocument(row *sqlite3.Stmt) projection.Document {
	return projection.Document{
		Key: row.ColumnText(0), Version: uint64(row.ColumnInt64(1)), Seq: uint64(row.ColumnInt64(2)), Body: row.ColumnBlob(3, nil),
	}
}

// Rebuild implements projection.Store. Appends wait until it is done.
func (j *Journal) Rebuild(ctx context.Context, name string) error {
	def, err := j.folds.set.Lookup(name)
	if err != nil {
		return err
	}
	return j.planning.do(&request{ctx: ctx, task: func(ctx context.Context) error {
		j.views.unshelve(false)
		defer func() { j.views.unshelve(j.health.failed.Load() == nil) }()
		if err := j.folds.rebuild(ctx, []projection.Definition{def}, nil); err != nil {
			return err
		}
		if err := j.planning.ledger.load(context.WithoutCancel(ctx), j.planning.ledger.r); err != nil {
			return j.health.fail(err)
		}
		return nil
	}})
}

// Current returns those of the definitions whose documents the file holds in their version. All of them, unless an earlier program wrote
// the log and none has opened it for writing since.
func (j *Journal) Current(ctx context.Context) ([]projection.Definition, error) {
	return j.folds.current(ctx)
}

// projections returns the versions of those that the file holds.
func (c *connection) projections() (map[string]int64, error) {
	rows, err := c.rows(`SELECT name, version FROM projections`)
	if err != nil {
		return nil, err
	}
	live := map[string]int64{}
	for rows.Step() {
		live[rows.ColumnText(0)] = rows.ColumnInt64(1)
	}
	return live, finish(rows)
}

// number gives each definition a new number, beyond all that were ever given to rows that may still be there.
func (l *ledger) number(defs []projection.Definition) error {
	next := int64(0)
	if _, err := l.r.one(func(s *sqlite3.Stmt) { next = s.ColumnInt64(0) }, `SELECT max(no) FROM projections`); err != nil {
		return err
	}
	l.projections = map[string]int64{}
	for _, def := range defs {
		next++
		l.projections[def.Name] = next
	}
	return nil
}

// foldAll folds a workspace's whole log.
func (l *ledger) foldAll(ctx context.Context, ws id.Workspace, t *tenant) error {
	for from := uint64(1); from <= t.head; {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.begin()
		events, err := l.r.read(journal.Query{Workspace: ws, From: from, Limit: foldedAtOnce}, t.no)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return missing(ws, t.head, from)
		}
		from = events[len(events)-1].Seq + 1
		if slices.ContainsFunc(events, func(e event.Event) bool { return e.Withheld == event.Sealed }) {
			return vault.ErrMissing
		}
		if err := l.fold(events); err != nil {
			return err
		}
		g := &group{}
		if err := l.finish(g, true); err != nil {
			return err
		}
		for i := range g.flush.docs {
			if err := l.r.writeDocument(&g.flush.docs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
