package executor

import (
	"context"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// ask suspends the run and records the question about its operation, in one commit.
func (r *ride) ask(ctx context.Context, t task) error {
	approval := id.New[id.Approval](r.x.IDs)
	d := t.ruling.Decision
	suspended := r.event(run.EventSuspended, t.action.Step, run.Suspended{
		Run: r.doc.ID, Operation: t.op.ID, Index: t.index, Approval: approval, Reason: d.ReasonCode,
	})
	question, err := r.x.Gate.Ask(ctx, r.origin, t.ruling, policy.Ask{Approval: approval, AgentWords: r.lastWords(t.index)}, r.batch(suspended))
	if err != nil {
		return r.refuse(ctx, t, err)
	}
	if err := r.reload(ctx); err != nil {
		return err
	}
	r.frame(ctx, livestreamResult, t.op.ID, r.x.required(t.op, question))
	return nil
}

// lastWords are what the agent said right before the operation: its own account of it.
func (r *ride) lastWords(index int) string {
	if index > 0 && r.ops[index-1].Type == run.OpMessage {
		return r.ops[index-1].Content
	}
	return ""
}

// answer looks whether the question that the run waits for has been answered, and resumes the run if so.
func (r *ride) answer(ctx context.Context) (bool, error) {
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
	resumed := run.Resumed{Run: r.doc.ID, Operation: p.ID, Index: index, Approval: approval, Answer: string(question.Status)}
	draft := event.New(run.EventResumed, origin, r.doc.Workspace, r.doc.Room, resumed).About(entitySpace, string(r.doc.Space)).In(r.doc.ID, p.Step)
	if question.Action != policy.RunContinue {
		return true, r.append(ctx, draft)
	}
	return true, r.goOn(ctx, question, draft)
}

// interrupted ends an operation whose outcome a crash hid, and asks a person whether the run goes on; both in one commit.
func (r *ride) interrupted(ctx context.Context, index int) error {
	t := task{index: index, op: r.ops[index], progress: r.doc.Operations[index]}
	unknown := run.Result{
		Type: run.ResUnknown, OperationType: t.op.Type,
		Reason:     "the daemon stopped while the operation ran; whether it took effect is not known",
		Suggestion: "look at the space's files before you go on; the operation is not repeated",
	}
	result, err := r.outcome(ctx, t, run.EventUnknown, &unknown)
	if err != nil {
		return err
	}
	s, err := r.x.Spaces.Space(ctx, r.doc.Workspace, r.doc.Space)
	if err != nil {
		return err
	}
	ruling, err := r.x.Gate.Judge(ctx, policy.Action{
		Type: policy.RunContinue, Workspace: r.doc.Workspace, Room: r.doc.Room, Principal: r.doc.Agent, Space: r.doc.Space, Run: r.doc.ID,
		Step: t.progress.Step, Operation: t.op.ID, Bundle: s.Bundle,
	})
	if err != nil {
		return err
	}
	if ruling.Decision.Outcome != policy.RequireApproval {
		if err := r.append(ctx, result); err != nil {
			return err
		}
		r.frame(ctx, livestreamResult, t.op.ID, unknown)
		return r.finish(ctx, run.EventFailed, r.origin, "an operation was interrupted, and going on was refused: "+ruling.Decision.Reason)
	}
	approval := id.New[id.Approval](r.x.IDs)
	suspended := r.event(run.EventSuspended, t.progress.Step, run.Suspended{
		Run: r.doc.ID, Operation: t.op.ID, Index: index, Approval: approval, Reason: ruling.Decision.ReasonCode,
	})
	ask := policy.Ask{Approval: approval, Unsealed: []string{"the outcome of " + t.op.Type + " " + t.op.ID + " is not known"}}
	if _, err := r.x.Gate.Ask(ctx, r.origin, ruling, ask, r.batch(result, suspended)); err != nil {
		return err
	}
	r.frame(ctx, livestreamResult, t.op.ID, unknown)
	return r.reload(ctx)
}

// goOn resumes a run after an interrupted operation, or ends it, as the person said.
func (r *ride) goOn(ctx context.Context, question policy.Approval, resumed event.Draft) error {
	if question.Status != policy.Approved {
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
	_, receipt, err := r.x.Gate.Begin(ctx, ruling, question.ID, r.batch(resumed))
	if err != nil {
		return err
	}
	return r.fold(receipt)
}

// follow wakes the workers of a workspace's runs when their questions are answered, from a place on, until ctx ends.
func (x *Executor) follow(ctx context.Context, ws id.Workspace, head uint64) {
	for e, err := range journal.Tail(ctx, x.Log, journal.Query{Workspace: ws, From: head + 1, Types: policy.AnswerEvents}) {
		if err != nil {
			if ctx.Err() == nil {
				x.Logger.Error("follow answers", "workspace", ws, "error", err)
			}
			return
		}
		if e.Run != "" {
			x.poke(e.Run)
		}
	}
}
