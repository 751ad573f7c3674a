package app

import (
	"context"
	"encoding/json"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/agents"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/runs/history"
)

// agentBefore returns a run of an agent, and its mission.
func agentBefore(ctx context.Context, a *App, ws id.Workspace, r id.Run) (run.Run, errand.Mission, error) {
	doc, err := a.Engines.Find(ctx, ws, r)
	if err != nil {
		return doc, errand.Mission{}, err
	}
	given, err := a.Engines.Given(ctx, doc)
	if err != nil {
		return doc, errand.Mission{}, err
	}
	m, ok := errand.ReadMission(given)
	switch {
	case ok:
		return doc, m, nil
	case doc.Redacted:
		return doc, m, errand.ErrForgotten
	}
	return doc, m, agents.ErrNoAgent
}

// earlier returns the record of a run that has ended, whose conversation another one goes on.
func (d *agentDesk) earlier(ctx context.Context, ws id.Workspace, r id.Run) (agents.Earlier, error) {
	doc, m, err := agentBefore(ctx, d.a, ws, r)
	if err != nil {
		return agents.Earlier{}, err
	}
	if !doc.Status.Ended() {
		return agents.Earlier{}, agents.ErrGoesOn
	}
	e := agents.Earlier{Task: m.Task, After: m.After, Answers: map[int]model.Answer{}}
	if e.Past, err = d.Past(ctx, errand.Work{Workspace: ws, Run: r}); err != nil {
		return e, err
	}
	for n := range e.Past {
		answer, answered, err := d.a.Models.Recorded(ctx, ws, r, n+1)
		if err != nil {
			return e, err
		}
		if answered {
			e.Answers[n] = answer
		}
	}
	return e, nil
}

// inSpace executes an operation in the space of an agent. People who watch the run see the operation, its question and its result.
func (d *agentDesk) inSpace(ctx context.Context, w errand.Work, call id.ToolCall, in id.Space, operation json.RawMessage) (errand.Outcome,
	error) {
	message, err := run.ParseOperations([]json.RawMessage{operation})
	if err != nil {
		return errand.Outcome{}, err
	}
	op := message.Operations[0]
	frames := d.a.Runs.Frames
	frames.Announce(ctx, w.Run, run.Outline{ID: string(call), Type: op.Type, Summary: op.Summary()})
	o, err := d.operate(ctx, w, call, in, operation, false, func(asked run.Run) {
		if index, approval := asked.Pending(); index >= 0 {
			if q, err := d.a.Runs.History.Question(ctx, asked, index, approval); err == nil {
				q.OperationID = string(call)
				frames.Result(ctx, w.Run, q.OperationID, q)
			}
		}
	})
	if err != nil || o.Child == "" {
		return o, err
	}
	child, err := d.a.Runs.History.Find(ctx, w.Workspace, o.Child)
	if err != nil {
		return o, err
	}
	told, err := d.a.Runs.History.Events(ctx, child)
	if err != nil {
		return o, err
	}
	for _, result := range told.Events {
		result.OperationID = string(call)
		frames.Result(ctx, w.Run, result.OperationID, result)
	}
	return o, nil
}

// refused shows people who watch the run that policy refuses a call, or asks a person about it, before it reaches the space.
func (d *agentDesk) refused(ctx context.Context, w errand.Work, tool string, c errand.TurnCall, no *engines.Refused) {
	operation := "call:" + c.Call
	if !d.once(w.Run, operation+" "+no.Decision.ReasonCode+" "+string(no.Approval)) {
		return // the loop asks again and again while a person has not answered
	}
	result := run.Result{Type: run.ResPolicyDenied, OperationID: operation, ReasonCode: no.Decision.ReasonCode, Reason: no.Decision.Reason}
	if no.Approval != "" {
		doc, err := d.a.Gate.Approvals.Get(ctx, w.Workspace, no.Approval)
		if err != nil {
			return
		}
		result = history.Required(run.Operation{ID: operation, Type: tool}, doc)
	}
	d.a.Runs.Frames.Result(ctx, w.Run, operation, result)
}

// once reports whether people who watch a run have not been told something yet.
func (d *agentDesk) once(r id.Run, what string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.told[r] == nil {
		d.told[r] = map[string]bool{}
	}
	before := d.told[r][what]
	d.told[r][what] = true
	return !before
}

// left forgets what was told of a run that this daemon works on no more.
func (d *agentDesk) left(w errand.Work) {
	d.mu.Lock()
	delete(d.told, w.Run)
	d.mu.Unlock()
	d.a.Servers.Left(w.Workspace, w.Run)
	d.done(w)
}
