package disk

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/overlay"
	"agentbox/internal/driver/disk/internal/snapshots"
)

// MaxDifferences is the largest number of entries in one comparison, whatever limit the caller sets.
const MaxDifferences = 10_000

// History holds the snapshots of one space's files. The daemon's writers wait for it: they change no file while it makes a snapshot or
// returns to one.
type History struct {
	store *Spaces
	space id.Space
	files *Files
	past  *snapshots.Past
}

var _ space.History = (*History)(nil)

// History returns the past of a space that has files here.
func (s *Spaces) History(sp id.Space, uid int, limits space.Limits) (space.History, error) {
	files, err := s.files(sp, uid, limits)
	if err != nil {
		return nil, err
	}
	return &History{store: s, space: sp, files: files, past: files.past}, nil
}

// past returns the one past of a space. The lock is held.
func (s *Spaces) past(sp id.Space, at *place, uid int, limits space.Limits) *snapshots.Past {
	p := s.pasts[sp]
	if p == nil {
		p = snapshots.New(at.folders(), uid, limits.DiskBytes, s.keys, s.entropy)
		s.pasts[sp] = p
	}
	return p
}

// fork makes the files of a new space what they are in a snapshot of another: from those of the frozen tree over which it lies, or from
// none.
func (s *Spaces) fork(ctx context.Context, made id.Space, uid int, limits space.Limits, from space.Seed, over overlay.Below) (space.Sown,
	error) {
	s.mu.Lock()
	parent := s.pasts[from.Space]
	s.mu.Unlock()
	if parent == nil { // its owner and its bound do not matter, because nothing is made in it
		return space.Sown{}, fault.New(fault.NotFound, space.ErrSnapshotNotFound.Code, "the space %s has no snapshots on this host", from.Space)
	}
	files, err := s.files(made, uid, limits)
	if err != nil {
		return space.Sown{}, err
	}
	var tree *snapshots.Tree
	if over.Tree != "" {
		if tree, err = s.tree(ctx, over.Tree); err != nil {
			return space.Sown{}, err
		}
		if err := files.at.top(); err != nil {
			return space.Sown{}, err
		}
	}
	kept, err := files.past.Fork(ctx, parent, from.Snapshot, tree)
	if err != nil {
		return space.Sown{}, err
	}
	held, err := s.withholdInFork(ctx, files, from)
	return space.Sown{Files: int(kept.Files), Withheld: held}, err
}

// withholdInFork withholds from the code of a fork the withheld files of the other space, and those that its own policy withholds besides.
func (s *Spaces) withholdInFork(ctx context.Context, files *Files, from space.Seed) (int, error) {
	home, err := s.home(from.Space)
	if err != nil {
		return 0, err
	}
	carried, err := files.carryAside(ctx, home)
	if err != nil || from.Withhold == nil {
		return carried, err
	}
	rules, suspect, err := suspects(home, from.Snapshot)
	if err != nil || !suspect && !from.Strict {
		return carried, err
	}
	other := from.Strict || !slices.Contains(rules.Spared, from.Snapshot)
	kept, err := files.past.Kept(ctx)
	if err != nil {
		return carried, err
	}
	files.tree.Lock()
	defer files.tree.Unlock()
	swept, err := files.sweepUnder(ctx, *from.Withhold, kept, other)
	return carried + len(swept.Withheld), err
}

// Sync makes the snapshots of all spaces durable and removes leftovers of rewinds. A power cut can lose the snapshots since the last Sync.
// The remaining ones are intact.
func (s *Spaces) Sync(ctx context.Context) error {
	s.mu.Lock()
	pasts := slices.Collect(maps.Values(s.pasts))
	s.mu.Unlock()
	var all error
	for _, p := range pasts {
		all = errors.Join(all, p.Sync(ctx))
	}
	return all
}

// Disturb says that code is about to run in the space.
func (h *History) Disturb() { h.past.Disturb() }

