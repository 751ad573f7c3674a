package runner_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/runner"
	"agentbox/internal/testkit/wall"
)

// over is a daemon that takes nothing about its run any more.
type over struct{ mute }

func (*over) End(context.Context, errand.Work, errand.Result) error { return run.ErrEnded }

// cancelled is one that knows whether somebody has cancelled the run.
type cancelled struct {
	over
	yes bool
}

func (c *cancelled) Cancelled(context.Context, errand.Work) bool { return c.yes }

// TestALostClaimIsAWarningUnlessSomebodyCancelledTheRun holds the level of the line that an engine writes.
func TestALostClaimIsAWarningUnlessSomebodyCancelledTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		claims errand.Claims
		want   string
	}{
		"cancelled":                 {&cancelled{yes: true}, "level=INFO msg=\"somebody has cancelled the run\" code=claim_ended"},
		"ended in another way":      {&cancelled{}, "level=WARN msg=\"a run is not this engine's any more\" code=claim_lost"},
		"a daemon that cannot tell": {&over{}, "level=WARN msg=\"a run is not this engine's any more\" code=claim_lost"},
	} {
		var said strings.Builder
		r := &runner.Runner{Claims: c.claims, Clock: wall.Clock{}, Logger: slog.New(slog.NewTextHandler(&said, nil)),
			Perform: func(context.Context, errand.Work) (errand.Result, error) { return errand.Result{Summary: "done"}, nil }}
		r.Execute(t.Context(), errand.Work{Lasts: run.ClaimTime, Run: "run_01M7YNAYM0SM228XA4K3G6VDD4"})
		if !strings.Contains(said.String(), c.want) || strings.Count(said.String(), "\n") != 2 { // the first line is that of the claim
			t.Errorf("%s: got %s, want %s", name, said.String(), c.want)
		}
	}
}
