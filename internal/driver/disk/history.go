package disk

import (
	"context"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/snapshots"
)

// MaxDifferences is the most entries of one comparison, whatever limit is asked for.
const MaxDifferences = 10_000

// History is what the files of one space were. Its writers wait for it: no file changes from outside while a snapshot is made or returned
// to.
type History struct {
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
	return &History{space: sp, files: files, past: files.past}, nil
}

// past returns the one past of a space. The lock is held.
func (s *Spaces) past(sp id.Space, home string, uid int, limits space.Limits) *snapshots.Past {
	p := s.pasts[sp]
	if p == nil {
		p = snapshots.New(snapshots.Folders{
			Files: filepath.Join(home, filesFolder), Staging: filepath.Join(home, stagingFolder), Kept: filepath.Join(home, keptFolder),
		}, uid, limits.DiskBytes, s.entropy)
		s.pasts[sp] = p
	}
	return p
}

// fork fills the files of a new space with a snapshot of another.
func (s *Spaces) fork(ctx context.Context, made id.Space, uid int, limits space.Limits, from space.Seed) (int, error) {
	s.mu.Lock()
	parent := s.pasts[from.Space]
	s.mu.Unlock()
	if parent == nil { // its owner and bound do not matter: nothing is made in it
		return 0, fault.New(fault.NotFound, space.ErrSnapshotNotFound.Code, "the space %s has no snapshots on this host", from.Space)
	}
	files, err := s.files(made, uid, limits)
	if err != nil {
		return 0, err
	}
	kept, err := files.past.Fork(ctx, parent, from.Snapshot)
	return int(kept.Files), err
}

// Sync makes the snapshots of all spaces durable and removes what rewinds have left over. A power cut takes the snapshots since the last
// one that was; what it leaves is what it was.
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

// Rewind makes the files what they were in the snapshot of a space.rewind permit.
func (h *History) Rewind(ctx context.Context, p policy.Permit) (space.Snapshot, space.Snapshot, error) {
	a, err := h.redeem(p, policy.SpaceRewind)
	if err != nil {
		return space.Snapshot{}, space.Snapshot{}, err
	}
	h.files.tree.Lock()
	defer h.files.tree.Unlock()
	defer h.files.forget()
	return h.past.Rewind(ctx, a.Content)
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
