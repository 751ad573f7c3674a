package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
)

// act makes the calls of a turn and adds their results to the conversation. Neighbouring calls that only read run in parallel; all others
// run in order.
func (s *session) act(ctx context.Context, calls []model.Call) error {
	results := make([]model.Result, len(calls))
	s.refused = nil
	worked := make([]time.Duration, len(calls))
	past := s.past[s.conversation.Turn()].Calls
	for from := 0; from < len(calls); {
		if s.conversation.Left() <= 0 { // the run ends after this turn
			for i := from; i < len(calls); i++ {
				results[i] = model.Result{ID: calls[i].ID, Failed: true, Text: saidLate}
			}
			break
		}
		to := from + 1
		for s.looks(calls[from]) && to < len(calls) && to-from < s.def.Limits.Concurrency && s.looks(calls[to]) {
			to++
		}
		if err := s.together(ctx, calls, results, worked, past, from, to); err != nil {
			return err
		}
		s.conversation.Work(slices.Max(worked[from:to])) // calls that are made at once count once
		from = to
	}
	s.conversation.Acted(results)
	return nil
}

// looks reports whether a call changes nothing.
func (s *session) looks(call model.Call) bool {
	t, ok := s.tool(call.Name)
	return ok && (t.Effect == policy.Pure || t.Effect == policy.Read)
}

func (s *session) tool(name string) (tool.Tool, bool) {
	i := slices.IndexFunc(s.tools, func(t tool.Tool) bool { return t.Name == name })
	if i < 0 {
		return tool.Tool{}, false
	}
	return s.tools[i], true
}

// together makes some calls at once.
func (s *session) together(ctx context.Context, calls []model.Call, results []model.Result, worked []time.Duration,
	past map[int]errand.Progress, from, to int) error {
	failed := make([]error, to-from)
	var working sync.WaitGroup
	for i := from + 1; i < to; i++ {
		working.Go(func() { results[i], worked[i], failed[i-from] = s.call(ctx, calls[i], i, past[i]) })
	}
	results[from], worked[from], failed[0] = s.call(ctx, calls[from], from, past[from])
	working.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// call finishes one call from its recorded state, and returns how long the tool has worked. A failure of the call itself is in its result;
// an error ends the work on the run.
func (s *session) call(ctx context.Context, call model.Call, index int, past errand.Progress) (model.Result, time.Duration, error) {
	operation, wrong := s.operation(call)
	if wrong != "" {
		s.note(index, noted(wrong)) // a call that is skipped is recorded with the next turn, for people
		return model.Result{ID: call.ID, Failed: true, Text: wrong}, 0, nil
	}
	// Hook phase: Pre-Tool.
	refused := s.past[s.conversation.Turn()+1].Refused[index] // the gate is not asked again
	permit := ""
	if refused == "" {
		var err error
		if permit, refused, err = s.invoke(ctx, call, index, &past); err != nil {
			return model.Result{}, 0, err
		}
	}
	if refused != "" {
		s.note(index, refused)
		return model.Result{ID: call.ID, Failed: true, Text: refused}, 0, nil
	}
	if call.Name == readResult {
		result := s.conversation.read(call)
		if past.Ended {
			return result, 0, nil
		}
		return result, 0, s.conclude(ctx, past, permit, errand.Outcome{Status: "read", OK: !result.Failed})
	}
	outcome := past.Outcome
	if !past.Ended {
		left := errand.Left{Call: time.Duration(s.def.Limits.ToolSeconds) * time.Second, Run: s.conversation.Left()}
		if err := s.patiently(ctx, func() (err error) {
			outcome, err = s.Records.Operate(ctx, s.w, past.Call, s.mission.Space, operation, left)
			return err
		}); err != nil {
			if ctx.Err() != nil || fault.KindOf(err) == fault.Internal {
				return model.Result{}, 0, err
			}
			outcome = errand.Outcome{Status: errand.Refused, Code: fault.CodeOf(err), Reason: err.Error()}
		}
		if err := s.conclude(ctx, past, permit, outcome); err != nil {
			return model.Result{}, 0, err
		}
	}
	// Hook phase: Post-Tool.
	result, err := s.told(ctx, call, outcome)
	return result, time.Duration(outcome.Worked) * time.Millisecond, err
}

// maxNoted is the most characters of the reason of a skipped call in the record. The record of all calls of an answer fits into a step.
const maxNoted = 120

// noted returns the beginning of the reason of a skipped call.
func noted(wrong string) string {
	if said := []rune(wrong); len(said) > maxNoted {
		return string(said[:maxNoted-1]) + "…"
	}
	return wrong
}

// note keeps a refusal for the record of the next turn.
func (s *session) note(index int, refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = map[int]string{}
	}
	s.refused[index] = refused
}

