// Package wall is the machine's clock, for tests of what takes a clock.
package wall

import (
	"time"

	"agentbox/internal/domain/event"
)

// Patience is how long a test waits for something that must come. It is not an assertion: what is right takes a fraction of it, even on a
// machine with ten times as much to do as it has processors.
const Patience = 2 * time.Minute

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
