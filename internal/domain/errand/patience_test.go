package errand_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
)

// bell is a clock whose timers ring at once, up to a number of them.
type bell struct {
	rings   int
	waits   []time.Duration
	stopped int
	last    func() // called instead of the ring after the last one
}

func (b *bell) Now() time.Time { return time.Time{} }

func (b *bell) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	b.waits = append(b.waits, d)
	c := make(chan time.Time, 1)
	if b.rings--; b.rings >= 0 {
		c <- time.Time{}
	} else {
		b.last()
	}
	return c, func() { b.stopped++ }
}

// TestAnEngineIsPatientWithADaemonThatIsNotThere repeats a call after each error. It waits longer under the kill switch, and returns any
// other error at once.
func TestAnEngineIsPatientWithADaemonThatIsNotThere(t *testing.T) {
	gone, full := fault.New(fault.Unavailable, "gone", "gone"), fault.New(fault.Exhausted, "full", "full")
	thrown, wrong := fault.New(fault.Denied, policy.ReasonKillSwitch, "thrown"), fault.New(fault.Conflict, "wrong", "wrong")
	again, ask := errand.Again, errand.Ask
	for name, c := range map[string]struct {
		errs  []error
		waits []time.Duration
		want  error
	}{
		"at once":         {[]error{nil}, nil, nil},
		"after a while":   {[]error{gone, full, thrown, nil}, []time.Duration{again, again, ask}, nil},
		"with an error":   {[]error{gone, wrong}, []time.Duration{again}, wrong},
		"with no retries": {[]error{wrong}, nil, wrong},
	} {
		clock, calls := &bell{rings: 10}, 0
		err := errand.Patiently(t.Context(), clock, func() error {
			calls++
			return c.errs[calls-1]
		})
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || calls != len(c.errs) || !slices.Equal(clock.waits, c.waits) ||
			clock.stopped != len(c.waits) {
			t.Errorf("%s: got %v after %d calls and the waits %v, %d of them ended", name, err, calls, clock.waits, clock.stopped)
		}
	}
}

// TestPatienceEndsWithItsContext ends the context before a call, within one that fails, within one that succeeds, and while it waits.
func TestPatienceEndsWithItsContext(t *testing.T) {
	gone, over := fault.New(fault.Unavailable, "gone", "gone"), errors.New("over")
	ctx, end := context.WithCancelCause(t.Context())
	end(over)
	if err := errand.Patiently(ctx, &bell{}, func() error { t.Error("it was called"); return nil }); !errors.Is(err, over) {
		t.Errorf("before: got %v", err)
	}
	for _, failure := range []error{gone, fault.New(fault.Conflict, "wrong", "wrong"), nil} {
		ctx, end := context.WithCancelCause(t.Context())
		clock := &bell{rings: 1}
		err := errand.Patiently(ctx, clock, func() error { end(over); return failure })
		if failure == nil && err != nil || failure != nil && !errors.Is(err, over) || len(clock.waits) > 0 {
			t.Errorf("within a call that returns %v: got %v, with the waits %v", failure, err, clock.waits)
		}
	}
	ctx, end = context.WithCancelCause(t.Context())
	clock := &bell{last: func() { end(over) }}
	if err := errand.Patiently(ctx, clock, func() error { return gone }); !errors.Is(err, over) || clock.stopped != 1 {
		t.Errorf("while it waits: got %v, %d timers ended", err, clock.stopped)
	}
}

// TestAPauseSaysWhetherItCameToItsEnd ends one pause by its timer and one by its context.
func TestAPauseSaysWhetherItCameToItsEnd(t *testing.T) {
	if !errand.Pause(t.Context(), &bell{rings: 1}, time.Second) {
		t.Error("a pause that came to its end says that it did not")
	}
	ctx, end := context.WithCancel(t.Context())
	if errand.Pause(ctx, &bell{last: end}, time.Second) {
		t.Error("a pause whose context ended says that it came to its end")
	}
}
