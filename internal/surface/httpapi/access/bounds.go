package access

import (
	"cmp"
	"context"
	"errors"

	"agentbox/internal/domain/engine"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/token"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/surface/httpapi/wire"
)

// housed are the parameters that name a document which belongs to a room, and the projection of each.
var housed = map[string]string{
	"space_id": space.Projection, "run_id": run.Projection, "approval_id": policy.ApprovalProjection,
	"thread_id": "threads", "step_id": "steps", "tool_call_id": "tool_calls", "artifact_id": "artifacts", "incident_id": "incidents",
}

// Bound asks the capability token of a caller about an operation, before it begins: once for each parameter that says whose room counts.
func (a *Access) Bound(ctx context.Context, c wire.Call, n wire.Needs, about map[string]string) error {
	kind, _ := policy.KindOf(n.Action)
	use := token.Use{Action: n.Action, Anywhere: n.Judged || kind.Anywhere}
	if n.Reads != "" {
		use.Reads = token.Names(n.Reads, "", "")
	}
	if len(about) == 0 {
		return a.Permitted(ctx, c, use)
	}
	for name, value := range about {
		room, err := a.RoomOf(ctx, c.Caller.Workspace, name, value)
		if err != nil {
			return err
		}
		use.Room = room
		if n.Reads != "" {
			use.Reads = token.Names(n.Reads, value, room)
		}
		if err := a.Permitted(ctx, c, use); err != nil {
			return err
		}
	}
	return nil
}

// Barred refuses an operation that the caller's kind or role rules out, before its body is read.
func (a *Access) Barred(ctx context.Context, c wire.Call, n wire.Needs, about map[string]string) error {
	act := policy.Action{Type: n.Action, Workspace: c.Caller.Workspace, Principal: c.Caller.Principal, Token: c.Caller.Token}
	if in, err := id.Parse[id.Space](about["space_id"]); err == nil {
		act.Space = in
	}
	if n.Action == policy.WorkspaceCreate && c.Caller.Workspace != id.DefaultWorkspace {
		return workspace.ErrNotHere
	}
	return a.gate.Barred(ctx, c.Origin(), c.Caller, act, n.Least)
}

// engineCodes are the errors for an engine whose capability token does not permit an operation.
var engineCodes = map[string]*fault.Error{
	policy.ReasonScopeAction: engine.ErrActionNot, policy.ReasonScopeActionRequired: engine.ErrActionNot,
	policy.ReasonScopeRoom: engine.ErrRoomNot, policy.ReasonScopeRoomRequired: engine.ErrRoomRequired,
}

// Permitted asks the capability token of a caller about a use.
func (a *Access) Permitted(ctx context.Context, c wire.Call, use token.Use) error {
	err := a.gate.Bound(ctx, c.Origin(), c.Caller, use)
	told, ok := engineCodes[fault.CodeOf(err)]
	switch {
	case !ok || !c.Caller.Engine:
		return err
	case told == engine.ErrActionNot:
		return engine.NotPermitted(use.Action)
	}
	return told
}

// RoomOf returns the room of the thing that a parameter names. It returns none for a thing of the whole workspace, and for an unknown one.
func (a *Access) RoomOf(ctx context.Context, ws id.Workspace, name, value string) (id.Room, error) {
	switch name {
	case "room_id":
		return id.Room(value), nil
	case "stream_id":
		room, err := id.Parse[id.Room](value)
		if err != nil {
			room = ""
		}
		return room, nil
	case "event_id":
		e, err := a.Query.Event(ctx, ws, id.Event(value))
		return e.Room, unlessMissing(err)
	}
	doc, _, err := projection.Load[struct {
		Room id.Room `json:"room_id"`
	}](ctx, a.docs, ws, housed[name], value)
	return doc.Room, unlessMissing(err)
}

// unlessMissing leaves it to the operation to say that something is not there.
func unlessMissing(err error) error {
	if errors.Is(err, projection.ErrNotFound) || fault.KindOf(err) == fault.NotFound && err != nil {
		return nil
	}
	return err
}

// Under returns the capability token that the gate judges. It is the token that the body names, else the caller's own. If the
// caller acts under a token, the body may name only tokens derived from it.
func (a *Access) Under(ctx context.Context, c wire.Call, named id.Token) (id.Token, error) {
	if named == "" || c.Caller.Token == "" {
		return cmp.Or(named, c.Caller.Token), nil
	}
	narrowed, err := a.identity.ActsFor(ctx, c.Caller, "", named)
	return narrowed.Token, err
}
