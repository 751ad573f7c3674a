package snapshots

import (
	"errors"
	"io"
	"os"

	"agentbox/internal/domain/event"
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

// reach adds what a snapshot needs to live and returns how many bytes that adds to it. What cannot be read is passed over: it is missing
// already.
func (p *packs) reach(live map[event.Digest]struct{}, root event.Digest) int64 {
	if _, known := live[root]; known {
		return 0
	}
	live[root] = struct{}{}
	bytes := recordHead + p.objects[root].size
	entries, err := p.folder(root)
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
				bytes += recordHead + p.objects[e.digest].size
			}
		}
	}
	return bytes
}

// sweep removes what is not live: packs without anything live go, packs with much that is dead are written anew.
func (p *packs) sweep(live map[event.Digest]struct{}) error {
	used := map[*pack]int64{}
	for d, at := range p.objects {
		if _, ok := live[d]; ok {
			used[at.pack] += recordHead + at.size
		}
	}
	var gone []*pack
	for _, k := range p.all {
		if dead := k.size - used[k]; dead*100 > k.size*deadShare || len(p.all) > MaxPacks && k.size < smallPack {
			gone = append(gone, k)
		}
	}
	return p.rewrite(gone, live)
}

// rewrite copies what is live in packs to a new one and removes them.
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
	// What was written must be durable before what it replaces goes.
	if err := p.sync(); err != nil {
		return err
	}
	return p.remove(gone)
}

// copy takes a record over from another pack as it is; whoever reads it compares it with its hash.
func (w *writer) copy(from *packs, d event.Digest, at place) error {
	if _, ok := w.added[d]; ok {
		return nil
	}
	if err := w.begin(d, at.size); err != nil {
		return err
	}
	file, err := from.open(at.pack)
	if err != nil {
		return err
	}
	_, err = io.Copy(w.buf, io.NewSectionReader(file, at.at, at.size))
	return err
}

// lend makes what one snapshot needs part of another folder of packs, which has none: packs that are mostly of use get a second name there,
// which costs nothing, and the rest is copied.
func (p *packs) lend(root event.Digest, to *packs) error {
	live := map[event.Digest]struct{}{}
	p.reach(live, root)
	used := map[*pack]int64{}
	for d := range live {
		if at, ok := p.objects[d]; ok {
			used[at.pack] += recordHead + at.size
		}
	}
	shared := map[*pack]*pack{}
	for _, k := range p.all {
		if (k.size-used[k])*100 > k.size*deadShare || used[k] < smallPack/64 {
			continue
		}
		to.last++
		twin := &pack{number: to.last, fresh: k.fresh, size: k.size}
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
			to.objects[d] = place{twin, at.at, at.size}
			continue
		}
		if err := w.copy(p, d, at); err != nil {
			return errors.Join(err, w.drop())
		}
	}
	return w.done()
}
