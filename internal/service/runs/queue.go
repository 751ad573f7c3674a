package runs

import (
	"context"
	"slices"
	"strings"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
)

// queue holds the runs of one space that have not ended, the one under way first. The schedule's mutex guards it.
type queue struct {
	lane   lane
	runs   []*entry
	cancel *cancellation // set when the space ends: later runs are cancelled too
	full   bool          // the run under way waits for room in its workspace
	wake   chan struct{} // holds at most one token: look again
	gone   chan struct{} // closed when its worker has ended
}

// lane names a queue: that of a space, or that of one background run of it, which has no other.
type lane struct {
	space id.Space
	run   id.Run // "" for the queue of the space
}

// anyRun stands for every background run of a space.
const anyRun id.Run = "*"

// entry is a run in its queue.
type entry struct {
	workspace id.Workspace
	space     id.Space
	beside    bool // it is a background run
	run       id.Run
	parent    id.Run          // for which it is executed; "" for none
	creation  *creation       // of a run that is not recorded yet; of the worker alone
	recovered bool            // an earlier daemon may have begun it; of the worker alone
	ops       []run.Operation // the operations of a run that was just created; nil means that the log has them
	announced string          // the operation that was shown to begin, although it may not be recorded yet; of the worker alone
	cancel    *cancellation   // set when somebody cancelled it
	done      chan struct{}   // closed when no worker has it any more
}

func newEntry(doc run.Run, recovered bool) *entry {
	return &entry{workspace: doc.Workspace, space: doc.Space, run: doc.ID, beside: doc.Background, parent: parentOf(doc),
		recovered: recovered, done: make(chan struct{})}
}

// lane returns the queue of the run.
func (e *entry) lane() lane {
	if e.beside {
		return lane{e.space, e.run}
	}
	return lane{space: e.space}
}

type cancellation struct {
	origin event.Origin
	reason string
}

// schedule holds the queues of all spaces, and the running operations. Its methods take the lock, except insert.
type schedule struct {
	log      journal.Journal
	followed func(ctx context.Context, ws id.Workspace, head uint64) // follows the answers to a workspace's questions
	worked   func(ctx context.Context, q *queue)                     // executes the runs of a queue

	mu      sync.Mutex
	base    context.Context // ends when Run's context ends; nil before Run
	opening bool            // the runs of an earlier daemon are being taken up
	late    []*entry        // runs that were started meanwhile
	queues  map[lane]*queue
	coming  map[lane]int // runs that have their place in a queue and are not recorded yet
	follows map[id.Workspace]bool
	effects map[id.Run]underway        // the effect under way of each run
	cancels map[id.Run]*cancellation   // of runs that are being cancelled and may yet come into a queue
	ending  map[id.Space]*cancellation // spaces whose runs are being cancelled
	workers sync.WaitGroup
}

func newSchedule(log journal.Journal) *schedule {
	return &schedule{log: log, queues: map[lane]*queue{}, coming: map[lane]int{}, follows: map[id.Workspace]bool{},
		effects: map[id.Run]underway{}, cancels: map[id.Run]*cancellation{}, ending: map[id.Space]*cancellation{}}
}

// enqueue appends a run to the queue of its space. It makes sure that a worker runs, and a follower that wakes the worker when a question
// is answered. It reads the follower's place before the worker starts, so that no answer falls between the two. A run that is started while
// the runs of an earlier daemon are taken up comes after them.
func (x *schedule) enqueue(ctx context.Context, e *entry) error {
	head, err := x.log.Head(ctx, e.workspace)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.base == nil: // Run takes it up from the log
	case x.opening && !e.recovered:
		x.late = append(x.late, e)
	default:
		x.insert(e, head)
	}
	return nil
}

// insertFirst puts a run into the queue of its space where that has none. The place in the queue was reserved.
func (x *schedule) insertFirst(e *entry, head uint64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.base == nil || x.base.Err() != nil || x.opening || x.queues[e.lane()] != nil || x.ending[e.space] != nil {
		return false
	}
	if !e.beside && x.coming[e.lane()] != 1 {
		return false
	}
	x.insert(e, head)
	return true
}

// insert puts a run into its queue. The lock is held.
func (x *schedule) insert(e *entry, head uint64) {
	base := x.base
	if !x.follows[e.workspace] {
		x.follows[e.workspace] = true
		x.workers.Go(func() { x.followed(base, e.workspace, head) })
	}
	q := x.queues[e.lane()]
	if q == nil {
		q = &queue{lane: e.lane(), cancel: x.ending[e.space], wake: make(chan struct{}, 1), gone: make(chan struct{})}
		x.queues[e.lane()] = q
		x.workers.Go(func() { x.worked(base, q) })
	}
	if !slices.ContainsFunc(q.runs, func(other *entry) bool { return other.run == e.run }) {
		if e.cancel = q.cancel; e.cancel == nil {
			e.cancel = x.cancels[e.run]
		}
		q.runs = append(q.runs, e)
	}
}

// endOpening puts the runs that were started during recovery behind those that were taken up, and returns them.
func (x *schedule) endOpening(ctx context.Context) ([]*entry, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.opening = false
	for _, e := range x.late {
		// A run that was just started has asked nothing: no answer to it can lie in the log already.
		head, err := x.log.Head(ctx, e.workspace)
		if err != nil {
			return nil, err
		}
		x.insert(e, head)
	}
	late := x.late
	x.late = nil
	return late, nil
}

