package runs

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// execution is the work of a worker on one run: its record and its operations.
type execution struct {
	record
	ops      []run.Operation
	creation *creation // of a run that is not recorded yet; nil from then on
}

// step does the one thing that is next: record the run, start it, execute an operation, ask about it, or end the run.
func (r *execution) step(ctx context.Context) error {
	s, err := r.x.Spaces.Space(ctx, r.doc.Workspace, r.doc.Space)
	c := r.x.cancelled(r.entry)
	if err == nil && c == nil && r.creation == nil {
		c, err = r.x.orphaned(ctx, r.doc.Workspace, r.entry.parent)
	}
	switch {
	case r.creation != nil && (err != nil || c != nil || s.Status == space.Destroyed):
		return r.create(ctx) // the obstacle is checked again afterwards
	case err != nil:
		return err
	case c != nil:
		return r.finish(ctx, run.EventCancelled, c.origin, c.reason)
	case s.Status == space.Destroyed:
		return r.finish(ctx, run.EventFailed, r.origin, "the space was destroyed")
	case s.Pause != nil && r.creation != nil:
		return r.create(ctx)
	case s.Pause != nil && r.doc.Status != run.AwaitingApproval:
		return errPaused
	case r.doc.Status == run.Queued:
		return r.start(ctx, s)
	case r.doc.Status == run.AwaitingApproval:
		return nil
	case r.doc.Next >= len(r.ops):
		return r.finish(ctx, run.EventCompleted, r.origin, "")
	}
	if index := r.doc.Interrupted(); index >= 0 {
		return r.interrupted(ctx, index, s)
	}
	return r.operate(ctx, r.doc.Next, s)
}

// operate takes one operation through the gate and, if it may, into the world.
func (r *execution) operate(ctx context.Context, index int, s space.Space) error {
	t := task{index: index, op: r.ops[index], progress: r.doc.Operations[index]}
	if t.progress.State == run.Waiting && r.entry.announced != t.op.ID {
		r.x.Frames.Announce(ctx, r.doc.ID, outline(t.op))
	}
	if err := r.prepare(ctx, &t, s); err != nil {
		return r.conclude(ctx, t, failure(run.CategoryValidation, err))
	}
	if t.progress.State == run.Answered {
		return r.approved(ctx, t)
	}
	for {
		var err error
		if t.ruling, err = r.x.Gate.Judge(ctx, t.action); err != nil {
			return r.refuse(ctx, t, err)
		}
		switch d := t.ruling.Decision; {
		case d.Outcome == policy.Allow || d.Shadow:
			if err := r.perform(ctx, t, ""); fault.KindOf(err) != fault.Waiting {
				return err
			} // the standing approval that covered it ended a moment ago: it is judged anew
		case d.Outcome == policy.RequireApproval:
			if err := (command{r}).reachable(ctx, t); err != nil { // ask no person about an action that cannot happen
				return r.conclude(ctx, t, r.failed(ctx, &t, run.Result{Type: t.op.Type, Command: t.op.Command}, err))
			}
			return r.ask(ctx, t)
		default:
			return r.conclude(ctx, t, denial(t))
		}
	}
}

// approved goes on with an operation after a person has answered: with exactly the bytes that were asked about.
func (r *execution) approved(ctx context.Context, t task) error {
	question, _, err := projection.Load[policy.Approval](ctx, r.x.Docs, r.doc.Workspace, policy.ApprovalProjection,
		string(t.progress.Approval))
	if err != nil {
		return err
	}
	asked, err := askedAbout(question)
	if err != nil {
		return r.conclude(ctx, t, failure(run.CategoryPolicy, err))
	}
	t.action = asked
	if question.Status != policy.Approved {
		t.ruling = policy.Ruling{Action: asked}
		t.ruling.Decision = answerDecision(question)
		return r.conclude(ctx, t, denial(t))
	}
	t.ruling, err = r.x.Gate.Judge(ctx, asked)
	if err != nil {
		return r.refuse(ctx, t, err)
	}
	if d := t.ruling.Decision; d.Outcome == policy.Deny && !d.Shadow {
		return r.conclude(ctx, t, denial(t))
	}
	return r.perform(ctx, t, question.ID)
}

