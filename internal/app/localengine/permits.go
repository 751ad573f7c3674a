package localengine

import (
	"context"
	"encoding/json"
	"errors"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/external"
	"agentbox/internal/service/gate/approvals"
	"agentbox/internal/service/runs/history"
)

// useKind is the kind of the step of a question about a tool that no turn has led to.
const useKind = "tool_use"

// used is the input of the tool call that records a question about a tool.
type used struct {
	Call   string          `json:"call_id"`          // the program's name of it
	Input  json.RawMessage `json:"input,omitempty"`  // without secrets; left out where it is too long to be shown
	Digest event.Digest    `json:"input_sha256"`     // as the program sent it
	Size   int64           `json:"input_size_bytes"` // as the program sent it
}

// inputOf returns the record of a question: its input without the secrets that are known.
func inputOf(u external.Use, env map[string]string) (used, error) {
	r := used{Call: u.ID, Digest: event.DigestOf(u.Input), Size: int64(len(u.Input))}
	clean, _ := leak.Values(env).Scan(u.Input)
	clean, err := policy.Canonicalize(clean)
	if err == nil && len(clean) <= policy.MaxRequestBytes {
		r.Input = clean
	}
	return r, err
}

// commandIn returns the command in the input of a tool that runs one; "" of any other. One that is no text is returned as JSON.
func commandIn(input json.RawMessage) string {
	var said struct {
		Command json.RawMessage `json:"command"`
		Cmd     json.RawMessage `json:"cmd"`
	}
	if json.Unmarshal(input, &said) != nil {
		return ""
	}
	raw := said.Command
	if len(raw) == 0 {
		raw = said.Cmd
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return string(raw)
	}
	return text
}

// denial returns the decision for a refusal of the gate.
func denial(reason, suggestion string) external.Decision {
	if suggestion != "" {
		reason += ". " + suggestion
	}
	return external.Decision{Reason: reason}
}

// denied returns the decision for an error of the gate; false for an error that is no decision.
func denied(err error) (external.Decision, bool) {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Denied && f.Kind != fault.Exhausted && f.Kind != fault.Invalid {
		return external.Decision{}, false
	}
	return denial(f.Msg, f.Suggestion), true
}

// Permit implements external.Records.
func (d *externalDesk) Permit(ctx context.Context, w errand.Work, c external.Cause, u external.Use) (external.Decision, error) {
	var none external.Decision
	program, err := d.Engines.Look.Call(ctx, w.Workspace, c.Program)
	if err != nil {
		return none, err
	}
	child, err := d.Runs.History.Find(ctx, w.Workspace, program.Child)
	if err != nil {
		return none, err
	}
	in, err := d.Spaces.Catalog.Space(ctx, w.Workspace, child.Space)
	if err != nil {
		return none, err
	}
	env, err := d.Spaces.Variables.Values(in) // without its values nobody can keep them out of the question
	if err != nil {
		return none, err
	}
	input, err := inputOf(u, env)
	if err != nil {
		if refused, ok := denied(err); ok {
			return refused, nil
		}
		return none, err
	}
	raw, err := json.Marshal(input)
	if err != nil {
		return none, err
	}
	if c.Step == "" {
		s, err := d.Engines.Steps.Add(ctx, d.origin(), d.hold(w), engines.StepRequest{Kind: useKind, Title: c.Tool})
		if err != nil {
			return none, err
		}
		c.Step = s.ID
	}
	call, no, err := d.Engines.Steps.Invoke(ctx, d.origin(), w.Workspace, w.Token, engines.CallRequest{Step: c.Step, Tool: c.Tool,
		Input: raw})
	if no != nil {
		return denial(no.Decision.Reason, no.Decision.Suggestion), nil
	}
	if err != nil {
		if refused, ok := denied(err); ok {
			return refused, nil
		}
		return none, err
	}
	by := engines.Shown{Token: w.Token, Permit: d.Engines.Permits.OfCall(w.Workspace, call)}
	action := policy.Action{
		Type: policy.AgentTool, Workspace: w.Workspace, Room: child.Room, Principal: child.Agent, Token: child.Token, Space: child.Space,
		Run: w.Run, Step: c.Step, Operation: string(call.ID), Tool: c.Tool, Content: input.Digest, Size: input.Size, Request: input.Input,
		Command: commandIn(input.Input),
	}
	if child.Token != "" { // it is bound to its holder, who is never a person that answers
		action.Principal = child.CreatedBy
	}
	decided, code, err := d.decide(ctx, w, action)
	o := errand.Outcome{Status: "permitted", OK: true}
	switch {
	case err != nil:
		o = errand.Outcome{Status: "abandoned", Reason: "nobody waits for the answer any more"}
	case !decided.Allow:
		o = errand.Outcome{Status: errand.Refused, Code: code, Reason: decided.Reason}
	}
	return decided, errors.Join(err, d.answered(context.WithoutCancel(ctx), w, by, call.ID, o, err != nil))
}

