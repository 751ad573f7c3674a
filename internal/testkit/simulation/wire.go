package simulation

import (
	"context"
	"io"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/livestream"
)

// Times that calls take at most.
const (
	appendTime  = 4 * time.Millisecond
	wakeTime    = time.Millisecond
	commandTime = 30 * time.Millisecond // before its effect, and after it
	startTime   = 20 * time.Millisecond
	fileTime    = 2 * time.Millisecond
)

// wire is the log as one daemon has it. When the daemon is dead nothing of it reaches the log any more.
type wire struct {
	journal.Journal
	s *simulation

	mu    sync.Mutex
	dead  bool
	left  int   // appends until the daemon dies; never if it is negative
	death death // then
	alive context.Context
	end   context.CancelFunc
}

type death int

const (
	recorded    death = iota // the append is recorded, its caller learns of it, and the daemon has a moment left
	unconfirmed              // the append is recorded, and its caller never learns of it
	lost                     // the append is not recorded: the disk failed
	deaths
)

func (s *simulation) newWire(left int, how death) *wire {
	alive, end := context.WithCancel(context.Background())
	return &wire{Journal: s.log, s: s, left: left, death: how, alive: alive, end: end}
}

// Append implements journal.Journal. It takes a moment, and so does the way back. At a dead daemon each takes the same moment: a caller who
// cancels a run and the worker that ends it come at once then, and which of them is first must not depend on the machine.
func (w *wire) Append(ctx context.Context, b event.Batch) (event.Receipt, error) {
	if w.gone() {
		time.Sleep(appendTime)
		return event.Receipt{}, journal.ErrClosed
	}
	what := w.s.world.about(b)
	there, back := w.s.moment(what, appendTime), w.s.moment(what, appendTime)
	time.Sleep(there)
	receipt, err := w.record(ctx, b)
	time.Sleep(back)
	return receipt, err
}

func (w *wire) record(ctx context.Context, b event.Batch) (event.Receipt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return event.Receipt{}, journal.ErrClosed
	}
	if w.left == 1 && w.death == lost {
		w.kill()
		w.s.note("the disk fails; the log is shut")
		return event.Receipt{}, journal.ErrClosed
	}
	receipt, err := w.Journal.Append(ctx, b)
	if err != nil {
		w.s.note("refused: %s", fault.CodeOf(err))
		return receipt, err
	}
	w.s.world.recorded(receipt)
	if receipt.Replayed || w.left < 0 {
		return receipt, nil
	}
	if w.left--; w.left > 0 {
		return receipt, nil
	}
	w.kill()
	w.s.note("the daemon dies over that")
	if w.death == unconfirmed {
		return event.Receipt{}, journal.ErrClosed
	}
	return receipt, nil
}

// view is the log as one service of a daemon has it.
type view struct {
	*wire
	who string
}

// Wait implements journal.Journal. Nobody wakes at the same moment as anybody else. Services that begin to wait at the same moment draw
// from sources of their own: which of them is first must not depend on the machine.
func (v view) Wait(ctx context.Context, ws id.Workspace, after uint64) error {
	w, moment := v.wire, v.s.moment("waking of "+v.who, wakeTime)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.alive, cancel)()
	err := w.Journal.Wait(ctx, ws, after)
	time.Sleep(moment)
	if w.alive.Err() != nil {
		return journal.ErrClosed
	}
	return err
}

// die makes the daemon die now.
func (w *wire) die() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kill()
}

func (w *wire) kill() {
	w.left, w.dead = -1, true
	w.end()
}

func (w *wire) gone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead
}

// store is the store of contents, whose disk may be full.
type store struct {
	blob.Store
	s *simulation
}

// Put implements blob.Store.
func (b store) Put(ctx context.Context, r io.Reader, most int64) (blob.Ref, error) {
	if b.s.happens("a full disk", 0.01) {
		b.s.note("the disk is full")
		return blob.Ref{}, space.ErrDiskFull
	}
	return b.Store.Put(ctx, r, most)
}

// output is the store of live output, which now and then keeps nothing.
type output struct {
	livestream.Store
	s *simulation
}

// Append implements livestream.Store.
func (o output) Append(ctx context.Context, run id.Run, f livestream.Frame) (uint64, error) {
	if o.s.happens("output of "+o.s.world.name(string(run))+f.Kind+f.Operation, 0.01) {
		return 0, space.ErrDiskFull
	}
	return o.Store.Append(ctx, run, f)
}
