package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/livestream"
)

// announce shows that an operation begins.
func (x *Service) announce(ctx context.Context, runID id.Run, o run.Outline) {
	x.frame(ctx, runID, livestream.Operation, o.ID, hidden(o))
}

// frame shows something to the viewers of the run. The log is the truth: a frame that cannot be written is lost, and Follow takes missing
// results from the log.
func (r *execution) frame(ctx context.Context, kind, operation string, v any) {
	r.x.frame(ctx, r.doc.ID, kind, operation, v)
}

func (x *Service) frame(ctx context.Context, runID id.Run, kind, operation string, v any) {
	if result, ok := v.(run.Result); ok {
		v = brief(result)
	}
	data, err := json.Marshal(v)
	if err == nil {
		x.output(ctx, runID, kind, operation, data)
	}
}

func (x *Service) output(ctx context.Context, runID id.Run, kind, operation string, data []byte) {
	f := livestream.Frame{At: x.Clock.Now().UTC(), Kind: kind, Operation: operation, Data: data}
	if _, err := x.Live.Append(context.WithoutCancel(ctx), runID, f); err != nil && !errors.Is(err, livestream.ErrComplete) {
		// a follower has completed it, with this
		x.Logger.Warn("live output lost", "code", "output_lost", "run", runID, "error", err)
	}
}

// brief returns a result that fits a frame: its long texts are left out by name.
func brief(result run.Result) run.Result {
	if raw, err := json.Marshal(result); err == nil && len(raw) <= livestream.MaxFrameBytes {
		return result
	}
	shortened(&result)
	return result
}

// shortened leaves the long texts of a result out, by name.
func shortened(result *run.Result) {
	for _, field := range []struct {
		name string
		text **string
	}{{"content", &result.Content}, {"stdout", &result.Stdout}, {"stderr", &result.Stderr}} {
		if *field.text != nil && len(**field.text) > 1<<10 {
			*field.text = nil
			result.Omitted = append(slices.Clip(result.Omitted), field.name)
		}
	}
	if len(result.Displays) > 16 {
		result.Displays, result.Omitted = nil, append(slices.Clip(result.Omitted), "displays")
	}
}

// shown is what the frames of a run already show.
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
		frames, err := x.Live.Read(ctx, r, from, 1000)
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

// makeUp adds frames for events in the log that have none, because the daemon ended in between: beginnings of operations, results, and the
// open question.
func (x *Service) makeUp(ctx context.Context, doc run.Run) error {
	x.frames.Lock()
	defer x.frames.Unlock()
	s, err := x.shown(ctx, doc.ID)
	if err != nil || s.complete {
		return err
	}
	return x.showRest(ctx, doc, s)
}

func (x *Service) showRest(ctx context.Context, doc run.Run, s shown) error {
	r := &execution{x: x, doc: doc}
	outcome, err := x.History.Outcomes(ctx, doc)
	if err != nil {
		return err
	}
	for i, p := range doc.Operations {
		if p.State != run.Waiting && !s.begun[p.ID] {
			x.announce(ctx, doc.ID, run.Outline{ID: p.ID, Type: p.Type, Summary: p.Summary, Context: p.Context})
		}
		if p.State != run.Done || s.results[p.ID] {
			continue
		}
		o, err := outcome(i)
		if err != nil {
			return err
		}
		r.frame(ctx, livestream.Result, p.ID, o.Result)
	}
	index, approval := doc.Pending()
	if index < 0 || s.questions[string(approval)] {
		return nil
	}
	question, err := x.History.Question(ctx, doc, index, approval)
	if err == nil {
		r.frame(ctx, livestream.Result, question.OperationID, question)
	}
	return err
}

// completeFrames brings the frames of an ended run up to its end: the results that are missing, and the complete frame. It may be called
// any number of times.
func (x *Service) completeFrames(ctx context.Context, doc run.Run) error {
	x.frames.Lock()
	defer x.frames.Unlock()
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
	_, err = x.Live.Append(ctx, doc.ID, livestream.Frame{At: x.Clock.Now().UTC(), Kind: livestream.Complete, Data: data})
	return err
}

// Follow yields the frames of a run from a number on, waits for more, and ends after the complete frame. It ends with an error when ctx
// does, so a caller never takes a broken stream for a run that ended. After the complete frame it yields nothing.
func (x *Service) Follow(ctx context.Context, ws id.Workspace, runID id.Run, from uint64) iter.Seq2[livestream.Frame, error] {
	return func(yield func(livestream.Frame, error) bool) {
		if _, err := x.History.Find(ctx, ws, runID); err != nil {
			yield(livestream.Frame{}, err)
			return
		}
		from = max(from, 1)
		for completed := false; ; {
			frames, err := x.Live.Read(ctx, runID, from, 256)
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
			doc, err := x.History.Find(ctx, ws, runID)
			if err != nil {
				yield(livestream.Frame{}, err)
				return
			}
			if doc.Status.Ended() {
				if err := x.completeFrames(ctx, doc); err != nil {
					yield(livestream.Frame{}, err)
					return
				}
				completed = true
				continue
			}
			if err := x.Live.Wait(ctx, runID, from-1); err != nil {
				yield(livestream.Frame{}, err)
				return
			}
		}
	}
}

// Frames returns how many frames a run has, but at most upTo.
func (x *Service) Frames(ctx context.Context, runID id.Run, upTo uint64) (uint64, error) {
	have, none := uint64(0), upTo+1 // frame 0 counts as there, frame none is not asked for or is not there
	for look := upTo; have+1 < none; look = have + (none-have)/2 {
		found, err := x.Live.Read(ctx, runID, look, 1)
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

// unannounce removes the frames of a run that was not created.
func (x *Service) unannounce(e *entry) {
	if e.announced == "" {
		return
	}
	if err := x.Live.Forget(e.run, e.announced); err != nil {
		x.Logger.Warn("what was shown of no run is still kept", "code", "output_not_forgotten", "run", e.run, "error", err)
	}
}
