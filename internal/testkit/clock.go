package testkit

import (
	"sync"
	"time"

	"agentbox/internal/domain/event"
)

// Clock is the real clock with an offset that tests move, so that what expires in hours expires in a step.
type Clock struct {
	mu     sync.Mutex
	offset time.Duration
}

var _ event.Clock = (*Clock)(nil)

// Now returns the real time and the offset.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

// NewTimer returns a real timer.
func (c *Clock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// Move moves the clock on.
func (c *Clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}
