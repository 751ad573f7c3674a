package engines_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/engines"
)

// waiter is an engine that waits for a run.
type waiter struct {
	doc   run.Run
	token string
	err   error
	after time.Duration
	done  chan struct{}
}

// wait lets an engine wait, and returns once it does.
func (h *house) wait(ctx context.Context, want engines.Wanted) *waiter {
	w := &waiter{done: make(chan struct{})}
	began := time.Now()
	go func() {
		defer close(w.done)
		w.doc, w.token, w.err = h.Await(ctx, h.owner, ws, want)
		w.after = time.Since(began)
	}()
	synctest.Wait()
	return w
}

// got is the run that a waiter has, once it waits no more.
func (w *waiter) got(t *testing.T, want id.Run, after time.Duration) {
	t.Helper()
	<-w.done
	if w.err != nil || w.doc.ID != want || w.after != after || want != "" && w.token == "" {
		t.Errorf("got %s after %s, %v; want %s after %s", w.doc.ID, w.after, w.err, want, after)
	}
}

// inBubble runs a test whose time is not real, on a house of its own.
func inBubble(t *testing.T, test func(t *testing.T, h *house)) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouseOn(t, &clock{bubble: true})
		defer h.close()
		test(t, h)
	})
}

func TestWhoWaitsHasARunWhenItIsMade(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		first, second := h.wait(t.Context(), engines.Wanted{}), h.wait(t.Context(), engines.Wanted{})
		time.Sleep(time.Minute + time.Second/2)
		one := h.ask("")
		first.got(t, one.ID, time.Minute+time.Second/2)
		two := h.ask("")
		second.got(t, two.ID, time.Minute+time.Second/2)
		if first.doc.Fence != 1 || first.doc.Status != run.Running {
			t.Errorf("got %+v", first.doc)
		}
	})
}

func TestWhoWaitsForSomethingElseIsNotWoken(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		ctx, leave := context.WithCancel(t.Context())
		elsewhere := h.wait(ctx, engines.Wanted{Room: "room_01M7YNAYM0SM228XA4K3G6VDD4"})
		other := h.wait(ctx, engines.Wanted{Work: errand.Operations})
		blind := h.wait(ctx, engines.Wanted{Shows: func(id.Run) (bool, error) { return false, nil }})
		unfit := h.wait(ctx, engines.Wanted{Fits: func(context.Context, run.Run) (bool, error) { return false, nil }})
		any := h.wait(t.Context(), engines.Wanted{})
		made := h.ask("")
		any.got(t, made.ID, 0) // past two who could have had it, and may not
		leave()
		for _, w := range []*waiter{elsewhere, other, blind, unfit} {
			if <-w.done; !errors.Is(w.err, errand.ErrNothing) {
				t.Errorf("got %s, %v", w.doc.ID, w.err)
			}
		}
	})
}

func TestARunThatNobodyWantsEndsItsRound(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		ctx, leave := context.WithTimeout(t.Context(), time.Minute)
		defer leave()
		var looks atomic.Int64
		blind := func(id.Run) (bool, error) { looks.Add(1); return false, nil }
		var all []*waiter
		for range 3 {
			all = append(all, h.wait(ctx, engines.Wanted{Shows: blind}))
		}
		h.ask("")
		for _, w := range all {
			if <-w.done; !errors.Is(w.err, errand.ErrNothing) {
				t.Errorf("got %s, %v", w.doc.ID, w.err)
			}
		}
		if looks := looks.Load(); looks > 3*(2*4+30) { // each is told once or twice, looks again then, and every two seconds
			t.Errorf("the run was looked at %d times", looks)
		}
	})
}

