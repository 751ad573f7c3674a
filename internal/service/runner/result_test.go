package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	mrand "math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// TestARunThatNobodyCanPerform is tried again and again, with growing pauses, and then ends as failed. Its claim is kept meanwhile.
func TestARunThatNobodyCanPerform(t *testing.T) {
	for name, recovers := range map[string]int{"never": runner.Tries + 1, "at the last try": runner.Tries} {
		t.Run(name, func(t *testing.T) {
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
				tries, began := 0, time.Now()
				r := &runner.Runner{Claims: s, Records: s, Clock: wall.Clock{}, Logger: slog.New(slog.DiscardHandler), Once: true,
					Perform: func(context.Context, errand.Work) (errand.Result, error) {
						if tries++; tries < recovers {
							return errand.Result{}, errors.New("a defect")
						}
						return errand.Result{Summary: "done"}, nil
					}}
				if err := r.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				doc, err := h.hands.Find(t.Context(), ws, asked.ID)
				if err != nil || tries != runner.Tries || doc.Fence != 1 {
					t.Errorf("%d tries under claim %d, %v", tries, doc.Fence, err)
				}
				if waited := time.Since(began); waited < 5*time.Minute || waited > 8*time.Minute {
					t.Errorf("the tries took %v", waited)
				}
				if recovers <= runner.Tries {
					if doc.Status != run.Succeeded {
						t.Errorf("the run is %s with %q", doc.Status, doc.Error)
					}
				} else if doc.Status != run.Failed || doc.Error != runner.FailEngine || doc.Reported.Message != "a defect" {
					t.Errorf("the run is %s with %q", doc.Status, doc.Error)
				}
			})
		})
	}
}
