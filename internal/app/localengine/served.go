package localengine

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
	"agentbox/internal/service/runs/history"
	"agentbox/internal/service/tools"
	"agentbox/internal/service/toolservers"
)

// tools returns the tools that a blueprint's agent is offered: those that come with the program, and those of MCP servers.
func (e *Engine) tools(ctx context.Context, ws id.Workspace, b blueprint.Blueprint) ([]tool.Tool, event.Digest, error) {
	offered, hash, err := tools.Offered(tools.OfferOf(b))
	if err != nil || len(b.Tools.MCP) == 0 {
		return offered, hash, err
	}
	more, err := e.Servers.Offered(ctx, ws, b)
	if err != nil {
		return nil, event.Digest{}, err
	}
	offered = append(offered, more...)
	hash, err = tool.HashOf(offered)
	return offered, hash, err
}

// prepareTool checks the arguments of a call, and returns what Operate is given.
func prepareTool(t tool.Tool, arguments json.RawMessage) (json.RawMessage, error) {
	if t.Source != tool.Builtin {
		return toolservers.Prepare(t, arguments)
	}
	return tools.Prepare(t.Name, arguments)
}

// serve calls a tool of an MCP server.
func (u use) serve(ctx context.Context) (errand.Outcome, error) {
	var task toolservers.Task
	if err := json.Unmarshal(u.args, &task); err != nil {
		return errand.Outcome{}, err
	}
	mission, ok := errand.ReadMission(u.work.Input)
	if !ok {
		return errand.Outcome{}, fault.New(fault.Invalid, "input_invalid", "the run has no task of an agent")
	}
	b, _, err := u.Blueprints.Read(ctx, u.work.Workspace, mission.Blueprint, mission.Edition)
	if err != nil {
		return errand.Outcome{}, err
	}
	var began time.Time
	said, err := u.Servers.Call(ctx, toolservers.Use{
		Place: toolservers.Place{Origin: u.requester(), Workspace: u.work.Workspace, Room: u.asked.Room, Space: u.space, Run: u.work.Run},
		Call:  u.call, Task: task, Seconds: min(b.Effective().Limits.ToolSeconds, int(math.Ceil(u.left.Most().Seconds()))), Asks: u.shows,
		Allowed: func() { began = u.Clock.Now() },
	})
	worked := int64(0)
	if !began.IsZero() {
		worked = max(u.Clock.Now().Sub(began), 0).Milliseconds()
	}
	if err != nil {
		return errand.Outcome{Worked: worked}, err
	}
	o, err := u.say(ctx, u.work, u.call, u.name, said)
	o.Worked = worked
	return o, err
}

// shows shows people who watch the run a question about its call.
func (u use) shows(ctx context.Context, question id.Approval) {
	if !u.once(u.work.Run, string(u.call)+" "+string(question)) {
		return
	}
	doc, err := u.Gate.Approvals.Get(ctx, u.work.Workspace, question)
	if err != nil {
		return
	}
	u.question(ctx, u.work, history.Required(run.Operation{ID: string(u.call), Type: u.name}, doc))
}
