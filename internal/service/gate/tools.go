package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/room"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/projection"
)

// toolName returns the one name of a tool: an operation is called the same with and without the prefix.
func toolName(name string) string {
	bare := strings.TrimPrefix(name, run.ToolPrefix)
	if _, ok := run.SpecOf(bare); ok {
		return bare
	}
	return name
}

// toolOf returns the tool that an action uses; false for one that uses none.
func toolOf(a policy.Action, k policy.Kind) (string, bool) {
	if operation, ok := run.SpecOfAction(a.Type); ok {
		return operation.Type, true
	}
	if a.Operation != "" && a.Tool == "" && a.Type != policy.FileList && a.Type != policy.SpaceDiff && k.SideEffect != policy.Control &&
		k.SideEffect != policy.Record {
		return a.Type, true // an operation without a row counts too; listing a folder and comparing do not
	}
	return toolName(a.Tool), a.Type == policy.ToolCall || k.Outside && a.Tool != ""
}

// listed is the list of tools in the document of a room. A nil list is unset.
type listed struct {
	Context struct {
		Tools *[]string `json:"tool_allowlist"`
	} `json:"context"`
}

// tools returns the list of tools of a room: the room's own, or the inherited list of the workspace, or nil if neither is set. It also
// returns the version of the document with this list, and 0 for the other one. An action without a room has the inherited list; otherwise
// leaving the room out would bypass the list.
func (g *Gate) tools(ctx context.Context, ws id.Workspace, r id.Room) (list *[]string, own, inherited uint64, err error) {
	var doc listed
	if r != "" {
		if doc, own, err = g.rooms.Load(ctx, g.Docs, ws, room.Projection, string(r)); err != nil && !errors.Is(err, projection.ErrNotFound) {
			return nil, 0, 0, err
		}
	}
	if doc.Context.Tools != nil {
		return doc.Context.Tools, own, 0, nil
	}
	doc, inherited, err = g.rooms.Load(ctx, g.Docs, ws, room.DefaultsProjection, string(ws))
	if errors.Is(err, projection.ErrNotFound) {
		err = nil
	}
	return doc.Context.Tools, 0, inherited, err
}

// tool refuses a tool that the room's list does not name, for every principal and under every policy. A person who sends or fetches files
// directly does not use a tool. An agent or a service that does so uses one, over every interface.
func (g *Gate) tool(ctx context.Context, c *consideration) (done bool, err error) {
	a := c.ruling.Action
	tool, ok := toolOf(a, c.kind)
	if !ok {
		return false, nil
	}
	in := a.Room
	if c.space.ID != "" {
		in = c.space.Room
	}
	list, own, inherited, err := g.tools(ctx, a.Workspace, in)
	if err != nil {
		return true, err
	}
	c.ruling.Basis.Room, c.ruling.Basis.Defaults = own, inherited
	transfer := c.who.Kind == id.User && a.Operation == "" && strings.HasPrefix(a.Type, "file.")
	if list == nil || transfer || slices.ContainsFunc(*list, func(name string) bool { return toolName(name) == tool }) {
		return false, nil
	}
	reason := fmt.Sprintf("the room's list of allowed tools does not name %s", policy.Brief(tool))
	switch {
	case len(*list) == 0:
		reason = "the room's list of allowed tools is empty, so that none may be used"
	case tool == "":
		reason = "the room has a list of allowed tools, and no tool is named"
	}
	c.deny(policy.ReasonToolNotAllowed, reason,
		"Use a tool that the list names (`agentbox room show ROOM`), or ask an owner or an admin to change it: `agentbox room update ROOM "+
			"--tools ...`.")
	return true, nil
}

// sameTools reports whether the lists of tools have not changed since a ruling, for the room of its action.
func (g *Gate) sameTools(ctx context.Context, r policy.Ruling, k policy.Kind, in id.Room) (bool, error) {
	if _, ok := toolOf(r.Action, k); !ok {
		return true, nil
	}
	_, own, inherited, err := g.tools(ctx, r.Action.Workspace, in)
	return err == nil && own == r.Basis.Room && inherited == r.Basis.Defaults, err
}
