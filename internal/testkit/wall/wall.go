// Package wall is the machine's clock, for tests of what takes a clock.
package wall

import (
	"time"

	"agentbox/internal/domain/event"
)

// Clock is the machine's clock; in a bubble of synctest it is the bubble's.
type Clock struct{}

var _ event.Clock = Clock{}

// Now returns the present time.
func (Clock) Now() time.Time { return time.Now() }

// NewTimer returns a channel that receives once after d, and a function that releases the timer early.
func (Clock) NewTimer(d time.Duration) (c <-chan time.Time, stop func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
