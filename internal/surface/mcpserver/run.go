package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
)

func asFault(err error) (*fault.Error, bool) { return errors.AsType[*fault.Error](err) }

// outcome is the structured answer of a call that ran something in a space.
type outcome struct {
	Space    id.Space `json:"space_id" jsonschema:"the space in which it ran"`
	Run      id.Run   `json:"run_id" jsonschema:"the run that is recorded for it"`
	Status   string   `json:"status" jsonschema:"completed, awaiting_approval, running, error or cancelled"`
	ExitCode *int     `json:"exit_code,omitempty" jsonschema:"of a command or of code"`
	Stdout   string   `json:"stdout,omitempty"`
	Stderr   string   `json:"stderr,omitempty"`
	Content  string   `json:"content,omitempty" jsonschema:"of a file that was read"`
	Encoding string   `json:"encoding,omitempty" jsonschema:"of content: utf-8 or base64"`
	Approval string   `json:"approval_id,omitempty" jsonschema:"the question that a person has to answer first"`
	Error    string   `json:"error,omitempty"`
}

// operate runs one operation for the session's agent in the space that the call names, and answers with its result.
func (s *session) operate(ctx context.Context, req *mcp.CallToolRequest, in string, operation map[string]any) (*mcp.CallToolResult, any,
	error) {
	if answered, result, out, err := s.answered(ctx, req); answered {
		return result, out, err
	}
	space, err := s.in(ctx, in)
	if err != nil {
		return failure(err), nil, nil
	}
	operation["id"] = "call"
	raw, err := json.Marshal([]any{operation})
	if err != nil {
		return failure(err), nil, nil
	}
	events, err := s.API.CreateRun(ctx, space, client.RunRequest{
		Message: client.Message{ProtocolVersion: json.RawMessage(`"1.0"`), Operations: raw}, Agent: s.agent(req.Session), WaitSeconds: waitsFor,
	})
	if err != nil {
		return failure(err), nil, nil
	}
	return s.tell(ctx, req, space, events)
}

// tell answers with the state of a run. If the run waits for a person and the client can ask its user, tell asks the user.
func (s *session) tell(ctx context.Context, req *mcp.CallToolRequest, space id.Space, events run.Events) (*mcp.CallToolResult, any, error) {
	out := outcome{Space: space, Run: id.Run(events.RunID), Status: events.Status}
	var text []string
	failed := events.Status == "error" || events.Status == "cancelled"
	for _, e := range events.Events {
		if e.Type == "userMessage" {
			continue
		}
		if said := out.add(e); said != "" {
			text = append(text, said)
		}
		failed = failed || e.Success != nil && !*e.Success || e.Type == "policyDenied" || e.Type == "error"
	}
	switch {
	case out.Approval != "" && events.Status == "awaiting_approval":
		if ask := s.ask(ctx, req, out); ask != nil {
			return ask, nil, nil
		}
		text = append(text, fmt.Sprintf("A person has to approve this first: agentbox approvals approve %s\nThen call wait_run with run_id %s.",
			out.Approval, out.Run))
	case events.Status == "running" || events.Status == "queued":
		text = append(text, fmt.Sprintf("It still runs. Call wait_run with run_id %s for its end.", out.Run))
	}
	if len(text) == 0 {
		text = append(text, events.Status)
	}
	said, _ := tool.Excerpt(strings.Join(text, "\n"), maxText, "show_run has all of it, for run_id "+string(out.Run)+".")
	return &mcp.CallToolResult{IsError: failed, Content: []mcp.Content{&mcp.TextContent{Text: said}}}, out.bounded(), nil
}

