package snapshots

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/seal"
	"agentbox/internal/kernel/vault"
)

// Shelf reads the kept files of one space. It changes nothing, so a daemon may work on them at the same time.
type Shelf struct {
	kept  []space.Snapshot
	packs *packs
	held  map[event.Digest]bool // content that was read and is whole
}

// LookAt reads the snapshots of a folder. A missing folder has none.
func LookAt(ctx context.Context, dir string, keys vault.Keys) (*Shelf, error) {
	for try := 1; ; try++ {
		packs, err := openPacks(ctx, dir, keys, true)
		if errors.Is(err, fs.ErrNotExist) && try < attempts { // a daemon has gathered packs meanwhile
			continue
		}
		if errors.Is(err, fs.ErrNotExist) {
			return &Shelf{held: map[event.Digest]bool{}}, nil
		}
		if err != nil {
			return nil, refusal(err)
		}
		p := &Past{folders: Folders{Kept: dir}, packs: packs}
		if err := p.readKept(); err != nil {
			return nil, refusal(err)
		}
		return &Shelf{kept: p.kept, packs: packs, held: map[event.Digest]bool{}}, nil
	}
}

// Keeps implements space.Shelf.
func (s *Shelf) Keeps(root event.Digest) bool {
	return slices.ContainsFunc(s.kept, func(k space.Snapshot) bool { return k.Root == root })
}

// Hold implements space.Shelf.
func (s *Shelf) Hold(ctx context.Context, root event.Digest, most int64) (space.HeldSnapshot, error) {
	h := &holder{ctx: ctx, shelf: s, most: most}
	err := h.folder(root)
	s.packs.rest()
	if fault.CodeOf(err) == space.ErrSnapshotDamaged.Code {
		h.report.Damage, err = err.Error(), nil
	}
	return h.report, refusal(err)
}

// holder reads one snapshot.
type holder struct {
	ctx    context.Context
	shelf  *Shelf
	most   int64
	report space.HeldSnapshot
}

// affords reports whether so many bytes may still be read, and counts them.
func (h *holder) affords(size int64) bool {
	if size > h.most-h.report.Read {
		h.report.Left++
		return false
	}
	h.report.Read += size
	return true
}

// closed counts what cannot be opened because its key is gone, and returns any other error.
func (h *holder) closed(err error) error {
	switch {
	case errors.Is(err, vault.ErrMissing):
		h.report.Sealed++
		return nil
	case errors.Is(err, vault.ErrForgotten):
		h.report.Forgotten++
		return nil
	}
	return err
}

// folder reads a folder and its contents. If it could not read all of a folder, it reads the folder again in another snapshot.
func (h *holder) folder(d event.Digest) error {
	if h.shelf.held[d] {
		return nil
	}
	if err := h.ctx.Err(); err != nil {
		return err
	}
	if at, ok := h.shelf.packs.objects[d]; ok && !h.affords(at.size) {
		return nil
	}
	entries, err := h.shelf.packs.folder(d)
	if err != nil {
		return h.closed(err)
	}
	h.report.Contents++
	before := h.report
	for _, e := range entries {
		switch e.kind {
		case isFolder:
			err = h.folder(e.digest)
		case isFile:
			err = h.file(e)
		}
		if err != nil {
			return err
		}
	}
	h.shelf.held[d] = before.Left == h.report.Left && before.Sealed == h.report.Sealed
	return nil
}

// file reads the content of a file.
func (h *holder) file(e entry) error {
	if h.shelf.held[e.digest] {
		return nil
	}
	at, ok := h.shelf.packs.objects[e.digest]
	if !ok || at.size != e.size {
		return damaged("the content of %+.80q is missing", e.name)
	}
	if !h.affords(at.size) {
		return nil
	}
	from, err := h.shelf.packs.content(e.digest, at)
	if err != nil {
		return h.closed(err)
	}
	_, got, err := beneath.CopyHashed(h.ctx, io.Discard, from, at.size)
	if err != nil && !seal.Broken(err) {
		return err
	}
	if err != nil || got != e.digest {
		return damaged("the content of %+.80q is not what was stored; the disk changed it", e.name)
	}
	h.report.Contents++
	h.shelf.held[e.digest] = true
	return nil
}
