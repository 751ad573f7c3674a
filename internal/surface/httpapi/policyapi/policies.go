// Package policyapi has the operations for policies, approvals, action types, labels and incidents.
package policyapi

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/outside"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// PolicyChoice names a policy: a preset with overrides, or a text of one's own.
type PolicyChoice struct {
	Policy    string          `json:"policy,omitempty" enum:"restrictive,standard,permissive" doc:"Preset; standard by default"`
	Overrides json.RawMessage `json:"policy_overrides,omitempty" doc:"Sections that replace those of the preset"`
	YAML      string          `json:"yaml,omitempty" doc:"A policy in the short form, instead of a preset"`
	Cedar     string          `json:"cedar,omitempty" doc:"A policy in Cedar, instead of a preset"`
}

// validateRequest asks whether a policy is well-formed. If it names an operation, it also asks for the decision on it.
type validateRequest struct {
	PolicyChoice
	Operation json.RawMessage `json:"operation,omitempty" doc:"An operation of protocol 1.0"`
}

// explainRequest asks what would be decided about an operation, under the policy of a space or one that is named.
type explainRequest struct {
	PolicyChoice
	Space     id.Space        `json:"space_id,omitempty" doc:"Decide under this space's policy instead"`
	Operation json.RawMessage `json:"operation,omitempty" doc:"An operation of protocol 1.0"`
	Action    *OutsideAction  `json:"action,omitempty" doc:"What is done outside, instead of an operation. Under a policy or a space that is named it is judged as in such a space"`
}

type validated struct {
	Valid    bool           `json:"valid"`
	Bundle   policy.Bundle  `json:"bundle"`
	Decision policy.Outcome `json:"decision,omitempty" doc:"About the operation, where one was named"`
	Allowed  *bool          `json:"allowed,omitempty" doc:"Whether it may be done without asking anybody"`
	Reason   string         `json:"reason,omitempty"`
	Code     string         `json:"reason_code,omitempty"`
	Hint     string         `json:"suggestion,omitempty"`
	Warnings []string       `json:"warnings,omitempty" doc:"What of the policy has no effect where a reader may expect one"`
}

type presetList struct {
	Presets []policy.Bundle `json:"presets" nullable:"false"`
}

type switchRequest struct {
	On     bool   `json:"on" doc:"Thrown: effects under way end, and only reading is permitted, and what is only recorded"`
	Reason string `json:"reason,omitempty" maxLength:"2000"`
}

type switchAnswer struct{ Body policy.KillSwitch }

// Policies are the operations for policies and the kill switch.
type Policies struct {
	access.Part
	gate        *gate.Gate
	spaces      *spaces.Service
	runs        *runs.Service
	outside     *outside.Service
	evaluations *Outside
}

// NewPolicies returns the operations for policies and the kill switch.
func NewPolicies(p access.Part, gate *gate.Gate, spaces *spaces.Service, runs *runs.Service, outside *outside.Service,
	evaluations *Outside) *Policies {
	return &Policies{p, gate, spaces, runs, outside, evaluations}
}

// Register adds the operations to the server.
func (s *Policies) Register() {
	wire.Handle(s.Server, wire.Operation{ID: "list-presets", Needs: wire.Shows("policy"), Method: http.MethodGet, Path: "/v1/policies/presets",
		Tag: "policies", Summary: "List the policy presets, the strictest first"},
		func(context.Context, wire.Call, *struct{}) (*struct{ Body presetList }, error) {
			found, err := s.gate.Bundles.Presets()
			return &struct{ Body presetList }{presetList{found}}, err
		})
	wire.Handle(s.Server, wire.Operation{
		ID: "validate-policy", Needs: wire.Shows("policy"), Method: http.MethodPost, Path: "/v1/policies/validate", Tag: "policies",
		Summary: "Check a policy, and what it decides about an operation",
		Repeat:  wire.RepeatHarmless,
		Detail:  "A policy that cannot be used is a problem document that names the place.",
	}, s.validate)
	wire.Handle(s.Server, wire.Operation{
		ID: "explain-policy", Needs: wire.Shows("policy"), Method: http.MethodPost, Path: "/v1/policies/explain", Tag: "policies",
		Summary: "Explain in every detail what would be decided about an operation",
		Repeat:  wire.RepeatHarmless,
		Detail:  "Takes the same way as a real operation and does nothing.",
	}, s.explain)
	wire.Handle(s.Server, wire.Operation{ID: "get-kill-switch", Needs: wire.Shows("kill_switch"), Method: http.MethodGet,
		Path: "/v1/kill-switch", Tag: "policies", Summary: "Show the kill switch"},
		func(ctx context.Context, c wire.Call, _ *struct{}) (*switchAnswer, error) {
			found, err := s.gate.KillSwitch.State(ctx, c.Caller.Workspace)
			return &switchAnswer{found}, err
		})
	wire.Handle(s.Server, wire.Operation{
		ID: "put-kill-switch", Needs: wire.Does(policy.KillSwitchSet), Method: http.MethodPut, Path: "/v1/kill-switch", Tag: "policies",
		Summary: "Throw or lift the kill switch",
		Detail: "It beats every policy and approval, reaches what is under way, and holds over a restart. It stops everything that changes " +
			"files, runs code, leaves the machine, starts or " +
			"changes spaces and runs in them, and tool calls. Reading goes on, and so does what is only recorded: messages, rooms, keys, " +
			"incidents, workspaces, what engines report, and " +
			"that a run is cancelled. A lift with an Idempotency-Key that is sent again " +
			"lifts nothing that was thrown since; a throw always throws.",
	}, func(ctx context.Context, c wire.Call, in *struct{ Body switchRequest }) (*switchAnswer, error) {
		if in.Body.On {
			now, err := s.gate.KillSwitch.Throw(ctx, c.Origin(), c.Caller.Workspace, in.Body.Reason)
			return &switchAnswer{now}, err
		}
		// A repeated lift must not lift a switch that somebody threw in between.
		known, err := s.Known(ctx, c)
		if err != nil {
			return nil, err
		}
		if known > 0 {
			now, err := s.gate.KillSwitch.State(ctx, c.Caller.Workspace)
			return &switchAnswer{now}, err
		}
		now, err := s.gate.KillSwitch.Lift(ctx, c.Once(), c.Caller.Workspace, in.Body.Reason)
		return &switchAnswer{now}, err
	})
}

