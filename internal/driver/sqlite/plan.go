package sqlite

import (
	"context"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// group is what one transaction writes: requests, and everything that they become. Once the committer has it nobody else touches it.
type group struct {
	requests []*request
	batches  []plannedBatch
	types    []plannedType
	streams  []plannedStream
	tenants  []plannedTenant
	docs     []plannedDocument
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
	fresh        bool // has no row yet
}

type plannedTenant struct {
	no    int64
	name  id.Workspace
	head  uint64
	fresh bool
}

type plannedDocument struct {
	no, projection, tenantNo int64
	ref                      projection.Ref
	version, seq             uint64
	body                     []byte
	fresh                    bool
	added, removed           []projection.Index
}

// plan is the planner's loop.
func (j *Journal) plan() {
	defer close(j.groups)
	for {
		var r *request
		select {
		case r = <-j.queue:
		case <-j.stop:
			// Nobody can enqueue any more; what waits is still recorded.
			select {
			case r = <-j.queue:
			default:
				return
			}
		}
		requests := []*request{r}
	waiting:
		for len(requests) < maxGroup {
			select {
			case r := <-j.queue:
				requests = append(requests, r)
			default:
				break waiting
			}
		}
		j.serve(requests)
	}
}

// serve plans every request and hands it to the committer. Tasks run alone, between the batches before and after them.
func (j *Journal) serve(requests []*request) {
	for len(requests) > 0 {
		n := slices.IndexFunc(requests, func(r *request) bool { return r.task != nil })
		if n < 0 {
			n = len(requests)
		}
		if n == 0 {
			j.perform(requests[0])
			n = 1
		} else {
			j.together(requests[:n])
		}
		requests = requests[n:]
	}
}

// perform runs a task in the committer's place.
func (j *Journal) perform(r *request) {
	j.between(func() {
		if failed := j.failed.Load(); failed != nil {
			r.err = failed
		} else {
			r.err = r.task(r.ctx)
		}
	})
	close(r.answer)
}

// between runs a task when everything that the committer was handed is written, and before anything else is.
func (j *Journal) between(task func()) {
	g := &group{task: task, done: make(chan struct{})}
	j.groups <- g
	<-g.done
}

// together plans requests as one group. Where one of them cannot be folded, all are planned anew, each alone, for a fold may have spoilt
// what it shares with others.
func (j *Journal) together(requests []*request) {
	g, err := j.group(requests)
	if err == nil {
		j.groups <- g
		return
	}
	if j.ledger.broken == nil {
		j.between(func() {
			if failed := j.ledger.load(context.Background(), j.ledger.r); failed != nil {
				j.ledger.broken = failed
			}
		})
	}
	if j.ledger.broken != nil {
		err = j.fail(j.ledger.broken)
	}
	if len(requests) == 1 || j.failed.Load() != nil {
		answer(requests, err)
		return
	}
	for _, r := range requests {
		r.events, r.use, r.err = nil, nil, nil
		j.together([]*request{r})
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

// group plans requests. A batch that is refused leaves no trace; the error is for one that was found bad after it had left some.
func (j *Journal) group(requests []*request) (*group, error) {
	l := &j.ledger
	l.begin()
	g := &group{requests: requests}
	for _, r := range requests {
		if r.err = r.ctx.Err(); r.err != nil {
			continue
		}
		r.events, r.use, r.err = j.planner.Plan(r.batch, l)
		if l.broken != nil {
			return nil, l.broken
		}
		if r.err != nil || r.use != nil {
			continue
		}
		planned, err := l.take(r.batch, r.events)
		if err != nil {
			return nil, err
		}
		if err := l.fold(r.events); err != nil {
			return nil, err
		}
		g.batches = append(g.batches, planned)
	}
	return g, l.finish(g)
}
