// Package runs executes the operations of runs: in order, each through the gate, each with exactly one result event.
//
// The runs of a space wait in its queue. One worker executes them and is the only writer of their documents once they are created. Spaces
// work side by side. The worker reads its next operation from the run's document, so a restart continues where the log ends.
package runs

import (
	"context"
	"errors"
	"log/slog"
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
	"agentbox/internal/service/runs/frames"
	"agentbox/internal/service/runs/history"
)

// Limits of the service.
const (
	MaxQueued      = 100      // runs that wait in one space
	maxInlineInput = 4 << 10  // a longer operations message lies in the blob store
	maxInlineBytes = 64 << 10 // so does a longer result
)

// Parts are the dependencies of the service.
type Parts struct {
	Log          journal.Journal
	Docs         projection.Reader
	Blobs        blob.Store
	Room         func() error  // refuses a run where the disk has no room for what it leaves; nil where nobody looks
	MaxContent   int64         // bytes of content that the log of a workspace may name; 0 for without limit
	MaxRetention time.Duration // the longest that a run may ask for its data to be kept; 0 for as long as it likes
	Live         livestream.Store
	Gate         policy.Gate
	Thrown       func(ws id.Workspace) policy.Halt // the latest throw of a kill switch, or nil; may be nil
	Agents       policy.Agents
	Spaces       space.Keeping
	Variables    func(space.Space) (map[string]string, error) // a space's environment without masks; nil where nothing is masked
	Routes       space.Routing
	// a space is this daemon's, where several work on the log; nil where none else does
	Mine func(ctx context.Context, s space.Space) (bool, error)
	// resumes a paused space to which a run is sent, if its pause permits that; else the run waits. Nil where nobody does
	Resume  func(ctx context.Context, origin event.Origin, s space.Space) error
	Bundles policy.Library
	Clock   event.Clock
	IDs     *id.Source
	Logger  *slog.Logger
}

// shared holds the fields that all parts of the service use.
type shared struct {
	Parts
	History *history.Reader // of the runs, for callers that may see them
}

// Service executes runs. Make it with New, then Run it; every other method may be called from any goroutine while it runs.
type Service struct {
	*shared
	*schedule
	Frames      *frames.Service // of the runs, for viewers
	Input       *Input          // for commands of background runs
	Transcripts *Transcripts    // of the runs

	entering atomic.Int64 // runs that take their places just now
}

// The causes for which an effect under way is ended; each becomes the error of its result.
var (
	errCancelled = fault.New(fault.Conflict, "run_cancelled", "the run was cancelled while the operation ran")
	errShutdown  = fault.New(fault.Unavailable, "daemon_stopped", "the daemon was stopped while the operation ran; its processes were ended")
)

// New returns a service of the given parts.
func New(parts Parts) *Service {
	past := history.New(parts.Log, parts.Docs, parts.Blobs)
	all := &shared{Parts: parts, History: past}
	x := &Service{shared: all, schedule: newSchedule(parts.Log), Frames: frames.New(parts.Live, past, parts.Clock, parts.Logger),
		Transcripts: &Transcripts{all}}
	x.followed, x.worked = x.follow, x.work
	x.Input = &Input{shared: all, schedule: x.schedule, live: map[id.Run]*attached{}, starts: make(chan struct{})}
	return x
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
