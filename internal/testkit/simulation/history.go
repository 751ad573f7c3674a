package simulation

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// spaceHistory holds earlier states of one space's files as copies, which outlive a daemon.
type spaceHistory struct {
	h     *host
	space id.Space
}

var _ space.History = (*spaceHistory)(nil)

// History implements space.Store.
func (f *hostFiles) History(s id.Space, uid int, limits space.Limits) (space.History, error) {
	if _, _, err := f.Open(s, uid, limits); err != nil {
		return nil, err
	}
	return &spaceHistory{f.h, s}, nil
}

// Sync implements space.Store.
func (f *hostFiles) Sync(context.Context) error { return nil }

// Disturb implements space.History. It does nothing, because each snapshot reads everything.
func (p *spaceHistory) Disturb() {}

// Distrust implements space.History.
func (p *spaceHistory) Distrust() {}

// Keep implements space.History.
func (p *spaceHistory) Keep(ctx context.Context) (space.Snapshot, error) {
	if err := p.h.gone(ctx); err != nil {
		return space.Snapshot{}, err
	}
	p.h.w.mu.Lock()
	defer p.h.w.mu.Unlock()
	return p.keep()
}

func (p *spaceHistory) keep() (space.Snapshot, error) {
	files := p.h.w.files[p.space]
	text, err := json.Marshal(files) // in the order of the names
	if err != nil {
		return space.Snapshot{}, err
	}
	s := space.Snapshot{Root: event.DigestOf(text), Files: int64(len(files))}
	for _, content := range files {
		s.Bytes += int64(len(content))
	}
	if p.h.w.past == nil {
		p.h.w.past = map[event.Digest]map[string]string{}
	}
	p.h.w.past[s.Root] = maps.Clone(files)
	return s, nil
}

// Kept implements space.History.
func (p *spaceHistory) Kept(ctx context.Context) ([]space.Snapshot, int64, error) {
	now, err := p.Keep(ctx)
	return []space.Snapshot{now}, now.Bytes, err
}

// Brought implements space.History: it tells of none.
func (p *spaceHistory) Brought(context.Context, event.Digest, event.Digest) (map[event.Digest]string, error) {
	return nil, nil
}

// Bearing implements space.History: it tells of none.
func (p *spaceHistory) Bearing(context.Context, map[event.Digest]bool) ([]space.Bearing, error) {
	return nil, nil
}

// Purge implements space.History: there is nothing of an earlier version.
func (p *spaceHistory) Purge(context.Context, map[event.Digest]bool) error { return nil }

// Survey implements space.History: everything is kept.
func (p *spaceHistory) Survey(context.Context, []event.Digest) (int64, error) { return 0, nil }

// Sweep implements space.History: everything is kept.
func (p *spaceHistory) Sweep(_ context.Context, permit policy.Permit, _ []event.Digest) (int64, error) {
	_, err := permit.Redeem(policy.ContentSweep)
	return 0, err
}

// Diff implements space.History: it says that something differs, and not what.
func (p *spaceHistory) Diff(_ context.Context, permit policy.Permit, _ int) ([]space.Difference, error) {
	a, err := permit.Redeem(policy.SpaceDiff)
	if err != nil || a.Target == a.Content.String() {
		return nil, err
	}
	return []space.Difference{{Path: ".", Change: space.Modified}}, nil
}

// Archive implements space.History.
func (p *spaceHistory) Archive(_ context.Context, permit policy.Permit, w io.Writer, may func(path string) bool) (omitted int, err error) {
	a, err := permit.Redeem(policy.FileArchive)
	if err != nil {
		return 0, err
	}
	p.h.w.mu.Lock()
	defer p.h.w.mu.Unlock()
	files, ok := p.h.w.past[a.Content]
	if !ok {
		return 0, fault.New(fault.NotFound, space.ErrSnapshotNotFound.Code, "the space keeps no snapshot %s", a.Content)
	}
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if !may(path) {
			omitted++
			continue
		}
		if err := archive.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(files[path]))}); err != nil {
			return omitted, err
		}
		if _, err := io.WriteString(archive, files[path]); err != nil {
			return omitted, err
		}
	}
	return omitted, errors.Join(archive.Close(), zipped.Close())
}

// Rewind implements space.History, in one step.
func (p *spaceHistory) Rewind(ctx context.Context, permit policy.Permit) (space.Snapshot, space.Snapshot, error) {
	a, err := permit.Redeem(policy.SpaceRewind)
	if err == nil {
		err = p.h.gone(ctx)
	}
	if err != nil {
		return space.Snapshot{}, space.Snapshot{}, err
	}
	p.h.w.mu.Lock()
	defer p.h.w.mu.Unlock()
	from, err := p.keep()
	if err != nil {
		return from, from, err
	}
	files, ok := p.h.w.past[a.Content]
	if !ok {
		return from, from, fault.New(fault.NotFound, space.ErrSnapshotNotFound.Code, "the space keeps no snapshot %s", a.Content)
	}
	p.h.w.files[p.space] = maps.Clone(files)
	to, err := p.keep()
	return from, to, err
}
