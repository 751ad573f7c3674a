package runs

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/runs/history"
)

// ask suspends the run and records the question about its operation, in one commit.
func (r *execution) ask(ctx context.Context, t task) error {
	approval := id.New[id.Approval](r.x.IDs)
	d := t.ruling.Decision
	suspended := r.event(run.EventSuspended, t.action.Step, run.Suspended{
		Run: r.doc.ID, Operation: t.op.ID, Index: t.index, Approval: approval, Reason: d.ReasonCode,
		Background: r.doc.Background,
	})
	question, err := r.x.Gate.Ask(ctx, r.origin, t.ruling, policy.Ask{Approval: approval, AgentWords: r.lastWords(t.index)},
		r.batch(suspended))
	if fault.CodeOf(err) == decisionChanged {
		return nil // it is judged again
	}
	if err != nil {
		return r.refuse(ctx, t, err)
	}
	if err := r.reload(ctx); err != nil {
		return err
	}
	r.x.Frames.Result(ctx, r.doc.ID, t.op.ID, history.Required(t.op, question))
	return nil
}

// decisionChanged is the code of a question that was not asked because the decision is another by now.
const decisionChanged = "decision_changed"

// lastWords returns the agent's last message before the operation: its own account of it.
func (r *execution) lastWords(index int) string {
	if index > 0 && r.ops[index-1].Type == run.OpMessage {
		return r.ops[index-1].Content
	}
	return ""
}

// resume looks whether the question that the run waits for has been answered, and resumes the run if so.
func (r *execution) resume(ctx context.Context) (bool, error) {
	index, approval := r.doc.Pending()
	if index < 0 {
		return false, nil
	}
	question, _, err := projection.Load[policy.Approval](ctx, r.x.Docs, r.doc.Workspace, policy.ApprovalProjection, string(approval))
	if err != nil {
		return false, err
	}
	switch question.Status {
	case policy.Approved, policy.Denied, policy.Expired:
	default:
		return false, nil
	}
	origin := r.origin
	if question.DecidedBy != "" {
		origin.Principal = question.DecidedBy
	}
	p := r.doc.Operations[index]
	resumed := run.Resumed{Run: r.doc.ID, Operation: p.ID, Index: index, Approval: approval, Answer: string(question.Status),
		Child: r.doc.Parent != nil, Background: r.doc.Background}
	draft := event.New(run.EventResumed, origin, r.doc.Workspace, r.doc.Room, resumed).About(entitySpace, string(r.doc.Space)).In(r.doc.ID,
		p.Step)
	draft.Follows = event.Subject{Type: policy.ApprovalEntity, ID: string(approval)}
	if question.Action != policy.RunContinue {
		return true, r.appendInSlot(ctx, draft)
	}
	return true, r.continueRun(ctx, question, draft)
}

// errHeld means that the kill switch keeps a run from being asked about, or from going on: it stays as it is until the switch is lifted.
var errHeld = fault.New(fault.Waiting, policy.ReasonKillSwitch, "the kill switch is thrown; the run waits until it is lifted")

// interrupted ends an operation whose outcome a crash hid, and asks a person whether the run goes on.
func (r *execution) interrupted(ctx context.Context, index int, s space.Space) error {
	if r.doc.Background { // nothing follows that a person could decide about
		return r.finish(ctx, run.EventFailed, r.origin, "the daemon stopped while the command ran")
	}
	t := r.unfinished(index)
	t.action.Bundle = s.Bundle
	why := "the outcome of " + t.op.Type + " " + t.op.ID + " is not known: " + policy.Escape(t.progress.Summary)
	return r.askToContinue(ctx, t, run.EventUnknown, unknownResult(t.progress), why)
}

