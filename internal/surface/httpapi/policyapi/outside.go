package policyapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/outside"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// OutsideAction is an action that somebody will do outside of Agentbox.
type OutsideAction struct {
	Action  string          `json:"action,omitempty" maxLength:"100" doc:"A name of the action registry, of an action type that the workspace declared, or external_write"`
	Text    string          `json:"question,omitempty" doc:"A plain question of at most 2,000 bytes, instead of an action: about the run, else the room, else the workspace"`
	Space   id.Space        `json:"space_id,omitempty" maxLength:"100" doc:"Judge it under this space's policy, too, which has to permit it (allow.actions)"`
	Room    id.Room         `json:"room_id,omitempty" maxLength:"100"`
	Thread  id.Thread       `json:"thread_id,omitempty" maxLength:"100"`
	Run     id.Run          `json:"run_id,omitempty" maxLength:"100"`
	Step    id.Step         `json:"step_id,omitempty" maxLength:"100"`
	Request json.RawMessage `json:"request,omitempty" doc:"What is done, in full: an object of at most 32 KiB in canonical form (RFC 8785). An approval is for exactly this"`
	Target  string          `json:"target,omitempty" maxLength:"1000" doc:"The host or recipient"`
	Method  string          `json:"method,omitempty" maxLength:"100"`
	Tool    string          `json:"tool_name,omitempty" maxLength:"200"`

	Principal id.Principal `json:"principal_id,omitempty" maxLength:"100" doc:"Who acts; the caller unless named. Owners, admins and services act for agents"`
	ActorType string       `json:"actor_type,omitempty" enum:"user,agent,service" doc:"Has to agree with who acts"`
	ActorID   string       `json:"actor_id,omitempty" maxLength:"200" doc:"Has to agree with who acts"`
	Token     id.Token     `json:"capability_token_id,omitempty" maxLength:"100"`
	Zone      string       `json:"zone,omitempty" enum:"sandbox,supervised,high_stakes" doc:"The posture of who acts; supervised unless named"`
}

// evaluateRequest asks whether something may be done.
type evaluateRequest struct {
	OutsideAction
	Context json.RawMessage `json:"context,omitempty" doc:"What else the caller knows, an object: its members tool_name, egress_domain and method stand for tool_name, target and method; the others decide nothing"`
	Preview bool            `json:"preview,omitempty" doc:"Say only what would be answered: nothing is recorded, and no approval used up"`
}

// approvalRequest asks a person.
type approvalRequest struct {
	OutsideAction
	Title     string          `json:"title,omitempty" maxLength:"200" doc:"In the asker's words, which are shown apart"`
	Context   json.RawMessage `json:"context,omitempty" doc:"In the asker's words, which are shown apart"`
	Scope     string          `json:"scope,omitempty" doc:"The scope that is asked for: once, run, room, workspace or template. The answer names the scope that is granted"`
	ExpiresAt time.Time       `json:"expires_at,omitzero" doc:"Until when it can be answered, at most 7 days from now"`
}

// evaluation is the answer to a caller who asks before they act.
type evaluation struct {
	Decision    policy.Outcome `json:"decision" enum:"allow,deny,require_approval"`
	Code        string         `json:"reason_code"`
	Reason      string         `json:"reason,omitempty"`
	Suggestion  string         `json:"suggestion,omitempty"`
	Enforcement string         `json:"enforcement_mode" enum:"enforce,shadow"`
	Blocked     bool           `json:"blocked" doc:"It must not be done now"`
	Preview     bool           `json:"preview,omitempty"`
	Principal   id.Principal   `json:"principal_id" doc:"Who acts"`
	Approval    id.Approval    `json:"approval_id,omitempty" doc:"That allows it and is used up; or that is open about it"`
	Standing    id.Standing    `json:"standing_id,omitempty" doc:"The standing approval of which one use is spent"`
	Event       id.Event       `json:"event_id,omitempty" doc:"Of the log: that it is begun, or was refused"`
	Action      event.Digest   `json:"action_sha256,omitzero" doc:"Of everything that was judged"`
	Bundle      event.Digest   `json:"policy_bundle,omitzero"`
	Policies    []string       `json:"policies,omitempty"`
}

type actionList struct {
	Actions []policy.Kind `json:"actions" nullable:"false"`
}

// Outside has the operations for actions outside of Agentbox.
type Outside struct {
	access.Part
	outside *outside.Service
	gate    *gate.Gate
}

// NewOutside returns the operations for actions outside of Agentbox.
func NewOutside(p access.Part, outside *outside.Service, gate *gate.Gate) *Outside {
	return &Outside{p, outside, gate}
}

