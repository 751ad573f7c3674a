package telemetry

import (
	"fmt"
	"testing"
	"time"

	"agentbox/internal/domain/id"
)

// TestEarlyIsBounded keeps what was decided for runs that are about to be made, and nothing for those that are there.
func TestEarlyIsBounded(t *testing.T) {
	tracer := &Tracer{runs: map[id.Run]*traced{"run_there": {steps: map[id.Step]time.Time{}}}, early: map[id.Run]func(*traced){}}
	told := 0
	tell := func(*traced) { told++ }
	tracer.later("run_there", tell)
	tracer.later("", tell)
	if len(tracer.early) != 0 {
		t.Fatalf("%d are kept, want none", len(tracer.early))
	}
	for i := range maxEarly {
		tracer.later(id.Run(fmt.Sprint("run_", i)), tell)
	}
	if len(tracer.early) != maxEarly {
		t.Errorf("%d are kept, want %d", len(tracer.early), maxEarly)
	}
	tracer.later("run_more", tell)
	if len(tracer.early) != 1 {
		t.Errorf("beyond the bound %d are kept, want the last", len(tracer.early))
	}
	for range 2 {
		tracer.now("run_more", nil)
	}
	if told != 1 || len(tracer.early) != 0 {
		t.Errorf("it is told %d times, and %d are kept", told, len(tracer.early))
	}
}
