package models_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/model"
	"agentbox/internal/service/models"
	"agentbox/internal/testkit/wall"
)

// broken is a fixture whose model three has failed five times in a row, the last time just now.
func broken(t *testing.T) *fixture {
	f := start(t)
	// After so long it is not tried again.
	once := fails(model.Failure{Class: model.Busy, Message: `127.0.0.1:9 cannot be reached: "a secret of the room"`, Status: 503,
		After: models.MaxWait + 1})
	f.vendor.script["three"] = []step{once, once, once, once, once, fails(model.Failure{Class: model.Retry, Message: "broken"})}
	for n := range 5 {
		if _, err := f.Ask(t.Context(), f.of("three", n+1, 0)); err == nil {
			t.Fatal("no failure")
		}
	}
	// Timers that end a request are silent: in these tests they have a millisecond or more than ten minutes.
	f.clock.silent = func(d time.Duration) bool { return d == time.Millisecond || d > 10*time.Minute }
	return f
}

// of returns the request of a step to a model, for a run that has some time left.
func (f *fixture) of(entry string, n int, left time.Duration) model.Ask {
	a := f.question(n)
	a.Entry, a.Time = entry, left
	return a
}

// deferred returns the data of the recorded waits.
func (f *fixture) deferred() (list []model.Deferred) {
	for _, e := range f.events(model.EventDeferred) {
		d, err := event.Decode[model.Deferred](e)
		if err != nil || e.Run != run {
			f.t.Errorf("got %+v, %v", e, err)
		}
		list = append(list, d)
	}
	return list
}

// TestARunWaitsForAnOpenCircuit holds the edge: a run waits if it has more time than the circuit is open, and else fails at once.
func TestARunWaitsForAnOpenCircuit(t *testing.T) {
	const open = 30 * time.Second
	for left, waits := range map[time.Duration]bool{0: false, open - time.Millisecond: false, open: false, open + time.Millisecond: true} {
		f := broken(t)
		f.vendor.script["three"] = []step{says("back")}
		r, err := f.Ask(t.Context(), f.of("three", 10, left))
		d := f.deferred()
		if !waits {
			got, _ := model.FailureOf(err)
			if got == nil || got.Code != "circuit_open" || f.vendor.count("three") != 5 || len(f.clock.slept) != 0 || len(d) != 0 {
				t.Errorf("%s left: got %v after %d requests, slept %v, %+v", left, err, f.vendor.count("three"), f.clock.slept, d)
			}
			if left > 0 && !strings.Contains(err.Error(), "the run may go on for only 30s") {
				t.Errorf("%s left: got %v", left, err)
			}
			continue
		}
		if err != nil || r.Text() != "back" || r.Attempts != 1 || r.Took != open || len(f.clock.slept) != 1 || f.clock.slept[0] != open {
			t.Errorf("%s left: got %+v, %v, slept %v", left, r, err, f.clock.slept)
		}
		if len(d) != 1 || d[0].Entry != "three" || d[0].Step != 10 || d[0].Code != "circuit_open" || d[0].WaitMS != open.Milliseconds() ||
			!d[0].Until.Equal(f.clock.Now()) || !strings.Contains(d[0].Reason, "the last one: 127.0.0.1:9 cannot be reached (HTTP 503))") {
			t.Errorf("%s left: recorded %+v", left, d)
		}
		asked := f.events(model.EventAsked)
		last, err := event.Decode[model.Asked](asked[len(asked)-1])
		if err != nil || last.Waited != open.Milliseconds() || !strings.HasPrefix(last.Reason, "it was left alone for 30s") {
			t.Errorf("%s left: got %+v, %v", left, last, err)
		}
	}
}

// TestTriesCountOverWaits waits before each of the three tries of a request, and then gives up. Each failure keeps the circuit open for
// longer.
func TestTriesCountOverWaits(t *testing.T) {
	f := broken(t)
	_, err := f.Ask(t.Context(), f.of("three", 10, time.Hour))
	if got, ok := model.FailureOf(err); !ok || got.Code == "circuit_open" || f.vendor.count("three") != 8 {
		t.Errorf("got %v after %d requests", err, f.vendor.count("three"))
	}
	var waits time.Duration
	for _, d := range f.deferred() {
		waits += time.Duration(d.WaitMS) * time.Millisecond
	}
	if n := len(f.deferred()); n != 3 || waits < 3*time.Minute || waits > 210*time.Second {
		t.Errorf("waited %d times, %s", n, waits)
	}
}

