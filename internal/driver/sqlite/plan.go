package sqlite

import (
	"context"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// planning takes the waiting requests and turns them into groups for the committer.
type planning struct {
	committer *committer
	file      *file
	health    *health
	syncer    *syncer

	planner *journal.Planner
	ledger  ledger // with a connection to read
	queue   chan *request
	working sync.WaitGroup
	stop    chan struct{} // closed when the planner is to end

	closing sync.RWMutex // guards closed; held for reading while a request is put into the queue
	closed  bool
}

// group is the content of one transaction: requests, and everything that they become. Once the committer has it nobody else touches it.
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

// run is the planner's loop.
func (p *planning) run() {
	defer close(p.committer.groups)
	for r := p.next(); r != nil; r = p.next() {
		for r != nil {
			if r.task != nil {
				r = p.perform(r)
			} else {
				r = p.together(r)
			}
		}
	}
}

// next returns the next request, nil when there will be none. When nothing comes for a while it flushes.
func (p *planning) next() *request {
	for {
		select {
		case r := <-p.queue:
			return r
		default:
		}
		var quiet <-chan time.Time
		release := func() {}
		if p.ledger.behind.events > 0 {
			quiet, release = p.file.options.Clock.NewTimer(flushQuiet)
		}
		select {
		case r := <-p.queue:
			release()
			return r
		case <-quiet:
			p.flush()
		case <-p.stop:
			release()
			// Nobody can enqueue any more; waiting requests are still recorded.
			select {
			case r := <-p.queue:
				return r
			default:
				p.flush()
				return nil
			}
		}
	}
}

// perform runs a task in the committer's place, between the batches before and after it.
func (p *planning) perform(r *request) *request {
	p.flush() // so that the tables hold everything
	p.between(func() {
		if failed := p.health.failed.Load(); failed != nil && !r.mends {
			r.err = failed
		} else {
			r.err = r.task(r.ctx)
		}
	})
	close(r.answer)
	return nil
}

// between runs a task when everything that the committer was handed is written, and before anything else is.
func (p *planning) between(task func()) {
	g := &group{task: task, done: make(chan struct{})}
	p.hand(g)
	<-g.done
}

// hand gives a group to the committer as soon as that one is ready for it.
func (p *planning) hand(g *group) {
	<-p.committer.ready
	p.committer.groups <- g
}

// later waits until it is time to hand over a group of so many requests. It returns a request that came before.
func (p *planning) later(requests int) *request {
	ready := p.committer.ready
	var done <-chan struct{}
	for {
		select {
		case r := <-p.queue:
			return r
		case <-ready:
			p.committer.ready <- struct{}{} // hand takes it
			if done = p.syncer.durable.worthIt(requests); done == nil {
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
func (p *planning) together(r *request) *request {
	l := &p.ledger
	l.begin()
	g := &group{}
	for {
		g.requests = append(g.requests, r)
		if err := p.add(g, r); err != nil {
			p.apart(g.requests, err)
			return nil
		}
		r = nil
		if len(g.requests) < maxGroup {
			select {
			case r = <-p.queue:
			default:
				if err := l.encode(); err != nil { // now, while there is nothing else to do
					p.apart(g.requests, err)
					return nil
				}
				r = p.later(len(g.requests))
			}
		}
		if r != nil && r.task == nil {
			continue
		}
		if err := l.finish(g, false); err != nil {
			p.apart(g.requests, err)
		} else {
			p.hand(g)
		}
		return r
	}
}

// apart plans requests anew, each alone, after one of them could not be folded: that may have spoilt the documents that it shares with
// others.
func (p *planning) apart(requests []*request, err error) {
	l := &p.ledger
	if l.broken == nil {
		p.between(func() {
			if failed := p.committer.recover(context.Background()); failed != nil {
				l.broken = failed
			}
		})
	}
	if l.broken != nil {
		err = p.health.fail(l.broken)
	}
	if len(requests) == 1 || p.health.failed.Load() != nil {
		answer(requests, err)
		return
	}
	for i, r := range requests {
		r.events, r.use, r.err = nil, nil, nil
		l.begin()
		g := &group{requests: requests[i : i+1]}
		err := p.add(g, r)
		if err == nil {
			err = l.finish(g, false)
		}
		if err != nil {
			p.apart(g.requests, err)
		} else {
			p.hand(g)
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
func (p *planning) add(g *group, r *request) error {
	l := &p.ledger
	if r.err = r.ctx.Err(); r.err != nil {
		return nil
	}
	r.events, r.use, r.err = p.planner.Plan(r.batch, l)
	if l.broken != nil {
		return l.broken
	}
	if r.err != nil || r.use != nil {
		return nil
	}
	planned, err := l.apply(r.batch, r.events)
	if err != nil {
		return err
	}
	if err := l.fold(r.events); err != nil {
		return err
	}
	g.batches = append(g.batches, planned)
	return nil
}

// request is work for the planner: a batch, or a task that needs the log to stand still.
type request struct {
	ctx    context.Context
	batch  event.Batch
	task   func(ctx context.Context) error
	mends  bool          // the task is to be run although the log is shut
	answer chan struct{} // closed when the fields below are set

	events []event.Event
	use    *journal.Use
	err    error
}

// do hands a request over and waits until it is decided: from then on nothing is in doubt, whatever becomes of its context.
func (p *planning) do(r *request) error {
	r.answer = make(chan struct{})
	if err := p.enqueue(r); err != nil {
		return err
	}
	<-r.answer
	return r.err
}

func (p *planning) enqueue(r *request) error {
	p.closing.RLock()
	defer p.closing.RUnlock()
	if p.closed || p.file.readOnly {
		return journal.ErrClosed
	}
	if failed := p.health.failed.Load(); failed != nil && !r.mends {
		return failed
	}
	select {
	case p.queue <- r:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// flush hands the committer the changes that the tables lack, alone.
func (p *planning) flush() {
	if p.ledger.behind.events == 0 {
		return
	}
	p.ledger.begin()
	p.hand(&group{flush: p.ledger.flush()})
}
