package gate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/projection"
)

// unreadable is a log of which nothing can be read, for one reason.
type unreadable struct {
	projection.Reader
	err error
}

func (u unreadable) Document(context.Context, id.Workspace, string, string) (projection.Document, error) {
	return projection.Document{}, u.err
}

// Windows that are over are dropped when there are many. The others stay: a use that is not in the log yet counts.
func TestWindowsThatAreOverAreDropped(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	q := quota{most: 1, docs: unreadable{err: projection.ErrNotFound}}
	take := func(n int, want bool) {
		t.Helper()
		a := policy.Action{Principal: id.Principal(fmt.Sprint("agt_", n)), Workspace: id.DefaultWorkspace}
		if ok, err := q.add(t.Context(), &event.Batch{}, a, now); ok != want || err != nil {
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

// An effect that nobody could count is not taken.
func TestAnEffectThatCannotBeCountedIsNotTaken(t *testing.T) {
	broken := errors.New("the disk has failed")
	for _, together := range []bool{false, true} {
		q := quota{most: 1, docs: unreadable{err: broken}, together: together}
		batch := &event.Batch{}
		ok, err := q.add(t.Context(), batch, policy.Action{Principal: "agt_1", Workspace: id.DefaultWorkspace}, time.Now())
		if ok || !errors.Is(err, broken) || len(batch.Drafts) != 0 {
			t.Errorf("got %t, %v, and %d events", ok, err, len(batch.Drafts))
		}
	}
}
