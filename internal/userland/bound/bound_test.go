package bound_test

import (
	"bytes"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"agentbox/internal/userland/bound"
)

var (
	limits = bound.Limits{Gas: 100, Time: time.Minute, MemoryBytes: 1000, OutputBytes: 10, FileBytes: 10, OpenFiles: 3, Depth: 2}
	began  = time.Unix(1_700_000_000, 0)
)

func account() *bound.Account { return bound.New(limits, [32]byte{1}, began) }

func wantStopped(t *testing.T, err error, want bound.Stopped) {
	t.Helper()
	if got, ok := errors.AsType[*bound.Stopped](err); !ok || *got != want {
		t.Fatalf("got %v, want %v", err, &want)
	}
}

func TestGasIsChargedUpToItsBound(t *testing.T) {
	a := account()
	for range 10 {
		if err := a.Charge(10); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Charge(0); err != nil {
		t.Fatal(err)
	}
	wantStopped(t, a.Charge(1), bound.Stopped{Limit: bound.Gas})
	wantStopped(t, a.Charge(0), bound.Stopped{Limit: bound.Gas})
	wantStopped(t, a.Check(), bound.Stopped{Limit: bound.Gas})
	wantStopped(t, account().Charge(-1), bound.Stopped{Limit: bound.Gas})
	wantStopped(t, account().Charge(math.MaxInt64), bound.Stopped{Limit: bound.Gas})
}

func TestSlicesAreGivenBack(t *testing.T) {
	a := account()
	got, err := a.Slice(70)
	if err != nil || got != 70 {
		t.Fatalf("got %d, %v", got, err)
	}
	if got, err = a.Slice(70); err != nil || got != 30 {
		t.Fatalf("got %d, %v, want what is left", got, err)
	}
	a.Return(40)
	if now := a.Now(); !now.Equal(began.Add(60)) {
		t.Fatalf("the clock shows %s after %s", now, now.Sub(began))
	}
	if a.Used() != 60 {
		t.Fatalf("used %d, want 60", a.Used())
	}
	a.Return(-50) // it went beyond
	if a.Used() != 110 {
		t.Fatalf("used %d, want 110", a.Used())
	}
	_, err = a.Slice(1)
	wantStopped(t, err, bound.Stopped{Limit: bound.Gas})
}

func TestSleepingCountsToTheTime(t *testing.T) {
	a := account()
	if err := a.Sleep(time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := a.Sleep(-time.Hour); err != nil || a.Slept() != time.Minute {
		t.Fatalf("slept %s, %v", a.Slept(), err)
	}
	if err := a.Charge(7); err != nil || !a.Now().Equal(began.Add(time.Minute+7)) || a.Worked() != 7 {
		t.Fatalf("the clock shows %s, worked %s, %v", a.Now(), a.Worked(), err)
	}
	wantStopped(t, a.Sleep(1), bound.Stopped{TimedOut: true})
	wantStopped(t, account().Sleep(math.MaxInt64), bound.Stopped{TimedOut: true})
}

func TestMemoryIsHeldAndReleased(t *testing.T) {
	a := account()
	if err := a.Allocate(1000); err != nil || a.Spare() != 0 {
		t.Fatalf("spare %d, %v", a.Spare(), err)
	}
	if err := a.Allocate(1); !errors.Is(err, bound.ErrMemory) || a.WasHit() != bound.Memory || a.Check() != nil {
		t.Fatalf("got %v, hit %q, %v: it ends a program, not the execution", err, a.WasHit(), a.Check())
	}
	a.Release(600)
	if err := a.Allocate(100); err != nil {
		t.Fatal(err)
	}
	if now, peak := a.Memory(); now != 500 || peak != 1000 {
		t.Fatalf("now %d, peak %d", now, peak)
	}
	if err := a.Allocate(math.MaxInt64); !errors.Is(err, bound.ErrMemory) {
		t.Fatalf("got %v", err)
	}
}

func TestOutputFitsUpToItsBound(t *testing.T) {
	a := account()
	if n, err := a.Print(10); n != 10 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	a = account()
	n, err := a.Print(11)
	if n != 10 {
		t.Fatalf("%d bytes fit, want 10", n)
	}
	wantStopped(t, err, bound.Stopped{Limit: bound.Output})
	_, err = a.Print(0)
	wantStopped(t, err, bound.Stopped{Limit: bound.Output})
}

func TestDepthIsBounded(t *testing.T) {
	a := account()
	for range 2 {
		if err := a.Enter(); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Enter(); !errors.Is(err, bound.ErrDepth) || a.WasHit() != bound.Depth {
		t.Fatalf("got %v, hit %q", err, a.WasHit())
	}
	a.Leave()
	if err := a.Enter(); err != nil {
		t.Fatal(err)
	}
	a.Hit(bound.Disk)
	if a.WasHit() != bound.Depth {
		t.Fatalf("hit %q, want the first", a.WasHit())
	}
}

func TestTheFirstStopCounts(t *testing.T) {
	a := account()
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { a.Stop(&bound.Stopped{Canceled: true}) })
	}
	all.Wait()
	a.Stop(&bound.Stopped{TimedOut: true})
	wantStopped(t, a.Charge(1), bound.Stopped{Canceled: true})
	wantStopped(t, a.Sleep(1), bound.Stopped{Canceled: true})
	_, err := a.Print(1)
	wantStopped(t, err, bound.Stopped{Canceled: true})
	_, err = a.Slice(1)
	wantStopped(t, err, bound.Stopped{Canceled: true})
}

func TestChanceIsTheSeeds(t *testing.T) {
	draw := func(seed byte, sizes ...int) []byte {
		a := bound.New(limits, [32]byte{seed}, began)
		var all []byte
		for _, n := range sizes {
			p := make([]byte, n)
			a.Entropy(p)
			all = append(all, p...)
		}
		return all
	}
	if !bytes.Equal(draw(1, 3, 8, 21), draw(1, 3, 8, 21)) || bytes.Equal(draw(1, 32), draw(2, 32)) {
		t.Fatal("chance is not the seed's")
	}
	if bytes.Equal(draw(1, 8, 8)[:8], draw(1, 8, 8)[8:]) {
		t.Fatal("chance repeats itself")
	}
}

// TestWhatIsLeftForAfterwardsIsDoneOnce has something given back at once where nobody waits, and by Finish where somebody waits for the
// end of an execution that was stopped.
func TestWhatIsLeftForAfterwardsIsDoneOnce(t *testing.T) {
	for _, x := range []struct {
		name          string
		promise, stop bool
		before        int
	}{{"nobody has promised", false, true, 1}, {"it goes on", true, false, 1}, {"it was stopped", true, true, 0}} {
		a := account()
		done := 0
		if x.promise {
			a.Promise()
		}
		if x.stop {
			a.Stop(&bound.Stopped{Canceled: true})
		}
		a.Afterwards(func() { done++ })
		if done != x.before {
			t.Errorf("%s: %d times before Finish, want %d", x.name, done, x.before)
		}
		a.Finish()
		a.Finish()
		a.Afterwards(func() { done++ })
		if done != 2 {
			t.Errorf("%s: %d times in the end, want 2", x.name, done)
		}
	}
}
