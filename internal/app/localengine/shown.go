package localengine

import (
	"context"
	"encoding/json"
	"strings"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/agents"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/runs/history"
	"agentbox/internal/service/tools"
)

// earlier returns the record of a run that has ended, whose conversation another one goes on.
func (d *agentDesk) earlier(ctx context.Context, ws id.Workspace, r id.Run) (agents.Earlier, error) {
	doc, m, err := d.mission(ctx, ws, r)
	if err != nil {
		return agents.Earlier{}, err
	}
	if !doc.Status.Ended() {
		return agents.Earlier{}, agents.ErrGoesOn
	}
	e := agents.Earlier{Task: m.Task, Pictures: m.Pictures, After: m.After, Protocol: m.Protocol, Answers: map[int]model.Answer{}}
	if e.Past, err = d.Past(ctx, errand.Work{Workspace: ws, Run: r}); err != nil {
		return e, err
	}
	for n := range e.Past {
		answer, answered, err := d.Models.Recorded(ctx, ws, r, n+1)
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
	frames := d.Runs.Frames
	frames.Announce(ctx, w.Run, run.Outline{ID: string(call), Type: op.Type, Summary: op.Summary()})
	o, err := d.operate(ctx, w, call, in, operation, false, func(asked run.Run) {
		if index, approval := asked.Pending(); index >= 0 {
			if q, err := d.Runs.History.Question(ctx, asked, index, approval); err == nil {
				q.OperationID = string(call)
				d.question(ctx, w, q)
			}
		}
	})
	if err != nil || o.Child == "" {
		return o, err
	}
	child, err := d.Runs.History.Find(ctx, w.Workspace, o.Child)
	if err != nil {
		return o, err
	}
	told, err := d.Runs.History.Events(ctx, child)
	if err != nil {
		return o, err
	}
	for _, result := range told.Events {
		result.OperationID = string(call)
		frames.Result(ctx, w.Run, result.OperationID, result)
	}
	o.Worked = workedIn(told.Events)
	return o, nil
}

// announce shows people who watch the run that a tool of the daemon is called, once.
func (u use) announce(ctx context.Context) error {
	begun, _, err := u.shown(ctx)
	if err == nil && !begun && u.once(u.work.Run, "begun "+string(u.call)) {
		u.Runs.Frames.Announce(ctx, u.work.Run, run.Outline{ID: string(u.call), Type: u.name, Summary: tools.Summary(u.args)})
	}
	return err
}

// shown reports what people who watch the run have been shown of the call by an engine that had the run before.
func (u use) shown(ctx context.Context) (begun, ended bool, err error) {
	call, err := u.Engines.Look.Call(ctx, u.work.Workspace, u.call)
	if err != nil || call.Fence == u.work.Fence {
		return false, false, err
	}
	return u.Runs.Frames.Shows(ctx, u.work.Run, string(u.call))
}

// show shows people who watch the run what came of a call of a tool of the daemon, once.
func (u use) show(ctx context.Context, o errand.Outcome) error {
	_, ended, err := u.shown(ctx)
	if err != nil || ended || !u.once(u.work.Run, "ended "+string(u.call)) {
		return err
	}
	result := run.Result{Type: u.name, OperationID: string(u.call), Timestamp: u.Clock.Now().UTC(), Success: new(o.OK)}
	switch {
	case o.Status == errand.Refused:
		result.Type, result.Success, result.OperationType = run.ResPolicyDenied, nil, u.name
		result.ReasonCode, result.Reason, result.Suggestion = o.Code, o.Reason, o.Instead
	case o.OK:
		result.Content = new(o.Text)
	default:
		result.Error, _, _ = strings.Cut(o.Text, "\n")
	}
	u.Runs.Frames.Result(ctx, u.work.Run, result.OperationID, result)
	return nil
}

// refused shows people who watch the run that policy refuses a call, or asks a person about it, before it reaches the space.
func (d *agentDesk) refused(ctx context.Context, w errand.Work, tool string, c errand.TurnCall, no *engines.Refused) {
	operation := "call:" + c.Call
	if !d.once(w.Run, operation+" "+no.Decision.ReasonCode+" "+string(no.Approval)) {
		return // the loop asks again and again while a person has not answered
	}
	result := run.Result{Type: run.ResPolicyDenied, OperationID: operation, ReasonCode: no.Decision.ReasonCode, Reason: no.Decision.Reason}
	if no.Approval != "" {
		doc, err := d.Gate.Approvals.Get(ctx, w.Workspace, no.Approval)
		if err != nil {
			return
		}
		d.question(ctx, w, history.Required(run.Operation{ID: operation, Type: tool}, doc))
		return
	}
	d.Runs.Frames.Result(ctx, w.Run, operation, result)
}

// question shows a question to people who watch the run, or a run for which it works.
func (d *agentDesk) question(ctx context.Context, w errand.Work, q run.Result) {
	d.Runs.Frames.Result(ctx, w.Run, q.OperationID, q)
	m, ok := errand.ReadMission(w.Input)
	if !ok || m.Lineage == nil {
		return
	}
	for _, above := range m.Lineage.Above {
		d.Runs.Frames.Result(ctx, above.Run, q.OperationID, q)
	}
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
	d.Servers.Left(w.Workspace, w.Run)
	d.done(w)
}
