package sqlite

import (
	"context"
	"errors"
	"maps"
	"slices"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/projection"
)

// folds makes the documents agree with their definitions.
type folds struct {
	committer *committer
	file      *file
	planning  *planning
	views     *views
	set       *projection.Set
}

// lookAhead folds the events that the tables of a workspace lack, once, in a log that this program does not write. Its daemon was killed,
// or is at work.
func (fs *folds) lookAhead(ctx context.Context, ws id.Workspace) error {
	if !fs.file.readOnly {
		return nil
	}
	current, err := fs.current(ctx)
	if err != nil {
		return err
	}
	return fs.views.reading(ctx, func(*connection) error {
		l := &fs.planning.ledger
		t := l.tenants[ws]
		if t == nil || t.flushed >= t.head {
			return nil
		}
		if l.set, err = projection.NewSet(current); err != nil {
			return err
		}
		l.keeps = true
		written, err := l.catchUp(ctx, []id.Workspace{ws}, func(*group) error { return nil })
		if err != nil {
			// The partly folded state is invalid: load it again, so that a repeated call gets the same answer.
			return errors.Join(err, l.load(context.WithoutCancel(ctx), l.r))
		}
		for _, g := range written {
			fs.views.shelf.lay(g)
		}
		t.flushed = t.head
		return nil
	})
}

func (fs *folds) current(ctx context.Context) ([]projection.Definition, error) {
	var current []projection.Definition
	err := fs.views.reading(ctx, func(r *connection) error {
		live, err := r.projections()
		for _, def := range fs.set.Definitions() {
			if live[def.Name] == int64(def.Version) {
				current = append(current, def)
			}
		}
		return err
	})
	return current, err
}

// open makes the documents agree with the definitions: it rebuilds the documents of a new version and drops those without a definition.
func (fs *folds) open(ctx context.Context) error {
	live, err := fs.committer.w.projections()
	if err != nil {
		return err
	}
	var current, changed []projection.Definition
	for _, def := range fs.set.Definitions() {
		if live[def.Name] == int64(def.Version) {
			current = append(current, def)
		} else {
			changed = append(changed, def)
		}
		delete(live, def.Name)
	}
	if fs.planning.ledger.set, err = projection.NewSet(current); err != nil {
		return err
	}
	unfolded := slices.Collect(maps.Keys(live))
	for _, def := range changed {
		unfolded = append(unfolded, def.Name)
	}
	if err := fs.committer.recover(ctx, unfolded...); err != nil {
		return err
	}
	fs.planning.ledger.set = fs.set
	if len(changed)+len(live) == 0 {
		return nil
	}
	var dropped []string
	for name := range live {
		dropped = append(dropped, name)
	}
	return fs.rebuild(ctx, changed, dropped)
}

// rebuild folds the projections anew beside the live ones, swaps them in, and drops the live ones and those named, all in one transaction.
func (fs *folds) rebuild(ctx context.Context, defs []projection.Definition, dropped []string) error {
	return fs.committer.transact(func() error { return fs.swap(ctx, defs, dropped) })
}

func (fs *folds) swap(ctx context.Context, defs []projection.Definition, dropped []string) (err error) {
	beside := ledger{}
	if beside.set, err = projection.NewSet(defs); err != nil {
		return err
	}
	if err := beside.load(ctx, fs.committer.w); err != nil {
		return err
	}
	old := beside.projections
	if err := beside.number(defs); err != nil {
		return err
	}
	for ws, t := range beside.tenants {
		if err := beside.foldAll(ctx, ws, t); err != nil {
			return err
		}
	}
	for _, def := range defs {
		dropped = append(dropped, def.Name)
	}
	for _, name := range dropped {
		if old[name] == 0 {
			continue
		}
		for _, sql := range []string{`DELETE FROM projections WHERE no = ?`, `DELETE FROM entries WHERE projection = ?`,
			`DELETE FROM documents WHERE projection = ?`} {
			if err := fs.committer.w.exec(sql, old[name]); err != nil {
				return err
			}
		}
	}
	for _, def := range defs {
		if err := fs.committer.w.exec(`INSERT INTO projections (no, name, version) VALUES (?, ?, ?)`, beside.projections[def.Name], def.Name,
			int64(def.Version)); err != nil {
			return err
		}
	}
	return nil
}
