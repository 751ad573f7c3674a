package app

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"time"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
	"agentbox/internal/driver/fetch"
	"agentbox/internal/driver/mcpclient"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/runs/history"
	"agentbox/internal/service/tools"
	"agentbox/internal/service/toolservers"
)

// toolServers makes the service of MCP servers.
func toolServers(a *App, web *fetch.Client, gate policy.Gate) {
	a.Servers = toolservers.New(toolservers.Parts{
		Log: a.counted, Docs: a.Log, Gate: gate, Clock: a.clock, Logger: a.logger, Keys: a.Models.Keys,
		Dialer: mcpclient.New(Version, web.Dial), Start: startServer(a),
	})
	a.closers = append(a.closers, a.Servers.Close)
}

// startServer starts the process of an MCP server in a space: a background run like any other, in the name of the requester.
func startServer(a *App) func(context.Context, toolservers.Place, string) (io.ReadWriteCloser, error) {
	return func(ctx context.Context, in toolservers.Place, command string) (io.ReadWriteCloser, error) {
		operation, err := json.Marshal(run.Operation{Type: run.OpShell, ID: "serve", Command: command, Stdin: true})
		if err != nil {
			return nil, err
		}
		message, err := run.ParseOperations([]json.RawMessage{operation})
		if err != nil {
			return nil, err
		}
		origin := in.Origin
		origin.Key, origin.Command = "", event.Digest{} // the request's own key is that of something else
		return a.Runs.Pipe(ctx, origin, runs.Request{
			Workspace: in.Workspace, Space: in.Space, Title: "MCP server", Message: message, Background: true,
		})
	}
}

// agentTools returns the tools that a blueprint's agent is offered: those that come with the program, and those of MCP servers.
func agentTools(a *App) func(context.Context, id.Workspace, blueprint.Blueprint) ([]tool.Tool, event.Digest, error) {
	return func(ctx context.Context, ws id.Workspace, b blueprint.Blueprint) ([]tool.Tool, event.Digest, error) {
		offered, hash, err := offeredTools(b)
		if err != nil || len(b.Tools.MCP) == 0 {
			return offered, hash, err
		}
		more, err := a.Servers.Offered(ctx, ws, b)
		if err != nil {
			return nil, event.Digest{}, err
		}
		offered = append(offered, more...)
		hash, err = tool.HashOf(offered)
		return offered, hash, err
	}
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
	b, _, err := u.a.Blueprints.Read(ctx, u.work.Workspace, mission.Blueprint, mission.Edition)
	if err != nil {
		return errand.Outcome{}, err
	}
	var began time.Time
	said, err := u.a.Servers.Call(ctx, toolservers.Use{
		Place: toolservers.Place{Origin: u.requester(), Workspace: u.work.Workspace, Room: u.asked.Room, Space: u.space, Run: u.work.Run},
		Call:  u.call, Task: task, Seconds: min(b.Effective().Limits.ToolSeconds, int(math.Ceil(u.left.Most().Seconds()))), Asks: u.shows,
		Allowed: func() { began = u.a.clock.Now() },
	})
	worked := int64(0)
	if !began.IsZero() {
		worked = max(u.a.clock.Now().Sub(began), 0).Milliseconds()
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
	doc, err := u.a.Gate.Approvals.Get(ctx, u.work.Workspace, question)
	if err != nil {
		return
	}
	u.question(ctx, u.work, history.Required(run.Operation{ID: string(u.call), Type: u.name}, doc))
}