// askedAbout returns the action of a question. The document may use other escapes, so the canonical form counts.
func askedAbout(question policy.Approval) (policy.Action, error) {
	canonical, err := policy.Canonicalize(question.Request)
	if err != nil {
		return policy.Action{}, err
	}
	if event.DigestOf(canonical) != question.ActionHash {
		return policy.Action{}, policy.ErrPermitMismatch
	}
	return policy.ParseAction(canonical)
}

// answerDecision is the decision that a person's refusal, or silence, amounts to.
func answerDecision(a policy.Approval) policy.Decision {
	d := policy.Decision{Outcome: policy.Deny, Action: a.ActionHash, Bundle: a.Bundle, ReasonCode: policy.ReasonApprovalDenied,
		Reason: "a person refused it"}
	if a.Reason != "" {
		d.Reason = "a person refused it: " + a.Reason
	}
	d.Suggestion = "go on without it, or ask for something that changes less"
	if a.Status == policy.Expired {
		d.ReasonCode, d.Reason = policy.ReasonApprovalExpired, "nobody answered before the question expired"
		d.Suggestion = "ask again when somebody is there to answer"
	}
	return d
}

// perform obtains the permit, recording the intent of what changes anything or uses up an approval, causes the effect and records its
// result.
func (r *execution) perform(ctx context.Context, t task, approval id.Approval) error {
	var permit policy.Permit
	var err error
	if approval == "" && t.glances() {
		t.glanced = true
		permit, err = r.x.Gate.Glance(t.ruling)
	} else {
		permit, err = r.begin(ctx, t, approval)
	}
	if approval == "" && fault.KindOf(err) == fault.Waiting {
		return err
	}
	if err != nil {
		return r.refuse(ctx, t, err)
	}
	return r.apply(ctx, t, permit)
}

// apply causes the effect of an operation and records its result.
func (r *execution) apply(ctx context.Context, t task, permit policy.Permit) error {
	effect, release := r.x.effectContext(ctx, r.entry)
	result := r.effect(effect, &t, permit)
	if halt, ok := errors.AsType[policy.Halt](context.Cause(effect)); ok {
		t.halt = halt
	}
	release()
	if t.halt == nil && result.ReasonCode == policy.ReasonKillSwitch && r.x.Thrown != nil {
		t.halt = r.x.Thrown(r.doc.Workspace) // something on the way was refused, such as the start of the space
	}
	if ctx.Err() != nil && result.ReasonCode == errShutdown.Code {
		return r.stopped(ctx, t, result)
	}
	if t.halt != nil && result.ReasonCode == policy.ReasonKillSwitch {
		t.cause = t.halt.Event() // the effect has ended; its end is recorded behind the throw
	}
	return r.conclude(ctx, t, result)
}

// begin records the intent of an operation and returns its permit.
func (r *execution) begin(ctx context.Context, t task, approval id.Approval) (policy.Permit, error) {
	var permit policy.Permit
	record := func(expect []event.DocumentVersion) (receipt event.Receipt, err error) {
		batch := r.batch(r.intent(t, approval))
		batch.Documents = append(batch.Documents, expect...)
		permit, receipt, err = r.x.Gate.Begin(ctx, t.ruling, approval, batch)
		return receipt, err
	}
	begin := func() (event.Receipt, error) { return record(nil) }
	if r.doc.Parent != nil { // either its beginning or the end of its parent comes first
		begin = func() (event.Receipt, error) { return r.inSlot(ctx, record) }
	}
	receipt, err := begin()
	if err != nil {
		return policy.Permit{}, err
	}
	return permit, r.fold(receipt)
}

