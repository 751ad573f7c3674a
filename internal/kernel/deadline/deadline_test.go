package deadline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"agentbox/internal/kernel/deadline"
	"agentbox/internal/testkit/wall"
)

var errOver = errors.New("the time is over")

// TestWithin holds the moment at which a context ends, and the three ways in which it ends earlier.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := deadline.Within(t.Context(), wall.Clock{}, time.Minute, errOver)
		time.Sleep(time.Minute - time.Nanosecond)
		if synctest.Wait(); ctx.Err() != nil {
			t.Error("it has ended too early")
		}
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); !errors.Is(context.Cause(ctx), errOver) {
			t.Errorf("at the end: %v", context.Cause(ctx))
		}
		end()

		ctx, end = deadline.Within(t.Context(), wall.Clock{}, time.Minute, errOver)
		if end(); !errors.Is(context.Cause(ctx), context.Canceled) {
			t.Errorf("after its end: %v", context.Cause(ctx))
		}

		above, stop := context.WithCancel(t.Context())
		ctx, end = deadline.Within(above, wall.Clock{}, time.Minute, errOver)
		stop()
		if synctest.Wait(); !errors.Is(context.Cause(ctx), context.Canceled) {
			t.Errorf("under one that has ended: %v", context.Cause(ctx))
		}
		end()

		for _, d := range []time.Duration{0, -time.Second} {
			ctx, end = deadline.Within(t.Context(), wall.Clock{}, d, errOver)
			if !errors.Is(context.Cause(ctx), errOver) {
				t.Errorf("%s: %v", d, context.Cause(ctx))
			}
			end()
		}
	})
}
