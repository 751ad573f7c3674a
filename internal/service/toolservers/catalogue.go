package toolservers

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/mcp"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/tool"
	"agentbox/internal/domain/web"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// List returns the servers of a workspace, by name.
func (s *Service) List(ctx context.Context, ws id.Workspace) ([]mcp.Held, error) {
	return projection.List[mcp.Held](ctx, s.Docs, projection.Query{Workspace: ws, Name: mcp.Projection, Limit: mcp.MaxServers,
		Index: projection.Index{Name: "living", Value: "true"}})
}

// Get returns a server of a workspace.
func (s *Service) Get(ctx context.Context, ws id.Workspace, name string) (mcp.Held, error) {
	held, _, err := load[mcp.Held](ctx, s.Docs, ws, mcp.Projection, name)
	if err == nil && !held.Living() {
		err = mcp.ErrNotFound
	}
	return held, err
}

// clean returns a server in its one form, or why it cannot work.
func clean(server mcp.Server) (mcp.Server, error) {
	if server.URL != "" {
		at, err := web.Clean(server.URL)
		if err != nil {
			return server, err
		}
		if server.URL = at; (server.Key != "" || server.Login) && at[:len("https:")] != "https:" && !web.Inward(at) {
			return server, fault.New(fault.Invalid, "mcp_server_invalid", "a key or a token is sent over https only, or within the own network")
		}
	}
	if server.Issuer != "" {
		if at, err := web.Clean(server.Issuer); err != nil || at[:len("https:")] != "https:" && !web.Inward(at) {
			return server, fault.New(fault.Invalid, "mcp_server_invalid", "issuer is an address of https, or one within the own network")
		}
	}
	return server, server.Check()
}

// Put adds a server, or changes it. Another address or command ends the trust in its tools.
func (s *Service) Put(ctx context.Context, origin event.Origin, ws id.Workspace, server mcp.Server) (mcp.Held, error) {
	next, wrong := clean(server)
	var was mcp.Server
	err := journal.Again(func() error {
		if wrong != nil {
			return errors.Join(s.may(ctx, origin, ws, policy.MCPConfigure, string(ws)), wrong)
		}
		held, version, err := load[mcp.Held](ctx, s.Docs, ws, mcp.Projection, next.Name)
		if err != nil {
			return err
		}
		count, counted, err := load[mcp.Count](ctx, s.Docs, ws, mcp.CountProjection, string(ws))
		if err != nil {
			return err
		}
		was = held.Server
		typ, data, err := held.Put(next, count.Living)
		if err != nil || typ == "" { // a change without an effect needs the same right
			return errors.Join(s.may(ctx, origin, ws, policy.MCPConfigure, next.Name), err)
		}
		return s.record(ctx, origin, ws, policy.MCPConfigure, typ, next.Name, data, []event.DocumentVersion{
			{Projection: mcp.Projection, Key: next.Name, Version: version},
			{Projection: mcp.CountProjection, Key: string(ws), Version: counted},
		})
	})
	if err != nil {
		return mcp.Held{}, err
	}
	s.end(func(at where) bool { return at.ws == ws && at.server == next.Name && s.another(at, next) })
	if was.Login && was != next {
		if err := s.forget(ctx, ws, next.Name); err != nil {
			return mcp.Held{}, err
		}
	}
	return s.Get(ctx, ws, next.Name)
}

// another reports whether a session or a login is with another server than the name stands for now. The caller holds the lock.
func (s *Service) another(at where, now mcp.Server) bool {
	c, l := s.open[at], s.logins[at]
	return c != nil && c.server != now || l != nil && l.server != now
}

// Remove takes a server out of the workspace.
func (s *Service) Remove(ctx context.Context, origin event.Origin, ws id.Workspace, name, reason string) error {
	login := false
	err := journal.Again(func() error {
		held, version, err := load[mcp.Held](ctx, s.Docs, ws, mcp.Projection, name)
		if err != nil {
			return err
		}
		login = held.Server.Login
		data, err := held.Remove(reason)
		if err != nil {
			return errors.Join(s.may(ctx, origin, ws, policy.MCPConfigure, string(ws)), err)
		}
		return s.record(ctx, origin, ws, policy.MCPConfigure, mcp.EventRemoved, name, data, []event.DocumentVersion{
			{Projection: mcp.Projection, Key: name, Version: version},
		})
	})
	if err == nil {
		s.end(func(at where) bool { return at.ws == ws && at.server == name })
	}
	if err == nil && login {
		err = s.forget(ctx, ws, name)
	}
	return err
}