// reserve takes a place in the queue of a space for a run that is about to be recorded, or refuses. Checking and taking are one step, so
// that two callers cannot both take the last place. The place is given back once the run is in the queue, or will never be.
func (x *schedule) reserve(s id.Space, beside bool) (release func(), err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	to := lane{space: s}
	if beside {
		to.run = anyRun
	}
	n := x.coming[to]
	for at, q := range x.queues {
		if at == to || beside && at.space == s && at.run != "" {
			n += len(q.runs)
		}
	}
	switch {
	case beside && n >= run.MaxBackground:
		return nil, fault.New(fault.Exhausted, "quota_exceeded",
			"%d background runs of this space have not ended, the most that may be; end one: agentbox runs cancel", n)
	case !beside && n >= MaxQueued:
		return nil, fault.New(fault.Exhausted, "quota_exceeded",
			"%d runs of this space have not ended, the most that may be; wait for one to end", n)
	}
	x.coming[to]++
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.coming[to]--; x.coming[to] == 0 {
			delete(x.coming, to)
		}
	}, nil
}

func (x *schedule) pop(q *queue) {
	x.mu.Lock()
	defer x.mu.Unlock()
	close(q.runs[0].done)
	delete(x.cancels, q.runs[0].run)
	q.runs = q.runs[1:]
}

// Lifted makes every worker of a workspace look at its run again: the kill switch that held it is lifted, or a paused space resumed.
func (x *schedule) Lifted(ws id.Workspace) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.queues {
		if len(q.runs) > 0 && q.runs[0].workspace == ws {
			select {
			case q.wake <- struct{}{}:
			default:
			}
		}
	}
}

// wake makes the worker of a run look at it again.
func (x *schedule) wake(r id.Run) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.queues {
		if slices.ContainsFunc(q.runs, func(e *entry) bool { return e.run == r }) {
			select {
			case q.wake <- struct{}{}:
			default:
			}
		}
	}
}

// setFull notes whether the run under way in a queue waits for room, and returns whether that was known.
func (x *schedule) setFull(q *queue, full bool) (was bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if q == nil {
		return false
	}
	was, q.full = q.full, full
	return was
}

func (x *schedule) queueOf(e *entry) *queue {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.queues[e.lane()]
}

// ahead counts the runs of the same workspace that wait for room and were asked for earlier.
func (x *schedule) ahead(e *entry) (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.queues {
		if q.full && len(q.runs) > 0 && q.runs[0].workspace == e.workspace && q.runs[0].run < e.run {
			n++
		}
	}
	return n
}

// wakeFull makes the workers of a workspace whose runs wait for room look again.
func (x *schedule) wakeFull(ws id.Workspace) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.queues {
		if q.full && len(q.runs) > 0 && q.runs[0].workspace == ws {
			select {
			case q.wake <- struct{}{}:
			default:
			}
		}
	}
}

// cancelling marks a run as being cancelled, before anybody checks whether a worker has it. A daemon that has just started may take the run
// up after that. Then the run enters its queue as cancelled, and no worker begins anything of it. Nil takes the mark back.
func (x *schedule) cancelling(r id.Run, c *cancellation) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if c == nil {
		delete(x.cancels, r)
		return
	}
	x.cancels[r] = c
}

// dequeue takes a run out of its queue if no worker has taken it yet.
func (x *schedule) dequeue(e *entry) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	q := x.queues[e.lane()]
	if q == nil {
		return false
	}
	i := slices.Index(q.runs, e)
	if i < 1 {
		return false
	}
	q.runs = slices.Delete(q.runs, i, i+1)
	close(e.done)
	return true
}

// mark cancels the queued runs that match, ends their effects, wakes their workers and returns them.
func (x *schedule) mark(match func(*entry) bool, origin event.Origin, reason string) (found []*entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.queues {
		for _, e := range q.runs {
			if match(e) {
				found = append(found, e)
			}
		}
	}
	slices.SortFunc(found, func(a, b *entry) int { return strings.Compare(string(a.run), string(b.run)) }) // the map has no order
	for _, e := range found {
		if e.cancel == nil {
			e.cancel = &cancellation{origin: origin, reason: reason}
		}
		if u, ok := x.effects[e.run]; ok {
			u.end(errCancelled)
		}
		select {
		case x.queues[e.lane()].wake <- struct{}{}:
		default:
		}
	}
	return found
}

func (x *schedule) cancelled(e *entry) *cancellation {
	x.mu.Lock()
	defer x.mu.Unlock()
	return e.cancel
}

// underway is an effect that can be ended.
type underway struct {
	workspace id.Workspace
	end       context.CancelCauseFunc
}

// effectContext returns a context for one effect of a run, and a function that releases it. Halt, Cancel and the end of the daemon end
// it. An effect of a run that was cancelled a moment ago is ended from the beginning.
func (x *schedule) effectContext(ctx context.Context, e *entry) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.effects[e.run] = underway{e.workspace, end}
	if e.cancel != nil {
		end(errCancelled)
	}
	return ctx, func() {
		x.mu.Lock()
		delete(x.effects, e.run)
		x.mu.Unlock()
		end(nil)
	}
}

// underWay reports whether an effect of a run is under way.
func (x *schedule) underWay(r id.Run) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, ok := x.effects[r]
	return ok
}

// Halt ends every effect under way in a workspace, without waiting and without asking; cause becomes the error of their results. The runs
// go on, and the gate decides about their next operations.
func (x *schedule) Halt(ws id.Workspace, cause error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, u := range x.effects {
		if u.workspace == ws {
			u.end(cause)
		}
	}
}
