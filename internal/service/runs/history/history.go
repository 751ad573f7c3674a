// Package history reads runs from the log: their documents, operations and results.
//
// It can wait for changes of a run, and writes nothing.
package history

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Reader reads runs. Make it with New; any goroutine may call its methods.
type Reader struct {
	log   journal.Journal
	docs  projection.Reader
	blobs blob.Store
}

// New returns a reader of the runs of a log, with its documents and its stored content.
func New(log journal.Journal, docs projection.Reader, blobs blob.Store) *Reader {
	return &Reader{log, docs, blobs}
}

// Find returns a run of the workspace.
func (h *Reader) Find(ctx context.Context, ws id.Workspace, runID id.Run) (run.Run, error) {
	doc, _, err := h.Load(ctx, ws, runID)
	if fault.KindOf(err) == fault.NotFound {
		return doc, fault.New(fault.NotFound, "run_not_found", "there is no run %.64s in this workspace", runID)
	}
	return doc, err
}

// Load returns a run of the workspace and the version of its document, or projection.ErrNotFound.
func (h *Reader) Load(ctx context.Context, ws id.Workspace, runID id.Run) (run.Run, uint64, error) {
	return projection.Load[run.Run](ctx, h.docs, ws, run.Projection, string(runID))
}

// Filter selects runs: those of a space, a room, an experiment, a kind of work or a blueprint, of which one may be named, and those of a
// status.
type Filter struct {
	Space      id.Space
	Room       id.Room
	Experiment id.Experiment
	Work       string // errand.Operations or errand.Agent
	Blueprint  string // its name
	Status     run.Status
	Background bool // only background runs: those of a space, or all
}

var errFilter = fault.New(fault.Invalid, "invalid_filter",
	"name a space, a room, an experiment, a kind of work or a blueprint, and only one of them; "+
		"background runs are listed by their space alone, or all of them")

// List returns runs of the workspace, newest first. After is the run behind which to go on.
func (h *Reader) List(ctx context.Context, ws id.Workspace, f Filter, after id.Run, limit int) ([]run.Run, error) {
	q := projection.Query{Workspace: ws, Name: run.Projection, After: string(after), Newest: true, Limit: limit}
	for _, by := range []projection.Index{{Name: "space", Value: string(f.Space)}, {Name: "room", Value: string(f.Room)}, {Name: "experiment",
		Value: string(f.Experiment)}, {Name: "work", Value: f.Work}, {Name: "blueprint", Value: f.Blueprint}} {
		if by.Value == "" {
			continue
		}
		if q.Index != (projection.Index{}) {
			return nil, errFilter
		}
		q.Index = by
	}
	if f.Background {
		switch q.Index.Name {
		case "":
			q.Index = projection.Index{Name: "background", Value: "true"}
		case "space":
			q.Index.Name = "space_background"
		default:
			return nil, errFilter
		}
	}
	switch {
	case f.Status != "" && q.Index.Name != "":
		q.Index = projection.Index{Name: q.Index.Name + "_status", Value: q.Index.Value + " " + string(f.Status)}
	case f.Status != "":
		q.Index = projection.Index{Name: "status", Value: string(f.Status)}
	}
	return projection.List[run.Run](ctx, h.docs, q)
}

// Events returns the events message of a run: one result for every finished operation, in order. While the run waits for a person, the
// question follows.
func (h *Reader) Events(ctx context.Context, doc run.Run) (run.Events, error) {
	m := run.Events{ProtocolVersion: run.Protocol, RunID: string(doc.ID), Status: doc.Status.Protocol(), Events: []run.Result{}}
	outcome, err := h.Outcomes(ctx, doc)
	if err != nil {
		return m, err
	}
	for i, p := range doc.Operations {
		if p.State != run.Done {
			continue
		}
		o, err := outcome(i)
		if err != nil {
			return m, err
		}
		m.Events = append(m.Events, o.Result)
	}
	index, approval := doc.Pending()
	if index < 0 {
		return m, nil
	}
	question, err := h.Question(ctx, doc, index, approval)
	if err != nil {
		return m, err
	}
	m.Events = append(m.Events, question)
	return m, nil
}

// Question is the approvalRequired event of the question that a run waits for.
func (h *Reader) Question(ctx context.Context, doc run.Run, index int, approval id.Approval) (run.Result, error) {
	question, _, err := projection.Load[policy.Approval](ctx, h.docs, doc.Workspace, policy.ApprovalProjection, string(approval))
	if err != nil {
		return run.Result{}, err
	}
	p := doc.Operations[index]
	return Required(run.Operation{ID: p.ID, Type: p.Type}, question), nil
}

// Outcomes returns a function that returns the outcome of each operation that is done, by its index.
func (h *Reader) Outcomes(ctx context.Context, doc run.Run) (func(index int) (run.Outcome, error), error) {
	if doc.Imported == nil {
		return func(index int) (run.Outcome, error) { return h.Outcome(ctx, doc, index) }, nil
	}
	var all []run.Outcome
	if err := h.stored(ctx, doc.Imported.Outcomes, &all); err != nil {
		return nil, err
	}
	return func(index int) (run.Outcome, error) {
		for _, o := range all {
			if o.Index == index {
				return o, nil
			}
		}
		return run.Outcome{}, errNoResult(doc.Operations[index])
	}, nil
}

