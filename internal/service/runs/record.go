package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/blob"
)

// record is the document of a run whose worker alone writes it, and how it is written.
type record struct {
	x       *Service
	doc     run.Run
	version uint64       // of doc
	origin  event.Origin // of the agent
	entry   *entry
}

// event drafts an event of the run, caused by its agent.
func (r *record) event(typ string, step id.Step, data any) event.Draft {
	return event.New(typ, r.origin, r.doc.Workspace, r.doc.Room, data).About(space.EntityType, string(r.doc.Space)).In(r.doc.ID, step)
}

// batch combines drafts that are recorded only if nobody else has changed the run.
func (r *record) batch(drafts ...event.Draft) event.Batch {
	return event.Batch{
		Workspace: r.doc.Workspace, Drafts: drafts,
		Documents: []event.DocumentVersion{{Projection: run.Projection, Key: string(r.doc.ID), Version: r.version}},
	}
}

// append records drafts and folds them into the execution's copy of the document. Once something has happened it is recorded even while the
// daemon stops, so the context's end is ignored.
func (r *record) append(ctx context.Context, drafts ...event.Draft) error {
	receipt, err := r.x.Log.Append(context.WithoutCancel(ctx), r.batch(drafts...))
	if err != nil {
		return err
	}
	return r.fold(receipt)
}

func (r *record) fold(receipt event.Receipt) error {
	for _, e := range receipt.Events {
		if e.Run != r.doc.ID || !run.Touches(e) {
			continue
		}
		doc, err := run.Evolve(r.doc, e)
		if err != nil {
			return err
		}
		r.doc, r.version = doc, r.version+1
	}
	return nil
}

func (r *record) reload(ctx context.Context) error {
	doc, version, err := r.x.History.Load(context.WithoutCancel(ctx), r.doc.Workspace, r.doc.ID)
	if err == nil {
		r.doc, r.version = doc, version
	}
	return err
}

// outcome drafts the event of a result; a long result is stored apart first.
func (r *record) outcome(ctx context.Context, t task, typ string, result *run.Result) (event.Draft, error) {
	now := r.x.Clock.Now().UTC()
	result.Timestamp = now
	if !t.op.Context {
		result.OperationID = t.op.ID
	}
	d := t.ruling.Decision
	ended := run.Ended{
		Run: r.doc.ID, Operation: t.op.ID, Index: t.index, Tool: t.op.Type, Kind: result.Type, Action: d.Action, Result: result,
		Kept: t.kept,
	}
	if d.ReasonCode != "" {
		ended.Decision, ended.Reason = d.Outcome.String(), d.ReasonCode
	}
	if begun := r.doc.Operations[t.index].BegunAt; result.DurationMS != nil {
		ended.DurationMS = *result.DurationMS
	} else if !begun.IsZero() {
		ended.DurationMS = max(0, now.Sub(begun).Milliseconds()) // the clock may have been set back
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return event.Draft{}, fmt.Errorf("write a result: %w", err)
	}
	if len(raw) > maxInlineBytes {
		ctx := context.WithoutCancel(ctx)
		err := r.x.contentRoom(ctx, r.doc.Workspace, int64(len(raw)))
		var stored blob.Ref
		if err == nil {
			stored, err = r.x.Blobs.Put(ctx, bytes.NewReader(raw), int64(len(raw)))
		}
		if err == nil {
			ended.Result, ended.Stored = nil, &run.Input{Digest: stored.Digest, Size: stored.Size}
		} else { // the effect has happened: its outcome is recorded, if need be without the long texts
			r.x.Logger.Error("keep a long result", "code", "result_not_kept", "run", r.doc.ID, "operation", t.op.ID, "error", err)
			result.Shorten()
		}
	}
	step := t.action.Step
	if step == "" {
		step = t.progress.Step
	}
	draft := r.event(typ, step, ended)
	draft.OccurredAt = now
	if t.cause != "" {
		draft.Causation = t.cause
	}
	return draft, nil
}

// finish ends the run in one commit. An operation whose outcome will never be known gets its result, and a question that nobody needs to
// answer ends.
func (r *record) finish(ctx context.Context, typ string, origin event.Origin, why string) error {
	defer r.x.Blobs.Hold()()
	ctx = context.WithoutCancel(ctx)
	if origin.Correlation == "" {
		origin.Correlation = r.doc.Correlation
	}
	var drafts []event.Draft
	var unknown *run.Result
	index := r.doc.Interrupted()
	if index >= 0 {
		unknown = unknownResult(r.doc.Operations[index])
		draft, err := r.outcome(ctx, r.unfinished(index), run.EventUnknown, unknown)
		if err != nil {
			return err
		}
		drafts = append(drafts, draft)
	}
	kept, gathered := r.gather(ctx, r.lastStep())
	drafts = append(slices.Concat(drafts, kept), r.ended(typ, origin, why, false, gathered))
	if err := r.close(ctx, origin, why, drafts); err != nil {
		return err
	}
	if unknown != nil {
		r.x.Frames.Result(ctx, r.doc.ID, unknown.OperationID, *unknown)
	}
	r.complete(ctx)
	return nil
}

// ended drafts the end of the run. One more operation than the document knows may have succeeded.
func (r *record) ended(typ string, origin event.Origin, why string, oneMore bool, kept *run.Gathered) event.Draft {
	done := 0
	for _, p := range r.doc.Operations {
		if p.OK {
			done++
		}
	}
	if oneMore {
		done++
	}
	d := run.Finished{Run: r.doc.ID, Summary: fmt.Sprintf("%d of %d operations succeeded", done, len(r.doc.Operations)), Error: why,
		Retention: r.doc.Retention, Until: r.doc.Until(r.x.Clock.Now()), Artifacts: kept}
	return event.New(typ, origin, r.doc.Workspace, r.doc.Room, d).About(space.EntityType, string(r.doc.Space)).In(r.doc.ID, "")
}

// complete shows that the run has ended.
func (r *record) complete(ctx context.Context) {
	if err := r.x.Frames.Complete(context.WithoutCancel(ctx), r.doc); err != nil {
		r.x.Logger.Warn("complete the live output", "code", "output_not_completed", "run", r.doc.ID, "error", err)
	}
}

// close records the end of a run, and of its open question if it has one.
func (r *record) close(ctx context.Context, origin event.Origin, why string, drafts []event.Draft) error {
	_, approval := r.doc.Pending()
	batch := origin.Once(r.batch(drafts...))
	if approval == "" {
		receipt, err := r.x.Log.Append(ctx, batch)
		if err != nil {
			return err
		}
		return r.fold(receipt)
	}
	receipt, err := r.x.Gate.Withdraw(ctx, origin, approval, "the run ended: "+why, batch)
	if err != nil {
		return err
	}
	return r.fold(receipt)
}

// unfinished is the task of an operation that has begun and has no result.
func (r *record) unfinished(index int) task {
	p := r.doc.Operations[index]
	return task{index: index, op: run.Operation{ID: p.ID, Type: p.Type, Context: p.Context}, progress: p}
}

// unknownResult is the result of an operation with an unknown outcome.
func unknownResult(p run.Progress) *run.Result {
	return &run.Result{
		Type: run.ResUnknown, OperationType: p.Type,
		Reason:     "the daemon stopped while the operation ran; whether it took effect is not known",
		Suggestion: "look at the space's files before you go on; the operation is not repeated",
	}
}
