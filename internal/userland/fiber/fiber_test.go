package fiber_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"agentbox/internal/userland/fiber"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFibersTakeTurnsInOrder(t *testing.T) {
	var got []string
	fiber.Run(func(g *fiber.Group) {
		for i := range 3 {
			g.Go(func() {
				for turn := range 3 {
					got = append(got, fmt.Sprintf("%d.%d", i, turn))
					g.Yield()
				}
			})
		}
		got = append(got, "main")
	})
	want := []string{"main", "0.0", "1.0", "2.0", "0.1", "1.1", "2.1", "0.2", "1.2", "2.2"}
	if !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestAQueueWakesInOrder(t *testing.T) {
	var got []int
	fiber.Run(func(g *fiber.Group) {
		q := g.NewQueue()
		for i := range 5 {
			g.Go(func() {
				if err := q.Wait(); err != nil {
					t.Errorf("wait: %v", err)
				}
				got = append(got, i)
			})
		}
		g.Yield()
		q.Wake()
		g.Yield()
		q.Close()
	})
	if want := []int{0, 1, 2, 3, 4}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestADeadlockIsTold(t *testing.T) {
	var got []string
	fiber.Run(func(g *fiber.Group) {
		a, b := g.NewQueue(), g.NewQueue()
		g.Go(func() { got = append(got, "a "+a.Wait().Error()) })
		g.Go(func() { got = append(got, "b "+b.Wait().Error()) })
	})
	want := []string{"a " + fiber.ErrDeadlock.Error(), "b " + fiber.ErrDeadlock.Error()}
	if !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestDeadlinesComeInTheirOrder(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	var got []string
	fiber.Run(func(g *fiber.Group) {
		never := g.NewQueue()
		for i, n := range []int{5, 1, 3, 1} {
			g.Go(func() {
				if err := g.WaitUntil(at(n), never); !errors.Is(err, fiber.ErrTimeout) {
					t.Errorf("wait until %d: %v", n, err)
				}
				got = append(got, fmt.Sprintf("%d at %d", i, n))
			})
		}
	})
	if want := []string{"1 at 1", "3 at 1", "2 at 3", "0 at 5"}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestWhoIsWokenDoesNotTimeOutAnyMore(t *testing.T) {
	fiber.Run(func(g *fiber.Group) {
		a, b := g.NewQueue(), g.NewQueue()
		g.Go(func() {
			if err := g.WaitUntil(time.Unix(1, 0), a, b); err != nil {
				t.Errorf("first wait: %v", err)
			}
			a.Wake() // nobody waits there any more
			if err := g.Wait(a); !errors.Is(err, fiber.ErrDeadlock) {
				t.Errorf("second wait: %v", err)
			}
		})
		g.Yield()
		b.Wake()
	})
}

func TestAPanicIsTheRunsOwn(t *testing.T) {
	ran := false
	defer func() {
		if p := recover(); p != "broken" || !ran {
			t.Fatalf("got %v, others ran %v", p, ran)
		}
	}()
	fiber.Run(func(g *fiber.Group) {
		g.Go(func() { panic("broken") })
		g.Go(func() {
			g.Yield()
			ran = true
			panic("too late")
		})
	})
}

func TestAFiberMayEndAsATestDoes(t *testing.T) {
	ran := false
	fiber.Run(func(g *fiber.Group) {
		g.Go(runtime.Goexit)
		g.Go(func() { ran = true })
	})
	if !ran {
		t.Fatal("the other fiber did not run")
	}
}

// TestTheFirstIsNextWhenEverythingIsToEnd stops a group in which others could run and wait: the first fiber has the next turn, wherever
// it is, and Begin returns when it has ended; the others come to their ends when they are asked to.
func TestTheFirstIsNextWhenEverythingIsToEnd(t *testing.T) {
	for name, park := range map[string]func(g *fiber.Group, q *fiber.Queue) error{
		"it waits":              func(_ *fiber.Group, q *fiber.Queue) error { return q.Wait() },
		"it waits for a moment": func(g *fiber.Group, q *fiber.Queue) error { return g.WaitUntil(time.Unix(9, 0), q) },
		"it could run":          func(g *fiber.Group, _ *fiber.Queue) error { g.Yield(); return fiber.ErrDeadlock },
	} {
		var got []string
		stopped := false
		rest := fiber.Begin(func() bool { return stopped }, func(g *fiber.Group) {
			q, other := g.NewQueue(), g.NewQueue()
			g.Go(func() {
				err := other.Wait()
				got = append(got, err.Error())
			})
			g.Go(func() { stopped = true })
			g.Go(func() { got = append(got, "late") })
			if err := park(g, q); !errors.Is(err, fiber.ErrDeadlock) {
				t.Errorf("%s: %v", name, err)
			}
			got = append(got, "first")
		})
		if want := []string{"first"}; !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		rest()
		if want := []string{"first", "late", fiber.ErrDeadlock.Error()}; !slices.Equal(got, want) {
			t.Errorf("%s, in the end: got %v, want %v", name, got, want)
		}
	}
}

// TestWhatTheRestPanicsWithIsTheRests has a fiber panic after the first has ended.
func TestWhatTheRestPanicsWithIsTheRests(t *testing.T) {
	rest := fiber.Begin(func() bool { return false }, func(g *fiber.Group) { g.Go(func() { panic("broken") }) })
	defer func() {
		if p := recover(); p != "broken" {
			t.Errorf("got %v", p)
		}
		rest() // once is enough
	}()
	rest()
	t.Error("it is lost")
}

// TestManyWaitWithoutLookingAtEachOther makes so many queues, and has so many fibers wait with a deadline, that looking at all of them
// for each would take minutes.
func TestManyWaitWithoutLookingAtEachOther(t *testing.T) {
	const queues, sleepers = 300_000, 20_000
	woken := 0
	fiber.Run(func(g *fiber.Group) {
		all := make([]*fiber.Queue, queues)
		for i := range all {
			all[i] = g.NewQueue()
		}
		for i := range sleepers {
			g.Go(func() {
				if err := g.WaitUntil(time.Unix(int64(i*7919%sleepers), 0), all[i]); errors.Is(err, fiber.ErrTimeout) {
					woken++
				}
			})
		}
		g.Yield()
		for _, q := range slices.Backward(all[sleepers:]) {
			q.Close()
			q.Close() // again does nothing
		}
	})
	if woken != sleepers {
		t.Errorf("%d were woken, want %d", woken, sleepers)
	}
}

// TestTheOrderIsAlwaysTheSame runs whatever fibers twice.
func TestTheOrderIsAlwaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type act struct{ what, queue, until int }
		plans := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) act {
			return act{rapid.IntRange(0, 4).Draw(t, "what"), rapid.IntRange(0, 2).Draw(t, "queue"), rapid.IntRange(0, 3).Draw(t, "until")}
		}), 0, 6), 1, 6).Draw(t, "plans")
		run := func() string {
			var said strings.Builder
			fiber.Run(func(g *fiber.Group) {
				queues := []*fiber.Queue{g.NewQueue(), g.NewQueue(), g.NewQueue()}
				for i, plan := range plans {
					g.Go(func() {
						for _, a := range plan {
							var err error
							switch a.what {
							case 0:
								g.Yield()
							case 1:
								err = queues[a.queue].Wait()
							case 2:
								queues[a.queue].Wake()
							case 3:
								err = g.WaitUntil(time.Unix(int64(a.until), 0), queues[a.queue], queues[(a.queue+1)%3])
							case 4:
								g.Go(func() { fmt.Fprintf(&said, "child of %d\n", i) })
							}
							fmt.Fprintf(&said, "%d %v %v\n", i, a, err)
						}
					})
				}
			})
			return said.String()
		}
		if first, second := run(), run(); first != second {
			t.Fatalf("first:\n%s\nsecond:\n%s", first, second)
		}
	})
}
