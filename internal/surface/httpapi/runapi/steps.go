package runapi

import (
	"context"
	"encoding/json"
	"net/http"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/step"
	"agentbox/internal/domain/token"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/query"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// StepPath names a step, and shows that the caller has its run.
type StepPath struct {
	Step  string `path:"step_id" doc:"The step"`
	Token string `header:"X-Claim-Token" maxLength:"200" doc:"The token of the run's claim, if it is not in the body"`
}

// CallPath names a tool call, and shows that the caller has its run.
type CallPath struct {
	Call  string `path:"tool_call_id" doc:"The tool call"`
	Token string `header:"X-Claim-Token" maxLength:"200" doc:"The token of the run's claim, if it is not in the body"`
}

type stepRequest struct {
	Token string          `json:"claim_token,omitempty" maxLength:"200"`
	Kind  string          `json:"kind,omitempty" maxLength:"128" doc:"What kind of step it is, a word"`
	Title string          `json:"title,omitempty" maxLength:"200"`
	Input json.RawMessage `json:"input,omitempty" doc:"Any JSON of at most 64 KiB"`
}

// actorRequest names who acts, where that is another than who sends the request.
type actorRequest struct {
	Type string `json:"actor_type,omitempty" enum:"user,agent,service"`
	ID   string `json:"actor_id,omitempty" maxLength:"64"`
}

type callRequest struct {
	Token      string          `json:"claim_token,omitempty" maxLength:"200"`
	Tool       string          `json:"tool_name,omitempty" maxLength:"128" doc:"The tool, a word"`
	Title      string          `json:"title,omitempty" maxLength:"200"`
	Input      json.RawMessage `json:"input,omitempty" doc:"Any JSON of at most 64 KiB"`
	Agent      id.Principal    `json:"agent_id,omitempty" maxLength:"64" doc:"The agent for whom the tool is called; only engines, owners and admins act for one"`
	Actor      *actorRequest   `json:"actor,omitempty" doc:"The same, in the form of events"`
	Principal  id.Principal    `json:"principal_id,omitempty" maxLength:"64" doc:"The same"`
	Capability id.Token        `json:"capability_token_id,omitempty" maxLength:"64"`
	Zone       string          `json:"zone,omitempty" doc:"sandbox, supervised or high_stakes"`
}

// callAnswer is a tool call that may be made (201), or why it may not (200).
type callAnswer struct {
	Status int
	Body   callDecided
}

type callDecided struct {
	*step.Call
	Permit     string      `json:"permit,omitempty" doc:"Signed: the engine may make this call, once, as long as it has the run. Sent back with what came of it, it makes that recorded as permitted"`
	Blocked    bool        `json:"blocked" doc:"Whether the tool may not be called, or not yet"`
	Decided    string      `json:"decision" doc:"allow, deny or require_approval"`
	Code       string      `json:"reason_code"`
	Why        string      `json:"reason,omitempty"`
	Suggestion string      `json:"suggestion,omitempty"`
	Approval   id.Approval `json:"approval_id,omitempty" doc:"The question that a person has to answer before the same request is let pass"`
}

// judged documents what policy says of a tool call that may not be made, or not yet.
type judged struct {
	Blocked    bool        `json:"blocked" doc:"Whether the tool may not be called, or not yet"`
	Decided    string      `json:"decision" doc:"allow, deny or require_approval"`
	Code       string      `json:"reason_code"`
	Why        string      `json:"reason,omitempty"`
	Suggestion string      `json:"suggestion,omitempty"`
	Approval   id.Approval `json:"approval_id,omitempty" doc:"The question that a person has to answer before the same request is let pass"`
}

type succeedRequest struct {
	Token  string          `json:"claim_token,omitempty" maxLength:"200"`
	Permit string          `json:"permit,omitempty" maxLength:"2000" doc:"The permit of the call; without it what is reported is recorded as attested"`
	Output json.RawMessage `json:"output,omitempty" doc:"Any JSON of at most 64 KiB"`
}

type failCallRequest struct {
	Token   string          `json:"claim_token,omitempty" maxLength:"200"`
	Permit  string          `json:"permit,omitempty" maxLength:"2000" doc:"The permit of the call; without it what is reported is recorded as attested"`
	Error   json.RawMessage `json:"error,omitempty" doc:"Any JSON of at most 64 KiB"`
	Message string          `json:"message,omitempty" maxLength:"4000"`
}

type artifactRequest struct {
	Token    string          `json:"claim_token,omitempty" maxLength:"200"`
	Kind     string          `json:"kind,omitempty" maxLength:"128" doc:"What kind of output it is, a word"`
	Title    string          `json:"title,omitempty" maxLength:"200"`
	Media    string          `json:"mime_type,omitempty" maxLength:"200"`
	Size     *int64          `json:"size_bytes,omitempty" minimum:"0" doc:"Of the content; at most 1 GiB"`
	Digest   string          `json:"sha256,omitempty" pattern:"^(sha256:)?[0-9a-f]{64}$" doc:"Of the content"`
	Content  *step.Content   `json:"content,omitempty" doc:"What of it stands in the event: type none, text, json or uri, and the field of that name. With none, the content may be sent by itself"`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"Any JSON of at most 64 KiB"`
}

// OfRun selects the records of a run from a list whose cursor is a T.
type OfRun[T ~string] struct {
	Run  string `query:"run_id" doc:"Only of this run"`
	Step string `query:"step_id" doc:"Only of this step"`
	access.Page[T]
}

func (o OfRun[T]) of() (engines.Of, error) {
	if o.Run != "" && o.Step != "" {
		return engines.Of{}, fault.New(fault.Invalid, "invalid_filter", "name a run or a step, not both")
	}
	return engines.Of{Run: id.Run(o.Run), Step: id.Step(o.Step)}, nil
}

type stepList struct {
	Steps []step.Step `json:"steps" nullable:"false"`
	Next  string      `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

type callList struct {
	Calls []step.Call `json:"tool_calls" nullable:"false"`
	Next  string      `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

type artifactList struct {
	Artifacts []step.Artifact `json:"artifacts" nullable:"false"`
	Next      string          `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

// Steps are the operations for steps and tool calls.
type Steps struct {
	access.Part
	engines *engines.Service
	query   *query.Service
}

// NewSteps returns the operations for steps and tool calls.
func NewSteps(p access.Part, engines *engines.Service, query *query.Service) *Steps {
	return &Steps{p, engines, query}
}

// Register adds the operations to the server.
func (s *Steps) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "create-step", Engines: true, Needs: wire.Does(policy.StepCreate, "run_id").PastLabels(), Method: http.MethodPost,
		Path: "/v1/runs/{run_id}/steps", Tag: "engines", Summary: "Record a step of a run", Repeat: wire.RepeatRecalled,
		Status: http.StatusCreated,
	}, s.createStep)
	wire.Handle(s.Server, wire.Operation{
		ID: "list-steps", Needs: wire.Shows("step", "run_id"), Method: http.MethodGet, Path: "/v1/runs/{run_id}/steps", Tag: "engines",
		Summary: "The steps of a run, the newest first",
	}, func(ctx context.Context, c wire.Call, in *struct {
		Run string `path:"run_id" doc:"The run"`
		access.Page[id.Step]
	}) (*struct{ Body stepList }, error) {
		found, err := s.engines.Look.Steps(ctx, c.Caller.Workspace, engines.Of{Run: id.Run(in.Run)}, string(in.Cursor.After), in.Limit+1)
		if err != nil {
			return nil, err
		}
		out := stepList{}
		out.Steps, out.Next = access.Cut(found, in.Limit, func(x step.Step) string { return string(x.ID) })
		out.Steps, err = access.Visible(ctx, s.Access, c, out.Steps, func(x step.Step) label.Resource {
			return label.Resource{Type: label.OfStep, ID: string(x.ID)}
		})
		return &struct{ Body stepList }{out}, err
	})
	wire.Handle(s.Server, wire.Operation{ID: "get-step", Needs: wire.Shows("step", "step_id"), Method: http.MethodGet,
		Path: "/v1/steps/{step_id}", Tag: "engines", Summary: "Show a step"},
		func(ctx context.Context, c wire.Call, in *struct {
			Step string `path:"step_id" doc:"The step"`
		}) (*struct{ Body step.Step }, error) {
			doc, err := s.engines.Look.Step(ctx, c.Caller.Workspace, id.Step(in.Step))
			return &struct{ Body step.Step }{doc}, err
		})
	wire.Handle(s.Server, wire.Operation{
		ID: "create-tool-call", Engines: true, Needs: wire.Does(policy.ToolCall, "step_id").PastLabels(), Method: http.MethodPost,
		Path: "/v1/steps/{step_id}/toolcalls", Tag: "engines", Summary: "Ask to call a tool, and record that it is called",
		Repeat: wire.RepeatRecalled, Answers: map[int]any{http.StatusCreated: callDecided{}, http.StatusOK: judged{}},
		Detail: "201 where it may be called; 200 with the policy's decision where it may not, or not before a person has said so: then the " +
			"same request is sent again. " +
			"The kill switch stops tool calls. The result of a call is the engine's word, and recorded as such.",
	}, s.createCall)
	wire.Handle(s.Server, wire.Operation{
		ID: "succeed-tool-call", Engines: true, Needs: wire.Does(policy.ToolReport, "tool_call_id").PastLabels(), Method: http.MethodPost,
		Path: "/v1/toolcalls/{tool_call_id}/succeed", Tag: "engines", Summary: "Report that a tool call succeeded", Repeat: wire.RepeatRecalled,
	}, func(ctx context.Context, c wire.Call, in *struct {
		CallPath
		Body *succeedRequest
	}) (*struct{ Body step.Call }, error) {
		var sent succeedRequest
		if in.Body != nil {
			sent = *in.Body
		}
		return s.concluded(ctx, c, in.CallPath, sent.Token, func(token string) (step.Call, error) {
			return s.engines.Steps.Succeed(ctx, c.Once(), c.Caller.Workspace, engines.Shown{Token: token, Permit: sent.Permit},
				id.ToolCall(in.Call), sent.Output)
		})
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "fail-tool-call", Engines: true, Needs: wire.Does(policy.ToolReport, "tool_call_id").PastLabels(), Method: http.MethodPost,
		Path: "/v1/toolcalls/{tool_call_id}/fail", Tag: "engines", Summary: "Report that a tool call failed", Repeat: wire.RepeatRecalled,
	}, func(ctx context.Context, c wire.Call, in *struct {
		CallPath
		Body *failCallRequest
	}) (*struct{ Body step.Call }, error) {
		var sent failCallRequest
		if in.Body != nil {
			sent = *in.Body
		}
		return s.concluded(ctx, c, in.CallPath, sent.Token, func(token string) (step.Call, error) {
			return s.engines.Steps.Fail(ctx, c.Once(), c.Caller.Workspace, engines.Shown{Token: token, Permit: sent.Permit},
				id.ToolCall(in.Call), sent.Error, sent.Message)
		})
	})
	wire.Handle(s.Server, wire.Operation{ID: "list-tool-calls", Needs: wire.Shows("tool_call", "run_id", "step_id"), Method: http.MethodGet,
		Path: "/v1/toolcalls", Tag: "engines", Summary: "Tool calls, the newest first"},
		func(ctx context.Context, c wire.Call, in *OfRun[id.ToolCall]) (*struct{ Body callList }, error) {
			of, err := in.of()
			if err != nil {
				return nil, err
			}
			found, err := s.engines.Look.Calls(ctx, c.Caller.Workspace, of, string(in.Cursor.After), in.Limit+1)
			if err != nil {
				return nil, err
			}
			out := callList{}
			out.Calls, out.Next = access.Cut(found, in.Limit, func(x step.Call) string { return string(x.ID) })
			out.Calls, err = access.Visible(ctx, s.Access, c, out.Calls, func(x step.Call) label.Resource {
				return label.Resource{Type: label.OfToolCall, ID: string(x.ID)}
			})
			return &struct{ Body callList }{out}, err
		})
	wire.Handle(s.Server, wire.Operation{ID: "get-tool-call", Needs: wire.Shows("tool_call", "tool_call_id"), Method: http.MethodGet,
		Path: "/v1/toolcalls/{tool_call_id}", Tag: "engines", Summary: "Show a tool call"},
		func(ctx context.Context, c wire.Call, in *struct {
			Call string `path:"tool_call_id" doc:"The tool call"`
		}) (*struct{ Body step.Call }, error) {
			doc, err := s.engines.Look.Call(ctx, c.Caller.Workspace, id.ToolCall(in.Call))
			return &struct{ Body step.Call }{doc}, err
		})
}

