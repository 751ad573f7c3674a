package policyapi

import (
	"context"
	"net/http"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/query"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// actionTypeRequest declares an action type of the workspace's own.
type actionTypeRequest struct {
	Description string            `json:"description" doc:"What it does, in one line of at most 200 bytes"`
	SideEffect  policy.SideEffect `json:"side_effect" doc:"pure, read, filesystem, process or network: the kill switch and the limit of effects hold for the last three"`
	Zone        event.Zone        `json:"zone,omitempty" doc:"sandbox, supervised or high_stakes; supervised unless named. What takes high_stakes asks a person, and an admin answers"`
	Reversible  bool              `json:"reversible,omitempty" doc:"It can be undone; what cannot is approved for exactly its request, and by no template"`
	Asks        bool              `json:"always_asks,omitempty" doc:"A person approves it each time, whatever a policy says"`
	Targets     []string          `json:"target_kinds,omitempty" maxItems:"7" doc:"Its target is one of these: host, url, address, name. Or it has none and is about one of these: room, run, workspace. Every target and none unless named"`
}

type actionTypeList struct {
	Types []policy.ActionType `json:"action_types" nullable:"false"`
	Next  string              `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

type actionTypeAnswer struct{ Body policy.ActionType }

// ActionTypePath names an action type.
type ActionTypePath struct {
	Type string `path:"action_type" maxLength:"64" doc:"The action type, as deploy.production"`
}

// ActionTypes are the operations for action types of a workspace.
type ActionTypes struct {
	access.Part
	gate *gate.Gate
}

// NewActionTypes returns the operations for action types of a workspace.
func NewActionTypes(p access.Part, gate *gate.Gate) *ActionTypes {
	return &ActionTypes{p, gate}
}

// Register adds the operations to the server.
func (s *ActionTypes) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "list-action-types", Needs: wire.Shows("policy"), Method: http.MethodGet, Path: "/v1/action-types", Tag: "policies",
		Summary: "List the action types that the workspace declared, by name",
		Detail:  "Those that come with Agentbox are listed by GET /v1/action-registry, and these beside them.",
	}, s.listActionTypes)
	wire.Handle(s.Server, wire.Operation{
		ID: "get-action-type", Needs: wire.Shows("policy"), Method: http.MethodGet, Path: "/v1/action-types/{action_type}", Tag: "policies",
		Summary: "Show an action type that the workspace declared",
	}, func(ctx context.Context, c wire.Call, in *ActionTypePath) (*actionTypeAnswer, error) {
		found, err := s.gate.ActionTypes.Get(ctx, c.Caller.Workspace, in.Type)
		return &actionTypeAnswer{found}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "put-action-type", Needs: wire.Does(policy.ActionTypeDeclare), Method: http.MethodPut, Path: "/v1/action-types/{action_type}",
		Tag: "policies", Summary: "Declare an action type, or change it", Repeat: wire.RepeatRecalled,
		Detail: "For what a program of yours does outside and asks about before. The name is noun.verb, and its noun is none of Agentbox's. A " +
			"change makes a new version: what was asked, approved or granted under " +
			"an older one holds no more. A declaration that holds already changes nothing.",
	}, func(ctx context.Context, c wire.Call, in *struct {
		ActionTypePath
		Body actionTypeRequest
	}) (*actionTypeAnswer, error) {
		made, err := wire.Once(c, func() (policy.ActionType, error) {
			return access.Then[policy.ActionType](ctx, s.Access, c, query.Subject{Projection: policy.ActionTypeProjection,
				EntityType: policy.ActionTypeEntity, Key: in.Type})
		}, func() (policy.ActionType, error) {
			b := in.Body
			return s.gate.ActionTypes.Declare(ctx, c.Once(), c.Caller.Workspace, policy.Declare{
				Name: in.Type, Description: b.Description, SideEffect: b.SideEffect, Zone: b.Zone, Reversible: b.Reversible, Asks: b.Asks,
				Targets: b.Targets,
			})
		})
		return &actionTypeAnswer{made}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "delete-action-type", Needs: wire.Does(policy.ActionTypeRetire), Method: http.MethodDelete, Path: "/v1/action-types/{action_type}",
		Tag: "policies", Summary: "Retire an action type", Repeat: wire.RepeatRecalled,
		Detail: "From now on what is of this type is denied. It stays to be seen, and its name can be declared anew, under a higher version.",
		Status: http.StatusNoContent,
	}, func(ctx context.Context, c wire.Call, in *struct {
		ActionTypePath
		Reason string `query:"reason" maxLength:"2000"`
	}) (*struct{}, error) {
		return wire.Once(c, func() (*struct{}, error) { return nil, nil }, func() (*struct{}, error) {
			_, err := s.gate.ActionTypes.Retire(ctx, c.Once(), c.Caller.Workspace, in.Type, in.Reason)
			return nil, err
		})
	})
}

func (s *ActionTypes) listActionTypes(ctx context.Context, c wire.Call, in *struct {
	Retired bool                                `query:"retired" doc:"The retired ones, too"`
	Limit   int                                 `query:"limit" minimum:"1" maximum:"200" default:"100" doc:"How many at most"`
	After   access.Cursor[access.ActionTypeKey] `query:"cursor" maxLength:"256" doc:"The next_cursor of the page before"`
}) (*struct{ Body actionTypeList }, error) {
	found, err := s.gate.ActionTypes.List(ctx, c.Caller.Workspace, in.Retired, string(in.After.After), in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := actionTypeList{}
	out.Types, out.Next = access.Cut(found, in.Limit, func(t policy.ActionType) string { return t.Name })
	return &struct{ Body actionTypeList }{out}, nil
}

// registry returns the actions that there are: those that come with the program, and behind them those that the workspace declared.
func registry(ctx context.Context, g *gate.Gate, ws id.Workspace) ([]policy.Kind, error) {
	all := policy.Registry()
	own, err := g.ActionTypes.List(ctx, ws, false, "", policy.MaxActionTypes)
	for _, t := range own {
		all = append(all, t.Kind())
	}
	return all, err
}
