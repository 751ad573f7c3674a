// Package deadline ends contexts by a clock that a test can replace.
package deadline

import (
	"context"
	"time"

	"agentbox/internal/domain/event"
)

// Within returns a context that ends with the cause after a time by the clock. The caller must call end, which waits until nothing watches
// the clock any more. A time that is not above 0 ends the context at once.
func Within(ctx context.Context, clock event.Clock, d time.Duration, cause error) (_ context.Context, end func()) {
	bounded, cancel := context.WithCancelCause(ctx)
	if d <= 0 {
		cancel(cause)
		return bounded, func() {}
	}
	over, stop := clock.NewTimer(d)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-over:
			cancel(cause)
		case <-bounded.Done():
		}
	}()
	return bounded, func() {
		stop()
		cancel(nil)
		<-watched
	}
}
