package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/tool"
	"agentbox/internal/driver/fetch"
	"agentbox/internal/driver/mcpclient"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/runs/history"
	"agentbox/internal/service/tools"
	"agentbox/internal/service/toolservers"
)

// toolServers makes the service of MCP servers.
func (a *App) toolServers(web *fetch.Client, gate policy.Gate) {
	a.Servers = toolservers.New(toolservers.Parts{
		Log: a.counted, Docs: a.Log, Gate: gate, Clock: a.clock, Logger: a.logger, Keys: a.Models.Keys,
		Dialer: mcpclient.New(Version, web.Dial), Start: a.startServer,
	})
	a.closers = append(a.closers, a.Servers.Close)
}

// startServer starts the process of an MCP server in a space: a background run like any other, in the name of the requester.
func (a *App) startServer(ctx context.Context, in toolservers.Place, command string) (io.ReadWriteCloser, error) {
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
	doc, err := a.Runs.Start(context.WithoutCancel(ctx), origin, runs.Request{
		Workspace: in.Workspace, Space: in.Space, Title: "MCP server", Message: message, Background: true,
	})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	return &served{a: a, origin: origin, ws: in.Workspace, run: doc.ID, ctx: ctx, stop: stop}, nil
}

// served is the standard input and output of a process in a space. One goroutine reads, and one writes.
type served struct {
	a      *App
	origin event.Origin
	ws     id.Workspace
	run    id.Run
	ctx    context.Context
	stop   context.CancelFunc
	ends   sync.Once

	seen uint64 // the last frame of its output
	left []byte // what was read and not taken
	over error
}

var errServedLong = errors.New("the process has printed more than is kept of the output of a run")

// Read implements io.Reader: what the process prints.
func (s *served) Read(p []byte) (int, error) {
	const page = 64
	for len(s.left) == 0 {
		if s.over != nil {
			return 0, s.over
		}
		if err := s.a.Runs.Live.Wait(s.ctx, s.run, s.seen); err != nil {
			return 0, err
		}
		if s.ctx.Err() != nil {
			return 0, io.EOF
		}
		frames, err := s.a.Runs.Live.Read(s.ctx, s.run, s.seen+1, page)
		if err != nil {
			return 0, err
		}
		for _, f := range frames {
			s.seen = f.N
			switch f.Kind {
			case livestream.Stdout:
				s.left = append(s.left, f.Data...)
			case livestream.Cut:
				s.over = errServedLong
			case livestream.Complete:
				s.over = io.EOF
			}
		}
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

// Write implements io.Writer: the process gets the bytes as its input. While a person is asked about its command it waits.
func (s *served) Write(p []byte) (int, error) {
	for n := 0; n < len(p); {
		piece := p[n:min(len(p), n+space.MaxInputBytes)]
		err := s.a.Runs.Input.Give(s.ctx, s.origin, s.ws, s.run, runs.Given{Stdin: piece})
		if errors.Is(err, runs.ErrNotStarted) && errand.Pause(s.ctx, s.a.clock, errand.Ask) {
			continue
		}
		if err != nil {
			return n, err
		}
		n += len(piece)
	}
	return len(p), nil
}

// Close implements io.Closer: it ends the process with all its children.
func (s *served) Close() error {
	var err error
	s.ends.Do(func() {
		err = s.a.Runs.Cancel(context.WithoutCancel(s.ctx), s.origin, s.ws, s.run, "nobody talks with the MCP server any more")
		if errors.Is(err, runs.ErrEnded) {
			err = nil
		}
		s.stop()
	})
	return err
}

// agentTools returns the tools that a blueprint's agent is offered: those that come with the program, and those of MCP servers.
func (a *App) agentTools(ctx context.Context, ws id.Workspace, b blueprint.Blueprint) ([]tool.Tool, event.Digest, error) {
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
	said, err := u.a.Servers.Call(ctx, toolservers.Use{
		Place: toolservers.Place{Origin: u.requester(), Workspace: u.work.Workspace, Room: u.asked.Room, Space: u.space, Run: u.work.Run},
		Call:  u.call, Task: task, Seconds: b.Effective().Limits.ToolSeconds, Asks: u.shows,
	})
	if err != nil {
		return errand.Outcome{}, err
	}
	return u.say(ctx, u.work, u.call, u.name, said)
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
	u.a.Runs.Frames.Result(ctx, u.work.Run, string(u.call), history.Required(run.Operation{ID: string(u.call), Type: u.name}, doc))
}
