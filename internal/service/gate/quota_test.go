package gate_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/gate"
)

func TestQuotaCountsEffects(t *testing.T) {
	h := build(t, func(p *gate.Parts) { p.EffectsPerHour = 3 })
	a := h.shell("standard", "ls")
	r := h.judge(a)
	started := 0
	for range 5 {
		if begin(h, r, "") == nil {
			started++
		}
	}
	if started != 3 {
		t.Errorf("got %d effects, want 3", started)
	}
	if d := h.judge(a).Decision; d.ReasonCode != policy.ReasonQuotaExceeded {
		t.Errorf("got %s, want quota_exceeded", d.ReasonCode)
	}
	for line, want := range map[string]policy.Outcome{"sudo ls": policy.Deny, "rm -r scratch": policy.RequireApproval} {
		if d := h.judge(h.shell("standard", line)).Decision; d.Outcome != want || d.ReasonCode == policy.ReasonQuotaExceeded {
			t.Errorf("%s, which is not allowed anyhow: got %s %s", line, d.Outcome, d.ReasonCode)
		}
	}
	if d := h.judge(h.file("standard", policy.FileRead, "a")).Decision; d.Outcome != policy.Allow {
		t.Errorf("reading: got %s", d.Outcome)
	}
	h.clock.move(time.Hour)
	if err := begin(h, r, ""); err != nil {
		t.Errorf("an hour later: %v", err)
	}
}

// The count outlives the daemon: it is folded from the log.
func TestQuotaOutlivesARestart(t *testing.T) {
	h := build(t, func(p *gate.Parts) { p.EffectsPerHour = 3 })
	a := h.shell("standard", "ls")
	r := h.judge(a)
	for i := range 2 {
		if err := begin(h, r, ""); err != nil {
			t.Fatalf("effect %d: %v", i+1, err)
		}
	}
	h.restart()
	r = h.judge(a)
	if err := begin(h, r, ""); err != nil {
		t.Errorf("the third of three, after a restart: %v", err)
	}
	if err := begin(h, r, ""); fault.CodeOf(err) != policy.ReasonQuotaExceeded {
		t.Errorf("the fourth: got %v, want quota_exceeded", err)
	}
	h.restart()
	if d := h.judge(a).Decision; d.ReasonCode != policy.ReasonQuotaExceeded {
		t.Errorf("after another restart: got %s, want quota_exceeded", d.ReasonCode)
	}
	other, err := h.Agent(context.Background(), h.origin(h.owner), ws, "other")
	if err != nil {
		t.Fatal(err)
	}
	theirs := a
	theirs.Principal = other
	if d := h.judge(theirs).Decision; d.Outcome != policy.Allow {
		t.Errorf("another agent: got %s", d.ReasonCode)
	}
	h.clock.move(time.Hour - time.Nanosecond)
	if d := h.judge(a).Decision; d.ReasonCode != policy.ReasonQuotaExceeded {
		t.Errorf("right before the hour is over: got %s, want quota_exceeded", d.ReasonCode)
	}
	h.clock.move(time.Nanosecond)
	if r = h.judge(a); r.Decision.Outcome != policy.Allow {
		t.Errorf("when the hour is over: got %s", r.Decision.ReasonCode)
	}
	if err := begin(h, r, ""); err != nil {
		t.Error(err)
	}
	h.restart()
	if err := begin(h, h.judge(a), ""); err != nil {
		t.Errorf("the second of the next hour, after a restart: %v", err)
	}
	if got, want := h.count(policy.EffectCountedType), 5; got != want {
		t.Errorf("got %d counted effects, want %d", got, want)
	}
}

// A clock that ran ahead and was set right before the next start does not close the window until it would be over by that clock.
func TestQuotaAfterTheClockWasSetBack(t *testing.T) {
	h := build(t, func(p *gate.Parts) { p.EffectsPerHour = 1 })
	a := h.shell("standard", "ls")
	if err := begin(h, h.judge(a), ""); err != nil {
		t.Fatal(err)
	}
	h.clock.move(-365 * 24 * time.Hour)
	h.restart()
	if d := h.judge(a).Decision; d.ReasonCode != policy.ReasonQuotaExceeded {
		t.Errorf("right after: got %s, want quota_exceeded", d.ReasonCode)
	}
	h.clock.move(time.Hour)
	if err := begin(h, h.judge(a), ""); err != nil {
		t.Errorf("an hour later: %v", err)
	}
}

func TestQuotaIsExactWhenManyBeginAtOnce(t *testing.T) {
	h := build(t, func(p *gate.Parts) { p.EffectsPerHour = 10 })
	r := h.judge(h.shell("standard", "ls"))
	var wg sync.WaitGroup
	var started atomic.Int32
	for range 100 {
		wg.Go(func() {
			if begin(h, r, "") == nil {
				started.Add(1)
			}
		})
	}
	wg.Wait()
	if n := started.Load(); n != 10 {
		t.Errorf("got %d effects, want 10", n)
	}
	if n := h.count(policy.EffectCountedType); n != 10 {
		t.Errorf("got %d counted effects, want 10", n)
	}
}

// stumbling is a log that fails after it has done something.
type stumbling struct {
	journal.Journal
	do []func() // for each of the next calls
}

func (s *stumbling) Append(ctx context.Context, b event.Batch) (event.Receipt, error) {
	if len(s.do) == 0 {
		return s.Journal.Append(ctx, b)
	}
	do := s.do[0]
	s.do = s.do[1:]
	do()
	return event.Receipt{}, errFrail
}

// A use that could not be recorded is given back once, also where a new hour has begun in which it was never counted.
func TestWhatWasNotRecordedIsGivenBackOnce(t *testing.T) {
	log := &stumbling{}
	h := build(t, func(p *gate.Parts) {
		p.EffectsPerHour = 1
		log.Journal, p.Log = p.Log, log
	})
	r := h.judge(h.shell("standard", "ls"))
	log.do = []func(){func() {}}
	if err := begin(h, r, ""); !errors.Is(err, errFrail) {
		t.Errorf("got %v", err)
	}
	log.do = []func(){func() {
		h.clock.move(time.Hour)
		if err := begin(h, r, ""); !errors.Is(err, errFrail) {
			t.Errorf("in the next hour: got %v", err)
		}
	}, func() {}}
	if err := begin(h, r, ""); !errors.Is(err, errFrail) {
		t.Errorf("got %v", err)
	}
	if err := begin(h, r, ""); err != nil {
		t.Errorf("the one of this hour: %v", err)
	}
	if err := begin(h, r, ""); fault.CodeOf(err) != policy.ReasonQuotaExceeded {
		t.Errorf("the second of this hour: got %v, want quota_exceeded", err)
	}
}

// Without a limit nothing is counted and nothing is recorded for it.
func TestWithoutAQuotaNothingIsCounted(t *testing.T) {
	h := build(t, nil)
	before := len(h.events())
	if err := begin(h, h.judge(h.shell("standard", "ls")), ""); err != nil {
		t.Fatal(err)
	}
	if n := len(h.events()) - before; n != 1 {
		t.Errorf("one effect made %d events, want 1", n)
	}
}