// answered records the answer to a question as the end of its call. A call that is abandoned may be one of a run that has ended, of which
// the record says as much already.
func (d *externalDesk) answered(ctx context.Context, w errand.Work, by engines.Shown, call id.ToolCall, o errand.Outcome,
	abandoned bool) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if o.OK {
		_, err = d.Engines.Steps.Succeed(ctx, d.origin(), w.Workspace, by, call, raw)
		return err
	}
	_, err = d.Engines.Steps.Fail(ctx, d.origin(), w.Workspace, by, call, raw, "the program may not use its tool")
	if abandoned {
		return nil
	}
	return err
}

// decide asks the gate about an action until it is decided. While a person is asked it waits. It returns the code of a refusal.
func (d *externalDesk) decide(ctx context.Context, w errand.Work, a policy.Action) (_ external.Decision, code string, err error) {
	origin := event.Origin{Principal: a.Principal, Token: a.Token}
	client := policy.Client{Gate: d.Gate, Append: d.Log.Append}
	var asked id.Approval
	defer func() {
		if err != nil || code != "" {
			err = errors.Join(err, d.withdraw(context.WithoutCancel(ctx), origin, w, asked))
		}
	}()
	for {
		ruling, approval, err := client.Ask(ctx, origin, a)
		if err == nil {
			// The answer is recorded before the program hears of it. Its effect is in the space, which bounds it.
			_, _, err = d.Gate.Begin(ctx, ruling, approval, event.Batch{Workspace: w.Workspace})
		}
		if err == nil {
			return external.Decision{Allow: true}, "", nil
		}
		if ctx.Err() != nil {
			return external.Decision{}, "", context.Cause(ctx)
		}
		wait := errand.Again
		switch kind := fault.KindOf(err); {
		case kind == fault.Waiting:
			if approval != asked {
				asked = approval
				d.shown(ctx, w, a, approval)
			}
			wait = errand.Ask
		case kind == fault.Unavailable, journal.Lost(err):
		default:
			if refused, ok := denied(err); ok {
				d.Runs.Frames.Result(ctx, w.Run, a.Operation, run.Result{Type: run.ResPolicyDenied, OperationID: a.Operation,
					ReasonCode: fault.CodeOf(err), Reason: refused.Reason})
				return refused, fault.CodeOf(err), nil
			}
			return external.Decision{}, "", err
		}
		if !errand.Pause(ctx, d.Clock, wait) {
			return external.Decision{}, "", context.Cause(ctx)
		}
	}
}

// shown shows people who watch the run that a question waits for one of them.
func (d *externalDesk) shown(ctx context.Context, w errand.Work, a policy.Action, approval id.Approval) {
	doc, err := d.Gate.Approvals.Get(ctx, w.Workspace, approval)
	if err != nil {
		return // the list of questions has it
	}
	frames := d.Runs.Frames
	frames.Announce(ctx, w.Run, run.Outline{ID: a.Operation, Type: a.Tool, Summary: policy.Title(a)})
	frames.Result(ctx, w.Run, a.Operation, history.Required(run.Operation{ID: a.Operation, Type: a.Tool}, doc))
}

// withdraw takes a question back for which nobody waits any more. One that was answered stays as it is.
func (d *externalDesk) withdraw(ctx context.Context, origin event.Origin, w errand.Work, asked id.Approval) error {
	if asked == "" {
		return nil
	}
	_, err := d.Gate.Withdraw(ctx, origin, asked, "the program does not wait for it any more", event.Batch{Workspace: w.Workspace})
	if fault.CodeOf(err) == policy.ErrAlreadyDecided.Code {
		return nil
	}
	return err
}

// Withdraw implements external.Records.
func (d *externalDesk) Withdraw(ctx context.Context, w errand.Work) error {
	for _, status := range []policy.ApprovalStatus{policy.Pending, policy.Held} {
		open, err := d.Gate.Approvals.List(ctx, w.Workspace, approvals.Filter{Run: w.Run, Status: status, Limit: 1000})
		if err != nil {
			return err
		}
		for _, q := range open {
			if err := d.withdraw(ctx, event.Origin{Principal: q.RequestedBy}, w, q.ID); err != nil {
				return err
			}
		}
	}
	return nil
}
