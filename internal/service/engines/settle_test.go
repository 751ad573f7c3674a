package engines_test

import (
	"context"
	"testing"
	"testing/synctest"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/evidence"
	"agentbox/internal/kernel/journal"
)

// held is a log that nobody reads until it is let go.
type held struct {
	journal.Journal
	loose chan struct{}
}

func (h held) Read(ctx context.Context, q journal.Query) ([]event.Event, error) {
	<-h.loose
	return h.Journal.Read(ctx, q)
}

// TestWhoEndsManyRunsWaitsForTheirEvidence ends runs faster than their evidence is collected: what waits for that is bounded, and none is
// forgotten.
func TestWhoEndsManyRunsWaitsForTheirEvidence(t *testing.T) {
	const runs, most = 400, 256
	inBubble(t, func(t *testing.T, h *house) {
		log := held{h.Service.Log, make(chan struct{})}
		h.Service.Log = log
		ended := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range runs {
				doc := h.ask("")
				if _, err := h.Cancel(t.Context(), h.owner, ws, doc.ID, ""); err != nil {
					t.Error(err)
				}
				ended++
			}
		}()
		synctest.Wait()
		if ended != most {
			t.Errorf("the evidence of %d runs waits, want %d", ended, most)
		}
		close(log.loose)
		<-done
		h.Evidence.Wait()
		found, err := h.log.Read(t.Context(), journal.Query{Workspace: ws, Types: []string{evidence.EventCreated}, Limit: journal.MaxRead})
		if err != nil || len(found) != runs {
			t.Errorf("evidence of %d runs, %v; want %d", len(found), err, runs)
		}
	})
}
