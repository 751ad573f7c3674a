package app

import (
	"time"

	"agentbox/internal/domain/event"
)

// Clock is the machine's clock, the only one that the daemon has.
type Clock struct{}

var _ event.Clock = Clock{}

// Now returns the present time.
func (Clock) Now() time.Time { return time.Now() }

// NewTimer returns a channel that receives once after d, and a function that releases the timer early.
func (Clock) NewTimer(d time.Duration) (c <-chan time.Time, stop func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// every calls step at once and then each time d has passed, until done is closed; step reports its own errors.
func every(clock event.Clock, done <-chan struct{}, d time.Duration, step func(now time.Time)) {
	for {
		step(clock.Now())
		c, stop := clock.NewTimer(d)
		select {
		case <-c:
		case <-done:
			stop()
			return
		}
	}
}