// operation returns the operation of a call, nil for a call of the loop's own tool. For an invalid call it returns the reason instead, and
// the loop neither makes the call nor asks the gate.
func (s *session) operation(call model.Call) (json.RawMessage, string) {
	if call.Name == run.OpMalformed {
		return nil, "not made: " + call.Arguments
	}
	t, ok := s.tool(call.Name)
	if !ok {
		names := make([]string, 0, len(s.tools))
		for _, t := range s.tools {
			names = append(names, t.Name)
		}
		return nil, fmt.Sprintf("not made: there is no tool %.100q; the tools are %s", call.Name, strings.Join(names, ", "))
	}
	if len(call.Arguments) > tool.MaxArguments {
		return nil, fmt.Sprintf("not made: the arguments have %d bytes; the limit is %d", len(call.Arguments), tool.MaxArguments)
	}
	raw, err := call.Input()
	if err != nil {
		return nil, "not made: " + err.Error()
	}
	if t.Name == readResult {
		return nil, ""
	}
	operation, err := s.Prepare(t, raw)
	if err != nil {
		return nil, fmt.Sprintf("not made: the arguments of %s are wrong: %v", t.Name, err)
	}
	return operation, ""
}

// gateName returns the name of a tool for the gate and for the list of tools of a room. An operation has the prefix of operations, and the
// loop's own tool has the prefix "agent.".
func gateName(name string) string {
	if name == readResult {
		return "agent." + readResult
	}
	if _, operation := run.SpecOf(name); operation {
		return run.ToolPrefix + name
	}
	return name
}

// invoke asks the gate about a call, again and again until it decides without a person. It returns the permit, or the refusal as text.
func (s *session) invoke(ctx context.Context, call model.Call, index int, p *errand.Progress) (permit, refused string, err error) {
	at := errand.TurnCall{Index: index, Call: call.ID, Arguments: event.DigestOf([]byte(call.Arguments))}
	name := gateName(call.Name)
	for said := ""; p.Call == ""; {
		var v errand.Verdict
		if err := s.patiently(ctx, func() (err error) { v, err = s.Records.Invoke(ctx, s.w, s.step, name, at); return err }); err != nil {
			return "", "", err
		}
		if p.Call = v.Call; p.Call != "" {
			return v.Permit, "", nil
		}
		if !v.Asks && v.Code != policy.ReasonKillSwitch {
			return "", tool.Refusal{Tool: call.Name, Rule: v.Code, Reason: v.Reason}.Text(), nil
		}
		if said != v.Code {
			said = v.Code
			s.Logger.Info("a tool call waits", "code", "tool_call_waits", "run", s.w.Run, "tool", call.Name, "for", v.Code, "reason", v.Reason)
		}
		if !errand.Pause(ctx, s.Clock, errand.Ask) {
			return "", "", context.Cause(ctx)
		}
	}
	return "", "", nil
}

func (s *session) conclude(ctx context.Context, p errand.Progress, permit string, o errand.Outcome) error {
	return s.patiently(ctx, func() error { return s.Records.Conclude(ctx, s.w, p.Call, permit, o) })
}

// told returns the result of a call as the model reads it.
func (s *session) told(ctx context.Context, call model.Call, o errand.Outcome) (model.Result, error) {
	if o.Child == "" && o.Text == "" && o.Artifact == "" {
		refusal := tool.Refusal{Tool: call.Name, Rule: o.Code, Reason: o.Reason, Instead: o.Instead}
		return model.Result{ID: call.ID, Failed: true, Text: refusal.Text()}, nil
	}
	var said tool.Result
	if err := s.patiently(ctx, func() (err error) { said, err = s.Records.Result(ctx, s.w, o); return err }); err != nil {
		return model.Result{}, err
	}
	return model.Result{ID: call.ID, Failed: !said.OK, Text: said.Text}, nil
}
