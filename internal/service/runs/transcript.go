package runs

import (
	"context"
	"encoding/json"
	"io"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
)

// Export chooses the content of a transcript besides the run.
type Export struct {
	Redact []string // classes of text that are taken out

	// Files returns the archive of the snapshot with which the run began, and how many files policy kept out of it; nil carries no files. An
	// imported run carries those with which it came.
	Files func(ctx context.Context, doc run.Run, start run.Snapshot) (archive io.ReadCloser, omitted int, err error)
	// Prove returns the proof of the run's events, nil where there is none yet; nil carries none.
	Prove func(ctx context.Context, doc run.Run) (*run.Proof, error)
}

// errOfEngine refuses the transcript of a run that is none of operations.
var errOfEngine = fault.New(fault.Invalid, "run_of_engine", "an engine executes this run, so that there is no transcript of operations").
	With("its steps and its evidence tell of it: agentbox runs show; agentbox runs evidence")

// Transcripts writes and takes transcripts of runs; any goroutine may call its methods.
type Transcripts struct{ *shared }

// Write writes the transcript of a run. For a run that has not ended, it writes the part so far. An error after the first byte leaves
// a transcript without its end, which every reader rejects.
func (x *Transcripts) Write(ctx context.Context, ws id.Workspace, runID id.Run, what Export, out io.Writer) error {
	w, err := run.NewTranscriptWriter(out, what.Redact)
	if err != nil {
		return err
	}
	head, err := x.Log.Head(ctx, ws)
	if err != nil {
		return err
	}
	doc, err := x.History.Find(ctx, ws, runID)
	if err != nil {
		return err
	}
	if doc.Engine {
		return errOfEngine
	}
	if doc.Imported != nil {
		return x.copyImported(ctx, doc, w)
	}
	ops, err := x.History.Operations(ctx, doc)
	if err != nil {
		return err
	}
	header := run.TranscriptHeader{Exported: x.Clock.Now().UTC(), Head: head, Run: doc}
	if header.Place, err = x.placeOf(ctx, doc); err != nil {
		return err
	}
	if header.Start, err = x.startOf(ctx, doc); err != nil {
		return err
	}
	var files io.ReadCloser
	omitted := 0
	if what.Files != nil && header.Start != nil {
		if files, omitted, err = what.Files(ctx, doc, *header.Start); err != nil {
			return err
		}
		defer files.Close()
	}
	var proof *run.Proof
	if what.Prove != nil {
		if proof, err = what.Prove(ctx, doc); err != nil {
			return err
		}
	}
	if err := w.Header(header); err != nil {
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
		o, err := x.History.Outcome(ctx, doc, i)
		if err != nil {
			return err
		}
		if err := w.Outcome(o); err != nil {
			return err
		}
	}
	if err := x.events(ctx, doc, head, w); err != nil {
		return err
	}
	if files != nil {
		archive, end := w.Files()
		if _, err := io.Copy(archive, files); err != nil {
			return err
		}
		if err := end(omitted); err != nil {
			return err
		}
	}
	if proof != nil {
		if err := w.Proof(*proof); err != nil {
			return err
		}
	}
	return w.End()
}

// placeOf describes the space of a run.
func (x *Transcripts) placeOf(ctx context.Context, doc run.Run) (run.Place, error) {
	s, err := x.Spaces.Space(ctx, doc.Workspace, doc.Space)
	if err != nil {
		return run.Place{}, err
	}
	limits, err := json.Marshal(s.Limits)
	if err != nil {
		return run.Place{}, err
	}
	bundle, err := x.Bundles.Bundle(ctx, doc.Workspace, s.Bundle)
	if err != nil {
		return run.Place{}, err
	}
	return run.Place{
		ID: s.ID, Tier: s.Tier, Policy: s.Policy, Bundle: s.Bundle, Text: &bundle, Limits: limits, Env: s.Env, BestEffort: s.BestEffort,
	}, nil
}

// startOf returns the snapshot that was made when a run began; nil where none was, or the event that says so was redacted.
func (x *Transcripts) startOf(ctx context.Context, doc run.Run) (*run.Snapshot, error) {
	found, err := x.Log.Read(ctx, journal.Query{Workspace: doc.Workspace, Run: doc.ID, Types: []string{run.EventStarted}, Limit: 1})
	if err != nil || len(found) == 0 || found[0].Redaction == event.RedactFull {
		return nil, err
	}
	started, err := event.Decode[run.Started](found[0])
	return started.Snapshot, err
}

// events writes the events of a run up to a place of the log.
func (x *Transcripts) events(ctx context.Context, doc run.Run, head uint64, w *run.TranscriptWriter) error {
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
