package snapshots

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/seal"
	"agentbox/internal/kernel/vault"
)

// The bounds of a garbage collection.
const (
	// keptShare is how full, in percent of the bound, a collection leaves the packs at most, so that it is not due again at once.
	keptShare = 75
	// deadShare is how much of a pack, in percent, may be content that no snapshot needs; one with more is written anew.
	deadShare = 25
	// MaxPacks is how many packs there may be before the small ones are written into one.
	MaxPacks  = 64
	smallPack = 8 << 20
)

// gather lets the oldest snapshots go where there are too many, or too large ones, and removes what none needs. The newest always stays.
func (p *Past) gather() error {
	if len(p.kept) <= MaxKept && p.packs.bytes <= p.bound(Share) && len(p.packs.all) <= MaxPacks {
		return nil
	}
	keep := len(p.kept)
	if keep > MaxKept {
		keep = keptAfter
	}
	most := p.bound(Share)
	if p.packs.bytes > most {
		most = most / 100 * keptShare
	}
	reached := map[event.Digest]struct{}{}
	var bytes int64
	first := len(p.kept)
	for first > 0 && len(p.kept)-first < keep {
		need := p.packs.reach(reached, p.kept[first-1].Root)
		if bytes += need; bytes > most && first < len(p.kept) {
			break
		}
		first--
	}
	_, err := p.drop(func(i int, _ space.Snapshot) bool { return i < first })
	return err
}

// drop lets snapshots go, but never the newest, and removes what none needs any more. It returns how many bytes that freed. Should it be
// cut off, the list is shorter and the content still there, for the next time.
func (p *Past) drop(goes func(i int, s space.Snapshot) bool) (int64, error) {
	left := p.without(goes)
	live, err := p.living(left)
	if err != nil {
		return 0, err
	}
	if len(left) < len(p.kept) {
		p.kept = left
		if err := p.writeKept(); err != nil {
			return 0, err
		}
	}
	before := p.packs.bytes
	err = p.packs.rewrite(p.packs.stale(live), live)
	return before - p.packs.bytes, err
}

// without returns the snapshots that do not go.
func (p *Past) without(goes func(i int, s space.Snapshot) bool) []space.Snapshot {
	var left []space.Snapshot
	for i, s := range p.kept {
		if i == len(p.kept)-1 || !goes(i, s) {
			left = append(left, s)
		}
	}
	return left
}

// living returns everything that snapshots need, and everything that the next snapshot reuses of the last scan. If a key is missing and may
// come back, nobody can tell what they need.
func (p *Past) living(kept []space.Snapshot) (map[event.Digest]struct{}, error) {
	p.packs.blind = nil
	live := map[event.Digest]struct{}{}
	if p.now != nil {
		p.packs.reach(live, p.now.digest)
	}
	for _, s := range kept {
		p.packs.reach(live, s.Root)
	}
	return live, p.packs.blind
}

// Sweep lets the snapshots go that are named, but never the newest, and removes what none needs any more. It returns how many bytes that
// freed, or in a trial would.
func (p *Past) Sweep(ctx context.Context, gone []event.Digest, trial bool) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return 0, err
	}
	defer p.packs.rest()
	goes := func(_ int, s space.Snapshot) bool { return slices.Contains(gone, s.Root) }
	if !trial {
		freed, err := p.drop(goes)
		return freed, refusal(err)
	}
	live, err := p.living(p.without(goes))
	if err != nil {
		return 0, refusal(err)
	}
	stale := p.packs.stale(live)
	var freed int64
	for _, k := range stale {
		freed += k.size
	}
	for d, at := range p.packs.objects {
		if _, ok := live[d]; ok && slices.Contains(stale, at.pack) {
			freed -= at.takes()
		}
	}
	return freed, nil
}

