package runs

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
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Find returns a run of the workspace.
func (x *Service) Find(ctx context.Context, ws id.Workspace, runID id.Run) (run.Run, error) {
	doc, _, err := projection.Load[run.Run](ctx, x.Docs, ws, run.Projection, string(runID))
	if fault.KindOf(err) == fault.NotFound {
		return doc, fault.New(fault.NotFound, "run_not_found", "there is no run %.64s in this workspace", runID)
	}
	return doc, err
}

// Filter selects runs: those of a space, of a room or of an experiment, of which one may be named, and those of a status.
type Filter struct {
	Space      id.Space
	Room       id.Room
	Experiment id.Experiment
	Status     run.Status
	Background bool // only background runs: those of a space, or all
}

var errFilter = fault.New(fault.Invalid, "invalid_filter",
	"name a space, a room or an experiment, and only one of them; background runs are listed by their space alone, or all of them")

// List returns runs of the workspace, newest first. After is the run behind which to go on.
func (x *Service) List(ctx context.Context, ws id.Workspace, f Filter, after id.Run, limit int) ([]run.Run, error) {
	q := projection.Query{Workspace: ws, Name: run.Projection, After: string(after), Newest: true, Limit: limit}
	for _, by := range []projection.Index{{Name: "space", Value: string(f.Space)}, {Name: "room", Value: string(f.Room)}, {Name: "experiment",
		Value: string(f.Experiment)}} {
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
	return projection.List[run.Run](ctx, x.Docs, q)
}

// Events returns the events message of a run: one result for every finished operation, in order. While the run waits for a person, the
// question follows.
func (x *Service) Events(ctx context.Context, doc run.Run) (run.Events, error) {
	m := run.Events{ProtocolVersion: run.Protocol, RunID: string(doc.ID), Status: doc.Status.Protocol(), Events: []run.Result{}}
	outcome, err := x.outcomes(ctx, doc)
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
	question, err := x.question(ctx, doc, index, approval)
	if err != nil {
		return m, err
	}
	m.Events = append(m.Events, question)
	return m, nil
}

// question is the approvalRequired event of the question that a run waits for.
func (x *Service) question(ctx context.Context, doc run.Run, index int, approval id.Approval) (run.Result, error) {
	question, _, err := projection.Load[policy.Approval](ctx, x.Docs, doc.Workspace, policy.ApprovalProjection, string(approval))
	if err != nil {
		return run.Result{}, err
	}
	p := doc.Operations[index]
	return x.required(run.Operation{ID: p.ID, Type: p.Type}, question), nil
}

// outcomes returns a function that returns the outcome of each operation that is done, by its index.
func (x *Service) outcomes(ctx context.Context, doc run.Run) (func(index int) (run.Outcome, error), error) {
	if doc.Imported == nil {
		return func(index int) (run.Outcome, error) { return x.outcome(ctx, doc, index) }, nil
	}
	var all []run.Outcome
	if err := x.stored(ctx, doc.Imported.Outcomes, &all); err != nil {
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

// outcome returns the outcome of a finished operation. If its event was redacted, it returns what the run's document says.
func (x *Service) outcome(ctx context.Context, doc run.Run, index int) (run.Outcome, error) {
	p := doc.Operations[index]
	e, err := x.Log.Get(ctx, doc.Workspace, p.Event)
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
		err = x.stored(ctx, *ended.Stored, &result)
	}
	return run.OutcomeOf(index, p, result), err
}

// stored reads stored content as JSON.
func (x *Service) stored(ctx context.Context, at run.Input, into any) error {
	content, err := x.Blobs.Open(ctx, at.Digest)
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
func (x *Service) Wait(ctx context.Context, ws id.Workspace, runID id.Run) (run.Run, error) {
	return x.WaitPast(ctx, ws, runID, "")
}

// WaitPast is Wait for a caller that has just answered a question of the run. It ignores the state in which the run waits for that answer.
func (x *Service) WaitPast(ctx context.Context, ws id.Workspace, runID id.Run, answered id.Approval) (run.Run, error) {
	doc, err := x.await(ctx, ws, runID, func(doc run.Run) bool {
		_, asked := doc.Pending()
		return doc.Status.Ended() || doc.Status == run.AwaitingApproval && (answered == "" || asked != answered)
	})
	if err != nil && ctx.Err() != nil {
		return x.Find(context.WithoutCancel(ctx), ws, runID)
	}
	return doc, err
}

// await returns the run when enough says so, or the error of ctx or of the log.
func (x *Service) await(ctx context.Context, ws id.Workspace, runID id.Run, enough func(run.Run) bool) (run.Run, error) {
	head, err := x.Log.Head(ctx, ws)
	if err != nil {
		return run.Run{}, err
	}
	doc, err := x.Find(ctx, ws, runID)
	if err != nil || enough(doc) {
		return doc, err
	}
	for _, err := range journal.Tail(ctx, x.Log, journal.Query{Workspace: ws, From: head + 1, Run: runID}) {
		if err != nil {
			return doc, err
		}
		if doc, err = x.Find(ctx, ws, runID); err != nil || enough(doc) {
			return doc, err
		}
	}
	return doc, ctx.Err()
}

func indexes(r run.Run) []projection.Index {
	found := []projection.Index{{Name: "status", Value: string(r.Status)}}
	by := func(name, value string) {
		if value != "" {
			found = append(found, projection.Index{Name: name, Value: value}, projection.Index{Name: name + "_status", Value: value + " " +
				string(r.Status)})
		}
	}
	by("room", string(r.Room))
	if r.Imported != nil { // its space is another installation's
		return append(found, projection.Index{Name: "transcript", Value: r.Imported.Transcript.Digest.String()})
	}
	by("space", string(r.Space))
	if r.Background {
		by("background", "true")
		by("space_background", string(r.Space))
	}
	by("experiment", string(r.Experiment))
	if state := r.Offered(); state != "" {
		found = append(found, projection.Index{Name: "engine", Value: state}, projection.Index{Name: "engine_room", Value: string(r.Room) + " " +
			state})
		if r.Work != "" {
			found = append(found, projection.Index{Name: "engine_work", Value: r.Work + " " + state}, projection.Index{Name: "engine_room_work",
				Value: string(r.Room) + " " + r.Work + " " + state})
		}
	}
	return found
}

func (x *Service) operations(ctx context.Context, doc run.Run) ([]run.Operation, error) {
	if doc.Redacted && doc.Input.Digest.IsZero() {
		ops := make([]run.Operation, len(doc.Operations))
		for i, p := range doc.Operations {
			ops[i] = run.Operation{Type: p.Type} // that is all that is left of it
		}
		return ops, nil
	}
	m, err := x.message(ctx, doc)
	if err != nil {
		return nil, err
	}
	if len(m.Operations) != len(doc.Operations) {
		return nil, fault.New(fault.Internal, "content_unreadable", "the stored operations are not those of the run")
	}
	return m.Operations, nil
}

// message reads the operations message of a run, from its event or from the blob store.
func (x *Service) message(ctx context.Context, doc run.Run) (m run.Message, err error) {
	if doc.Input.Inline {
		found, err := x.Log.Read(ctx, journal.Query{Workspace: doc.Workspace, Run: doc.ID, Types: []string{run.EventCreated}, Limit: 1})
		if err != nil {
			return m, err
		}
		if len(found) == 1 {
			created, err := event.Decode[run.Created](found[0])
			if err == nil && created.Message != nil && digestOf(*created.Message) == doc.Input.Digest {
				return *created.Message, nil
			}
		}
		return m, fault.New(fault.Internal, "content_unreadable", "the log does not hold the operations of the run")
	}
	content, err := x.Blobs.Open(ctx, doc.Input.Digest)
	if err != nil {
		return m, err
	}
	defer content.Close()
	raw, err := io.ReadAll(io.LimitReader(content, MaxInputBytes+1))
	if err != nil {
		return m, fault.Wrap(err, fault.Unavailable, "content_unreadable", "the operations of the run cannot be read")
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fault.Wrap(err, fault.Internal, "content_unreadable", "the operations of the run cannot be read")
	}
	return m, nil
}

// digestOf returns the hash of a message, wherever it is stored; zero for none.
func digestOf(m run.Message) event.Digest {
	raw, err := json.Marshal(m)
	if err != nil {
		return event.Digest{}
	}
	return event.DigestOf(raw)
}

func byStatus(status run.Status) projection.Index {
	return projection.Index{Name: "status", Value: string(status)}
}

// each calls a function for every run that has not ended and that an index has under its status.
func (x *Service) each(ctx context.Context, of func(run.Status) projection.Index, do func(run.Run) error) error {
	workspaces, err := x.Log.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, ws := range workspaces {
		if err := x.eachIn(ctx, ws, of, do); err != nil {
			return err
		}
	}
	return nil
}

// eachIn is each for one workspace.
func (x *Service) eachIn(ctx context.Context, ws id.Workspace, of func(run.Status) projection.Index, do func(run.Run) error) error {
	for _, status := range []run.Status{run.Running, run.AwaitingApproval, run.Queued} {
		if err := x.eachOf(ctx, projection.Query{Workspace: ws, Name: run.Projection, Index: of(status), Limit: 1000}, do); err != nil {
			return err
		}
	}
	return nil
}

func (x *Service) eachOf(ctx context.Context, q projection.Query, do func(run.Run) error) error {
	for {
		docs, err := projection.List[run.Run](ctx, x.Docs, q)
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

// required is the approvalRequired event of a question.
func (x *Service) required(op run.Operation, a policy.Approval) run.Result {
	details, _ := json.Marshal(map[string]any{"what": a.Question.What, "why": a.Question.Why, "impact": a.Question.Impact, "policy": a.Bundle,
		"expiresAt": a.ExpiresAt})
	raw := json.RawMessage(details)
	return run.Result{
		Type: run.ResApprovalRequired, OperationID: op.ID, Timestamp: a.RequestedAt, OperationType: op.Type, ApprovalID: string(a.ID),
		Reason: a.Question.Why, Details: &raw,
	}
}
