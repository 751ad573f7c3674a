package engines

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Begin starts a run by hand, without a claim. Principals who may record its steps may then do so, and no engine gets it.
func (d *Service) Begin(ctx context.Context, origin event.Origin, h Hold) (run.Run, error) {
	doc, receipt, err := d.record(ctx, origin, h, func(doc run.Run) (entry, error) {
		if doc.Status != run.Queued {
			return entry{}, run.ErrNotQueued
		}
		place, err := d.slot(ctx, doc.Workspace)
		return entry{action: policy.Action{Type: policy.RunBegin}, drafts: []event.Draft{draft(run.EventStarted, origin, doc,
			run.Started{Run: doc.ID})}, expect: place}, err
	})
	if err != nil {
		return doc, err
	}
	return after(doc, receipt)
}

// Complete ends a run well. The summary has at most run.MaxReportWords characters, the output, any JSON or nil, at most run.MaxReport
// bytes.
func (d *Service) Complete(ctx context.Context, origin event.Origin, h Hold, summary string, output json.RawMessage) (run.Run, error) {
	if err := either(texts(text{"summary", summary, run.MaxReportWords}), fits("output", output, run.MaxReport)); err != nil {
		return run.Run{}, err
	}
	return d.end(ctx, origin, h, policy.RunComplete, run.EventCompleted, run.Finished{Run: h.Run, Summary: summary, Output: output})
}

// Fail ends a run as failed. Why is a word or a line. Why and message have at most run.MaxReportWords characters. Output is a partial
// result: any JSON of at most run.MaxReport bytes, or nil.
func (d *Service) Fail(ctx context.Context, origin event.Origin, h Hold, why, message string, output json.RawMessage) (run.Run, error) {
	if err := either(texts(text{"error", why, run.MaxReportWords}, text{"message", message, run.MaxReportWords}), fits("output", output,
		run.MaxReport)); err != nil {
		return run.Run{}, err
	}
	return d.end(ctx, origin, h, policy.RunFail, run.EventFailed, run.Finished{Run: h.Run, Error: why, Message: message, Output: output})
}

func (d *Service) end(ctx context.Context, origin event.Origin, h Hold, action, typ string, f run.Finished) (run.Run, error) {
	defer d.Blobs.Hold()() // protects the stored files until the event of the end names them
	files := d.keeper(ctx, origin)
	var children []id.Run
	doc, receipt, err := d.record(ctx, origin, h, func(doc run.Run) (entry, error) {
		if doc.Status != run.Running {
			return entry{}, run.ErrNotRunning
		}
		if h.Permit != "" {
			if err := d.Permits.spend(h.Permit, origin, claimPermit(doc)); err != nil {
				return entry{}, err
			}
			f.Permit = event.DigestOf([]byte(h.Permit))
		}
		lost, of, expect, err := d.lost(ctx, origin, doc)
		if err != nil {
			return entry{}, err
		}
		children = of
		var kept []event.Draft
		kept, f.Artifacts = files(doc)
		return entry{
			action: policy.Action{Type: action, Content: digest(f.Summary, f.Output, f.Error, f.Message)},
			drafts: append(slices.Concat(lost, kept), draft(typ, origin, doc, f)), expect: expect,
		}, nil
	})
	if err != nil {
		return doc, err
	}
	d.terms.Forget(doc.ID)
	d.bells.hasRoom(doc.Workspace)
	d.endChildren(ctx, origin, doc, children)
	d.close(ctx, origin, doc)
	d.Evidence.settle(ctx, origin, doc)
	return after(doc, receipt)
}

// keeper returns a function that keeps the files of a run, once however often its end is tried.
func (d *Service) keeper(ctx context.Context, origin event.Origin) func(run.Run) ([]event.Draft, *run.Gathered) {
	var drafts []event.Draft
	var told *run.Gathered
	done := d.Keep == nil
	return func(doc run.Run) ([]event.Draft, *run.Gathered) {
		if !done {
			drafts, told = d.Keep(ctx, origin, doc)
			done = true
		}
		return drafts, told
	}
}

// lostAtOnce is how many tool calls have their result in the commit that ends their run; those beyond it have it in the next ones.
const lostAtOnce = 100