// reach adds the needs of a snapshot to live and returns the bytes that this adds. Unreadable content is passed over: it is missing
// already.
func (p *packs) reach(live map[event.Digest]struct{}, root event.Digest) int64 {
	if _, known := live[root]; known {
		return 0
	}
	live[root] = struct{}{}
	bytes := p.objects[root].takes()
	entries, err := p.folder(root)
	if errors.Is(err, vault.ErrMissing) {
		p.blind = err
	}
	if err != nil {
		return bytes
	}
	for _, e := range entries {
		switch e.kind {
		case isFolder:
			bytes += p.reach(live, e.digest)
		case isFile:
			if _, known := live[e.digest]; !known {
				live[e.digest] = struct{}{}
				bytes += p.objects[e.digest].takes()
			}
		}
	}
	return bytes
}

// stale returns the packs that are due to go: packs without anything live, packs with much that is dead, and small ones where
// there are too many.
func (p *packs) stale(live map[event.Digest]struct{}) []*pack {
	used := map[*pack]int64{}
	for d, at := range p.objects {
		if _, ok := live[d]; ok {
			used[at.pack] += at.takes()
		}
	}
	var stale []*pack
	for _, k := range p.all {
		if dead := k.size - used[k]; dead*100 > k.size*deadShare || len(p.all) > MaxPacks && k.size < smallPack {
			stale = append(stale, k)
		}
	}
	return stale
}

// rewrite copies the live content of packs to a new pack and removes the old ones.
func (p *packs) rewrite(gone []*pack, live map[event.Digest]struct{}) error {
	if len(gone) == 0 {
		return nil
	}
	in := map[*pack]bool{}
	for _, k := range gone {
		in[k] = true
	}
	w := p.writer(1 << 62)
	for d, at := range p.objects {
		if _, ok := live[d]; !ok || !in[at.pack] {
			continue
		}
		if err := w.copy(p, d, at); err != nil {
			return errors.Join(err, w.drop())
		}
	}
	if err := w.done(); err != nil {
		return err
	}
	// The new content must be durable before the old content is removed.
	if err := p.sync(); err != nil {
		return err
	}
	return p.remove(gone)
}

// copy takes a record over from another pack as it is. A reader compares it with its hash.
func (w *writer) copy(from *packs, d event.Digest, at place) error {
	if _, ok := w.added[d]; ok {
		return nil
	}
	file, err := from.open(at.pack)
	if err != nil {
		return err
	}
	if at.pack.plain {
		plain := io.NewSectionReader(file, at.at, at.size)
		if _, got, err := beneath.CopyHashed(context.Background(), io.Discard, plain, at.size); err != nil || got != d {
			return err // the disk has lost it already
		}
		_, err = plain.Seek(0, io.SeekStart)
		if err == nil {
			err = w.fresh(context.Background(), d, plain, at.size)
		}
		return err
	}
	to, err := w.begin(d, at.size, at.key)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, io.NewSectionReader(file, at.at, seal.Sealed(at.size)))
	return errors.Join(err, w.end())
}

// lend makes what is needed part of another folder of packs, which has none: packs that are mostly of use get a second name there, which
// costs nothing, and the rest is copied.
func (p *packs) lend(live map[event.Digest]struct{}, to *packs) error {
	used := map[*pack]int64{}
	for d := range live {
		if at, ok := p.objects[d]; ok {
			used[at.pack] += at.takes()
		}
	}
	shared := map[*pack]*pack{}
	for _, k := range p.all {
		if (k.size-used[k])*100 > k.size*deadShare || used[k] < smallPack/64 {
			continue
		}
		to.last++
		twin := &pack{number: to.last, fresh: k.fresh, plain: k.plain, size: k.size}
		if err := os.Link(p.path(k), to.path(twin)); err != nil {
			return err
		}
		to.all = append(to.all, twin)
		to.bytes += twin.size
		shared[k] = twin
	}
	w := to.writer(1 << 62)
	for d := range live {
		at, ok := p.objects[d]
		if !ok {
			return errors.Join(damaged("content %s is missing", d), w.drop())
		}
		if twin := shared[at.pack]; twin != nil {
			to.objects[d] = place{twin, at.at, at.size, at.key}
			continue
		}
		if err := w.copy(p, d, at); err != nil {
			return errors.Join(err, w.drop())
		}
	}
	return w.done()
}
