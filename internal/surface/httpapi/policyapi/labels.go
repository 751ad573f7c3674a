package policyapi

import (
	"context"
	"net/http"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
	"agentbox/internal/service/labels"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// ResourceLabel is the label of a resource.
type ResourceLabel struct {
	Type     string   `json:"resource_type,omitempty" doc:"Small letters, digits and underscores: space, artifact, room, or a word of your own"`
	ID       string   `json:"resource_id,omitempty" doc:"At most 200 bytes"`
	Label    string   `json:"label,omitempty" doc:"public, internal, restricted (which takes room_id), confidential or sensitive_pii"`
	Room     id.Room  `json:"room_id,omitempty" maxLength:"100" doc:"The only room in which it is used, where it is restricted or stricter"`
	Purposes []string `json:"purpose_tags,omitempty" doc:"For which it is kept; at most 20 words"`
}

// accessRequest asks to come near a resource.
type accessRequest struct {
	ResourceLabel
	Run           id.Run `json:"run_id,omitempty" maxLength:"100"`
	Action        string `json:"action,omitempty" doc:"read or write"`
	Justification string `json:"justification,omitempty" doc:"Why, where the purpose is none of the label's; at most 2,000 bytes"`
}

// accessDecision is the answer to a request for access to a resource.
type accessDecision struct {
	Decision    policy.Outcome `json:"decision" enum:"allow,deny,require_approval"`
	Code        string         `json:"reason_code"`
	Reason      string         `json:"reason,omitempty"`
	Suggestion  string         `json:"suggestion,omitempty"`
	Enforcement string         `json:"enforcement_mode" enum:"enforce"`
	Blocked     bool           `json:"blocked"`
	Label       label.Label    `json:"resolved_label" doc:"By which it was decided"`
	Approval    id.Approval    `json:"approval_id,omitempty" doc:"The question that is open about it; once it is approved, send the same request again"`
	Event       id.Event       `json:"event_id,omitempty" doc:"That records it"`
}

type labelList struct {
	Labels []label.Label `json:"labels" nullable:"false"`
	Next   string        `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

// Labels are the operations for labels.
type Labels struct {
	access.Part
	labels *labels.Service
}

// NewLabels returns the operations for labels.
func NewLabels(p access.Part, labels *labels.Service) *Labels {
	return &Labels{p, labels}
}

// Register adds the operations to the server.
func (s *Labels) Register() {
	wire.HandleOnce(s.Server, wire.Operation{
		ID: "label-resource", Needs: wire.DoesThere(policy.LabelSet), Method: http.MethodPost, Path: "/v1/resources/labels", Tag: "labels",
		Summary: "Label a resource", Status: http.StatusCreated, Repeat: wire.RepeatRecalled,
		Detail: "What bears no label is internal. Whoever would let anybody nearer than before, by a lower label, another room or more " +
			"purposes, has to be an admin.",
	}, access.Recalled[label.Label](s.Access, label.Projection, label.Entity),
		func(ctx context.Context, c wire.Call, in *struct{ Body ResourceLabel }) (label.Label, error) {
			b := in.Body
			about, err := s.Resource(ctx, c, b.Type, b.ID)
			if err != nil {
				return label.Label{}, err
			}
			return s.labels.Label(ctx, c.Once(), c.Caller.Workspace, label.Label{
				Resource: about, Level: label.Level(b.Label), Room: b.Room, Purposes: b.Purposes,
			})
		}, func(l label.Label) *struct{ Body label.Label } { return &struct{ Body label.Label }{l} })
	wire.Handle(s.Server, wire.Operation{
		ID: "list-labels", Needs: wire.Shows("label", "room_id"), Method: http.MethodGet, Path: "/v1/resources/labels", Tag: "labels",
		Summary: "List labels, by their resources",
		Detail:  "With resource_type and resource_id: the label of this one, also where it is the default.",
	}, s.listLabels)
	wire.HandleOnce(s.Server, wire.Operation{
		ID: "request-data-access", Engines: true, Needs: wire.DoesThere(policy.DataAccess), Method: http.MethodPost,
		Path: "/v1/data/access/requests", Tag: "labels", Summary: "Ask to come near labelled data", Repeat: wire.RepeatRecalled,
		Detail: "Restricted data are used in their room only. An access to what is confidential or stricter is recorded, and lets the same " +
			"principal read it for an hour. Personal data are for the purposes of " +
			"their label; for another one it takes a justification, and without that a person decides.",
	}, func(ctx context.Context, c wire.Call) (labels.Answer, error) {
		return s.labels.Recall(ctx, c.Caller.Workspace, c.Repeated)
	}, s.requestAccess, shownAccess)
}

func (s *Labels) requestAccess(ctx context.Context, c wire.Call, in *struct{ Body accessRequest }) (labels.Answer, error) {
	b := in.Body
	about, err := s.Resource(ctx, c, b.Type, b.ID)
	if err != nil {
		return labels.Answer{}, err
	}
	return s.labels.Request(ctx, c.Once(), c.Caller.Workspace, b.Run, label.Request{
		Resource: about, Action: b.Action, Level: label.Level(b.Label), Room: b.Room, Purposes: b.Purposes, Justification: b.Justification,
	})
}

func shownAccess(a labels.Answer) *struct{ Body accessDecision } {
	d := a.Decision
	return &struct{ Body accessDecision }{accessDecision{
		Decision: d.Outcome, Code: d.ReasonCode, Reason: d.Reason, Suggestion: d.Suggestion, Enforcement: "enforce",
		Blocked: d.Outcome != policy.Allow,
		Label:   a.Label, Approval: a.Approval, Event: a.Event,
	}}
}

func (s *Labels) listLabels(ctx context.Context, c wire.Call, in *struct {
	Type  string                         `query:"resource_type" maxLength:"50" doc:"With resource_id"`
	ID    string                         `query:"resource_id" maxLength:"200"`
	Label string                         `query:"label" enum:"public,internal,restricted,confidential,sensitive_pii" doc:"Only these"`
	Room  string                         `query:"room_id" maxLength:"100"`
	Limit int                            `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"How many at most"`
	After access.Cursor[access.LabelKey] `query:"cursor" maxLength:"256" doc:"The next_cursor of the page before"`
}) (*struct{ Body labelList }, error) {
	if in.Room != "" && in.Label != "" {
		return nil, fault.New(fault.Invalid, "invalid_parameter", "select by room_id or by label, not by both")
	}
	about, err := s.Resource(ctx, c, in.Type, in.ID)
	if err != nil {
		return nil, err
	}
	found, err := s.labels.Labels(ctx, c.Caller.Workspace, labels.Filter{
		Resource: about, Level: label.Level(in.Label), Room: id.Room(in.Room), After: string(in.After.After), Limit: in.Limit + 1,
	})
	if err != nil {
		return nil, err
	}
	out := labelList{}
	out.Labels, out.Next = access.Cut(found, in.Limit, func(l label.Label) string { return l.Key() })
	return &struct{ Body labelList }{out}, nil
}
