package runs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/kernel/projection"
)

// event drafts an event of the run, caused by its agent.
func (r *execution) event(typ string, step id.Step, data any) event.Draft {
	return event.New(typ, r.origin, r.doc.Workspace, r.doc.Room, data).About(space.EntityType, string(r.doc.Space)).In(r.doc.ID, step)
}

// batch combines drafts that are recorded only if nobody else has changed the run.
func (r *execution) batch(drafts ...event.Draft) event.Batch {
	return event.Batch{
		Workspace: r.doc.Workspace, Drafts: drafts,
		Documents: []event.DocumentVersion{{Projection: run.Projection, Key: string(r.doc.ID), Version: r.version}},
	}
}

// append records drafts and folds them into the execution's copy of the document. Once something has happened it is recorded even while the
// daemon stops, so the context's end is ignored.
func (r *execution) append(ctx context.Context, drafts ...event.Draft) error {
	receipt, err := r.x.Log.Append(context.WithoutCancel(ctx), r.batch(drafts...))
	if err != nil {
		return err
	}
	return r.fold(receipt)
}

func (r *execution) fold(receipt event.Receipt) error {
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

func (r *execution) reload(ctx context.Context) error {
	doc, version, err := projection.Load[run.Run](context.WithoutCancel(ctx), r.x.Docs, r.doc.Workspace, run.Projection, string(r.doc.ID))
	if err == nil {
		r.doc, r.version = doc, version
	}
	return err
}

// conclude records the one result event of an operation and shows it to the viewers.
func (r *execution) conclude(ctx context.Context, t task, result run.Result) error {
	defer r.x.Blobs.Hold()() // protects the stored parts of a long result until its event names them
	typ := run.EventErred
	if result.OK() {
		typ = run.EventSucceeded
	}
	if begun := r.doc.Operations[t.index].BegunAt; !begun.IsZero() && r.x.Clock.Now().Sub(begun) >= worthSyncing {
		r.sync(ctx)
	}
	if result.Type == run.ResPolicyDenied && t.ruling.Decision.Outcome != policy.Deny { // it was allowed, and refused at the last moment
		d := &t.ruling.Decision
		d.Outcome, d.ReasonCode, d.Reason, d.Suggestion = policy.Deny, result.ReasonCode, result.Reason, result.Suggestion
	}
	found := r.hide(&t, &result)
	shown := r.artifacts(ctx, t, &result)
	draft, err := r.outcome(ctx, t, typ, &result)
	if err != nil {
		return err
	}
	told := r.x.withFindings(found, true, draft)
	drafts := slices.Concat(shown, told)
	refused := result.Type == run.ResPolicyDenied || t.glanced && t.ruling.Decision.Shadow // the gate recorded the rest that shadow let pass
	if refused && !t.ruling.Decision.Action.IsZero() {
		// an action without a canonical form has no hash to find it by
		drafts = append(drafts, policy.RefusedDraft(r.origin, t.ruling))
	}
	ends := r.endsWith(t)
	if ends { // the outcome of the run is known as well: one commit, and one wait for the disk
		outcome := run.EventCompleted
		if t.fails != "" {
			outcome = run.EventFailed
		}
		kept, gathered := r.gather(ctx, cmp.Or(t.action.Step, t.progress.Step))
		drafts = append(slices.Concat(drafts, kept), r.ended(outcome, r.origin, t.fails, result.OK(), gathered))
	}
	if err := r.append(ctx, drafts...); err != nil {
		return err
	}
	if !ends {
		r.frame(ctx, livestream.Result, t.op.ID, result)
		return nil
	}
	r.x.frames.Lock() // a follower may complete the frames once the end is recorded: then the result is among them
	r.frame(ctx, livestream.Result, t.op.ID, result)
	r.x.frames.Unlock()
	r.complete(ctx)
	return nil
}

// worthSyncing is the least duration of an operation whose live output is made durable before its result is recorded. The result holds all
// the output. So a shorter operation loses only the order and timing of its output, and only if the host fails before it has written the
// file.
const worthSyncing = time.Second

// sync makes the frames of the run durable.
func (r *execution) sync(ctx context.Context) {
	if err := r.x.Live.Sync(context.WithoutCancel(ctx), r.doc.ID); err != nil {
		r.x.Logger.Warn("live output may be lost", "code", "output_not_synced", "run", r.doc.ID, "error", err) // the result is what counts
	}
}

// endsWith reports whether nothing of the run is left to do or to decide after an operation.
func (r *execution) endsWith(t task) bool {
	_, approval := r.doc.Pending()
	return t.index == len(r.ops)-1 && r.doc.Next == t.index && approval == "" && r.entry != nil && r.x.cancelled(r.entry) == nil
}

// outcome drafts the event of a result; a long result is stored apart first.
func (r *execution) outcome(ctx context.Context, t task, typ string, result *run.Result) (event.Draft, error) {
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
	if begun := r.doc.Operations[t.index].BegunAt; !begun.IsZero() {
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
			shortened(result)
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
func (r *execution) finish(ctx context.Context, typ string, origin event.Origin, why string) error {
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
		r.frame(ctx, livestream.Result, unknown.OperationID, *unknown)
	}
	r.complete(ctx)
	return nil
}

// ended drafts the end of the run. One more operation than the document knows may have succeeded.
func (r *execution) ended(typ string, origin event.Origin, why string, oneMore bool, kept *run.Gathered) event.Draft {
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
func (r *execution) complete(ctx context.Context) {
	if err := r.x.completeFrames(context.WithoutCancel(ctx), r.doc); err != nil {
		r.x.Logger.Warn("complete the live output", "code", "output_not_completed", "run", r.doc.ID, "error", err)
	}
}

// close records the end of a run, and of its open question if it has one.
func (r *execution) close(ctx context.Context, origin event.Origin, why string, drafts []event.Draft) error {
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
func (r *execution) unfinished(index int) task {
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
