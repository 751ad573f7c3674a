package models_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/endpoint"
)

// stalled is an endpoint that never answers.
type stalled struct{ asked int }

func (s *stalled) Stream(ctx context.Context, p policy.Permit, to model.Target, r model.Request,
	_ func(model.Delta) error) (model.Answer, error) {
	if err := endpoint.Redeem(p, to, r); err != nil {
		return model.Answer{}, err
	}
	s.asked++
	<-ctx.Done()
	return model.Answer{}, context.Cause(ctx)
}

// TestTheTimeOfARequest ends a request at its time. The time that is recorded counts after a restart, too: nothing more is sent.
func TestTheTimeOfARequest(t *testing.T) {
	f := start(t)
	s := &stalled{}
	f.parts.Endpoints = map[string]model.Endpoint{model.OpenAI: s}
	f.restart()
	q := f.question(1)
	for i, c := range []struct {
		time, took time.Duration
		asked      int
	}{{5 * time.Second, 5 * time.Second, 1}, {5 * time.Second, 5 * time.Second, 1}, {6 * time.Second, 6 * time.Second, 2}} {
		q.Time = c.time
		reply, err := f.Ask(t.Context(), q)
		if !errors.Is(err, model.ErrTime) || reply.Took != c.took || s.asked != c.asked {
			t.Errorf("%d: got %+v, %v, sent %d times", i, reply, err, s.asked)
		}
		f.restart()
	}
	if used := f.used(); used.Reserved != (model.Reserve{}) || used.Failed != 2 {
		t.Errorf("used %+v", used)
	}
}

// TestHowLongAnAnswerTook holds that a recorded answer tells the time in which it was made, over all tries.
func TestHowLongAnAnswerTook(t *testing.T) {
	f := start(t)
	slow := func(d time.Duration, then step) step {
		return func(emit func(model.Delta) error) (model.Answer, error) {
			f.clock.NewTimer(d)
			return then(emit)
		}
	}
	f.vendor.script["one"] = []step{slow(2*time.Second, fails(model.Failure{Class: model.Retry, Message: "later"})),
		slow(3*time.Second, says("Hi"))}
	for i := range 2 {
		r, err := f.Ask(t.Context(), f.question(1))
		if err != nil || r.Took != 5*time.Second || r.Attempts != 2 || r.Repeated != (i == 1) {
			t.Errorf("got %+v, %v", r, err)
		}
		f.restart()
	}
}

// TestWhatASubAgentUsesCountsAbove holds that the budget of a run also bounds its sub-agents, and that their use counts as the run's.
func TestWhatASubAgentUsesCountsAbove(t *testing.T) {
	f := start(t)
	const above = id.Run("run_00000000000000000000000002")
	of := func() model.Used {
		used, err := f.UsageOf(t.Context(), ws, model.ScopeRun, string(above), "")
		if err != nil {
			t.Fatal(err)
		}
		return used
	}
	q := f.question(1)
	q.Above = []model.Above{{Run: above, Limits: model.Limits{Tokens: 1}}}
	if _, err := f.Ask(t.Context(), q); !errors.Is(err, model.ErrBudget) || f.vendor.count("one") != 0 {
		t.Errorf("over the budget above: %v, sent %d times", err, f.vendor.count("one"))
	}
	q.Above[0].Limits = model.Limits{Tokens: 1_000_000, Cost: 1_000_000}
	if _, err := f.Ask(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if mine, theirs := f.used(), of(); mine.Usage.Tokens() != 15 || theirs.Usage != mine.Usage || theirs.Cost != mine.Cost ||
		theirs.Reserved != mine.Reserved {
		t.Errorf("used %+v, and above %+v", mine, theirs)
	}
	own := f.question(1)
	own.Run, own.Limits = above, model.Limits{Tokens: 15}
	if _, err := f.Ask(t.Context(), own); !errors.Is(err, model.ErrBudget) {
		t.Errorf("the run above, whose sub-agent has used all: %v", err)
	}
	q = f.question(2)
	q.Above = make([]model.Above, model.MaxAbove+1)
	if _, err := f.Ask(t.Context(), q); err == nil {
		t.Error("a request counts for more runs than there may be")
	}
}