// Trust records that a person has looked at tools and releases them for agents. Each is named with the hash that they were shown.
func (s *Service) Trust(ctx context.Context, origin event.Origin, ws id.Workspace, name string, tools []mcp.Named) (mcp.Held, error) {
	err := journal.Again(func() error {
		held, version, err := load[mcp.Held](ctx, s.Docs, ws, mcp.Projection, name)
		if err != nil {
			return err
		}
		data, err := held.Trust(tools)
		if err != nil || len(data.Tools) == 0 {
			return errors.Join(s.may(ctx, origin, ws, policy.MCPTrust, name), err)
		}
		return s.record(ctx, origin, ws, policy.MCPTrust, mcp.EventTrusted, name, data, []event.DocumentVersion{
			{Projection: mcp.Projection, Key: name, Version: version},
		})
	})
	if err != nil {
		return mcp.Held{}, err
	}
	return s.Get(ctx, ws, name)
}

// Hash returns the content hash of a server, which blueprints pin.
func (s *Service) Hash(ctx context.Context, ws id.Workspace, name string) (event.Digest, error) {
	held, err := s.Get(ctx, ws, name)
	return held.Hash(), err
}

// Offered returns the tools of the servers that a blueprint names, by name: those that a person trusts as they are now.
func (s *Service) Offered(ctx context.Context, ws id.Workspace, b blueprint.Blueprint) ([]tool.Tool, error) {
	var out []tool.Tool
	for _, r := range b.References() {
		if r.Kind != blueprint.ToMCP {
			continue
		}
		held, err := s.Get(ctx, ws, r.Name)
		if err != nil {
			return nil, fault.Wrap(err, fault.KindOf(err), fault.CodeOf(err), "tools.mcp names %s", r.Name)
		}
		for _, seen := range held.Usable() {
			name := mcp.Offered(held.Name, seen.Name)
			if !b.Tools.Serves(held.Name, name) {
				continue
			}
			one := tool.Tool{Name: name, Title: seen.Title, Description: seen.Description, Input: seen.Input, Output: seen.Output,
				Effect: policy.Network, Source: held.Name}
			if err := one.Check(); err != nil {
				return nil, err
			}
			if slices.ContainsFunc(out, func(other tool.Tool) bool { return other.Name == name }) {
				return nil, fault.Wrap(tool.ErrShadows, fault.Conflict, tool.ErrShadows.Code, "%s", name)
			}
			out = append(out, one)
		}
	}
	return out, nil
}

// Prepare checks the arguments of a call by the schema of its tool, and returns the task for Call.
func Prepare(t tool.Tool, arguments json.RawMessage) (json.RawMessage, error) {
	if wrong := tool.Fits(t.Input, arguments); wrong != "" {
		return nil, fault.New(fault.Invalid, "invalid_arguments", "%s", wrong)
	}
	return json.Marshal(Task{Type: t.Name, Arguments: arguments})
}

// Task is a call as Prepare returns it.
type Task struct {
	Type      string          `json:"type"` // the name of the tool
	Arguments json.RawMessage `json:"arguments"`
}

// may returns the refusal of a caller without the right, where the request would record nothing.
func (s *Service) may(ctx context.Context, origin event.Origin, ws id.Workspace, action, name string) error {
	return policy.Change{Workspace: ws, Action: action, Key: name}.May(ctx, s.Gate, origin)
}

// record records an event about a server.
func (s *Service) record(ctx context.Context, origin event.Origin, ws id.Workspace, action, typ, name string, data any,
	expect []event.DocumentVersion) error {
	return policy.Change{Workspace: ws, Action: action, Entity: mcp.Entity, Key: name, Event: typ, Data: data, At: s.Clock.Now().UTC(),
		Expect: expect}.Record(ctx, s.Gate, origin)
}