// TestAWaitIsEndedAndResumed has a run end while it waits, as a daemon that stops does. The next daemon sends the request at once, and
// the wait counts.
func TestAWaitIsEndedAndResumed(t *testing.T) {
	f := broken(t)
	f.vendor.script["three"] = []step{says("back")}
	stopped := errors.New("the daemon stops")
	ctx, stop := context.WithCancelCause(t.Context())
	f.clock.silent = func(time.Duration) bool { stop(stopped); return true }
	if _, err := f.Ask(ctx, f.of("three", 10, time.Minute)); !errors.Is(err, stopped) {
		t.Fatalf("got %v", err)
	}
	f.restart()
	r, err := f.Ask(t.Context(), f.of("three", 10, time.Minute))
	if err != nil || r.Text() != "back" || r.Took != 30*time.Second || len(f.deferred()) != 1 {
		t.Errorf("got %+v, %v, %+v", r, err, f.deferred())
	}
	if _, err := f.Ask(t.Context(), f.of("three", 10, time.Minute)); err != nil {
		t.Error(err)
	}
}

// TestASecondModelAnswersForAnOpenCircuit falls back at once, without a wait.
func TestASecondModelAnswersForAnOpenCircuit(t *testing.T) {
	f := broken(t)
	if err := f.SetRoutes(t.Context(), f.owner, ws, []model.Route{{Models: []string{"three", "two"}}}); err != nil {
		t.Fatal(err)
	}
	r, err := f.Ask(t.Context(), f.of("", 10, time.Hour))
	if err != nil || r.Entry != "two" || len(f.deferred()) != 0 || len(f.clock.slept) != 0 {
		t.Errorf("got %+v, %v, %+v", r, err, f.deferred())
	}
}

