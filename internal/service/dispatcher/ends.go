package dispatcher

import (
	"context"
	"encoding/json"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
)

// Begin starts a run by hand, without a claim: whoever may record its steps then may do so, and no engine is given it.
func (d *Dispatcher) Begin(ctx context.Context, origin event.Origin, h Hold) (run.Run, error) {
	doc, receipt, err := d.record(ctx, origin, h, func(doc run.Run) (entry, error) {
		if doc.Status != run.Queued {
			return entry{}, run.ErrNotQueued
		}
		place, err := d.room(ctx, doc.Workspace)
		return entry{action: policy.Action{Type: policy.RunBegin}, drafts: []event.Draft{draft(run.EventStarted, origin, doc, run.Started{Run: doc.ID})}, expect: place}, err
	})
	if err != nil {
		return doc, err
	}
	return after(doc, receipt)
}

// Complete ends a run well. The summary has at most run.MaxReportWords characters, the output, any JSON or nil, at most run.MaxReport bytes.
func (d *Dispatcher) Complete(ctx context.Context, origin event.Origin, h Hold, summary string, output json.RawMessage) (run.Run, error) {
	if err := either(texts(text{"summary", summary, run.MaxReportWords}), fits("output", output, run.MaxReport)); err != nil {
		return run.Run{}, err
	}
	return d.end(ctx, origin, h, policy.RunComplete, run.EventCompleted, run.Finished{Run: h.Run, Summary: summary, Output: output})
}

// Fail ends a run badly. Why, a word or a line, and the message have at most run.MaxReportWords characters.
func (d *Dispatcher) Fail(ctx context.Context, origin event.Origin, h Hold, why, message string) (run.Run, error) {
	if err := texts(text{"error", why, run.MaxReportWords}, text{"message", message, run.MaxReportWords}); err != nil {
		return run.Run{}, err
	}
	return d.end(ctx, origin, h, policy.RunFail, run.EventFailed, run.Finished{Run: h.Run, Error: why, Message: message})
}

func (d *Dispatcher) end(ctx context.Context, origin event.Origin, h Hold, action, typ string, f run.Finished) (run.Run, error) {
	doc, receipt, err := d.record(ctx, origin, h, func(doc run.Run) (entry, error) {
		if doc.Status != run.Running {
			return entry{}, run.ErrNotRunning
		}
		return entry{
			action: policy.Action{Type: action, Content: digest(f.Summary, f.Output, f.Error, f.Message)}, drafts: []event.Draft{draft(typ, origin, doc, f)},
		}, nil
	})
	if err != nil {
		return doc, err
	}
	d.terms.Forget(doc.ID)
	d.settle(ctx, origin, doc)
	return after(doc, receipt)
}

// Cancel ends a run, whoever has it: its engine learns of it with the next thing that it records. Stopping asks nobody.
func (d *Dispatcher) Cancel(ctx context.Context, origin event.Origin, ws id.Workspace, r id.Run, reason string) (run.Run, error) {
	if err := texts(text{"reason", reason, run.MaxReportWords}); err != nil {
		return run.Run{}, err
	}
	if reason == "" {
		reason = "cancelled on request"
	}
	for try := 1; ; try++ {
		doc, version, err := d.load(ctx, ws, r)
		if err != nil {
			return doc, err
		}
		if doc.Status.Ended() {
			return doc, run.ErrEnded
		}
		receipt, err := d.Log.Append(ctx, origin.Once(event.Batch{
			Workspace: ws, Drafts: []event.Draft{draft(run.EventCancelled, origin, doc, run.Finished{Run: r, Error: reason})},
			Documents: []event.DocumentVersion{{Projection: run.Projection, Key: string(r), Version: version}},
		}))
		if errors.Is(err, journal.ErrConflict) && try < tries {
			continue
		}
		if err != nil {
			return doc, err
		}
		d.terms.Forget(r)
		d.settle(ctx, origin, doc)
		return after(doc, receipt)
	}
}
