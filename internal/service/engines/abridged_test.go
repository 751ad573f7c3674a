package engines_test

import (
	"encoding/json"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/evidence"
	"agentbox/internal/domain/run"
)

// TestEvidenceOfARunWithoutEndFits ends runs with as many events as a manifest points to, with one more, and with many more.
func TestEvidenceOfARunWithoutEndFits(t *testing.T) {
	for _, over := range []int{0, 1, 2 * evidence.LastEvents} {
		h, ctx := open(t), t.Context()
		h.ask("")
		doc, k := h.claim()
		told := 3 // created, claimed, started
		for n := evidence.MaxEvents + over - told - 1; n > 0; {
			b := event.Batch{Workspace: ws}
			for range min(n, 500) {
				b.Drafts = append(b.Drafts, event.New("test.noted", h.owner, ws, doc.Room, struct{}{}).In(doc.ID, ""))
			}
			if _, err := h.log.Append(ctx, b); err != nil {
				t.Fatal(err)
			}
			n -= len(b.Drafts)
		}
		if _, err := h.Complete(ctx, h.owner, k, "done", nil); err != nil {
			t.Fatal(err)
		}
		found, raw, err := h.Evidence.Of(ctx, ws, doc.ID)
		if err != nil {
			t.Fatalf("%d events too many: %v", over, err)
		}
		var m evidence.Manifest
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		if n := len(m.Events); n != evidence.MaxEvents || found.Window.Count != n || m.Events[n-1].Type != run.EventCompleted ||
			m.Events[0].Type != run.EventCreated || !found.Completeness.Terminal {
			t.Errorf("%d events too many: the manifest points to %d, from %s to %s", over, n, m.Events[0].Type, m.Events[n-1].Type)
		}
		gap := found.Completeness.Gap
		if (gap != nil) != (over > 0) || found.Completeness.Calls != (over == 0) {
			t.Fatalf("%d events too many: %+v", over, found.Completeness)
		}
		if gap == nil {
			continue
		}
		first := evidence.MaxEvents - evidence.LastEvents
		if gap.From != m.Events[first-1].Seq+1 || gap.To != m.Events[first].Seq-1 || gap.To-gap.From+1 != uint64(over) {
			t.Errorf("%d events too many: the gap is %+v, between %d and %d", over, *gap, m.Events[first-1].Seq, m.Events[first].Seq)
		}
	}
}
