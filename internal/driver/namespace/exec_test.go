//go:build linux

package namespace

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestACommandThatWasEndedInTimeKeepsItsSpace is about the timer that ends a space whose init does not end a command: once the command has
// ended it must not strike whatever runs in the space by then.
func TestACommandThatWasEndedInTimeKeepsItsSpace(t *testing.T) {
	for _, c := range []struct {
		name       string
		cancel     bool
		takes      time.Duration // from the cancelling to the end of the command
		wantKilled bool
	}{
		{"not cancelled", false, time.Second, false},
		{"ends at once", true, 0, false},
		{"ends just in time", true, stubborn - 1, false},
		{"does not end", true, stubborn + 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				killed := make(chan struct{}, 1)
				stop := after(ctx, stubborn, func() { killed <- struct{}{} })
				if c.cancel {
					cancel()
				}
				<-time.After(c.takes)
				stop()
				<-time.After(2 * stubborn)
				synctest.Wait()
				if got := len(killed) == 1; got != c.wantKilled {
					t.Errorf("killed: got %t, want %t", got, c.wantKilled)
				}
			})
		})
	}
}
