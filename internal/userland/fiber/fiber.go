// Package fiber runs the goroutines of one execution one at a time and switches between them only where one waits, always in the same
// order.
//
// The stages of a pipeline are fibers: since nothing but what they do decides who runs next, their output, their effects on files and the
// gas that they use are the same each time, and what they share needs no lock.
package fiber

import (
	"container/heap"
	"container/list"
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
	timed   timed    // those that wait with a deadline
	came    uint64   // how often somebody has waited with one
	living  int
	current *fiber
	panicky any           // what a fiber panicked with, for Run
	first   *fiber        // which Begin waits for, nil when it has ended
	begun   chan struct{} // closed when it has
	stopped func() bool
	hurried bool      // it was given the turn because everything is to end
	queues  list.List // of *Queue, in the order in which they were made
	done    chan struct{}
}

type fiber struct {
	wake     chan struct{}
	err      error  // why it was woken, nil because it was signalled
	in       []spot // where it waits
	deadline time.Time
	came     uint64 // when it came, of those that wait with a deadline
	at       int    // where it is among them, -1 where it is not
}

// spot is where a fiber waits in a queue.
type spot struct {
	queue *Queue
	place *list.Element
}

// timed is a heap of fibers: the earliest deadline is first, and of the same those that came first.
type timed []*fiber

func (t timed) Len() int { return len(t) }

func (t timed) Less(i, j int) bool {
	if order := t[i].deadline.Compare(t[j].deadline); order != 0 {
		return order < 0
	}
	return t[i].came < t[j].came
}

func (t timed) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].at, t[j].at = i, j
}

// Push implements heap.Interface.
func (t *timed) Push(x any) {
	f := x.(*fiber)
	f.at = len(*t)
	*t = append(*t, f)
}

// Pop implements heap.Interface.
func (t *timed) Pop() any {
	last := len(*t) - 1
	f := (*t)[last]
	(*t)[last], f.at = nil, -1
	*t = (*t)[:last]
	return f
}

// Run calls main as the first fiber and returns when every fiber has returned. A panic of any of them is Run's.
func Run(main func(g *Group)) {
	Begin(func() bool { return false }, main)()
}

// Begin calls main as the first fiber and returns when that has returned. The others stay where they are until rest is called, which
// returns when they have. When stopped says that everything is to end, main has the next turn, and where it waits it is told ErrDeadlock,
// so that it need not wait for the others. A panic of any of them is Begin's, or that of rest.
func Begin(stopped func() bool, main func(g *Group)) (rest func()) {
	g := &Group{done: make(chan struct{}), begun: make(chan struct{}), stopped: stopped}
	g.first = g.add(func() { main(g) })
	g.next()
	<-g.begun
	rest = func() {
		if g.living > 0 {
			g.next()
			<-g.done
		}
		g.raise()
	}
	if g.panicky != nil {
		rest()
	}
	return rest
}

// raise panics with what a fiber has panicked with, once.
func (g *Group) raise() {
	if p := g.panicky; p != nil {
		g.panicky = nil
		panic(p)
	}
}

// Go adds a fiber, which begins when it is its turn. It is called by the fiber that runs.
func (g *Group) Go(f func()) { g.add(f) }

func (g *Group) add(f func()) *fiber {
	me := &fiber{wake: make(chan struct{}, 1), at: -1}
	g.living++
	g.ready = append(g.ready, me)
	go func() {
		<-me.wake
		defer func() {
			if p := recover(); p != nil && g.panicky == nil {
				g.panicky = p
			}
			g.living--
			if me == g.first {
				g.first = nil
				close(g.begun)
				return
			}
			g.next()
		}()
		f()
	}()
	return me
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

// WaitUntil waits in any number of queues until one of them is woken. If every fiber waits, the one with the earliest deadline is woken
// with ErrTimeout. That fiber has to move the clock to its deadline.
func (g *Group) WaitUntil(deadline time.Time, queues ...*Queue) error {
	g.came++
	g.current.deadline, g.current.came = deadline, g.came
	heap.Push(&g.timed, g.current)
	return g.wait(queues)
}

// Wait waits in any number of queues until one of them is woken, and fails with ErrDeadlock where nobody can.
func (g *Group) Wait(queues ...*Queue) error { return g.wait(queues) }

func (g *Group) wait(queues []*Queue) error {
	me := g.current
	me.err, me.in = nil, make([]spot, 0, len(queues))
	for _, q := range queues {
		me.in = append(me.in, spot{q, q.waiting.PushBack(me)})
	}
	g.next()
	<-me.wake
	return me.err
}

// rouse makes a fiber ready that waits.
func (g *Group) rouse(f *fiber, err error) {
	for _, s := range f.in {
		s.queue.waiting.Remove(s.place)
	}
	if f.at >= 0 {
		heap.Remove(&g.timed, f.at)
	}
	f.err, f.in = err, nil
	g.ready = append(g.ready, f)
}

// next hands the turn to the first fiber that can run. Where none can, time passes up to the first deadline; without one, those that wait
// are told so.
func (g *Group) next() {
	if g.living == 0 {
		close(g.done)
		return
	}
	if g.first != nil && !g.hurried && g.stopped() {
		g.hurry()
	}
	if len(g.ready) == 0 && len(g.timed) > 0 {
		g.rouse(g.timed[0], ErrTimeout)
	}
	if len(g.ready) == 0 {
		for e := g.queues.Front(); e != nil; e = e.Next() {
			e.Value.(*Queue).fail(ErrDeadlock)
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

// hurry makes the first fiber the next one.
func (g *Group) hurry() {
	g.hurried = true
	at := slices.Index(g.ready, g.first)
	if at < 0 {
		at = len(g.ready)
		g.rouse(g.first, ErrDeadlock)
	}
	copy(g.ready[1:at+1], g.ready[:at])
	g.ready[0] = g.first
}

// Queue is where fibers wait for something, in the order in which they came.
type Queue struct {
	group   *Group
	place   *list.Element // among those of the group, nil when it was closed
	waiting list.List     // of *fiber
}

// NewQueue returns an empty queue of the group.
func (g *Group) NewQueue() *Queue {
	q := &Queue{group: g}
	q.place = g.queues.PushBack(q)
	return q
}

// Close ends the queue and wakes those who wait in it.
func (q *Queue) Close() {
	q.Wake()
	if q.place != nil {
		q.group.queues.Remove(q.place)
		q.place = nil
	}
}

// Wait lets the others run until somebody wakes the queue, and fails with ErrDeadlock where nobody can.
func (q *Queue) Wait() error { return q.group.wait([]*Queue{q}) }

// Wake makes everybody who waits ready, in the order in which they came.
func (q *Queue) Wake() { q.fail(nil) }

func (q *Queue) fail(err error) {
	for q.waiting.Len() > 0 {
		q.group.rouse(q.waiting.Front().Value.(*fiber), err)
	}
}
