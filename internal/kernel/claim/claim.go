// Package claim is the contract of ownership for a time: until when an engine has a run, and by which token it is known.
//
// The log alone decides who owns a run. A claim is recorded only if nobody else has changed the run meanwhile. So exactly one of many
// concurrent claims succeeds, whichever daemon they go to. This package only says when a claim ends, by a monotonic clock that nobody sets.
package claim

import (
	"sync"
	"time"

	"agentbox/internal/domain/id"
)

// Held is one renewal of one claim, as the log stamped it.
type Held struct {
	Run     id.Run
	Fence   uint64
	Renewed time.Time
	Until   time.Time
}

// Terms knows how long claims last. A claim whose renewal it has seen ends after the time that has passed since, even if the clock was set
// meanwhile. A claim may have been recorded by another daemon or before a restart. Such a claim ends by its stamp, but never later than if
// it were renewed now. So a clock that was set back makes no claim last longer. Every method is safe for concurrent use.
type Terms struct {
	together bool // others renew claims too, by clocks of their own

	mu    sync.Mutex
	begin time.Time // the first reading, with that of the monotonic clock
	seen  map[id.Run]seen
}

type seen struct {
	fence   uint64
	renewed time.Time
	ends    time.Duration // since begin
}

// most is how many claims are remembered; those that ended longest ago are forgotten beyond it.
const most = 10_000

// NewTerms returns terms whose clock is read with every call.
func NewTerms(now time.Time) *Terms { return &Terms{begin: now, seen: map[id.Run]seen{}} }

// NewTermsTogether returns the terms of one of several daemons that record claims. Their clocks need not agree. A renewal that another
// daemon recorded lasts its full time from when this daemon first sees it. So no claim ends too early, and a claim without renewals ends
// everywhere.
func NewTermsTogether(now time.Time) *Terms {
	t := NewTerms(now)
	t.together = true
	return t
}

// Saw notes that a renewal was recorded just now.
func (t *Terms) Saw(h Held, now time.Time) { t.saw(h, now.Sub(t.begin)) }

// Left returns how much of the claim's time is left; it is over where nothing is.
func (t *Terms) Left(h Held, now time.Time) time.Duration {
	return t.left(h, now.Round(0), now.Sub(t.begin))
}

// Forget forgets the claims of a run that has ended.
func (t *Terms) Forget(r id.Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.seen, r)
}

func (t *Terms) saw(h Held, passed time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep(h, passed+h.Until.Sub(h.Renewed), passed)
}

// left returns the remaining time of a claim, by the wall clock and by the time that has passed on the monotonic clock.
func (t *Terms) left(h Held, wall time.Time, passed time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.seen[h.Run]
	if !ok || s.fence != h.Fence || !s.renewed.Equal(h.Renewed) {
		whole := h.Until.Sub(h.Renewed)
		left := max(0, min(h.Until.Sub(wall), whole))
		if t.together {
			left = whole
		}
		s = t.keep(h, passed+left, passed)
	}
	return max(0, s.ends-passed)
}

// keep remembers when a claim ends. The lock is held.
func (t *Terms) keep(h Held, ends, passed time.Duration) seen {
	s := seen{h.Fence, h.Renewed, ends}
	t.seen[h.Run] = s
	if len(t.seen) > most {
		for r, old := range t.seen {
			if old.ends < passed {
				delete(t.seen, r)
			}
		}
	}
	return s
}