// lost returns results for the tool calls of a run that ends before their outcomes are known, and the runs that were made for them. The
// results are recorded only if nobody has recorded an outcome meanwhile.
func (d *Service) lost(ctx context.Context, origin event.Origin, doc run.Run) (drafts []event.Draft, children []id.Run,
	expect []event.DocumentVersion, err error) {
	open, err := d.Docs.Documents(ctx, projection.Query{Workspace: doc.Workspace, Name: step.CallProjection,
		Index: projection.Index{Name: indexOpen, Value: string(doc.ID)}, Limit: lostAtOnce})
	for _, found := range open {
		var c step.Call
		if err := json.Unmarshal(found.Body, &c); err != nil {
			return nil, nil, nil, err
		}
		if c.Child != "" {
			children = append(children, c.Child)
		}
		ended := step.Ended{Call: c.ID, Run: doc.ID, Tool: c.Tool, Fence: doc.Fence,
			Message: "the run ended before anybody said what came of the call"}
		drafts = append(drafts, draft(step.EventUnknown, origin, doc, ended).About(step.CallEntity, string(c.ID)).In(doc.ID, c.Step))
		expect = append(expect, event.DocumentVersion{Projection: step.CallProjection, Key: string(c.ID), Version: found.Version})
	}
	return drafts, children, expect, err
}

// whyOrphaned is why a run ends whose tool call's run has ended.
const whyOrphaned = "the run that asked for it has ended"

// endChildren ends the runs of engines that were made for tool calls of a run that has ended. The daemon ends runs in spaces itself. A run
// that cannot be ended now ends when an engine claims it: the engine sees that its parent has ended.
func (d *Service) endChildren(ctx context.Context, origin event.Origin, of run.Run, children []id.Run) {
	ctx = context.WithoutCancel(ctx)
	origin.Key, origin.Command = "", event.Digest{}
	for _, r := range children {
		doc, err := d.Find(ctx, of.Workspace, r)
		if err == nil && doc.Engine && !doc.Status.Ended() {
			_, err = d.Cancel(ctx, origin, of.Workspace, r, whyOrphaned)
		}
		if err != nil && !errors.Is(err, run.ErrEnded) {
			d.Logger.Warn("end the run of a sub-agent", "code", "sub_agent_not_ended", "run", r, "error", err)
		}
	}
}

// close records the results of tool calls that began while the run ended, or that were too many for the commit that ended it. No call
// begins in an ended run.
func (d *Service) close(ctx context.Context, origin event.Origin, doc run.Run) {
	ctx = context.WithoutCancel(ctx)
	origin.Key = "" // that of the end
	for {
		drafts, children, expect, err := d.lost(ctx, origin, doc)
		if err == nil && len(drafts) == 0 {
			return
		}
		if err == nil {
			d.endChildren(ctx, origin, doc, children)
			_, err = d.Log.Append(ctx, event.Batch{Workspace: doc.Workspace, Drafts: drafts, Documents: expect})
		}
		if err != nil && !errors.Is(err, journal.ErrConflict) {
			d.Logger.Warn("close the tool calls of a run", "code", "tool_calls_not_closed", "run", doc.ID, "error", err)
			return
		}
	}
}

// Cancel ends a run, also one that an engine has. The engine learns of it with the next thing that it records.
// Cancelling never waits for an approval.
func (d *Service) Cancel(ctx context.Context, origin event.Origin, ws id.Workspace, r id.Run, reason string) (run.Run, error) {
	if err := texts(text{"reason", reason, run.MaxReportWords}); err != nil {
		return run.Run{}, err
	}
	if reason == "" {
		reason = "cancelled on request"
	}
	defer d.Blobs.Hold()()
	files := d.keeper(ctx, origin)
	for try := 1; ; try++ {
		doc, version, err := d.load(ctx, ws, r)
		if err != nil {
			return doc, err
		}
		if doc.Status.Ended() {
			return doc, run.ErrEnded
		}
		lost, children, expect, err := d.lost(ctx, origin, doc)
		if err != nil {
			return doc, err
		}
		kept, told := files(doc)
		receipt, err := d.Log.Append(ctx, origin.Once(event.Batch{
			Workspace: ws, Drafts: append(slices.Concat(lost, kept), draft(run.EventCancelled, origin, doc, run.Finished{Run: r, Error: reason,
				Artifacts: told})),
			Documents: append(expect, event.DocumentVersion{Projection: run.Projection, Key: string(r), Version: version}),
		}))
		if errors.Is(err, journal.ErrConflict) && try < tries {
			continue
		}
		if err != nil {
			return doc, err
		}
		d.terms.Forget(r)
		d.bells.hasRoom(ws)
		d.endChildren(ctx, origin, doc, children)
		d.close(ctx, origin, doc)
		d.Evidence.settle(ctx, origin, doc)
		return after(doc, receipt)
	}
}
