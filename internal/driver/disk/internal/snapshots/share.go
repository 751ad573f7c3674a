package snapshots

import (
	"context"
	"math"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/seal"
	"agentbox/internal/kernel/vault"
)

// Tree describes the files of a frozen folder. Neither changes any more.
type Tree struct {
	now *node
}

// Root is the hash by which a snapshot of the same files goes.
func (t *Tree) Root() event.Digest { return t.now.digest }

// Look looks at every file of such a folder.
func Look(ctx context.Context, folder string) (*Tree, error) {
	root, err := beneath.Root(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	s := &scan{ctx: ctx, root: root, w: nowhere{}, bytes: math.MaxInt64, left: MaxEntries}
	n, err := s.folder(root, ".", ".", beneath.Stat{Mode: beneath.FolderMode}, 1, nil)
	if err != nil {
		return nil, refusal(err)
	}
	return &Tree{n}, nil
}

// Bearing returns the files that have one of some contents: their paths, by inode.
func (t *Tree) Bearing(contents map[event.Digest]bool) map[uint64][]string {
	found := map[uint64][]string{}
	var in func(rel string, n *node)
	in = func(rel string, n *node) {
		for name, l := range n.leaves {
			if contents[l.digest] && l.target == "" {
				found[l.inode] = append(found[l.inode], beneath.Join(rel, name))
			}
		}
		for name, inner := range n.folders {
			in(beneath.Join(rel, name), inner)
		}
	}
	in(".", t.now)
	return found
}

// Share moves the files to where other spaces can share them: move does it, and returns where they are found from then on. They are the
// same before and after. It returns false, and does nothing, where they hold something that no snapshot does, that belongs to another
// user, or that was forgotten.
func (p *Past) Share(ctx context.Context, move func() (Folders, error)) (*Tree, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return nil, false, err
	}
	defer p.packs.rest()
	if _, err := p.keep(ctx); err != nil {
		return nil, false, ctx.Err() // what no snapshot can be made of can be forked as it was
	}
	if p.now.sum.omitted > 0 || p.now.sum.foreign > 0 {
		return nil, false, nil
	}
	live := map[event.Digest]struct{}{}
	p.now.needs(live)
	if err := p.packs.held(live); err != nil {
		return nil, false, nil //nolint:nilerr // a fork of it returns the error
	}
	f, err := move()
	if err != nil {
		return nil, false, err
	}
	p.folders = f
	return &Tree{p.now}, true, nil
}

// needs adds the needs of a snapshot of a folder: the texts of the folders and the contents of the files.
func (n *node) needs(live map[event.Digest]struct{}) {
	live[n.digest] = struct{}{}
	for _, l := range n.leaves {
		if l.target == "" {
			live[l.digest] = struct{}{}
		}
	}
	for _, inner := range n.folders {
		inner.needs(live)
	}
}

// held refuses contents of which one was forgotten or has no key here.
func (p *packs) held(live map[event.Digest]struct{}) error {
	for d := range live {
		at, ok := p.objects[d]
		if !ok || at.pack.plain {
			continue
		}
		if err := seal.Forgotten(p.keys, at.key, d); err != nil {
			return err
		}
	}
	return nil
}

// forgotten is the error about a file whose content was forgotten.
func forgotten(err error, name string) error {
	return fault.Wrap(err, vault.ErrForgotten.Kind, vault.ErrForgotten.Code,
		"the content of %+.80q was redacted, and its key destroyed: nothing can be made of it any more", name).
		With("rewind to a snapshot without it; agentbox space diff shows what a snapshot holds")
}
