package snapshots

import (
	"context"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
)

// survey walks snapshots for the files in them. A folder in which nothing was found is not read again.
type survey struct {
	ctx    context.Context
	packs  *packs
	wanted func(event.Digest) bool
	barren map[event.Digest]bool
	name   func(string) string
}

func (p *Past) survey(ctx context.Context, name func(string) string, wanted func(event.Digest) bool) *survey {
	return &survey{ctx: ctx, packs: p.packs, wanted: wanted, barren: map[event.Digest]bool{}, name: name}
}

// folder puts the files that are wanted of a folder into found.
func (s *survey) folder(rel string, root event.Digest, found map[event.Digest]string) error {
	if s.barren[root] {
		return nil
	}
	if err := s.ctx.Err(); err != nil {
		return err
	}
	entries, err := s.packs.folder(root)
	if err != nil {
		return err
	}
	any := false
	for _, e := range entries {
		at := beneath.Join(rel, e.name)
		switch {
		case e.kind == isFolder:
			if err := s.folder(at, e.digest, found); err != nil {
				return err
			}
			any = any || !s.barren[e.digest]
		case e.kind == isFile && s.wanted(e.digest):
			any = true
			if _, ok := found[e.digest]; !ok {
				found[e.digest] = s.name(at)
			}
		}
	}
	if !any {
		s.barren[root] = true
	}
	return nil
}

// Brought returns the files of one snapshot whose content another does not hold, each with one of its paths.
func (p *Past) Brought(ctx context.Context, before, after event.Digest, name func(string) string) (map[event.Digest]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return nil, err
	}
	defer p.packs.rest()
	old := map[event.Digest]string{}
	if !before.IsZero() {
		all := p.survey(ctx, name, func(event.Digest) bool { return true })
		if err := all.folder(".", before, old); err != nil {
			return nil, refusal(err)
		}
	}
	brought := map[event.Digest]string{}
	fresh := p.survey(ctx, name, func(d event.Digest) bool { _, known := old[d]; return !known })
	return brought, refusal(fresh.folder(".", after, brought))
}

// Bearing returns which of some contents each snapshot holds that is kept, the oldest first.
func (p *Past) Bearing(ctx context.Context, contents map[event.Digest]bool, name func(string) string) ([]space.Bearing, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return nil, err
	}
	defer p.packs.rest()
	s := p.survey(ctx, name, func(d event.Digest) bool { return contents[d] })
	all := make([]space.Bearing, len(p.kept))
	for i, kept := range p.kept {
		all[i] = space.Bearing{Root: kept.Root, Files: map[event.Digest]string{}}
		if err := s.folder(".", kept.Root, all[i].Files); err != nil {
			return nil, refusal(err)
		}
	}
	return all, nil
}

// Purge writes those packs of an earlier version anew that hold one of some contents, without it.
func (p *Past) Purge(ctx context.Context, contents map[event.Digest]bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return err
	}
	defer p.packs.rest()
	var gone []*pack
	live := map[event.Digest]struct{}{}
	holds := map[*pack]bool{}
	for d, at := range p.packs.objects {
		if !contents[d] || !at.pack.plain {
			live[d] = struct{}{}
		} else if !holds[at.pack] {
			holds[at.pack] = true
			gone = append(gone, at.pack)
		}
	}
	return refusal(p.packs.rewrite(gone, live))
}
