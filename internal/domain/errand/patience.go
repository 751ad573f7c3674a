package errand

import (
	"context"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
)

// The intervals of an engine that waits. Again is the delay before it retries after Unavailable. Ask is the delay between two checks while
// a person has to answer.
const (
	Again = time.Second
	Ask   = 2 * time.Second
)

// Patiently repeats a call while it is unavailable and ctx lasts. A daemon may be restarting, or the kill switch may be thrown.
func Patiently(ctx context.Context, clock event.Clock, do func() error) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx) // finished work needs no request to the daemon
		}
		err := do()
		if ctx.Err() != nil && err != nil {
			return context.Cause(ctx)
		}
		wait := Again
		switch kind := fault.KindOf(err); {
		case err == nil:
			return nil
		case fault.CodeOf(err) == policy.ReasonKillSwitch:
			wait = Ask
		case kind != fault.Unavailable && kind != fault.Exhausted:
			return err
		}
		if !Pause(ctx, clock, wait) {
			return context.Cause(ctx)
		}
	}
}

// Pause waits; false where ctx ended before.
func Pause(ctx context.Context, clock event.Clock, d time.Duration) bool {
	c, stop := clock.NewTimer(d)
	defer stop()
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}
