package snapshots

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
)

// Rewind returns the files to a kept snapshot. From is the snapshot of the files before, which it keeps as well. It changes nothing until
// all content lies ready. After that it finishes even if ctx ends; if the daemon ends, the next one finishes it.
func (p *Past) Rewind(ctx context.Context, to event.Digest) (from, reached space.Snapshot, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return from, reached, err
	}
	defer p.packs.rest()
	target, err := p.find(to)
	if err != nil {
		return from, reached, err
	}
	if err := p.look(ctx, nil, nil); err != nil {
		return from, reached, err
	}
	from = p.now.snapshot()
	if err := p.note(from); err != nil {
		return from, reached, refusal(err)
	}
	if err := p.rewinding().move(ctx, to, true); err != nil {
		// Undo the steps that were done as far as possible. The next opening of the past finishes the rest.
		return from, reached, errors.Join(err, p.rewinding().undo(from.Root))
	}
	if err := p.note(p.now.snapshot()); err != nil {
		return from, reached, refusal(err)
	}
	return from, target, refusal(p.gather())
}

// rewinding takes the files of a space from one snapshot to another, through every crash.
type rewinding struct{ *Past }

func (p *Past) rewinding() rewinding { return rewinding{p} }

// move changes the files from p.now to a snapshot.
func (p rewinding) move(ctx context.Context, to event.Digest, announce bool) error {
	if p.now.digest == to && p.now.sum.omitted == 0 {
		return p.finish()
	}
	root, err := beneath.Root(p.folders.Files)
	if err != nil {
		return err
	}
	defer root.Close()
	staging, err := beneath.Root(p.folders.Staging)
	if err != nil {
		return err
	}
	defer staging.Close()
	name, err := beneath.RandomName(p.entropy)
	if err != nil {
		return err
	}
	// All new files are in a folder of their own, which is removed as a whole in every case.
	made := filepath.Join(p.folders.Staging, name)
	if err := os.Mkdir(made, 0o700); err != nil {
		return refusal(err)
	}
	ready, err := beneath.Dir(staging, name)
	if err != nil {
		return refusal(err)
	}
	defer ready.Close()
	defer func() { _ = beneath.Empty(context.WithoutCancel(ctx), made, p.entropy); _ = os.Remove(made) }()
	way := &plan{maker: p.maker(ctx), staging: ready, only: map[string]bool{}}
	if err := way.between(".", p.now, to); err != nil {
		return refusal(err)
	}
	trash, err := p.openTrash()
	if err != nil {
		return refusal(err)
	}
	defer trash.Close()
	if announce {
		if err := p.durably(rewindingFile, to.String()+"\n"); err != nil {
			return refusal(err)
		}
	}
	ctx = context.WithoutCancel(ctx)
	way.ctx = ctx
	if err := way.apply(root, trash); err != nil {
		return refusal(err)
	}
	if err := p.look(ctx, way.only, way.made); err != nil {
		return err
	}
	if p.now.digest != to {
		return fault.New(fault.Conflict, space.ErrFileChanged.Code, "something changed the files while they were rewound; they are %s now",
			p.now.digest)
	}
	return p.finish()
}

// finish records that the files have reached the snapshot.
func (p rewinding) finish() error {
	err := os.Remove(filepath.Join(p.folders.Kept, rewindingFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return refusal(err)
}

// undo goes back after a rewind that failed on its way.
func (p rewinding) undo(from event.Digest) error {
	if _, err := os.Lstat(filepath.Join(p.folders.Kept, rewindingFile)); errors.Is(err, os.ErrNotExist) {
		return nil // nothing was changed
	}
	ctx := context.Background()
	p.Disturb()
	err := p.look(ctx, nil, nil)
	if err == nil {
		err = p.move(ctx, from, false)
	}
	if err != nil {
		p.packs, p.now = nil, nil // to be opened again, and settled
		p.unwatch()
		return fault.Wrap(err, fault.Unavailable, space.ErrRewindIncomplete.Code,
			"the files lie between two snapshots; the rewind is finished when the space is used again")
	}
	return nil
}

// settle finishes a rewind whose end no daemon saw.
func (p rewinding) settle(ctx context.Context) error {
	raw, err := os.ReadFile(filepath.Join(p.folders.Kept, rewindingFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return refusal(err)
	}
	to, err := event.ParseDigest(strings.TrimSpace(string(raw)))
	if err != nil {
		return damaged("the rewind that was under way cannot be read")
	}
	if err := p.look(ctx, nil, nil); err != nil {
		return err
	}
	if err := p.move(ctx, to, false); err != nil {
		return err
	}
	return refusal(p.note(p.now.snapshot()))
}

// openTrash opens the folder to which folders are moved that no longer belong to the files.
func (p rewinding) openTrash() (*beneath.Folder, error) {
	if err := os.Mkdir(p.trash(), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return beneath.Root(p.trash())
}

// Fork makes the files those of another space's snapshot, which becomes the first snapshot of this space. No other snapshot of the other
// space can be reached from here. Before the call the files are those of shared, or there are none if shared is nil.
func (p *Past) Fork(ctx context.Context, from *Past, root event.Digest, shared *Tree) (space.Snapshot, error) {
	from.mu.Lock()
	defer from.mu.Unlock()
	if err := from.load(ctx); err != nil {
		return space.Snapshot{}, err
	}
	defer from.packs.rest()
	s, err := from.find(root)
	if err != nil {
		return s, err
	}
	if s.Bytes > p.bound(1) {
		return s, fault.New(fault.Exhausted, space.ErrQuota.Code, "the snapshot has %d bytes; the new space's disk limit is %d", s.Bytes,
			p.bound(1)).
			With("ask for a larger disk_bytes")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return s, err
	}
	defer p.packs.rest()
	if err := from.packs.lend(from.rewinding().needs(root, shared), p.packs); err != nil {
		return s, refusal(err)
	}
	if shared == nil {
		err = p.rewinding().fill(ctx, root)
	} else {
		p.now = shared.now
		p.unwatch()
		err = p.rewinding().move(ctx, root, false)
	}
	if err != nil {
		return s, err
	}
	if p.now.digest != root {
		return s, damaged("the files that were made of it are %s", p.now.digest)
	}
	return s, refusal(p.note(s))
}

// needs returns the needs of a snapshot. Walking the scanned files costs a tenth of reading the snapshot.
func (p rewinding) needs(root event.Digest, shared *Tree) map[event.Digest]struct{} {
	live := map[event.Digest]struct{}{}
	switch {
	case p.now != nil && p.now.digest == root:
		p.now.needs(live)
	case shared != nil && shared.Root() == root:
		shared.now.needs(live)
	default:
		p.packs.reach(live, root)
	}
	return live
}

// fill makes every file of a snapshot in an empty folder.
func (p rewinding) fill(ctx context.Context, root event.Digest) error {
	files, err := beneath.Root(p.folders.Files)
	if err != nil {
		return err
	}
	defer files.Close()
	m := p.maker(ctx)
	if err := m.fill(files, root); err != nil {
		return refusal(err)
	}
	return p.look(ctx, nil, m.made)
}

func (p rewinding) maker(ctx context.Context) maker {
	return maker{ctx: ctx, packs: p.packs, uid: p.uid, entropy: p.entropy, made: map[uint64]event.Digest{}}
}