// intent drafts tool.invoked. It leaves out the values of the space's environment: every command has them, so they tell nothing new.
func (r *execution) intent(t task, approval id.Approval) event.Draft {
	d := t.ruling.Decision
	draft := r.event(run.EventInvoked, t.action.Step, run.Invoked{
		Run: r.doc.ID, Operation: t.op.ID, Index: t.index, Tool: t.op.Type, Title: t.op.Summary(), Input: t.ruling.Canonical,
		Action: d.Action, Decision: d.Outcome.String(), Reason: d.ReasonCode, Approval: approval,
	})
	clean, found := leak.Values(t.env, t.op.Env).Scan(draft.Data)
	if len(found) > 0 {
		draft.Data, draft.Redaction, draft.ContainsSecrets = clean, event.RedactPartial, true
	}
	return draft
}

// refuse turns an error of the gate into the operation's result: the action was not allowed, so it does not happen. Only a log that cannot
// be written stops the run where it is.
func (r *execution) refuse(ctx context.Context, t task, err error) error {
	if errors.Is(err, journal.ErrConflict) {
		return err
	}
	switch fault.KindOf(err) {
	case fault.Denied, fault.Waiting, fault.Invalid, fault.NotFound, fault.Conflict, fault.Exhausted:
		d := &t.ruling.Decision
		t.ruling.Action = t.action
		d.Outcome, d.ReasonCode, d.Reason, d.Suggestion, d.Policies = policy.Deny, fault.CodeOf(err), message(err), suggestion(err), nil
		return r.conclude(ctx, t, denial(t))
	}
	return err
}

// conclude records the one result event of an operation and shows it to the viewers.
func (r *execution) conclude(ctx context.Context, t task, result run.Result) error {
	defer r.x.Blobs.Hold()() // protects the stored parts of a long result until its event names them
	typ := run.EventErred
	if result.OK() {
		typ = run.EventSucceeded
	}
	if begun := r.doc.Operations[t.index].BegunAt; !begun.IsZero() && r.x.Clock.Now().Sub(begun) >= worthSyncing {
		r.x.Frames.Sync(ctx, r.doc.ID)
	}
	if result.Type == run.ResPolicyDenied && t.ruling.Decision.Outcome != policy.Deny { // it was allowed, and refused at the last moment
		d := &t.ruling.Decision
		d.Outcome, d.ReasonCode, d.Reason, d.Suggestion = policy.Deny, result.ReasonCode, result.Reason, result.Suggestion
	}
	found := r.hide(&t, &result)
	shown := r.artifacts(ctx, t, &result)
	draft, err := r.outcome(ctx, t, typ, &result)
	if err != nil {
		return err
	}
	told := r.x.withFindings(found, true, draft)
	drafts := slices.Concat(shown, told)
	refused := result.Type == run.ResPolicyDenied || t.glanced && t.ruling.Decision.Shadow // the gate recorded the rest that shadow let pass
	if refused && !t.ruling.Decision.Action.IsZero() {
		// an action without a canonical form has no hash to find it by
		drafts = append(drafts, policy.RefusedDraft(r.origin, t.ruling))
	}
	ends := r.endsWith(t)
	if ends { // the outcome of the run is known as well: one commit, and one wait for the disk
		outcome := run.EventCompleted
		if t.fails != "" {
			outcome = run.EventFailed
		}
		kept, gathered := r.gather(ctx, cmp.Or(t.action.Step, t.progress.Step))
		drafts = append(slices.Concat(drafts, kept), r.ended(outcome, r.origin, t.fails, result.OK(), gathered))
	}
	if err := r.append(ctx, drafts...); err != nil {
		return err
	}
	if !ends {
		r.x.Frames.Result(ctx, r.doc.ID, t.op.ID, result)
		return nil
	}
	r.x.Frames.LastResult(ctx, r.doc.ID, t.op.ID, result)
	r.complete(ctx)
	return nil
}

// worthSyncing is the least duration of an operation whose live output is made durable before its result is recorded. The result holds all
// the output. So a shorter operation loses only the order and timing of its output, and only if the host fails before it has written the
// file.
const worthSyncing = time.Second

// endsWith reports whether nothing of the run is left to do or to decide after an operation.
func (r *execution) endsWith(t task) bool {
	_, approval := r.doc.Pending()
	return t.index == len(r.ops)-1 && r.doc.Next == t.index && approval == "" && r.entry != nil && r.x.cancelled(r.entry) == nil
}
