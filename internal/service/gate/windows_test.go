package gate

import (
	"context"
	"fmt"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/projection"
)

// uncounted is a log that has counted nothing.
type uncounted struct{ projection.Reader }

func (uncounted) Document(context.Context, id.Workspace, string, string) (projection.Document, error) {
	return projection.Document{}, projection.ErrNotFound
}

// Windows that are over are dropped when there are many, and others stay: what was taken and is not in the log yet counts.
func TestWindowsThatAreOverAreDropped(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	q := quota{most: 1, docs: uncounted{}}
	take := func(n int, want bool) {
		t.Helper()
		a := policy.Action{Principal: id.Principal(fmt.Sprint("agt_", n)), Workspace: id.DefaultWorkspace}
		if ok, err := q.take(t.Context(), &event.Batch{}, a, now); ok != want || err != nil {
			t.Errorf("effect of %d: got %t, %v, want %t", n, ok, err, want)
		}
	}
	for n := range maxWindows - 1 {
		take(n, true)
	}
	now = now.Add(time.Hour)
	take(maxWindows-1, true)
	if len(q.windows) != maxWindows {
		t.Errorf("got %d windows, want %d", len(q.windows), maxWindows)
	}
	take(maxWindows, true)
	if len(q.windows) != 2 {
		t.Errorf("got %d windows, want those of this hour", len(q.windows))
	}
	take(maxWindows-1, false)
}
