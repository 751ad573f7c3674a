package runner_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/runner"
	"agentbox/internal/testkit/wall"
)

// mute is a daemon that hands out one run and then answers no heartbeat, as one does that was stopped.
type mute struct {
	given   bool
	began   time.Time
	stopped time.Duration // after the claim, the work was given up
}

func (m *mute) Claim(ctx context.Context, _ time.Duration) (errand.Work, error) {
	if m.given {
		<-ctx.Done()
		return errand.Work{}, ctx.Err()
	}
	m.given, m.began = true, time.Now()
	input := json.RawMessage(
		`{"protocolVersion":"1.0","space_id":"spc_01M7YNAYM0SM228XA4K3G6VDD4","operations":[{"type":"message","content":"hello"}]}`)
	return errand.Work{Lasts: run.ClaimTime, Workspace: id.DefaultWorkspace, Run: "run_01M7YNAYM0SM228XA4K3G6VDD4", Input: input}, nil
}

func (m *mute) Renew(ctx context.Context, _ errand.Work) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func (m *mute) Operate(ctx context.Context, _ errand.Work, _ id.ToolCall, _ id.Space, _ json.RawMessage) (errand.Outcome, error) {
	<-ctx.Done()
	m.stopped = time.Since(m.began)
	return errand.Outcome{}, context.Cause(ctx)
}

func (*mute) Release(context.Context, errand.Work) error                   { return nil }
func (*mute) End(context.Context, errand.Work, errand.Result) error        { return nil }
func (*mute) Past(context.Context, errand.Work) ([]errand.Progress, error) { return nil, nil }
func (*mute) Step(context.Context, errand.Work, int) (id.Step, error)      { return "step_1", nil }
func (*mute) Conclude(context.Context, errand.Work, id.ToolCall, string, errand.Outcome) error {
	return nil
}
func (*mute) Invoke(context.Context, errand.Work, id.Step, int, json.RawMessage) (errand.Verdict, error) {
	return errand.Verdict{Call: "call_1"}, nil
}

// TestThreat30AnEngineBelievesInItsClaimNoLongerThanItLasts lets the daemon fall silent: the work ends with the claim, not when the
// connection does.
func TestThreat30AnEngineBelievesInItsClaimNoLongerThanItLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &mute{}
		ctx, stop := context.WithCancel(t.Context())
		worked := make(chan errand.Work, 1)
		r := &runner.Runner{Claims: m, Records: m, Clock: wall.Clock{}, Logger: slog.New(slog.DiscardHandler), Done: func(w errand.Work) {
			worked <- w
		}}
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		<-worked
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if m.stopped != run.ClaimTime {
			t.Errorf("the work was given up %s after the claim, want %s", m.stopped, run.ClaimTime)
		}
	})
}
