package engines_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/service/engines"
)

// TestSilentEnginesGiveTheirPlacesBack fills a workspace with runs of one kind whose engines die. An engine of another kind waits for
// twice as long as a claim lasts, and no longer.
func TestSilentEnginesGiveTheirPlacesBack(t *testing.T) {
	h, ctx := open(t), t.Context()
	for range workspace.DefaultTasks {
		h.ask("")
	}
	var first run.Run
	for n := range workspace.DefaultTasks {
		doc, _ := h.claim()
		if n == 0 {
			first = doc
		}
	}
	other := h.ask("")
	mine := engines.Wanted{Fits: func(_ context.Context, doc run.Run) (bool, error) { return doc.ID == other.ID, nil }}
	h.clock.move(2*run.ClaimTime - time.Second)
	if doc, _, err := h.Claim(ctx, h.owner, ws, mine); !errors.Is(err, errand.ErrNothing) {
		t.Fatalf("before the time is over: got %s, %v", doc.ID, err)
	}
	h.clock.move(run.ClaimTime / 2) // so that it is looked at them again
	doc, _, err := h.Claim(ctx, h.owner, ws, mine)
	if err != nil || doc.ID != other.ID {
		t.Fatalf("behind it: got %s, %v; want %s", doc.ID, err, other.ID)
	}
	if then, err := h.Find(ctx, ws, first.ID); err != nil || then.Status != run.Queued || then.Claim != nil {
		t.Errorf("the run of a silent engine is %s with the claim %+v, %v", then.Status, then.Claim, err)
	}
	again, _ := h.claim()
	if again.ID != first.ID || again.Fence <= first.Fence {
		t.Errorf("who claims next has %s under fence %d, want %s and a higher fence than %d", again.ID, again.Fence, first.ID, first.Fence)
	}
}