func (s *Steps) createStep(ctx context.Context, c wire.Call, in *struct {
	EngineRunPath
	Body stepRequest
}) (*struct{ Body step.Step }, error) {
	h, err := in.hold(c, in.Body.Token)
	if err != nil {
		return nil, err
	}
	doc, err := wire.Once(c, func() (step.Step, error) {
		return access.Told[step.Step](ctx, s.Access, c, step.Projection, step.EntityType)
	}, func() (step.Step, error) {
		return s.engines.Steps.Add(ctx, c.Once(), h, engines.StepRequest{Kind: in.Body.Kind, Title: in.Body.Title, Input: in.Body.Input})
	})
	return &struct{ Body step.Step }{doc}, err
}

var errOtherActor = fault.New(fault.Denied, "agent_actor_id_mismatch",
	"the request names somebody else as who acts; only engines, owners and admins act for an agent")

// actsFor returns the agent for whom a request acts, "" for nobody but its caller.
func actsFor(c principal.Caller, q callRequest) (id.Principal, error) {
	var named id.Principal
	sent := []id.Principal{q.Agent, q.Principal}
	if q.Actor != nil {
		if q.Actor.Type != "" && id.Principal(q.Actor.ID).Kind() != id.PrincipalKind(q.Actor.Type) {
			return "", errOtherActor
		}
		sent = append(sent, id.Principal(q.Actor.ID))
	}
	for _, p := range sent {
		switch {
		case p == "" || p == c.Principal || p == named:
		case named != "" || p.Kind() != id.Agent || c.Principal.Kind() != id.Service && !c.Role.AtLeast(principal.Admin):
			return "", errOtherActor
		default:
			named = p
		}
	}
	return named, nil
}