func TestWhoWaitsHearsOfAPlaceAndOfWhatIsGivenBack(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		var held []engines.Hold
		for range 5 { // as many as run in a workspace at the same time
			h.ask("")
			_, k := h.claim()
			held = append(held, k)
		}
		six, seven := h.ask(""), h.ask("")
		first, second := h.wait(t.Context(), engines.Wanted{}), h.wait(t.Context(), engines.Wanted{})
		if _, err := h.Complete(t.Context(), h.owner, held[0], "", nil); err != nil {
			t.Fatal(err)
		}
		first.got(t, six.ID, 0)
		if _, err := h.Cancel(t.Context(), h.owner, ws, held[1].Run, ""); err != nil {
			t.Fatal(err)
		}
		second.got(t, seven.ID, 0)
		third := h.wait(t.Context(), engines.Wanted{})
		if _, err := h.Release(t.Context(), h.owner, held[2]); err != nil {
			t.Fatal(err)
		}
		third.got(t, held[2].Run, 0)
	})
}

func TestWhoWaitsFindsAClaimThatHasExpired(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		made := h.ask("")
		h.claim()
		next := h.wait(t.Context(), engines.Wanted{})
		next.got(t, made.ID, run.ClaimTime)
		if next.doc.Fence != 2 {
			t.Errorf("got fence %d", next.doc.Fence)
		}
	})
}

// TestNobodySleepsThroughARun lets engines come and go while runs are made: each run has one of them, and at once.
func TestNobodySleepsThroughARun(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		const runs = 200
		began := time.Now()
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		var mu sync.Mutex
		got := map[id.Run]int{}
		all := make(chan struct{})
		var working, making sync.WaitGroup
		for n := range 8 {
			working.Go(func() {
				for ctx.Err() == nil {
					short, gone := context.WithCancel(ctx)
					if n%2 == 0 {
						go func() { gone() }() // it is gone by the time that it is rung, or nearly
					}
					doc, token, err := h.Await(short, h.owner, ws, engines.Wanted{})
					gone()
					if errors.Is(err, errand.ErrNothing) {
						continue
					}
					if err == nil {
						_, err = h.Complete(context.Background(), h.owner, engines.Hold{Workspace: ws, Run: doc.ID, Token: token}, "", nil)
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if got[doc.ID]++; len(got) == runs {
						close(all)
					}
					mu.Unlock()
				}
			})
		}
		for range 4 {
			making.Go(func() {
				for range runs / 4 {
					h.ask("")
				}
			})
		}
		making.Wait()
		<-all
		leave()
		working.Wait()
		for r, n := range got {
			if n != 1 {
				t.Errorf("%s was executed %d times", r, n)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("somebody slept for %s while there was work", took)
		}
	})
}

// A run passes over everybody whom a label keeps from it, even if others leave meanwhile, to an engine that may have it, without a wait.
func TestARunReachesTheLastWhoWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		blind := func() *waiter {
			own, gone := context.WithCancel(ctx)
			looks := 0
			return h.wait(own, engines.Wanted{Shows: func(id.Run) (bool, error) {
				if looks++; looks == 1 {
					gone() // it has looked, and goes
				}
				return false, nil
			}})
		}
		all := []*waiter{blind(), blind(), blind()}
		last := h.wait(ctx, engines.Wanted{})
		made := h.ask("")
		last.got(t, made.ID, 0)
		for _, w := range all {
			<-w.done
		}
	})
}

// A run that a waiting engine is refused, or fails at, is offered to the next one.
func TestARefusalPassesARunOn(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		broken := errors.New("it cannot be looked up")
		agent, err := h.people.Agent(t.Context(), h.owner, ws, "stranger")
		if err != nil {
			t.Fatal(err)
		}
		failing := h.wait(t.Context(), engines.Wanted{Shows: func(id.Run) (bool, error) { return false, broken }})
		refused := &waiter{done: make(chan struct{})}
		go func() {
			defer close(refused.done)
			_, _, refused.err = h.Await(t.Context(), event.Origin{Principal: agent}, ws, engines.Wanted{})
		}()
		synctest.Wait()
		good := h.wait(t.Context(), engines.Wanted{})
		made := h.ask("")
		good.got(t, made.ID, 0)
		if <-failing.done; !errors.Is(failing.err, broken) {
			t.Errorf("got %v", failing.err)
		}
		if <-refused.done; fault.KindOf(refused.err) != fault.Denied {
			t.Errorf("got %v", refused.err)
		}
	})
}