// Distrust says that code runs in the space and goes on.
func (h *History) Distrust() { h.past.Distrust() }

// Keep records the files as they are now.
func (h *History) Keep(ctx context.Context) (space.Snapshot, error) {
	h.files.tree.Lock()
	defer h.files.tree.Unlock()
	return h.past.Keep(ctx)
}

// Kept returns the snapshots that can be returned to, the oldest first, and how many bytes they take.
func (h *History) Kept(ctx context.Context) ([]space.Snapshot, int64, error) {
	kept, err := h.past.Kept(ctx)
	if err != nil {
		return nil, 0, err
	}
	bytes, err := h.past.Usage(ctx)
	return kept, bytes, err
}

// Survey says how many bytes a sweep would free.
func (h *History) Survey(ctx context.Context, gone []event.Digest) (int64, error) {
	return h.past.Sweep(ctx, gone, true)
}

// Sweep lets snapshots go by a content.sweep permit, and removes what none needs any more.
func (h *History) Sweep(ctx context.Context, p policy.Permit, gone []event.Digest) (int64, error) {
	if _, err := h.redeem(p, policy.ContentSweep); err != nil {
		return 0, err
	}
	return h.past.Sweep(ctx, gone, false)
}

// Brought returns the files that one snapshot holds and an earlier one does not.
func (h *History) Brought(ctx context.Context, before, after event.Digest) (map[event.Digest]string, error) {
	return h.past.Brought(ctx, before, after, printable)
}

// Bearing returns which of some contents each kept snapshot holds.
func (h *History) Bearing(ctx context.Context, contents map[event.Digest]bool) ([]space.Bearing, error) {
	return h.past.Bearing(ctx, contents, printable)
}

// Purge removes what an earlier version kept of contents without sealing it, and what a frozen tree holds of them.
func (h *History) Purge(ctx context.Context, contents map[event.Digest]bool) error {
	return errors.Join(h.past.Purge(ctx, contents), h.store.purge(ctx, h.space, contents))
}

// Diff compares the two snapshots of a space.diff permit.
func (h *History) Diff(ctx context.Context, p policy.Permit, limit int) ([]space.Difference, error) {
	a, err := h.redeem(p, policy.SpaceDiff)
	if err != nil {
		return nil, err
	}
	from, err := event.ParseDigest(a.Target)
	if err != nil {
		return nil, policy.ErrPermitMismatch
	}
	if limit <= 0 || limit > MaxDifferences {
		limit = MaxDifferences
	}
	return h.past.Diff(ctx, from, a.Content, limit, printable)
}

// Archive writes the snapshot of a file.archive permit as a tar.gz file.
func (h *History) Archive(ctx context.Context, p policy.Permit, w io.Writer, may func(path string) bool) (int, error) {
	a, err := h.redeem(p, policy.FileArchive)
	if err != nil {
		return 0, err
	}
	if a.Path != "." || a.MaxBytes <= 0 {
		return 0, policy.ErrPermitMismatch
	}
	return h.past.Archive(ctx, a.Content, w, a.MaxBytes, may)
}

// Rewind returns the files to the snapshot of a space.rewind permit.
func (h *History) Rewind(ctx context.Context, p policy.Permit) (space.Snapshot, space.Snapshot, error) {
	a, err := h.redeem(p, policy.SpaceRewind)
	if err != nil {
		return space.Snapshot{}, space.Snapshot{}, err
	}
	h.files.tree.Lock()
	defer h.files.tree.Unlock()
	defer h.files.forget()
	return h.files.rewind(ctx, a.Content)
}

func (h *History) redeem(p policy.Permit, kind string) (policy.Action, error) {
	a, err := p.Redeem(kind)
	if err != nil {
		return policy.Action{}, err
	}
	if a.Space != h.space {
		return policy.Action{}, policy.ErrPermitMismatch
	}
	return a, nil
}
