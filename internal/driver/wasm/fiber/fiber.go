// Package fiber runs the goroutines of one execution one at a time and switches between them only where one waits, always in the same order.
//
// The stages of a pipeline are fibers: since nothing but what they do decides who runs next, their output, their effects on files and the gas that they use
// are the same each time, and what they share needs no lock.
package fiber

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrDeadlock ends a wait that nobody can end: every fiber waits.
var ErrDeadlock = errors.New("everything waits for each other")

// ErrTimeout ends a wait whose deadline is the next thing that happens.
var ErrTimeout = errors.New("the wait has reached its deadline")

// Group is the fibers of one execution. Make it with Run.
type Group struct {
	ready   []*fiber // in the order in which they will run
	timed   []*fiber // those that wait with a deadline, in the order in which they came
	living  int
	current *fiber
	panicky any // what a fiber panicked with, for Run
	queues  []*Queue
	done    chan struct{}
}

type fiber struct {
	wake     chan struct{}
	err      error    // why it was woken, nil because it was signalled
	in       []*Queue // where it waits
	deadline time.Time
}

// Run calls main as the first fiber and returns when every fiber has returned. A panic of any of them is Run's.
func Run(main func(g *Group)) {
	g := &Group{done: make(chan struct{})}
	g.Go(func() { main(g) })
	g.next()
	<-g.done
	if g.panicky != nil {
		panic(g.panicky)
	}
}

// Go adds a fiber, which begins when it is its turn. It is called by the fiber that runs.
func (g *Group) Go(f func()) {
	me := &fiber{wake: make(chan struct{}, 1)}
	g.living++
	g.ready = append(g.ready, me)
	go func() {
		<-me.wake
		defer func() {
			if p := recover(); p != nil && g.panicky == nil {
				g.panicky = p
			}
			g.living--
			g.next()
		}()
		f()
	}()
}

// Living returns how many fibers have not ended.
func (g *Group) Living() int { return g.living }

// Yield lets every other fiber that can run do so first.
func (g *Group) Yield() {
	if len(g.ready) == 0 {
		return
	}
	me := g.current
	g.ready = append(g.ready, me)
	g.next()
	<-me.wake
}

// WaitUntil waits in any number of queues until one of them is woken. Where everybody waits, the one with the earliest deadline is woken with ErrTimeout;
// it is his to move the clock there.
func (g *Group) WaitUntil(deadline time.Time, queues ...*Queue) error {
	g.current.deadline = deadline
	g.timed = append(g.timed, g.current)
	return g.wait(queues)
}

// Wait waits in any number of queues until one of them is woken, and fails with ErrDeadlock where nobody can.
func (g *Group) Wait(queues ...*Queue) error { return g.wait(queues) }

func (g *Group) wait(queues []*Queue) error {
	me := g.current
	me.err, me.in = nil, queues
	for _, q := range queues {
		q.waiting = append(q.waiting, me)
	}
	g.next()
	<-me.wake
	return me.err
}

// rouse makes a fiber ready that waits.
func (g *Group) rouse(f *fiber, err error) {
	is := func(other *fiber) bool { return other == f }
	for _, q := range f.in {
		q.waiting = slices.DeleteFunc(q.waiting, is)
	}
	g.timed = slices.DeleteFunc(g.timed, is)
	f.err, f.in = err, nil
	g.ready = append(g.ready, f)
}

// next hands the turn to the first fiber that can run. Where none can, time passes up to the first deadline; without one, those that wait are told so.
func (g *Group) next() {
	if g.living == 0 {
		close(g.done)
		return
	}
	if len(g.ready) == 0 && len(g.timed) > 0 {
		g.rouse(slices.MinFunc(g.timed, func(a, b *fiber) int { return a.deadline.Compare(b.deadline) }), ErrTimeout)
	}
	if len(g.ready) == 0 {
		for _, q := range g.queues {
			q.fail(ErrDeadlock)
		}
		if len(g.ready) == 0 {
			panic(fmt.Sprintf("fiber: %d fibers live and none runs or waits", g.living))
		}
	}
	first := g.ready[0]
	g.ready = g.ready[1:]
	g.current = first
	first.wake <- struct{}{}
}

// Queue is where fibers wait for something, in the order in which they came.
type Queue struct {
	group   *Group
	waiting []*fiber
}

// NewQueue returns an empty queue of the group.
func (g *Group) NewQueue() *Queue {
	q := &Queue{group: g}
	g.queues = append(g.queues, q)
	return q
}

// Close says that nobody will wait in the queue any more. Who does is woken.
func (q *Queue) Close() {
	q.Wake()
	q.group.queues = slices.DeleteFunc(q.group.queues, func(other *Queue) bool { return other == q })
}

// Wait lets the others run until somebody wakes the queue, and fails with ErrDeadlock where nobody can.
func (q *Queue) Wait() error { return q.group.wait([]*Queue{q}) }

// Wake makes everybody who waits ready, in the order in which they came.
func (q *Queue) Wake() { q.fail(nil) }

func (q *Queue) fail(err error) {
	for len(q.waiting) > 0 {
		q.group.rouse(q.waiting[0], err)
	}
}