// A place that becomes free is of no use to who may not see the run that waits for it: the next one looks.
func TestAPlaceIsPassedOn(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		var held []engines.Hold
		for range 5 { // as many as run in a workspace at the same time
			h.ask("")
			_, k := h.claim()
			held = append(held, k)
		}
		six := h.ask("")
		ctx, leave := context.WithCancel(t.Context())
		blind := h.wait(ctx, engines.Wanted{Shows: func(id.Run) (bool, error) { return false, nil }})
		good := h.wait(t.Context(), engines.Wanted{})
		if _, err := h.Complete(t.Context(), h.owner, held[0], "", nil); err != nil {
			t.Fatal(err)
		}
		good.got(t, six.ID, 0)
		leave()
		<-blind.done
	})
}

// A listener hears of a run which those who wait in its workspace do not want.
func TestWhoListensHearsOfWhatNobodyWants(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		ctx, leave := context.WithCancel(t.Context())
		blind := []*waiter{}
		for range 3 {
			blind = append(blind, h.wait(ctx, engines.Wanted{Shows: func(id.Run) (bool, error) { return false, nil }}))
		}
		heard, stop := h.Listen("")
		defer stop()
		h.ask("")
		synctest.Wait()
		select {
		case <-heard:
		default:
			t.Error("nobody was told")
		}
		leave()
		for _, w := range blind {
			<-w.done
		}
	})
}

// The caller that came first is served first, also after it was offered a run that it could not have.
func TestWhoCameFirstKeepsHisTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		var hidden id.Run
		first := h.wait(t.Context(), engines.Wanted{Shows: func(r id.Run) (bool, error) {
			if hidden == "" {
				hidden = r
			}
			return r != hidden, nil
		}})
		second := h.wait(t.Context(), engines.Wanted{})
		third := h.wait(t.Context(), engines.Wanted{})
		one := h.ask("")
		second.got(t, one.ID, 0)
		two := h.ask("")
		first.got(t, two.ID, 0)
		three := h.ask("")
		third.got(t, three.ID, 0)
	})
}

// Who has gone away is given nothing: the next one is.
func TestWhoHasGoneIsGivenNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		ctx, leave := context.WithCancel(t.Context())
		looks, looking := 0, make(chan struct{})
		gone := h.wait(ctx, engines.Wanted{Shows: func(id.Run) (bool, error) {
			if looks++; looks == 1 {
				<-looking
			}
			return looks > 1, nil
		}})
		h.ask("")
		synctest.Wait() // the first one looks at it
		leave()
		h.ask("")
		close(looking)
		if <-gone.done; !errors.Is(gone.err, errand.ErrNothing) {
			t.Errorf("got %s, %v", gone.doc.ID, gone.err)
		}
		for range 2 {
			h.claim()
		}
	})
}

// TestWhoCannotTellWhetherARunFitsHearsWhy offers a run to a caller whose Fits fails. That caller gets the error, and the next one gets the
// run.
func TestWhoCannotTellWhetherARunFitsHearsWhy(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		broken := errors.New("the space cannot be looked at")
		looks := 0
		first := h.wait(t.Context(), engines.Wanted{Fits: func(context.Context, run.Run) (bool, error) {
			if looks++; looks == 1 {
				return false, broken
			}
			return false, nil
		}})
		second := h.wait(t.Context(), engines.Wanted{})
		made := h.ask("")
		second.got(t, made.ID, 0)
		if <-first.done; !errors.Is(first.err, broken) {
			t.Errorf("got %s, %v, want %v", first.doc.ID, first.err, broken)
		}
	})
}
