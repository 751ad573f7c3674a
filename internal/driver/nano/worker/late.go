package worker

import (
	"sync"
	"time"

	"agentbox/internal/userland/bound"
)

// lateness is how long an execution goes on after the bound that ends it.
type lateness struct {
	pace  *pace
	limit time.Duration // of its time on the wall

	done chan struct{} // closed when the execution has ended

	mu        sync.Mutex // guards the fields below
	stopped   bool
	wall, cpu time.Duration // since the execution began, when it was stopped
}

func watchLateness(a *bound.Account, p *pace) *lateness {
	l := &lateness{pace: p, limit: a.Limits().Time, done: make(chan struct{})}
	go func() {
		select {
		case <-a.Context().Done():
			l.note()
		case <-l.done:
		}
	}()
	return l
}

// note is called at the moment of the stop.
func (l *lateness) note() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped, l.wall, l.cpu = true, l.pace.wall.elapsed(), l.pace.used()
}

// end ends the watch, and returns the time on the wall and the processor time since the bound was reached; 0 where none was. Of what ran
// out of its time that begins at the limit, also where the timer was late.
func (l *lateness) end(why *bound.Stopped) (wall, cpu time.Duration) {
	close(l.done)
	l.mu.Lock()
	defer l.mu.Unlock()
	if why == nil {
		return 0, 0
	}
	wall, cpu = l.pace.wall.elapsed(), l.pace.used()
	from := wall
	if l.stopped {
		from, cpu = l.wall, cpu-l.cpu
	} else { // it has ended before that was even seen
		cpu = 0
	}
	if why.TimedOut && from > l.limit { // of what only sleeps the time is not the wall's
		from = l.limit
	}
	return wall - from, cpu
}
