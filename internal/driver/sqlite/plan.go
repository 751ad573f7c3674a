package sqlite

import (
	"context"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// group is what one transaction writes: requests, and everything that they become. Once the committer has it nobody else touches it.
type group struct {
	requests []*request
	batches  []plannedBatch
	types    []plannedType
	streams  []plannedStream // new ones
	tenants  []plannedTenant
	docs     []changedDocument
	commit   uint64        // number of the commit, from 1 on
	flush    *flush        // nil unless it is time for one
	began    time.Time     // when it began to be written, where somebody wants to know how long that took
	task     func()        // run instead, by the committer, while the planner waits
	done     chan struct{} // closed when the task has been run
}

type plannedBatch struct {
	tenantNo int64
	key      string
	digest   event.Digest
	events   []event.Event
	streams  []int64 // of each event
	types    []int64
}

type plannedType struct {
	no   int64
	name string
}

type plannedStream struct {
	no, tenantNo int64
	stream       event.Stream
	tip          journal.Tip
}

type plannedTenant struct {
	no    int64
	name  id.Workspace
	head  uint64
	last  event.Digest // event_hash of the last event
	fresh bool         // has no row yet
}

// plan is the planner's loop.
func (j *Journal) plan() {
	defer close(j.groups)
	for r := j.next(); r != nil; r = j.next() {
		for r != nil {
			if r.task != nil {
				r = j.perform(r)
			} else {
				r = j.together(r)
			}
		}
	}
}

// next returns the next request, nil when there will be none. When nothing comes for a while it flushes.
func (j *Journal) next() *request {
	for {
		select {
		case r := <-j.queue:
			return r
		default:
		}
		var quiet <-chan time.Time
		release := func() {}
		if j.ledger.behind.events > 0 {
			quiet, release = j.options.Clock.NewTimer(flushQuiet)
		}
		select {
		case r := <-j.queue:
			release()
			return r
		case <-quiet:
			j.flush()
		case <-j.stop:
			release()
			// Nobody can enqueue any more; what waits is still recorded.
			select {
			case r := <-j.queue:
				return r
			default:
				j.flush()
				return nil
			}
		}
	}
}

// perform runs a task in the committer's place, between the batches before and after it.
func (j *Journal) perform(r *request) *request {
	j.flush() // so that the tables hold everything
	j.between(func() {
		if failed := j.failed.Load(); failed != nil {
			r.err = failed
		} else {
			r.err = r.task(r.ctx)
		}
	})
	close(r.answer)
	return nil
}

// between runs a task when everything that the committer was handed is written, and before anything else is.
func (j *Journal) between(task func()) {
	g := &group{task: task, done: make(chan struct{})}
	j.hand(g)
	<-g.done
}

// hand gives a group to the committer as soon as that one is ready for it.
func (j *Journal) hand(g *group) {
	<-j.ready
	j.groups <- g
}

// later waits until it is time to hand over a group of so many requests. It returns a request that came before.
func (j *Journal) later(requests int) *request {
	ready := j.ready
	var done <-chan struct{}
	for {
		select {
		case r := <-j.queue:
			return r
		case <-ready:
			j.ready <- struct{}{} // hand takes it
			if done = j.durable.worthIt(requests); done == nil {
				return nil
			}
			ready = nil
		case <-done:
			return nil
		}
	}
}

// together plans a request, what waits behind it, and what comes until the committer is ready, as one group: it is closed as late as can
// be, so that one write to the disk serves as many as can be. It returns a task that ended the group, nil if nothing did.
func (j *Journal) together(r *request) *request {
	l := &j.ledger
	l.begin()
	g := &group{}
	for {
		g.requests = append(g.requests, r)
		if err := j.add(g, r); err != nil {
			j.apart(g.requests, err)
			return nil
		}
		r = nil
		if len(g.requests) < maxGroup {
			select {
			case r = <-j.queue:
			default:
				if err := l.encode(); err != nil { // now, while there is nothing else to do
					j.apart(g.requests, err)
					return nil
				}
				r = j.later(len(g.requests))
			}
		}
		if r != nil && r.task == nil {
			continue
		}
		if err := l.finish(g, false); err != nil {
			j.apart(g.requests, err)
		} else {
			j.hand(g)
		}
		return r
	}
}

// apart plans requests anew, each alone, after one of them could not be folded: that may have spoilt what it shares with others.
func (j *Journal) apart(requests []*request, err error) {
	l := &j.ledger
	if l.broken == nil {
		j.between(func() {
			if failed := j.recover(context.Background()); failed != nil {
				l.broken = failed
			}
		})
	}
	if l.broken != nil {
		err = j.fail(l.broken)
	}
	if len(requests) == 1 || j.failed.Load() != nil {
		answer(requests, err)
		return
	}
	for i, r := range requests {
		r.events, r.use, r.err = nil, nil, nil
		l.begin()
		g := &group{requests: requests[i : i+1]}
		err := j.add(g, r)
		if err == nil {
			err = l.finish(g, false)
		}
		if err != nil {
			j.apart(g.requests, err)
		} else {
			j.hand(g)
		}
	}
}

func answer(requests []*request, err error) {
	for _, r := range requests {
		if err != nil {
			r.events, r.use, r.err = nil, nil, err
		}
		close(r.answer)
	}
}

// add plans a request. A batch that is refused leaves no trace; the error is for one that was found bad after it had left some.
func (j *Journal) add(g *group, r *request) error {
	l := &j.ledger
	if r.err = r.ctx.Err(); r.err != nil {
		return nil
	}
	r.events, r.use, r.err = j.planner.Plan(r.batch, l)
	if l.broken != nil {
		return l.broken
	}
	if r.err != nil || r.use != nil {
		return nil
	}
	planned, err := l.take(r.batch, r.events)
	if err != nil {
		return err
	}
	if err := l.fold(r.events); err != nil {
		return err
	}
	g.batches = append(g.batches, planned)
	return nil
}
