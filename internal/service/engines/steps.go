package engines

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
)

// Steps records what an engine does within a run: its steps and its tool calls.
type Steps struct{ service *Service }

// StepRequest is a step that an engine begins.
type StepRequest struct {
	Kind  string          // a word
	Title string          // at most step.MaxTitle characters
	Input json.RawMessage // any JSON of at most step.MaxValue bytes, or nil
}

// Add records a step of a run.
func (st *Steps) Add(ctx context.Context, origin event.Origin, h Hold, q StepRequest) (step.Step, error) {
	if q.Kind == "" {
		return step.Step{}, step.ErrMissingKind
	}
	if err := either(word("kind", q.Kind), either(texts(text{"title", q.Title, step.MaxTitle}), fits("input", q.Input,
		step.MaxValue))); err != nil {
		return step.Step{}, err
	}
	s := id.New[id.Step](st.service.IDs)
	_, receipt, err := st.service.record(ctx, origin, h, func(doc run.Run) (entry, error) {
		if doc.Status != run.Running {
			return entry{}, run.ErrNotRunning
		}
		created := step.Created{Step: s, Run: doc.ID, Kind: q.Kind, Title: q.Title, Input: q.Input, Fence: doc.Fence}
		return entry{
			action: policy.Action{Type: policy.StepCreate, Content: digest(q.Kind, q.Title, q.Input)},
			drafts: []event.Draft{draft(step.EventCreated, origin, doc, created).About(step.EntityType, string(s)).In(doc.ID, s)},
			expect: []event.DocumentVersion{{Projection: step.Projection, Key: string(s)}},
		}, nil
	})
	if err = running(err); err != nil {
		return step.Step{}, err
	}
	return step.Step{}.Evolve(receipt.Events[0])
}

// CallRequest is a call of a tool that an engine is about to make.
type CallRequest struct {
	Step  id.Step
	Tool  string          // a word
	Title string          // at most step.MaxTitle characters
	Input json.RawMessage // any JSON of at most step.MaxValue bytes, or nil
	Agent id.Principal    // for whom it is made; "" for who records it
	Token id.Token        // the capability token under which it is made
	Zone  event.Zone      // "" for event.Supervised
}

// Refused is a tool call that may not be made, or not yet.
type Refused struct {
	Decision policy.Decision
	Approval id.Approval // the question that a person has to answer, where one has
}

// Invoke asks the gate whether a tool may be called, and records the call if it may. Otherwise Refused says why, and only the refusal is
// recorded.
func (st *Steps) Invoke(ctx context.Context, origin event.Origin, ws id.Workspace, token string, q CallRequest) (step.Call, *Refused,
	error) {
	if q.Tool == "" {
		return step.Call{}, nil, step.ErrMissingTool
	}
	switch q.Zone {
	case "", event.Sandbox, event.Supervised, event.HighStakes:
	default:
		return step.Call{}, nil, fault.New(fault.Invalid, "invalid_zone", "zone is sandbox, supervised or high_stakes, not %.32q", q.Zone)
	}
	if err := either(word("tool_name", q.Tool), either(texts(text{"title", q.Title, step.MaxTitle}), fits("input", q.Input,
		step.MaxValue))); err != nil {
		return step.Call{}, nil, err
	}
	s, err := st.service.Look.Step(ctx, ws, q.Step)
	if err != nil {
		return step.Call{}, nil, err
	}
	if q.Token != "" {
		origin.Token = q.Token // under which it is done, and recorded
	}
	var decided policy.Decision
	call := id.New[id.ToolCall](st.service.IDs)
	_, receipt, err := st.service.record(ctx, origin, Hold{Workspace: ws, Run: s.Run, Token: token}, func(doc run.Run) (entry, error) {
		if doc.Status != run.Running {
			return entry{}, run.ErrNotRunning
		}
		a := policy.Action{
			Type: policy.ToolCall, Workspace: ws, Room: doc.Room, Principal: q.Agent, Token: origin.Token, Run: doc.ID, Step: s.ID, Fence: doc.Fence,
			Tool: q.Tool, Content: digest(q.Title, q.Input), Size: int64(len(q.Input)),
		}
		if a.Principal == "" {
			a.Principal = origin.Principal
		}
		ruling, err := st.service.Gate.Judge(ctx, a)
		if err != nil {
			return entry{}, err
		}
		decided = ruling.Decision
		if err := st.halted(ruling); err != nil {
			return entry{}, err
		}
		invoked := step.Invoked{
			Call: call, Run: doc.ID, Tool: q.Tool, Title: q.Title, Input: q.Input, Agent: q.Agent, Fence: doc.Fence,
			Action: decided.Action, Decision: decided.Outcome.String(), Reason: decided.ReasonCode,
		}
		intent := draft(step.EventInvoked, origin, doc, invoked).About(step.CallEntity, string(call)).In(doc.ID, s.ID)
		if q.Zone != "" {
			intent.Zone = q.Zone
		}
		return entry{action: a, drafts: []event.Draft{intent}, expect: []event.DocumentVersion{{Projection: step.CallProjection,
			Key: string(call)}}}, nil
	})
	if why := refused(decided, err); why != nil {
		return step.Call{}, why, nil
	}
	if err = running(err); err != nil {
		return step.Call{}, nil, err
	}
	c, err := step.Call{}.Evolve(receipt.Events[0])
	return c, nil, err
}

