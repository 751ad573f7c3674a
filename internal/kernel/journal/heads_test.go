package journal_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

func TestHeads(t *testing.T) {
	var h journal.Heads
	if got := h.Head("ws_a"); got != 0 {
		t.Errorf("the head of an unknown workspace is %d, want 0", got)
	}
	h.Advance("ws_b", 2)
	h.Advance("ws_a", 5)
	h.Advance("ws_a", 4) // comes late, changes nothing
	if got := h.Head("ws_a"); got != 5 {
		t.Errorf("the head is %d, want 5", got)
	}
	h.Advance("ws_c", 0)
	if got, want := h.Workspaces(), []id.Workspace{"ws_a", "ws_b"}; !slices.Equal(got, want) {
		t.Errorf("workspaces with events: %v, want %v", got, want)
	}
}

// TestHeadsWait shows each way in which a wait ends, and that no other ends it.
func TestHeadsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h journal.Heads
		h.Advance("ws_a", 3)
		ctx, cancel := context.WithCancel(t.Context())
		if err := h.Wait(ctx, "ws_a", 2); err != nil {
			t.Errorf("an event beyond 2 is there: %v", err)
		}
		ended := map[string]error{}
		wait := func(name string, ctx context.Context, ws id.Workspace, after uint64) {
			go func() { ended[name] = h.Wait(ctx, ws, after) }()
			synctest.Wait()
		}
		wait("grown", t.Context(), "ws_a", 3)
		wait("later", t.Context(), "ws_a", 4)
		wait("cancelled", ctx, "ws_a", 9)
		wait("unknown", t.Context(), "ws_b", 0)
		h.Advance("ws_a", 3)
		synctest.Wait()
		if len(ended) != 0 {
			t.Fatalf("a head that did not move ended %v", ended)
		}
		h.Advance("ws_a", 4)
		synctest.Wait()
		if err, ok := ended["grown"]; !ok || err != nil || len(ended) != 1 {
			t.Fatalf("after event 4 ended: %v, want only the wait beyond 3", ended)
		}
		cancel()
		synctest.Wait()
		if err := ended["cancelled"]; !errors.Is(err, context.Canceled) || len(ended) != 2 {
			t.Fatalf("after the cancel ended: %v", ended)
		}
		h.Close()
		synctest.Wait()
		for _, name := range []string{"later", "unknown"} {
			if err := ended[name]; !errors.Is(err, journal.ErrClosed) {
				t.Errorf("%s ended with %v, want ErrClosed", name, err)
			}
		}
		if err := h.Wait(t.Context(), "ws_a", 0); !errors.Is(err, journal.ErrClosed) {
			t.Errorf("a wait after Close: %v, want ErrClosed", err)
		}
		h.Reopen()
		if err := h.Wait(t.Context(), "ws_a", 3); err != nil {
			t.Errorf("a wait after Reopen: %v", err)
		}
	})
}
