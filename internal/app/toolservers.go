package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/driver/endpoint/keys"
	"agentbox/internal/driver/fetch"
	"agentbox/internal/driver/mcpclient"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/toolservers"
)

// toolServers makes the service of MCP servers.
func toolServers(a *App, web *fetch.Client, gate policy.Gate) error {
	grants, err := keys.OpenGrants(a.path(grantsDir), a.keys, rand.Reader)
	if err != nil {
		return err
	}
	a.Servers = toolservers.New(toolservers.Parts{
		Log: a.counted, Docs: a.Log, Gate: gate, Clock: a.clock, Logger: a.logger, Keys: a.Models.Keys, Grants: grants,
		Dialer: mcpclient.New(Version, web.Dial), Start: startServer(a),
	})
	a.closers = append(a.closers, a.Servers.Close)
	return nil
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