// stopped ends an operation that was cut off by the end of the daemon. It asks a person whether the run continues, because the next
// operation may build on the unfinished one. An operation that only reads is repeated after the next start instead. If nobody can be asked,
// its intent stays without an outcome, as after a crash.
func (r *execution) stopped(ctx context.Context, t task, result run.Result) error {
	if r.doc.Interrupted() != t.index {
		return ctx.Err()
	}
	late := context.WithoutCancel(ctx)
	r.x.Frames.Sync(late, r.doc.ID)
	t.progress = r.doc.Operations[t.index]
	if r.doc.Background {
		t.fails = result.Error
		return errors.Join(r.conclude(late, t, result), ctx.Err())
	}
	why := t.op.Type + " " + t.op.ID + " was ended before it was done, because the daemon was stopped: " + policy.Escape(t.progress.Summary)
	if err := r.askToContinue(late, t, run.EventErred, &result, why); err != nil {
		r.x.Logger.Warn("ask whether a run goes on; the next start does", "code", "run_not_asked_about", "run", r.doc.ID, "error", err)
	}
	return ctx.Err()
}

// askToContinue records the result of an operation that was interrupted, and the question whether the run goes on, in one commit.
func (r *execution) askToContinue(ctx context.Context, t task, typ string, outcome *run.Result, why string) error {
	ruling, err := r.x.Gate.Judge(ctx, policy.Action{
		Type: policy.RunContinue, Workspace: r.doc.Workspace, Room: r.doc.Room, Principal: r.doc.Agent, Token: r.doc.Token, Space: r.doc.Space,
		Run:  r.doc.ID,
		Step: t.progress.Step, Operation: t.op.ID, Bundle: t.action.Bundle,
	})
	if err != nil {
		return err
	}
	if ruling.Decision.Outcome == policy.Deny && ruling.Decision.ReasonCode == policy.ReasonKillSwitch {
		return errHeld
	}
	if d := ruling.Decision; d.Outcome != policy.RequireApproval {
		return r.finish(ctx, run.EventFailed, r.origin, "an operation was interrupted, and going on was refused: "+d.Reason)
	}
	found := r.hide(&t, outcome)
	result, err := r.outcome(ctx, t, typ, outcome)
	if err != nil {
		return err
	}
	told := r.x.withFindings(found, true, result)
	approval := id.New[id.Approval](r.x.IDs)
	suspended := r.event(run.EventSuspended, t.progress.Step, run.Suspended{
		Run: r.doc.ID, Operation: t.op.ID, Index: t.index, Approval: approval, Reason: ruling.Decision.ReasonCode,
	})
	question, err := r.x.Gate.Ask(ctx, r.origin, ruling, policy.Ask{Approval: approval, Unsealed: []string{why}},
		r.batch(append(told, suspended)...))
	switch {
	case fault.CodeOf(err) == decisionChanged:
		return nil // it is judged again
	case fault.CodeOf(err) == policy.ReasonKillSwitch:
		return errHeld
	case err != nil:
		return err
	}
	r.x.Frames.Result(ctx, r.doc.ID, t.op.ID, *outcome)
	r.x.Frames.Result(ctx, r.doc.ID, t.op.ID, history.Required(t.op, question))
	return r.reload(ctx)
}

// continueRun resumes a run after an interrupted operation, or ends it, as the person said.
func (r *execution) continueRun(ctx context.Context, question policy.Approval, resumed event.Draft) error {
	if question.Status != policy.Approved { // it takes a place for as long as it takes to end
		if err := r.append(ctx, resumed); err != nil {
			return err
		}
		return r.finish(ctx, run.EventCancelled, r.origin, "an operation was interrupted, and nobody let the run go on")
	}
	action, err := askedAbout(question)
	if err != nil {
		return err
	}
	ruling, err := r.x.Gate.Judge(ctx, action)
	if err != nil {
		return err
	}
	receipt, err := r.inSlot(ctx, func(place []event.DocumentVersion) (event.Receipt, error) {
		batch := r.batch(resumed)
		batch.Documents = append(batch.Documents, place...)
		_, receipt, err := r.x.Gate.Begin(ctx, ruling, question.ID, batch)
		return receipt, err
	})
	switch {
	case err == nil:
		return r.fold(receipt)
	case fault.CodeOf(err) == policy.ReasonKillSwitch:
		return errHeld // the answer stands, and is used when the switch is lifted
	case fault.KindOf(err) == fault.Denied:
		return r.finish(ctx, run.EventFailed, r.origin, "an operation was interrupted, and going on was refused: "+message(err))
	}
	return err
}