// add adds a result to the outcome, and returns its text for the model.
func (o *outcome) add(e run.Result) string {
	switch e.Type {
	case "approvalRequired":
		o.Approval = e.ApprovalID
		return "waits for approval: " + e.Reason
	case "policyDenied":
		o.Error = e.ReasonCode
		return tool.Refusal{Tool: e.OperationType, Rule: e.ReasonCode, Reason: e.Reason, Instead: e.Suggestion}.Text()
	case "error":
		o.Error = e.Message
		return "error: " + e.Message
	}
	var text []string
	if e.Stdout != nil && *e.Stdout != "" {
		o.Stdout = *e.Stdout
		text = append(text, strings.TrimSuffix(o.Stdout, "\n"))
	}
	if e.Stderr != nil && *e.Stderr != "" {
		o.Stderr = *e.Stderr
		text = append(text, "stderr:\n"+strings.TrimSuffix(o.Stderr, "\n"))
	}
	if e.ExitCode != nil {
		o.ExitCode = e.ExitCode
		if *e.ExitCode != 0 {
			text = append(text, fmt.Sprintf("exit code %d", *e.ExitCode))
		}
	}
	if e.Content != nil {
		o.Content, o.Encoding = *e.Content, e.Encoding
		text = append(text, o.Content)
	}
	if e.Limit != "" {
		text = append(text, "ended by the limit "+e.Limit)
	}
	for _, lack := range e.Lacks {
		text = append(text, strings.TrimSpace(fmt.Sprintf("not here: %s %s %s", lack.Kind, lack.Name, lack.Detail)))
	}
	for _, d := range e.Displays {
		text = append(text, fmt.Sprintf("shown: %s, %d bytes, artifact %s", d.Media, d.Size, d.Artifact))
	}
	if e.Error != "" {
		o.Error = e.Error
		text = append(text, "error: "+e.Error)
	}
	return strings.Join(text, "\n")
}

// bounded returns the outcome with every text shortened to maxText.
func (o outcome) bounded() outcome {
	for _, text := range []*string{&o.Stdout, &o.Stderr, &o.Content} {
		*text, _ = tool.Excerpt(*text, maxText, "show_run has all of it.")
	}
	return o
}

// ask returns the question for the client's user. It returns nil if the client cannot ask, or the session must not. A call asks once. It
// reports another question of the same run, and wait_run asks that.
func (s *session) ask(ctx context.Context, req *mcp.CallToolRequest, out outcome) *mcp.CallToolResult {
	p := req.Session.InitializeParams()
	if !s.Elicit || len(req.Params.InputResponses) > 0 || p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return nil
	}
	a, err := s.API.Approval(ctx, id.Approval(out.Approval))
	if err != nil {
		return nil
	}
	s.mu.Lock()
	s.asked[out.Approval] = question{out.Run, a.ActionHash}
	s.mu.Unlock()
	return &mcp.CallToolResult{
		RequestState: out.Approval,
		InputRequests: mcp.InputRequestMap{"approve": &mcp.ElicitParams{
			Message: a.Question.What + "\n\nWhy you are asked: " + a.Question.Why + "\nImpact: " + a.Question.Impact,
			RequestedSchema: json.RawMessage(`{"type": "object", "required": ["decision"], "properties": {"decision": {"type": "string", ` +
				`"title": "Decision", "enum": ["approve", "deny"]}, "reason": {"type": "string", "title": "Reason"}}}`),
		}},
	}
}

// question is a question to the session's user.
type question struct {
	run    id.Run
	action event.Digest // the action that the user saw; the answer is bound to it
}

// answered handles a call that carries the user's answer to a question. It returns false for every other call.
func (s *session) answered(ctx context.Context, req *mcp.CallToolRequest) (bool, *mcp.CallToolResult, any, error) {
	given, ok := req.Params.InputResponses["approve"].(*mcp.ElicitResult)
	if !ok {
		return false, nil, nil, nil
	}
	approval := req.Params.RequestState
	s.mu.Lock()
	of, known := s.asked[approval]
	delete(s.asked, approval)
	s.mu.Unlock()
	if !known {
		return true, failure(fault.New(fault.Conflict, "question_unknown", "this client was asked no such question")), nil, nil
	}
	decision, _ := given.Content["decision"].(string)
	reason, _ := given.Content["reason"].(string)
	if given.Action == "decline" {
		decision = "deny"
	}
	if given.Action == "accept" && decision == "approve" || decision == "deny" { // else the user postponed it, and the question stays open
		if _, err := s.API.Decide(ctx, id.Approval(approval), client.Answer{Decision: decision, Reason: reason, Saw: &of.action}); err != nil {
			return true, failure(err), nil, nil
		}
	}
	result, out, err := s.wait(ctx, req, of.run)
	return true, result, out, err
}

// pending returns the approval that a run waits for; "" for none.
func pending(e run.Events) string {
	for _, r := range e.Events {
		if r.Type == "approvalRequired" && e.Status == "awaiting_approval" {
			return r.ApprovalID
		}
	}
	return ""
}