// halted refuses a tool call that the kill switch has refused before. A client that waits until the switch is lifted asks every other
// second, and the log needs the refusal only once.
func (st *Steps) halted(r policy.Ruling) error {
	if r.Decision.Outcome != policy.Deny || r.Decision.ReasonCode != policy.ReasonKillSwitch {
		return nil
	}
	of, now := string(r.Action.Workspace)+" "+string(r.Action.Step)+" "+r.Decision.Action.String(), st.service.passed()
	if st.service.denials.last(of, now) {
		return fault.New(fault.Denied, r.Decision.ReasonCode, "%s", r.Decision.Reason)
	}
	st.service.denials.until(of, now+denialTime)
	return nil
}

// refused returns the gate's refusal of a tool call; nil if the error has another cause.
func refused(decided policy.Decision, err error) *Refused {
	kind := fault.KindOf(err)
	if err == nil || decided.Allowed() || kind != fault.Denied && kind != fault.Waiting {
		return nil
	}
	r := &Refused{Decision: decided}
	if asked, ok := asAsked(err); ok {
		r.Approval = asked.Approval
	}
	if code := fault.CodeOf(err); code == policy.ReasonApprovalDenied || code == policy.ReasonApprovalExpired {
		r.Decision.Outcome, r.Decision.ReasonCode, r.Decision.Reason = policy.Deny, code, message(err) // a person has decided
	}
	return r
}

// Succeed records that a tool call succeeded. The output is any JSON of at most step.MaxValue bytes, or nil.
func (st *Steps) Succeed(ctx context.Context, origin event.Origin, ws id.Workspace, by Shown, c id.ToolCall,
	output json.RawMessage) (step.Call, error) {
	if err := fits("output", output, step.MaxValue); err != nil {
		return step.Call{}, err
	}
	return st.conclude(ctx, origin, ws, by, step.EventSucceeded, step.Ended{Call: c, Output: output})
}

// Fail records that a tool call failed. The error is any JSON of at most step.MaxValue bytes, or nil.
func (st *Steps) Fail(ctx context.Context, origin event.Origin, ws id.Workspace, by Shown, c id.ToolCall, why json.RawMessage,
	message string) (step.Call, error) {
	if err := either(fits("error", why, step.MaxValue), texts(text{"message", message, step.MaxMessage})); err != nil {
		return step.Call{}, err
	}
	return st.conclude(ctx, origin, ws, by, step.EventFailed, step.Ended{Call: c, Error: why, Message: message})
}