func (s *Steps) createCall(ctx context.Context, c wire.Call, in *struct {
	StepPath
	Body callRequest
}) (*callAnswer, error) {
	claim, err := oneToken(in.Token, in.Body.Token)
	if err != nil {
		return nil, err
	}
	agent, err := actsFor(c.Caller, in.Body)
	if err != nil {
		return nil, err
	}
	under, err := s.calledUnder(ctx, c, in, agent)
	if err != nil {
		return nil, err
	}
	var no *engines.Refused
	call, err := wire.Once(c, func() (step.Call, error) { return s.calledThen(ctx, c) }, func() (call step.Call, err error) {
		call, no, err = s.engines.Steps.Invoke(ctx, c.Once(), c.Caller.Workspace, claim, engines.CallRequest{
			Step: id.Step(in.Step), Tool: in.Body.Tool, Title: in.Body.Title, Input: in.Body.Input, Agent: agent, Token: under,
			Zone: event.Zone(in.Body.Zone),
		})
		return call, err
	})
	if err != nil {
		return nil, err
	}
	if no != nil {
		d := no.Decision
		return &callAnswer{http.StatusOK, callDecided{
			Blocked: true, Decided: d.Outcome.String(), Code: d.ReasonCode, Why: d.Reason, Suggestion: d.Suggestion, Approval: no.Approval,
		}}, nil
	}
	return &callAnswer{http.StatusCreated, callDecided{Call: &call, Permit: s.engines.Permits.OfCall(c.Caller.Workspace, call),
		Decided: policy.Allow.String(), Code: call.Reason}}, nil
}