// Bundle returns the policy that was named.
func Bundle(g *gate.Gate, p PolicyChoice) (policy.Bundle, error) {
	switch {
	case p.YAML != "" && p.Cedar != "" || (p.YAML != "" || p.Cedar != "") && (p.Policy != "" || p.Overrides != nil):
		return policy.Bundle{}, fault.New(fault.Invalid, "policy_ambiguous", "name one policy: a preset with overrides, yaml, or cedar")
	case p.YAML != "":
		return g.Bundles.ReadPolicy([]byte(p.YAML), false)
	case p.Cedar != "":
		return g.Bundles.ReadPolicy([]byte(p.Cedar), true)
	}
	return g.Bundles.Resolve(p.Policy, p.Overrides)
}

func (s *Policies) validate(ctx context.Context, c wire.Call, in *struct{ Body validateRequest }) (*struct{ Body validated }, error) {
	b, err := Bundle(s.gate, in.Body.PolicyChoice)
	if err != nil {
		return nil, err
	}
	warnings, err := s.gate.Bundles.Warnings(ctx, c.Caller.Workspace, b)
	if err != nil {
		return nil, err
	}
	out := validated{Valid: true, Bundle: b, Warnings: warnings}
	if in.Body.Operation != nil {
		e, err := s.preview(ctx, c, space.Space{Workspace: c.Caller.Workspace}, b, in.Body.Operation)
		if err != nil {
			return nil, err
		}
		d, allowed := e.Decision, e.Decision.Allowed()
		out.Decision, out.Allowed, out.Reason, out.Code, out.Hint = d.Outcome, &allowed, d.Reason, d.ReasonCode, d.Suggestion
	}
	return &struct{ Body validated }{out}, nil
}

func (s *Policies) explain(ctx context.Context, c wire.Call, in *struct{ Body explainRequest }) (*struct{ Body policy.Explanation },
	error) {
	choice := in.Body.PolicyChoice
	if (in.Body.Operation == nil) == (in.Body.Action == nil) {
		return nil, fault.New(fault.Invalid, "missing_field", "name an operation, or an action that is done outside")
	}
	sp := space.Space{Workspace: c.Caller.Workspace}
	var b policy.Bundle
	var err error
	if in.Body.Space == "" {
		b, err = Bundle(s.gate, choice)
	} else {
		if choice.Policy != "" || choice.Overrides != nil || choice.YAML != "" || choice.Cedar != "" {
			return nil, fault.New(fault.Invalid, "policy_ambiguous", "name a space or a policy, not both")
		}
		var named id.Space
		if named, err = s.SpaceNamed(ctx, c, in.Body.Space); err != nil {
			return nil, err
		}
		if err := s.Labelled(ctx, c, map[string]string{"space_id": string(named)}); err != nil {
			return nil, err
		}
		if sp, err = s.spaces.Catalog.Space(ctx, c.Caller.Workspace, named); err == nil {
			b, err = s.gate.Bundles.Bundle(ctx, c.Caller.Workspace, sp.Bundle)
		}
	}
	if err != nil {
		return nil, err
	}
	var e policy.Explanation
	if in.Body.Action == nil {
		e, err = s.preview(ctx, c, sp, b, in.Body.Operation)
	} else {
		e, err = s.previewOutside(ctx, c, in.Body, sp.ID, &b)
	}
	if err != nil {
		return nil, err
	}
	e.Warnings, err = s.gate.Bundles.Warnings(ctx, c.Caller.Workspace, b)
	return &struct{ Body policy.Explanation }{e}, err
}

// previewOutside explains what would be decided about an action outside: as in the space of that policy, where one is named.
func (s *Policies) previewOutside(ctx context.Context, c wire.Call, in explainRequest, sp id.Space, b *policy.Bundle) (
	policy.Explanation, error) {
	asks := *in.Action
	asks.Space = cmp.Or(sp, asks.Space)
	q, err := s.evaluations.asked(ctx, c, asks)
	if err != nil {
		return policy.Explanation{}, err
	}
	action, err := s.outside.Preview(ctx, c.Caller, q)
	if err != nil {
		return policy.Explanation{}, err
	}
	if p := in.PolicyChoice; sp == "" && p.Policy == "" && p.Overrides == nil && p.YAML == "" && p.Cedar == "" {
		b = nil
	}
	return s.gate.Explain(ctx, action, b)
}

// preview explains what would be decided if the caller's agent sent the operation.
func (s *Policies) preview(ctx context.Context, c wire.Call, sp space.Space, b policy.Bundle, raw json.RawMessage) (policy.Explanation,
	error) {
	m, err := run.ParseOperations([]json.RawMessage{raw})
	if err == nil {
		err = m.Refused()
	}
	if err != nil {
		return policy.Explanation{}, err
	}
	action, err := s.runs.Preview(sp, c.Origin(), b, m.Operations[0])
	if err != nil {
		return policy.Explanation{}, err
	}
	return s.gate.Explain(ctx, action, &b)
}
