package executor

import (
	"context"
	"encoding/json"
	"iter"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/kernel/projection"
)

// announce shows that an operation begins.
func (r *ride) announce(ctx context.Context, t task) {
	r.frame(ctx, livestream.Operation, t.op.ID, run.Outline{ID: t.op.ID, Type: t.op.Type, Summary: t.op.Summary(), Context: t.op.Context})
}

// required is the approvalRequired event of a question.
func (x *Executor) required(op run.Operation, a policy.Approval) run.Result {
	details, _ := json.Marshal(map[string]any{"what": a.Question.What, "why": a.Question.Why, "impact": a.Question.Impact, "policy": a.Bundle, "expiresAt": a.ExpiresAt})
	raw := json.RawMessage(details)
	return run.Result{
		Type: run.ResApprovalRequired, OperationID: op.ID, Timestamp: a.RequestedAt, OperationType: op.Type, ApprovalID: string(a.ID),
		Reason: a.Question.Why, Details: &raw,
	}
}

// frame shows something to whoever watches the run. The log is the truth; a frame that cannot be written is missed, and Follow makes
// up for missing results from the log.
func (r *ride) frame(ctx context.Context, kind, operation string, v any) {
	if result, ok := v.(run.Result); ok {
		v = brief(result)
	}
	data, err := json.Marshal(v)
	if err == nil {
		r.output(ctx, kind, operation, data)
	}
}

func (r *ride) output(ctx context.Context, kind, operation string, data []byte) {
	f := livestream.Frame{At: r.x.Clock.Now().UTC(), Kind: kind, Operation: operation, Data: data}
	if _, err := r.x.Live.Append(context.WithoutCancel(ctx), r.doc.ID, f); err != nil {
		r.x.Logger.Warn("live output lost", "run", r.doc.ID, "error", err)
	}
}

// brief returns a result that fits a frame: its long texts are left out by name.
func brief(result run.Result) run.Result {
	if raw, err := json.Marshal(result); err == nil && len(raw) <= livestream.MaxFrameBytes {
		return result
	}
	for name, field := range map[string]**string{"content": &result.Content, "stdout": &result.Stdout, "stderr": &result.Stderr} {
		if *field != nil && len(**field) > 1<<10 {
			*field = nil
			result.Omitted = append(result.Omitted, name)
		}
	}
	return result
}

// completeFrames brings the frames of an ended run up to its end: the results that are missing, and the complete frame. It may be called
// any number of times.
func (x *Executor) completeFrames(ctx context.Context, doc run.Run) {
	x.frames.Lock()
	defer x.frames.Unlock()
	seen := map[string]bool{}
	for from := uint64(1); ; {
		frames, err := x.Live.Read(ctx, doc.ID, from, 1000)
		if err != nil {
			x.Logger.Warn("read live output", "run", doc.ID, "error", err)
			return
		}
		for _, f := range frames {
			if f.Kind == livestream.Complete {
				return
			}
			if f.Kind == livestream.Result {
				seen[f.Operation] = true
			}
			from = f.N + 1
		}
		if len(frames) == 0 {
			break
		}
	}
	r := &ride{x: x, doc: doc}
	for _, p := range doc.Operations {
		if p.State == run.Done && !seen[p.ID] {
			if result, err := x.result(ctx, doc, p); err == nil {
				r.frame(ctx, livestream.Result, p.ID, result)
			}
		}
	}
	r.frame(ctx, livestream.Complete, "", run.Events{ProtocolVersion: run.Protocol, RunID: string(doc.ID), Status: doc.Status.Protocol(), Events: []run.Result{}})
}

// Follow yields the frames of a run from a number on, waits for more, and ends after the complete frame. It ends with an error when ctx
// does, so a caller never takes a broken stream for a run that ended.
func (x *Executor) Follow(ctx context.Context, ws id.Workspace, runID id.Run, from uint64) iter.Seq2[livestream.Frame, error] {
	return func(yield func(livestream.Frame, error) bool) {
		if from == 0 {
			from = 1
		}
		for {
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
			doc, _, err := projection.Load[run.Run](ctx, x.Docs, ws, run.Projection, string(runID))
			if err != nil {
				yield(livestream.Frame{}, err)
				return
			}
			if doc.Status.Ended() {
				x.completeFrames(ctx, doc)
			}
			if err := x.Live.Wait(ctx, runID, from-1); err != nil {
				yield(livestream.Frame{}, err)
				return
			}
		}
	}
}