// Register adds the operations to the server.
func (s *Outside) Register() {
	wire.HandleOnce(s.Server, wire.Operation{
		ID: "evaluate-policy", Needs: wire.DoesThere(policy.PolicyEvaluate), Method: http.MethodPost, Path: "/v1/policy/evaluate",
		Tag: "policies", Summary: "Ask whether something may be done outside of Agentbox",
		Repeat: wire.RepeatRecalled,
		Detail: "Ask right before it is done, each time. An answer that allows on the strength of an approval has used it up once, in the same " +
			"step, and names the event that proves it: of a hundred " +
			"that ask at once with one approval, one is allowed. Every other answer changes nothing; refusals are recorded. An action that is " +
			"neither in the registry nor declared by the workspace is denied.",
	}, func(ctx context.Context, c wire.Call) (outside.Answer, error) {
		return s.outside.Recall(ctx, c.Caller.Workspace, c.Repeated)
	}, s.evaluate, s.evaluated)
	wire.HandleOnce(s.Server, wire.Operation{
		ID: "request-approval", Needs: wire.DoesThere(policy.ApprovalRequest), Method: http.MethodPost, Path: "/v1/approvals", Tag: "approvals",
		Summary: "Ask a person: about what is to be done outside of Agentbox, or a plain question", Status: http.StatusCreated,
		Repeat: wire.RepeatRecalled,
		Detail: "`question` is what the daemon writes about it, in full; `title` and `context` stand in `agent_words`, apart. Once it is " +
			"approved, POST /v1/policy/evaluate allows the same action and request. " +
			"Without a target it is about the run, else the room, else the workspace; `question` alone asks about it in plain words.",
	}, access.Recalled[policy.Approval](s.Access, policy.ApprovalProjection, policy.ApprovalEntity), s.requestApproval, shownRequest)
	wire.Handle(s.Server, wire.Operation{
		ID: "list-actions", Needs: wire.Shows("policy"), Method: http.MethodGet, Path: "/v1/action-registry", Tag: "policies",
		Summary: "List the actions that there are, and how carefully each is treated",
	}, func(ctx context.Context, c wire.Call, _ *struct{}) (*struct{ Body actionList }, error) {
		found, err := registry(ctx, s.gate, c.Caller.Workspace)
		return &struct{ Body actionList }{actionList{found}}, err
	})
}

// question makes the service's request.
func (a OutsideAction) question() outside.Question {
	return outside.Question{
		Action: a.Action, Text: a.Text, Space: a.Space, Room: a.Room, Thread: a.Thread, Run: a.Run, Step: a.Step, Token: a.Token,
		Zone: event.Zone(a.Zone), Request: a.Request,
		Target: a.Target, Method: a.Method, Tool: a.Tool, Principal: a.Principal, ActorType: a.ActorType, ActorID: a.ActorID,
	}
}

// asked is the question of a request, with the identifier of its space where that is called by its name. A space that a label keeps from
// the caller is none to ask about.
func (s *Outside) asked(ctx context.Context, c wire.Call, a OutsideAction) (outside.Question, error) {
	q := a.question()
	if q.Space == "" {
		return q, nil
	}
	var err error
	if q.Space, err = s.SpaceNamed(ctx, c, q.Space); err != nil {
		return q, err
	}
	return q, s.Labelled(ctx, c, map[string]string{"space_id": string(q.Space)})
}

func (s *Outside) evaluate(ctx context.Context, c wire.Call, in *struct{ Body evaluateRequest }) (outside.Answer, error) {
	q, err := s.asked(ctx, c, in.Body.OutsideAction)
	if err != nil {
		return outside.Answer{}, err
	}
	if err := outside.Know(&q, in.Body.Context); err != nil {
		return outside.Answer{}, err
	}
	if q.Token, err = s.Under(ctx, c, q.Token); err != nil {
		return outside.Answer{}, err
	}
	if c.Caller.Token != "" {
		c.Caller.Token = q.Token // the caller's own token, or one derived from it: the caller continues under that
	}
	return s.outside.Evaluate(ctx, c.Once(), c.Caller, q, in.Body.Preview)
}

func (s *Outside) evaluated(a outside.Answer) *struct{ Body evaluation } {
	d := a.Decision
	e := evaluation{
		Decision: d.Outcome, Code: d.ReasonCode, Reason: d.Reason, Suggestion: d.Suggestion, Enforcement: "enforce", Blocked: a.Blocked,
		Preview:   a.Preview,
		Principal: a.Actor, Approval: a.Approval, Standing: a.Standing, Event: a.Event, Action: d.Action, Bundle: d.Bundle, Policies: d.Policies,
	}
	if d.Shadow {
		e.Enforcement = "shadow"
	}
	return &struct{ Body evaluation }{e}
}

func (s *Outside) requestApproval(ctx context.Context, c wire.Call, in *struct{ Body approvalRequest }) (policy.Approval, error) {
	b := in.Body
	q, err := s.asked(ctx, c, b.OutsideAction)
	if err != nil {
		return policy.Approval{}, err
	}
	if q.Token, err = s.Under(ctx, c, q.Token); err != nil {
		return policy.Approval{}, err
	}
	if c.Caller.Token != "" {
		c.Caller.Token = q.Token // the caller's own token, or one derived from it: the caller continues under that
	}
	return s.outside.Ask(ctx, c.Once(), c.Caller, q, outside.Words{Title: b.Title, Context: b.Context},
		policy.Ask{Scope: policy.Scope(b.Scope), ExpiresAt: b.ExpiresAt})
}

type requestedAnswer struct {
	Location string `header:"Location"`
	Body     policy.Approval
}

func shownRequest(a policy.Approval) *requestedAnswer {
	return &requestedAnswer{"/v1/approvals/" + string(a.ID), a}
}
