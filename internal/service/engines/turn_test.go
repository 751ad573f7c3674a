package engines_test

import (
	"testing"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/engines"
)

// TestTasksSaysWhoIsSilent fills a workspace with engines of which some are not heard of again.
func TestTasksSaysWhoIsSilent(t *testing.T) {
	h := open(t)
	tasks := func(want run.Tasks, waiting int, of engines.Wanted) {
		t.Helper()
		got, err := h.Tasks(t.Context(), ws)
		if err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		if n, err := h.Behind(t.Context(), ws, of, got); err != nil || n != waiting {
			t.Errorf("%d runs wait, %v, want %d", n, err, waiting)
		}
	}
	tasks(run.Tasks{Most: 5}, 0, engines.Wanted{})
	var held []engines.Hold
	for range 5 {
		h.ask("")
		_, k := h.claim()
		held = append(held, k)
	}
	h.ask("")
	h.ask("")
	tasks(run.Tasks{Running: 5, Most: 5}, 2, engines.Wanted{})
	tasks(run.Tasks{Running: 5, Most: 5}, 0, engines.Wanted{Work: errand.Operations})
	tasks(run.Tasks{Running: 5, Most: 5}, 0, engines.Wanted{Shows: func(id.Run) (bool, error) { return false, nil }})
	h.clock.move(run.ClaimTime / 2)
	for _, k := range held[:3] {
		if _, err := h.Renew(t.Context(), h.owner, k); err != nil {
			t.Fatal(err)
		}
	}
	h.clock.move(run.ClaimTime/2 + 1)
	tasks(run.Tasks{Running: 5, Most: 5, Silent: 2}, 2, engines.Wanted{})
	if _, err := h.Complete(t.Context(), h.owner, held[0], "", nil); err != nil {
		t.Fatal(err)
	}
	tasks(run.Tasks{Running: 4, Most: 5, Silent: 2}, 0, engines.Wanted{}) // there is room, so that nobody waits for it
}
