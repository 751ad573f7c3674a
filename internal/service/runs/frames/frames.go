// Package frames shows runs while they are executed: it writes the frames of their live output and yields them to viewers.
package frames

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/service/runs/history"
)

// Service shows runs. Make it with New; any goroutine may call its methods. The log is the truth: a frame that cannot be written is lost,
// and Follow takes missing results from the log.
type Service struct {
	live    livestream.Store
	history *history.Reader
	clock   event.Clock
	logger  *slog.Logger

	ending sync.Mutex // held while the frames of an ended run are completed
}

// New returns a service that keeps frames in a store. It takes what they lack from the history of the runs.
func New(live livestream.Store, of *history.Reader, clock event.Clock, logger *slog.Logger) *Service {
	return &Service{live: live, history: of, clock: clock, logger: logger}
}

// Announce shows that an operation begins.
func (x *Service) Announce(ctx context.Context, runID id.Run, o run.Outline) {
	x.frame(ctx, runID, livestream.Operation, o.ID, hidden(o))
}

// Result shows the result of an operation.
func (x *Service) Result(ctx context.Context, runID id.Run, operation string, result run.Result) {
	x.frame(ctx, runID, livestream.Result, operation, brief(result))
}

// LastResult is Result for a run whose end is recorded. A follower may complete the frames from then on: then the result is among them.
func (x *Service) LastResult(ctx context.Context, runID id.Run, operation string, result run.Result) {
	x.ending.Lock()
	defer x.ending.Unlock()
	x.Result(ctx, runID, operation, result)
}

func (x *Service) frame(ctx context.Context, runID id.Run, kind, operation string, v any) {
	data, err := json.Marshal(v)
	if err == nil {
		x.output(ctx, runID, kind, operation, data)
	}
}

func (x *Service) output(ctx context.Context, runID id.Run, kind, operation string, data []byte) {
	f := livestream.Frame{At: x.clock.Now().UTC(), Kind: kind, Operation: operation, Data: data}
	if _, err := x.live.Append(context.WithoutCancel(ctx), runID, f); err != nil && !errors.Is(err, livestream.ErrComplete) {
		// a follower has completed it, with this
		x.logger.Warn("live output lost", "code", "output_lost", "run", runID, "error", err)
	}
}

// brief returns a result that fits a frame: its long texts are left out by name.
func brief(result run.Result) run.Result {
	if raw, err := json.Marshal(result); err == nil && len(raw) <= livestream.MaxFrameBytes {
		return result
	}
	result.Shorten()
	return result
}

// shown is the part of a run that its frames already show.
type shown struct {
	begun     map[string]bool // by operation
	results   map[string]bool // by operation
	questions map[string]bool // by approval
	complete  bool
}

// shown reads the frames of a run.
func (x *Service) shown(ctx context.Context, r id.Run) (shown, error) {
	s := shown{begun: map[string]bool{}, results: map[string]bool{}, questions: map[string]bool{}}
	for from := uint64(1); ; {
		frames, err := x.live.Read(ctx, r, from, 1000)
		if err != nil || len(frames) == 0 {
			return s, err
		}
		for _, f := range frames {
			from = f.N + 1
			switch f.Kind {
			case livestream.Operation:
				s.begun[f.Operation] = true
			case livestream.Complete:
				s.complete = true
			case livestream.Result:
				var result run.Result
				if err := json.Unmarshal(f.Data, &result); err != nil {
					return s, fmt.Errorf("read a frame: %w", err)
				}
				if result.Type == run.ResApprovalRequired {
					s.questions[result.ApprovalID] = true
				} else {
					s.results[f.Operation] = true
				}
			}
		}
	}
}

// Shows reports whether the frames of a run show that an operation has begun, and its result.
func (x *Service) Shows(ctx context.Context, r id.Run, operation string) (begun, ended bool, err error) {
	s, err := x.shown(ctx, r)
	return s.begun[operation], s.results[operation], err
}

// MakeUp adds frames for events in the log that have none, because the daemon ended in between: beginnings of operations, results, and the
// open question.
func (x *Service) MakeUp(ctx context.Context, doc run.Run) error {
	x.ending.Lock()
	defer x.ending.Unlock()
	s, err := x.shown(ctx, doc.ID)
	if err != nil || s.complete {
		return err
	}
	return x.showRest(ctx, doc, s)
}

