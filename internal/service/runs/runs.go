// Package runs executes the operations of runs: in order, each through the gate, each with exactly one result event.
//
// The runs of a space wait in its queue. One worker executes them and is the only writer of their documents once they are created. Spaces
// work side by side. The worker reads its next operation from the run's document, so a restart continues where the log ends.
package runs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/kernel/projection"
)

// Limits of the executor.
const (
	MaxInputBytes  = 64 << 20 // of one run's operations message
	MaxQueued      = 100      // runs that wait in one space
	maxInlineInput = 4 << 10  // a longer operations message lies in the blob store
	maxInlineBytes = 64 << 10 // so does a longer result
)

// Parts are the dependencies of the service.
type Parts struct {
	Log        journal.Journal
	Docs       projection.Reader
	Blobs      blob.Store
	Room       func() error  // refuses a run where the disk has no room for what it leaves; nil where nobody looks
	MaxContent int64         // bytes of content that the log of a workspace may name; 0 for without limit
	MaxKeep    time.Duration // the longest that a run may ask for its data to be kept; 0 for as long as it likes
	Live       livestream.Store
	Gate       policy.Gate
	Agents     policy.Agents
	Spaces     space.Keeping
	Variables  func(space.Space) (map[string]string, error) // a space's environment without masks; nil where nothing is masked
	Routes     space.Routing
	// a space is this daemon's, where several work on the log; nil where none else does
	Mine func(ctx context.Context, s space.Space) (bool, error)
	// resumes a paused space to which a run is sent, if its pause permits that; else the run waits. Nil where nobody does
	Resume  func(ctx context.Context, origin event.Origin, s space.Space) error
	Bundles policy.Library
	Clock   event.Clock
	IDs     *id.Source
	Logger  *slog.Logger
}

// Service executes runs. Make it with New, then Run it; every other method may be called from any goroutine while it runs.
type Service struct {
	Parts

	frames sync.Mutex // held while the frames of an ended run are completed

	entering atomic.Int64 // runs that take their places just now

	mu      sync.Mutex
	base    context.Context // ends when Run's context ends; nil before Run
	opening bool            // the runs of an earlier daemon are being taken up
	late    []*entry        // runs that were started meanwhile
	queues  map[lane]*queue
	coming  map[lane]int // runs that have their place in a queue and are not recorded yet
	follows map[id.Workspace]bool
	effects map[id.Run]underway        // the effect under way of each run
	live    map[id.Run]*attached       // the commands of background runs
	starts  chan struct{}              // closed when another one of them starts
	cancels map[id.Run]*cancellation   // of runs that are being cancelled and may yet come into a queue
	ending  map[id.Space]*cancellation // spaces whose runs are being cancelled
	workers sync.WaitGroup
}

// underway is an effect that can be ended.
type underway struct {
	workspace id.Workspace
	end       context.CancelCauseFunc
}

// The causes for which an effect under way is ended; each becomes the error of its result.
var (
	errCancelled = fault.New(fault.Conflict, "run_cancelled", "the run was cancelled while the operation ran")
	errShutdown  = fault.New(fault.Unavailable, "daemon_stopped", "the daemon was stopped while the operation ran; its processes were ended")
)

// New returns an executor of the given parts.
func New(parts Parts) *Service {
	return &Service{
		Parts: parts, queues: map[lane]*queue{}, coming: map[lane]int{}, follows: map[id.Workspace]bool{}, effects: map[id.Run]underway{},
		live: map[id.Run]*attached{}, starts: make(chan struct{}),
		cancels: map[id.Run]*cancellation{}, ending: map[id.Space]*cancellation{},
	}
}

// Run takes up every run that has not ended, then drives runs until ctx ends; it returns when no worker is left.
func (x *Service) Run(ctx context.Context) error {
	x.mu.Lock()
	x.base, x.opening = ctx, true
	x.mu.Unlock()
	err := x.recoverOnce(ctx)
	if err == nil {
		<-ctx.Done()
	}
	x.mu.Lock()
	x.base = nil
	x.mu.Unlock()
	x.workers.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// recoverOnce takes up the runs of an earlier daemon, as soon as the log can be read: a database may be away for a while.
func (x *Service) recoverOnce(ctx context.Context) error {
	for {
		err := x.requeueAll(ctx)
		if !errors.Is(err, journal.ErrClosed) {
			return err
		}
		again, stop := x.Clock.NewTimer(followAgain)
		select {
		case <-again:
			stop()
		case <-ctx.Done():
			stop()
			return ctx.Err()
		}
	}
}

// Halt ends every effect under way in a workspace, without waiting and without asking; cause becomes the error of their results. The runs
// go on, and the gate decides about their next operations.
func (x *Service) Halt(ws id.Workspace, cause error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, u := range x.effects {
		if u.workspace == ws {
			u.end(cause)
		}
	}
}

// effectContext returns a context for one effect of a run, and a function that releases it. Halt, Cancel and the end of the daemon end
// it. An effect of a run that was cancelled a moment ago is ended from the beginning.
func (x *Service) effectContext(ctx context.Context, e *entry) (context.Context, func()) {
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