func errNoResult(p run.Progress) error {
	return fault.New(fault.Internal, "result_missing", "the log holds no result for operation %s", p.ID)
}

// Outcome returns the outcome of a finished operation. If its event was redacted, it returns what the run's document says.
func (h *Reader) Outcome(ctx context.Context, doc run.Run, index int) (run.Outcome, error) {
	p := doc.Operations[index]
	e, err := h.log.Get(ctx, doc.Workspace, p.Event)
	if err != nil {
		return run.Outcome{}, err
	}
	if e.Redaction == event.RedactFull {
		o := run.OutcomeOf(index, p, run.Result{Type: p.Kind, OperationID: p.ID, Timestamp: p.EndedAt})
		o.Forgotten = true
		return o, nil
	}
	ended, err := event.Decode[run.Ended](e)
	if err != nil {
		return run.Outcome{}, err
	}
	var result run.Result
	switch {
	case ended.Result != nil:
		result = *ended.Result
	case ended.Stored == nil:
		return run.Outcome{}, errNoResult(p)
	default:
		err = h.stored(ctx, *ended.Stored, &result)
	}
	return run.OutcomeOf(index, p, result), err
}

// stored reads stored content as JSON.
func (h *Reader) stored(ctx context.Context, at run.Input, into any) error {
	content, err := h.blobs.Open(ctx, at.Digest)
	if err != nil {
		return err
	}
	defer content.Close()
	raw, err := io.ReadAll(io.LimitReader(content, at.Size))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read a stored result: %w", err)
	}
	return nil
}

// Wait returns the run when it has ended or waits for a person. When ctx ends, it returns the run in its present state.
func (h *Reader) Wait(ctx context.Context, ws id.Workspace, runID id.Run) (run.Run, error) {
	return h.WaitPast(ctx, ws, runID, "")
}

// WaitPast is Wait for a caller that has just answered a question of the run. It ignores the state in which the run waits for that answer.
func (h *Reader) WaitPast(ctx context.Context, ws id.Workspace, runID id.Run, answered id.Approval) (run.Run, error) {
	doc, err := h.await(ctx, ws, runID, func(doc run.Run) bool {
		_, asked := doc.Pending()
		return doc.Status.Ended() || doc.Status == run.AwaitingApproval && (answered == "" || asked != answered)
	})
	if err != nil && ctx.Err() != nil {
		return h.Find(context.WithoutCancel(ctx), ws, runID)
	}
	return doc, err
}

// await returns the run when enough says so, or the error of ctx or of the log.
func (h *Reader) await(ctx context.Context, ws id.Workspace, runID id.Run, enough func(run.Run) bool) (run.Run, error) {
	head, err := h.log.Head(ctx, ws)
	if err != nil {
		return run.Run{}, err
	}
	doc, err := h.Find(ctx, ws, runID)
	if err != nil || enough(doc) {
		return doc, err
	}
	for _, err := range journal.Tail(ctx, h.log, journal.Query{Workspace: ws, From: head + 1, Run: runID}) {
		if err != nil {
			return doc, err
		}
		if doc, err = h.Find(ctx, ws, runID); err != nil || enough(doc) {
			return doc, err
		}
	}
	return doc, ctx.Err()
}

// EachOpen calls a function for every run that has not ended: of a space, or of all spaces where none is named.
func (h *Reader) EachOpen(ctx context.Context, s id.Space, do func(run.Run) error) error {
	workspaces, err := h.log.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, ws := range workspaces {
		if err := h.EachOpenIn(ctx, ws, s, do); err != nil {
			return err
		}
	}
	return nil
}

// EachOpenIn is EachOpen for one workspace.
func (h *Reader) EachOpenIn(ctx context.Context, ws id.Workspace, s id.Space, do func(run.Run) error) error {
	for _, status := range []run.Status{run.Running, run.AwaitingApproval, run.Queued} {
		by := projection.Index{Name: "status", Value: string(status)}
		if s != "" {
			by = projection.Index{Name: "space_status", Value: string(s) + " " + string(status)}
		}
		if err := h.each(ctx, projection.Query{Workspace: ws, Name: run.Projection, Index: by, Limit: 1000}, do); err != nil {
			return err
		}
	}
	return nil
}

// each calls a function for every run that a query finds.
func (h *Reader) each(ctx context.Context, q projection.Query, do func(run.Run) error) error {
	for {
		docs, err := projection.List[run.Run](ctx, h.docs, q)
		if err != nil {
			return err
		}
		for _, doc := range docs {
			if err := do(doc); err != nil {
				return err
			}
			q.After = string(doc.ID)
		}
		if len(docs) < q.Limit {
			return nil
		}
	}
}

// Required is the approvalRequired event of a question.
func Required(op run.Operation, a policy.Approval) run.Result {
	details, _ := json.Marshal(map[string]any{"what": a.Question.What, "why": a.Question.Why, "impact": a.Question.Impact, "policy": a.Bundle,
		"expiresAt": a.ExpiresAt})
	raw := json.RawMessage(details)
	return run.Result{
		Type: run.ResApprovalRequired, OperationID: op.ID, Timestamp: a.RequestedAt, OperationType: op.Type, ApprovalID: string(a.ID),
		Reason: a.Question.Why, Details: &raw,
	}
}
