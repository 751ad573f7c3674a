package worker

import (
	"sync"
	"time"

	"agentbox/internal/driver/wasm/bound"
)

// lateness is how long an execution goes on after the bound that ends it.
type lateness struct {
	pace  *pace
	limit time.Duration // of its time on the wall

	mu        sync.Mutex // guards what follows
	stopped   bool
	wall, cpu time.Duration // since the execution began, when it was stopped
}

func watchLateness(a *bound.Account, p *pace) *lateness {
	l := &lateness{pace: p, limit: a.Limits().Time}
	a.SetNoted(l.note)
	return l
}

// note is called at the moment of the stop.
func (l *lateness) note() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped, l.wall, l.cpu = true, l.pace.wall.elapsed(), l.pace.used()
}

// since returns the time on the wall and the processor time since the bound was reached; 0 where none was. Of what ran out of its time that begins at the limit, also where
// the timer was late.
func (l *lateness) since(why *bound.Stopped) (wall, cpu time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped || why == nil {
		return 0, 0
	}
	from := l.wall
	if why.TimedOut && from > l.limit { // of what only sleeps the time is not the wall's
		from = l.limit
	}
	return l.pace.wall.elapsed() - from, l.pace.used() - l.cpu
}