// calledUnder returns the capability token under which a tool is called: the one that the body names, else the caller's. A caller who acts
// for an agent names the agent's token. Then the caller's own token has to permit the tool as well.
func (s *Steps) calledUnder(ctx context.Context, c wire.Call, in *struct {
	StepPath
	Body callRequest
}, agent id.Principal) (id.Token, error) {
	named := in.Body.Capability
	if agent == "" || named == "" || named == c.Caller.Token || c.Caller.Token == "" {
		return s.Under(ctx, c, named)
	}
	room, err := s.RoomOf(ctx, c.Caller.Workspace, "step_id", in.Step)
	if err == nil {
		err = s.Permitted(ctx, c, token.Use{Action: policy.ToolCall, Room: room, Tool: in.Body.Tool, NoTool: in.Body.Tool == ""})
	}
	return named, err
}

// calledThen returns the tool call that a repeated request has begun. The use of an approval may stand behind it in the batch.
func (s *Steps) calledThen(ctx context.Context, c wire.Call) (step.Call, error) {
	last, err := s.query.At(ctx, c.Caller.Workspace, c.Repeated)
	for err == nil && last.Type != step.EventInvoked {
		last, err = s.query.At(ctx, c.Caller.Workspace, last.Seq-1)
	}
	if err != nil {
		return step.Call{}, err
	}
	return access.Then[step.Call](ctx, s.Access, c, query.Subject{Projection: step.CallProjection, EntityType: step.CallEntity,
		Key: last.EntityID})
}

func (s *Steps) concluded(ctx context.Context, c wire.Call, p CallPath, sent string, do func(token string) (step.Call,
	error)) (*struct{ Body step.Call }, error) {
	token, err := oneToken(p.Token, sent)
	if err != nil {
		return nil, err
	}
	doc, err := wire.Once(c, func() (step.Call, error) {
		return access.Told[step.Call](ctx, s.Access, c, step.CallProjection, step.CallEntity)
	}, func() (step.Call, error) { return do(token) })
	return &struct{ Body step.Call }{doc}, err
}
