package executor

import (
	"context"
	"encoding/json"
	"io"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
)

// Transcript writes the transcript of a run, without the named classes of text. A run that has not ended is told as far as it is. An error
// after the first byte leaves a transcript without its end, which no reader takes.
func (x *Executor) Transcript(ctx context.Context, ws id.Workspace, runID id.Run, redact []string, out io.Writer) error {
	w, err := run.NewTranscriptWriter(out, redact)
	if err != nil {
		return err
	}
	head, err := x.Log.Head(ctx, ws)
	if err != nil {
		return err
	}
	doc, err := x.Find(ctx, ws, runID)
	if err != nil {
		return err
	}
	ops, err := x.operations(ctx, doc)
	if err != nil {
		return err
	}
	s, err := x.Spaces.Space(ctx, ws, doc.Space)
	if err != nil {
		return err
	}
	limits, err := json.Marshal(s.Limits)
	if err != nil {
		return err
	}
	err = w.Header(run.TranscriptHeader{
		Exported: x.Clock.Now().UTC(), Head: head, Run: doc,
		Place: run.Place{ID: s.ID, Tier: s.Tier, Policy: s.Policy, Bundle: s.Bundle, Limits: limits, Env: s.Env, BestEffort: s.BestEffort},
	})
	if err != nil {
		return err
	}
	for i, op := range ops {
		if err := w.Asked(i, op); err != nil {
			return err
		}
	}
	for i, p := range doc.Operations {
		if p.State != run.Done {
			continue
		}
		result, err := x.result(ctx, doc, p)
		if err != nil {
			return err
		}
		if err := w.Outcome(run.OutcomeOf(i, p, result)); err != nil {
			return err
		}
	}
	if err := x.events(ctx, doc, head, w); err != nil {
		return err
	}
	return w.End()
}

// events writes the events of a run up to a place of the log.
func (x *Executor) events(ctx context.Context, doc run.Run, head uint64, w *run.TranscriptWriter) error {
	q := journal.Query{Workspace: doc.Workspace, Run: doc.ID, Before: head + 1, Limit: journal.MaxRead}
	for {
		page, err := x.Log.Read(ctx, q)
		if err != nil {
			return err
		}
		for _, e := range page {
			if err := w.Event(e); err != nil {
				return err
			}
		}
		if len(page) < q.Limit {
			return nil
		}
		q.From = page[len(page)-1].Seq + 1
	}
}