func (st *Steps) conclude(ctx context.Context, origin event.Origin, ws id.Workspace, by Shown, typ string, ended step.Ended) (step.Call,
	error) {
	c, err := st.service.Look.Call(ctx, ws, ended.Call)
	if err != nil {
		return c, err
	}
	_, receipt, err := st.service.record(ctx, origin, Hold{Workspace: ws, Run: c.Run, Token: by.Token}, func(doc run.Run) (entry, error) {
		now, version, err := found[step.Call](ctx, st.service.Docs, ws, step.CallProjection, string(c.ID), step.ErrCallNotFound)
		switch {
		case err != nil:
			return entry{}, err
		case doc.Status != run.Running:
			return entry{}, run.ErrNotRunning
		case now.Status != step.Running:
			return entry{}, step.ErrCallEnded
		}
		c, ended.Run, ended.Tool, ended.Fence = now, doc.ID, now.Tool, doc.Fence
		report := origin
		if now.Child != "" {
			if err := st.agrees(ctx, typ, ws, now.Child); err != nil {
				return entry{}, err
			}
			report.Follows = event.Subject{Type: event.RunSubject, ID: string(now.Child)}
		}
		if by.Permit != "" {
			p := callPermit(doc.Workspace, now)
			p.Fence = doc.Fence // of an earlier claim it is worth nothing
			if err := st.service.Permits.spend(by.Permit, origin, p); err != nil {
				return entry{}, err
			}
			ended.Permit = event.DigestOf([]byte(by.Permit))
		}
		return entry{
			action: policy.Action{Type: policy.ToolReport, Step: c.Step, Subject: string(c.ID), Tool: c.Tool, Content: digest(ended.Output,
				ended.Error, ended.Message)},
			drafts: []event.Draft{draft(typ, report, doc, ended).About(step.CallEntity, string(c.ID)).In(doc.ID, c.Step)},
			expect: []event.DocumentVersion{{Projection: step.CallProjection, Key: string(c.ID), Version: version}},
		}, nil
	})
	if err = running(err); err != nil {
		return c, err
	}
	return c.Evolve(receipt.Events[0])
}

// agrees refuses to record that a tool call succeeded where the daemon knows better: its child run, which the daemon executes, has not
// succeeded, or one of its operations failed or was refused. A run of operations succeeds when each has a result, even a bad one.
func (st *Steps) agrees(ctx context.Context, typ string, ws id.Workspace, child id.Run) error {
	if typ != step.EventSucceeded {
		return nil // an engine may give up
	}
	doc, _, err := st.service.load(ctx, ws, child)
	if err != nil {
		return err
	}
	if doc.Status != run.Succeeded {
		return fault.New(fault.Conflict, step.ErrChildOpen.Code,
			"the run %s of this tool call has the status %s; the call succeeds only where its run does", child, doc.Status).
			With("Wait until that run has ended, or report that the tool call failed.")
	}
	unmet := doc.Unmet()
	if len(unmet) == 0 {
		return nil
	}
	names := make([]string, 0, mostUnmet)
	for _, p := range unmet[:min(len(unmet), mostUnmet)] {
		names = append(names, policy.Escape(p.ID)+" ("+p.Ended()+")")
	}
	if more := len(unmet) - len(names); more > 0 {
		names = append(names, strconv.Itoa(more)+" more")
	}
	return fault.New(fault.Conflict, step.ErrChildOpen.Code,
		"not every operation in the run %s of this tool call did what it was asked: %s; the call succeeds only where all of them did", child,
		strings.Join(names, ", ")).
		With("Report that the tool call failed; the run tells the results.")
}

// mostUnmet is how many unsuccessful operations an error names.
const mostUnmet = 5

// Vouch returns what stands behind a run in a space that an engine asks for under one of its tool calls.
func (st *Steps) Vouch(ctx context.Context, ws id.Workspace, token string, c id.ToolCall) (run.Under, error) {
	call, version, err := found[step.Call](ctx, st.service.Docs, ws, step.CallProjection, string(c), step.ErrCallNotFound)
	if err != nil {
		return run.Under{}, err
	}
	doc, at, err := st.service.load(ctx, ws, call.Run)
	if err != nil {
		return run.Under{}, err
	}
	if err := running(doc.MayWrite(token, st.service.left(doc))); err != nil {
		return run.Under{}, err
	}
	u := run.Under{
		Parent: run.Parent{Run: call.Run, Call: c, Fence: doc.Fence}, Child: call.Child,
		Expect: []event.DocumentVersion{{Projection: run.Projection, Key: string(doc.ID), Version: at}, {Projection: step.CallProjection,
			Key: string(c), Version: version}},
	}
	switch {
	case u.Child != "":
		return u, nil
	case doc.Status != run.Running:
		return u, run.ErrNotRunning
	case call.Status != step.Running:
		return u, step.ErrCallEnded
	}
	return u, nil
}

// running turns an error about an ended run into the error of the step routes: the run is not running.
func running(err error) error { return ended(err) }

func word(name, sent string) error {
	if !step.Word(sent) {
		return fault.New(fault.Invalid, "invalid_field", "%s is %.140q; it is a word of at most %d letters, digits and _.:/-", name, sent,
			step.MaxWord)
	}
	return nil
}

// either returns the first of two errors that is one.
func either(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
