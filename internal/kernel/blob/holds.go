package blob

import (
	"sync"

	"agentbox/internal/domain/event"
)

// Holds is a store's record of recent puts: it says which contents a sweep leaves alone although nothing names them yet. Every put and
// every hold takes a turn. A sweep begins at the turn of the oldest open hold and keeps everything that was put since. So content that was
// put under a hold is either still held, or its name was recorded before the sweep reads the names. The zero Holds is ready.
type Holds struct {
	mu     sync.Mutex // guards the fields below
	round  uint64
	open   map[uint64]bool         // the turns at which open holds began
	recent map[event.Digest]uint64 // the turns of puts since the oldest of them
}

// Hold begins a hold.
func (h *Holds) Hold() (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	began := h.begin()
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.open, began)
		h.prune()
	}
}

func (h *Holds) begin() uint64 {
	h.round++
	if h.open == nil {
		h.open, h.recent = map[uint64]bool{}, map[event.Digest]uint64{}
	}
	h.open[h.round] = true
	return h.round
}

// Put notes that content is about to get its name.
func (h *Holds) Put(d event.Digest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.round++; len(h.open) > 0 {
		h.recent[d] = h.round
	}
}

// Sweep begins a sweep. Free calls remove unless the content was put since; it blocks puts of that content meanwhile. End ends the sweep.
func (h *Holds) Sweep() (free func(d event.Digest, remove func() error) (bool, error), end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	own := h.begin()
	since := h.oldest()
	free = func(d event.Digest, remove func() error) (bool, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if put, ok := h.recent[d]; ok && put > since {
			return false, nil
		}
		return true, remove()
	}
	return free, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.open, own)
		h.prune()
	}
}

func (h *Holds) oldest() uint64 {
	oldest := h.round
	for began := range h.open {
		oldest = min(oldest, began)
	}
	return oldest
}

// manyRecent is how many puts are remembered before the holds drop those that no open hold needs.
const manyRecent = 1024

// prune forgets the puts that no open hold or sweep asks about.
func (h *Holds) prune() {
	switch {
	case len(h.open) == 0:
		h.open, h.recent = nil, nil
	case len(h.recent) > manyRecent:
		oldest := h.oldest()
		for d, put := range h.recent {
			if put < oldest {
				delete(h.recent, d)
			}
		}
	}
}
