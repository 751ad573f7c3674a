package disk

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/watch"
)

var _ space.Watch = (*watched)(nil)

// Watch implements space.Files. It reports nothing about withheld files: neither files aside, nor paths that a sweep moved there.
func (f *Files) Watch(ctx context.Context, p policy.Permit, recursive bool) (space.Watch, error) {
	a, root, err := f.begin(ctx, p, policy.FileList)
	if err != nil {
		return nil, err
	}
	if err := root.Close(); err != nil {
		return nil, err
	}
	name, _ := f.folders()
	tree := watch.New(func() (*beneath.Folder, error) { return f.at.open(name) }, a.Path, recursive, false)
	f.at.watch(tree)
	if err := tree.Begin(ctx); err != nil {
		f.at.unwatch(tree)
		return nil, f.refusal(err, a.Path)
	}
	return &watched{files: f, path: a.Path, tree: tree}, nil
}

// watched is a watch of one folder of a space's files.
type watched struct {
	files *Files
	path  string
	tree  *watch.Tree
}

// Next implements space.Watch.
func (w *watched) Next(ctx context.Context) ([]space.WatchEvent, error) {
	for {
		told, err := w.tree.Next(ctx)
		if err != nil {
			return nil, err
		}
		rules, err := readRules(w.files.at.home)
		if err != nil {
			return nil, err
		}
		kept := told[:0]
		for _, e := range told {
			if e, ok := e.Without(rules.holds); ok {
				e.Path, e.From = printable(e.Path), printable(e.From)
				kept = append(kept, e)
			}
		}
		if len(kept) > 0 {
			return kept, nil
		}
	}
}

// Join implements space.Watch.
func (w *watched) Join(p policy.Permit) error {
	a, root, err := w.files.begin(context.Background(), p, policy.FileList)
	if err != nil {
		return err
	}
	if a.Path != w.path {
		err = policy.ErrPermitMismatch
	}
	return errors.Join(err, root.Close())
}

// Polls implements space.Watch.
func (w *watched) Polls() time.Duration { return w.tree.Polls() }

// Close implements space.Watch.
func (w *watched) Close() error {
	w.files.at.unwatch(w.tree)
	return w.tree.Close()
}

// watches are the trees over the files of a place, which hear when these move.
type watches struct {
	mu    sync.Mutex // guards trees
	trees map[*watch.Tree]bool
}

// watch tells a tree when the files move, from now on.
func (p *place) watch(t *watch.Tree) {
	p.watches.mu.Lock()
	if p.watches.trees == nil {
		p.watches.trees = map[*watch.Tree]bool{}
	}
	p.watches.trees[t] = true
	p.watches.mu.Unlock()
}

// unwatch ends that.
func (p *place) unwatch(t *watch.Tree) {
	p.watches.mu.Lock()
	defer p.watches.mu.Unlock()
	delete(p.watches.trees, t)
}

// moved tells every tree that the files moved, or are gone.
func (p *place) moved() {
	p.watches.mu.Lock()
	defer p.watches.mu.Unlock()
	for t := range p.watches.trees {
		t.Moved()
	}
}
