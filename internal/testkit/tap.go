package testkit

import (
	"context"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// Tap is a journal as one daemon has it: when the daemon is dead nothing of it reaches the log any more. It can be told to die after an
// append, which is what a crash between two events is.
type Tap struct {
	journal.Journal

	mu    sync.Mutex
	dead  bool
	shut  bool
	death func(event.Receipt) Death // nil for a daemon that lives on
	alive context.Context           // ends at death
	end   context.CancelFunc
}

// Death says whether a daemon dies at an append.
type Death int

// The deaths. Survive is none.
const (
	Survive     Death = iota
	Recorded          // the append is recorded, and its caller still learns of it
	Unconfirmed       // the append is recorded, and its caller never learns of it
	Unsure            // the daemon lives: the append is recorded, and its caller is told that the log was shut
)

func newTap(log journal.Journal) *Tap {
	alive, end := context.WithCancel(context.Background())
	return &Tap{Journal: log, alive: alive, end: end}
}

// Append implements journal.Journal. Appends of one daemon come one after the other here, so that its death has a place among them.
func (t *Tap) Append(ctx context.Context, b event.Batch) (event.Receipt, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dead || t.shut {
		return event.Receipt{}, journal.ErrClosed
	}
	receipt, err := t.Journal.Append(ctx, b)
	if err != nil || receipt.Replayed || t.death == nil {
		return receipt, err
	}
	switch t.death(receipt) {
	case Recorded:
		t.kill()
	case Unconfirmed:
		t.kill()
		return event.Receipt{}, journal.ErrClosed
	case Unsure:
		return event.Receipt{}, journal.ErrClosed
	}
	return receipt, nil
}

// Shut refuses every append from now on, as a log does whose disk is full, or takes them again.
func (t *Tap) Shut(shut bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shut = shut
}

// Wait implements journal.Journal.
func (t *Tap) Wait(ctx context.Context, ws id.Workspace, after uint64) error {
	t.mu.Lock()
	shut := t.shut
	t.mu.Unlock()
	if shut {
		return journal.ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	release := context.AfterFunc(t.alive, cancel)
	defer release()
	err := t.Journal.Wait(ctx, ws, after)
	if t.alive.Err() != nil {
		return journal.ErrClosed
	}
	return err
}

// DieAt makes the daemon die at the append for which death says so.
func (t *Tap) DieAt(death func(event.Receipt) Death) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.death = death
}

// Die makes the daemon die now.
func (t *Tap) Die() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kill()
}

// Dead reports whether the daemon is dead. An append whose events can be read already has decided that by the time this returns.
func (t *Tap) Dead() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dead
}

// Gone is closed when the daemon is dead.
func (t *Tap) Gone() <-chan struct{} { return t.alive.Done() }

func (t *Tap) kill() {
	t.dead = true
	t.end()
}
