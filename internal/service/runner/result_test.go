package runner_test

import (
	"context"
	"encoding/json"
	"log/slog"
	mrand "math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/runner"
	"agentbox/internal/testkit/wall"
)

// TestAResultThatCannotBeRecorded ends a run as failed whose result the daemon does not take. Offered again, or given back, it would never
// end.
func TestAResultThatCannotBeRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		defer func() {
			h.hands.Evidence.Wait()
			if err := h.log.Close(); err != nil {
				t.Error(err)
			}
		}()
		asked := h.ask(1)
		s := seat{host: h, chance: locked(mrand.New(mrand.NewPCG(1, 1))), dead: context.Background()}
		worked := 0
		r := &runner.Runner{Claims: s, Records: s, Clock: wall.Clock{}, Logger: slog.New(slog.DiscardHandler), Once: true,
			Perform: func(context.Context, errand.Work) (errand.Result, error) {
				worked++
				return errand.Result{Summary: "done", Output: json.RawMessage(`"` + strings.Repeat("y", run.MaxReport) + `"`)}, nil
			}}
		if err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		doc, err := h.hands.Find(t.Context(), ws, asked.ID)
		if err != nil || doc.Status != run.Failed || doc.Error != runner.FailResult || worked != 1 {
			t.Errorf("the run is %s with %q after %d tries, %v", doc.Status, doc.Error, worked, err)
		}
	})
}