// TestAChangedEntryHasNoOpenCircuit asks a model whose entry a person has corrected.
func TestAChangedEntryHasNoOpenCircuit(t *testing.T) {
	f := broken(t)
	f.put(model.Entry{Name: "three", Model: "three-2", MaxOutput: 100})
	f.vendor.script["three"] = []step{says("back")}
	if r, err := f.Ask(t.Context(), f.of("three", 10, 0)); err != nil || r.Text() != "back" {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestATestOfAModelAndItsCircuit tests a model again and again. A test that fails opens no circuit, and leaves an open one as it is. A test
// that is answered closes it, as an answered request that tries the model does: the next five failures open it anew, for 30 s.
func TestATestOfAModelAndItsCircuit(t *testing.T) {
	f := start(t)
	f.vendor.script["three"] = []step{fails(model.Failure{Class: model.Retry, Message: "broken"})}
	for range 2 { // six failures
		if out, err := f.Test(t.Context(), f.owner, ws, "three"); err != nil || out.Reachable || out.Failure != "broken" {
			t.Fatalf("got %+v, %v", out, err)
		}
	}
	before := f.vendor.count("three")
	if _, err := f.Ask(t.Context(), f.of("three", 1, 0)); err == nil || f.vendor.count("three") != before+3 {
		t.Errorf("after two tests: %v, %d requests", err, f.vendor.count("three")-before)
	}

	f = broken(t)
	open := func(n int) *model.Failure {
		t.Helper()
		_, err := f.Ask(t.Context(), f.of("three", n, 0))
		got, _ := model.FailureOf(err)
		return got
	}
	for _, class := range []model.Class{model.Retry, model.Final} {
		f.vendor.script["three"] = []step{fails(model.Failure{Class: class, Message: "broken"})}
		if out, err := f.Test(t.Context(), f.owner, ws, "three"); err != nil || out.Reachable {
			t.Fatalf("an open circuit: got %+v, %v", out, err)
		}
		if got := open(10); got == nil || got.Code != "circuit_open" {
			t.Errorf("after a test that failed as %s: got %v", class, got)
		}
	}
	f.vendor.script["three"] = []step{says("one two")}
	if out, err := f.Test(t.Context(), f.owner, ws, "three"); err != nil || !out.Reachable {
		t.Fatalf("an open circuit: got %+v, %v", out, err)
	}
	answered := f.events(model.EventAnswered)
	if r, err := f.Ask(t.Context(), f.of("three", 11, 0)); err != nil || r.Text() != "one two" {
		t.Errorf("after a test that was answered: got %+v, %v", r, err)
	}
	if len(answered) == 0 || answered[0].Principal != f.owner.Principal || answered[0].Run != "" {
		t.Errorf("the test recorded %+v", answered)
	}
	once := fails(model.Failure{Class: model.Busy, Message: "busy", After: models.MaxWait + 1})
	f.vendor.script["three"] = []step{once}
	for n := range 5 {
		if got := open(20 + n); got == nil || got.Code == "circuit_open" {
			t.Errorf("failure %d after it closed: got %v", n+1, got)
		}
	}
	if got := open(30); got == nil || got.Code != "circuit_open" || got.After != 30*time.Second {
		t.Errorf("after five more failures: got %v", got)
	}
}

// TestAnAnsweredTestEndsTheWaitForACircuit tests a model while a run waits for its open circuit: the run goes on at once. Of the wait only
// the 10 seconds that have passed count against the time of the run, also where a later daemon reads the answer in the log.
func TestAnAnsweredTestEndsTheWaitForACircuit(t *testing.T) {
	f := broken(t)
	f.vendor.script["three"] = []step{says("back")}
	tested := make(chan error, 1)
	silent := f.clock.silent
	f.clock.silent = func(d time.Duration) bool {
		if d != 30*time.Second {
			return silent(d)
		}
		f.clock.now = f.clock.now.Add(10 * time.Second)
		go func() {
			_, err := f.Test(t.Context(), f.owner, ws, "three")
			tested <- err
		}()
		return true // the rest of the time does not pass
	}
	ctx, stop := context.WithTimeout(t.Context(), wall.Patience)
	defer stop()
	r, err := f.Ask(ctx, f.of("three", 10, time.Hour))
	if err != nil || r.Text() != "back" || r.Took != 10*time.Second || len(f.deferred()) != 1 {
		t.Errorf("got %+v, %v, took %s, %+v", r, err, r.Took, f.deferred())
	}
	if err := <-tested; err != nil {
		t.Error(err)
	}
	for _, e := range f.events(model.EventAsked) {
		if d, err := event.Decode[model.Asked](e); err != nil || d.Step == 10 && (d.Waited != 10_000 || d.Spared != 20_000) {
			t.Errorf("of the wait it says %+v, %v", d, err)
		}
	}
	f.restart()
	if r, err := f.Ask(t.Context(), f.of("three", 10, time.Hour)); err != nil || !r.Repeated || r.Took != 10*time.Second {
		t.Errorf("a later daemon: got %+v, %v, took %s", r, err, r.Took)
	}
}

// TestAWaitThatIsCutShortLeavesItsTime has a run wait for 30 of its last 31 seconds. The wait is cut short at once: the request may work
// for 31 seconds and not for one.
func TestAWaitThatIsCutShortLeavesItsTime(t *testing.T) {
	f := broken(t)
	var bounds []time.Duration // of what the request may work
	waits := false
	f.vendor.script["three"] = []step{says("back")}
	tested := make(chan error, 1)
	f.clock.silent = func(d time.Duration) bool {
		if d == 30*time.Second && !waits {
			waits = true
			go func() {
				_, err := f.Test(t.Context(), f.owner, ws, "three")
				tested <- err
			}()
		} else if d > 100*time.Millisecond && d <= 31*time.Second {
			bounds = append(bounds, d)
		}
		return true
	}
	ctx, stop := context.WithTimeout(t.Context(), wall.Patience)
	defer stop()
	r, err := f.Ask(ctx, f.of("three", 10, 31*time.Second))
	if err := <-tested; err != nil {
		t.Error(err)
	}
	if err != nil || r.Took != 0 || !slices.Equal(bounds, []time.Duration{31 * time.Second}) {
		t.Errorf("got %+v, %v, took %s; the request may work for %v", r, err, r.Took, bounds)
	}
}