func (x *Service) showRest(ctx context.Context, doc run.Run, s shown) error {
	outcome, err := x.history.Outcomes(ctx, doc)
	if err != nil {
		return err
	}
	for i, p := range doc.Operations {
		if p.State != run.Waiting && !s.begun[p.ID] {
			x.Announce(ctx, doc.ID, run.Outline{ID: p.ID, Type: p.Type, Summary: p.Summary, Context: p.Context})
		}
		if p.State != run.Done || s.results[p.ID] {
			continue
		}
		o, err := outcome(i)
		if err != nil {
			return err
		}
		x.Result(ctx, doc.ID, p.ID, o.Result)
	}
	index, approval := doc.Pending()
	if index < 0 || s.questions[string(approval)] {
		return nil
	}
	question, err := x.history.Question(ctx, doc, index, approval)
	if err == nil {
		x.Result(ctx, doc.ID, question.OperationID, question)
	}
	return err
}

// Complete brings the frames of an ended run up to its end: the results that are missing, and the complete frame. It may be called
// any number of times.
func (x *Service) Complete(ctx context.Context, doc run.Run) error {
	x.ending.Lock()
	defer x.ending.Unlock()
	s, err := x.shown(ctx, doc.ID)
	if err != nil || s.complete {
		return err
	}
	if err := x.showRest(ctx, doc, s); err != nil {
		return err
	}
	data, err := json.Marshal(run.Events{ProtocolVersion: run.Protocol, RunID: string(doc.ID), Status: doc.Status.Protocol(),
		Events: []run.Result{}})
	if err != nil {
		return err
	}
	_, err = x.live.Append(ctx, doc.ID, livestream.Frame{At: x.clock.Now().UTC(), Kind: livestream.Complete, Data: data})
	return err
}

// Follow yields the frames of a run from a number on, waits for more, and ends after the complete frame. It ends with an error when ctx
// does, so a caller never takes a broken stream for a run that ended. After the complete frame it yields nothing.
func (x *Service) Follow(ctx context.Context, ws id.Workspace, runID id.Run, from uint64) iter.Seq2[livestream.Frame, error] {
	return func(yield func(livestream.Frame, error) bool) {
		if _, err := x.history.Find(ctx, ws, runID); err != nil {
			yield(livestream.Frame{}, err)
			return
		}
		from = max(from, 1)
		for completed := false; ; {
			frames, err := x.live.Read(ctx, runID, from, 256)
			if err != nil {
				yield(livestream.Frame{}, err)
				return
			}
			for _, f := range frames {
				if !yield(f, nil) || f.Kind == livestream.Complete {
					return
				}
				from = f.N + 1
			}
			if len(frames) > 0 {
				continue
			}
			if completed {
				return // the reader has seen the complete frame before
			}
			doc, err := x.history.Find(ctx, ws, runID)
			if err != nil {
				yield(livestream.Frame{}, err)
				return
			}
			if doc.Status.Ended() {
				if err := x.Complete(ctx, doc); err != nil {
					yield(livestream.Frame{}, err)
					return
				}
				completed = true
				continue
			}
			if err := x.more(ctx, doc, from-1); err != nil {
				yield(livestream.Frame{}, err)
				return
			}
		}
	}
}

// more waits for frames of a run after a number. Who ends the run of an engine writes no frame: there it waits for the end, too.
func (x *Service) more(ctx context.Context, doc run.Run, after uint64) error {
	if !doc.Engine {
		return x.live.Wait(ctx, doc.ID, after)
	}
	waiting, enough := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		defer enough()
		_, _ = x.history.Wait(waiting, doc.Workspace, doc.ID) // the next look at the run shows the result
	})
	err := x.live.Wait(waiting, doc.ID, after)
	enough()
	watching.Wait()
	if err != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
		return nil // it has ended
	}
	return err
}

// Count returns how many frames a run has, but at most upTo.
func (x *Service) Count(ctx context.Context, runID id.Run, upTo uint64) (uint64, error) {
	have, none := uint64(0), upTo+1 // frame 0 counts as there, frame none is not asked for or is not there
	for look := upTo; have+1 < none; look = have + (none-have)/2 {
		found, err := x.live.Read(ctx, runID, look, 1)
		if err != nil {
			return 0, err
		}
		if len(found) > 0 {
			have = look
		} else {
			none = look
		}
	}
	return have, nil
}

// Sync makes the frames of a run durable.
func (x *Service) Sync(ctx context.Context, runID id.Run) {
	if err := x.live.Sync(context.WithoutCancel(ctx), runID); err != nil {
		x.logger.Warn("live output may be lost", "code", "output_not_synced", "run", runID, "error", err) // the result counts
	}
}

// Forget removes the frames of a run that was not created, whose operation was announced.
func (x *Service) Forget(runID id.Run, announced string) {
	if err := x.live.Forget(runID, announced); err != nil {
		x.logger.Warn("what was shown of no run is still kept", "code", "output_not_forgotten", "run", runID, "error", err)
	}
}

// hidden is an outline whose summary has no secrets.
func hidden(o run.Outline) run.Outline {
	o.Summary, _ = leak.Text(o.Summary)
	return o
}
