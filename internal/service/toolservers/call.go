package toolservers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/mcp"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/tool"
	"agentbox/internal/domain/web"
	"agentbox/internal/kernel/journal"
)

// Use is a call that an agent makes.
type Use struct {
	Place
	Call    id.ToolCall // as the run records it; one is made once
	Task    Task
	Seconds int // that it may take

	// Asks is called while a person has to answer first, again and again with the same question; nil for nothing.
	Asks func(ctx context.Context, question id.Approval)
	// Allowed is called when the gate has allowed the call, before the server is asked; nil for nothing.
	Allowed func()
}

// Look asks a server for its tools, from a space, and records the news. Agents get no tool before a person trusts it.
func (s *Service) Look(ctx context.Context, in Place, name string) (mcp.Held, error) {
	held, err := s.Get(ctx, in.Workspace, name)
	if err != nil {
		return held, err
	}
	if err := s.may(ctx, in.Origin, in.Workspace, policy.MCPTrust, name); err != nil {
		return held, err
	}
	session, err := s.begin(ctx, in, held.Server, false)
	if err != nil {
		return held, err
	}
	defer session.Close()
	return s.listed(ctx, in, held.Server, session)
}

// listed asks a server for its tools, and records the news: other tools, and trusted tools that have changed.
func (s *Service) listed(ctx context.Context, in Place, server mcp.Server, session mcp.Session) (mcp.Held, error) {
	tools, err := session.Tools(ctx)
	if err != nil {
		return mcp.Held{}, err
	}
	in.Run, in.Room = "", "" // the list of tools outlives the record of the run
	err = journal.Again(func() error {
		held, version, err := load[mcp.Held](ctx, s.Docs, in.Workspace, mcp.Projection, server.Name)
		if err == nil && (!held.Living() || held.Server != server) {
			err = mcp.ErrNotFound // it was changed meanwhile
		}
		if err != nil {
			return err
		}
		data, differ, news, err := held.Listing(tools)
		if err != nil || !news {
			return err
		}
		drafts := []event.Draft{s.draft(in, mcp.EventListed, mcp.Entity, server.Name, data)}
		if len(differ) > 0 {
			drafts = append(drafts, s.draft(in, mcp.EventQuarantined, mcp.Entity, server.Name, mcp.Quarantined{Name: server.Name, Tools: differ}))
			s.Logger.Warn("tools of an MCP server are not what a person trusted", "code", "mcp_tools_quarantined", "workspace", in.Workspace,
				"server", server.Name, "count", len(differ))
		}
		_, err = s.Log.Append(ctx, event.Batch{Workspace: in.Workspace, Drafts: drafts,
			Documents: []event.DocumentVersion{{Projection: mcp.Projection, Key: server.Name, Version: version}}})
		return err
	})
	if err != nil {
		return mcp.Held{}, err
	}
	return s.Get(ctx, in.Workspace, server.Name)
}

func (s *Service) draft(in Place, typ, entity, key string, data any) event.Draft {
	origin := in.Origin
	origin.Key = "" // it is that of another batch
	d := event.New(typ, origin, in.Workspace, in.Room, data).About(entity, key).In(in.Run, "")
	d.OccurredAt = s.Clock.Now().UTC()
	return d
}

// Call calls a tool. While a person is asked it waits. A call is sent at most once: of one whose outcome a crash hid the error is
// mcp.ErrUnknown. An error is a refusal of the gate, one of the package mcp of the domain, or tells that the work on the run ends.
func (s *Service) Call(ctx context.Context, u Use) (tool.Result, error) {
	name, toolName, ok := mcp.Split(u.Task.Type)
	if !ok {
		return tool.Result{}, tool.ErrNotFound
	}
	if begun, _, err := load[mcp.Call](ctx, s.Docs, u.Workspace, mcp.CallProjection, string(u.Call)); err != nil || begun.Tool != "" {
		if err == nil {
			err = mcp.ErrUnknown
		}
		return tool.Result{}, err
	}
	held, err := s.Get(ctx, u.Workspace, name)
	if err != nil {
		return tool.Result{}, err
	}
	trusted, err := usable(held, toolName)
	if err != nil {
		return tool.Result{}, err
	}
	action, err := s.action(u, held.Server, trusted)
	if err != nil {
		return tool.Result{}, err
	}
	client := policy.Client{Gate: s.Gate, Append: s.Log.Append}
	if err := client.Early(ctx, u.Origin, connecting(u.Place, targetOf(held.Server))); err != nil { // before a person is asked
		return tool.Result{}, err
	}
	for {
		ruling, approval, err := client.Ask(ctx, u.Origin, action)
		switch {
		case err == nil:
			if u.Allowed != nil {
				u.Allowed()
			}
			return s.allowed(ctx, u, held.Server, trusted, ruling, approval)
		case fault.KindOf(err) != fault.Waiting:
			return tool.Result{}, err
		}
		if asked, ok := errors.AsType[*policy.Asked](err); ok && u.Asks != nil {
			u.Asks(ctx, asked.Approval)
		}
		if !errand.Pause(ctx, s.Clock, errand.Ask) {
			return tool.Result{}, context.Cause(ctx)
		}
	}
}

// usable returns a tool as a person trusts it, or why it may not be called.
func usable(held mcp.Held, name string) (mcp.Seen, error) {
	for _, seen := range held.Usable() {
		if seen.Name == name {
			return seen, nil
		}
	}
	return mcp.Seen{}, fault.New(mcp.ErrQuarantined.Kind, mcp.ErrQuarantined.Code, "%s: %s", mcp.Offered(held.Name, name),
		mcp.ErrQuarantined.Msg).With(mcp.ErrQuarantined.Suggestion)
}

// action returns the action of a call for the gate: the trusted tool, all arguments, and the time limit.
func (s *Service) action(u Use, server mcp.Server, trusted mcp.Seen) (policy.Action, error) {
	arguments, err := policy.Canonicalize(u.Task.Arguments)
	if err != nil {
		return policy.Action{}, err
	}
	if u.Seconds < 1 || u.Seconds > mcp.MaxCallTime {
		return policy.Action{}, fault.New(fault.Invalid, "invalid_field", "a call takes 1 to %d seconds", mcp.MaxCallTime)
	}
	return policy.Action{
		Type: policy.MCPCall, Workspace: u.Workspace, Room: u.Room, Principal: u.Origin.Principal, Token: u.Origin.Token, Space: u.Space,
		Run: u.Run, Subject: string(u.Call), Tool: mcp.Offered(server.Name, trusted.Name), ToolHash: trusted.Hash, Target: server.URL,
		Request: arguments, Content: event.DigestOf(arguments), Size: int64(len(arguments)), TimeoutMS: int64(u.Seconds) * 1000,
	}, nil
}

// allowed makes a call that the gate allows, if the tool is still the one that was trusted.
func (s *Service) allowed(ctx context.Context, u Use, server mcp.Server, trusted mcp.Seen, ruling policy.Ruling,
	approval id.Approval) (tool.Result, error) {
	c, err := s.conversation(u.Place, server)
	if err != nil {
		return tool.Result{}, err
	}
	c.use.Lock()
	defer c.use.Unlock()
	answer, err := s.exchange(ctx, u, c, server, trusted, ruling, approval)
	if err != nil {
		s.drop(u.Place, server.Name, c)
		return tool.Result{}, err
	}
	return tell(trusted, answer), nil
}

// exchange talks with the server. The caller has the conversation for itself.
func (s *Service) exchange(ctx context.Context, u Use, c *conversation, server mcp.Server, trusted mcp.Seen, ruling policy.Ruling,
	approval id.Approval) (mcp.Answer, error) {
	session := c.now()
	if session == nil {
		var err error
		if session, err = s.begin(ctx, u.Place, server, true); err != nil {
			return mcp.Answer{}, err
		}
		if !c.keep(session) {
			session.Close()
			return mcp.Answer{}, mcp.Failed("was left while it was reached")
		}
	}
	held, err := s.listed(ctx, u.Place, server, session) // each time: a server need not say that its tools have changed
	if err != nil {
		return mcp.Answer{}, err
	}
	now, err := usable(held, trusted.Name)
	if err == nil && now.Hash != trusted.Hash { // a person has released another one meanwhile
		err = mcp.ErrQuarantined
	}
	if err != nil {
		return mcp.Answer{}, err
	}
	a := ruling.Action
	called := mcp.Called{Server: server.Name, Tool: trusted.Name, Hash: trusted.Hash, Arguments: a.Content}
	permit, _, err := s.Gate.Begin(ctx, ruling, approval, event.Batch{
		Workspace: u.Workspace, Drafts: []event.Draft{s.draft(u.Place, mcp.EventCalled, mcp.CallEntity, string(u.Call), called)},
		Documents: []event.DocumentVersion{{Projection: mcp.CallProjection, Key: string(u.Call)}},
	})
	if errors.Is(err, journal.ErrConflict) { // the same call has begun elsewhere
		err = mcp.ErrUnknown
	}
	if err != nil {
		return mcp.Answer{}, err
	}
	answer, err := session.Call(ctx, permit)
	return answer, errors.Join(err, s.ended(ctx, u, answer, err))
}

// ended records how a call ended.
func (s *Service) ended(ctx context.Context, u Use, answer mcp.Answer, failed error) error {
	end := mcp.Ended{Status: mcp.EndAnswered}
	switch {
	case failed != nil:
		end.Status, end.Reason = mcp.EndUnanswered, failed.Error()
	case answer.Failed:
		end.Status = mcp.EndFailed
	}
	if failed == nil {
		said := append([]byte(answer.Text), answer.Structured...)
		end.Size, end.Digest = int64(len(said)), event.DigestOf(said)
	}
	_, err := s.Log.Append(context.WithoutCancel(ctx), event.Batch{Workspace: u.Workspace,
		Drafts: []event.Draft{s.draft(u.Place, mcp.EventEnded, mcp.CallEntity, string(u.Call), end)}})
	return err
}

// maxText is the largest number of bytes of an answer for a model.
const maxText = 1 << 20

// tell returns an answer as a model reads it. A value that does not fit the schema which the server promised is not shown.
func tell(t mcp.Seen, a mcp.Answer) tool.Result {
	if len(t.Output) > 0 && !a.Failed {
		value := a.Structured
		if value == nil {
			value = json.RawMessage("null")
		}
		if wrong := tool.Fits(t.Output, value); wrong != "" {
			return tool.Result{Text: "failed: the answer of the MCP server does not fit the schema of its tool: " + wrong}
		}
	}
	text := a.Text
	if text == "" {
		text = string(a.Structured)
	}
	if len(text) > maxText {
		text = fmt.Sprintf("%s\n[the answer has %d bytes; the rest is left out]\n", strings.ToValidUTF8(text[:maxText], ""), len(text))
	}
	if text == "" {
		text = "done"
	}
	return tool.Result{OK: !a.Failed, Text: text}
}

// begin reaches a server from a space: through the gate, at an address that was checked, or by its process in the space. Where it may wait,
// it does so while a person is asked.
func (s *Service) begin(ctx context.Context, in Place, server mcp.Server, waits bool) (mcp.Session, error) {
	to, err := s.target(ctx, in, server)
	if err != nil {
		return nil, err
	}
	for {
		permit, err := s.permits(ctx, in, &to, waits)
		if err != nil {
			return nil, err
		}
		if server.URL == "" {
			if to.Pipe, err = s.Start(ctx, in, server.Command); err != nil {
				return nil, err
			}
		}
		session, err := s.Dialer.Open(ctx, permit, to)
		if err != nil && to.Pipe != nil {
			err = errors.Join(err, to.Pipe.Close())
		}
		if !errors.Is(err, web.ErrPrivate) || to.Private {
			return session, err
		}
		to.Private = true
	}
}

// target returns a server with the secrets that its requests need.
func (s *Service) target(ctx context.Context, in Place, server mcp.Server) (mcp.Target, error) {
	to := targetOf(server)
	if server.Login {
		to.Grant = s.using(in.Workspace, server.Name)
	}
	if server.Key == "" {
		return to, nil
	}
	key, err := s.Keys.Key(ctx, in.Workspace, server.Key)
	to.Key = key
	return to, err
}

// permits asks the gate whether a server and its issuer may be reached.
func (s *Service) permits(ctx context.Context, in Place, to *mcp.Target, waits bool) (policy.Permit, error) {
	permit, err := s.permit(ctx, in, *to, waits)
	if err == nil && to.Issuer.URL != "" {
		to.Granted, err = s.permit(ctx, in, issuing(*to), waits)
	}
	return permit, err
}

// targetOf returns a server as a target.
func targetOf(server mcp.Server) mcp.Target {
	to := mcp.Target{Server: server, Private: server.URL != "" && web.Inward(server.URL)}
	if at, err := web.Clean(server.Issuer); server.Issuer != "" && err == nil {
		to.Issuer = mcp.Issuer{URL: at, Private: web.Inward(at)}
	}
	return to
}

// issuing returns the target that the gate judges before the issuer gets a request for tokens: a server of the same name at its address.
func issuing(to mcp.Target) mcp.Target {
	return mcp.Target{Server: mcp.Server{Name: to.Server.Name, URL: to.Issuer.URL}, Private: to.Issuer.Private}
}

// connecting returns the action that the gate judges before a session begins.
func connecting(in Place, to mcp.Target) policy.Action {
	return policy.Action{
		Type: to.Action(), Workspace: in.Workspace, Room: in.Room, Principal: in.Origin.Principal, Token: in.Origin.Token, Space: in.Space,
		Run: in.Run, Subject: to.Server.Name, Target: to.Server.URL,
	}
}

// permit asks the gate whether a server may be reached.
func (s *Service) permit(ctx context.Context, in Place, to mcp.Target, waits bool) (policy.Permit, error) {
	a, origin := connecting(in, to), in.Origin
	origin.Key = ""
	for {
		ruling, approval, err := policy.Client{Gate: s.Gate, Append: s.Log.Append}.Ask(ctx, origin, a)
		if err == nil {
			permit, _, err := s.Gate.Begin(ctx, ruling, approval, event.Batch{Workspace: in.Workspace})
			return permit, err
		}
		if !waits || fault.KindOf(err) != fault.Waiting {
			return policy.Permit{}, err
		}
		if !errand.Pause(ctx, s.Clock, errand.Ask) {
			return policy.Permit{}, context.Cause(ctx)
		}
	}
}

// conversation returns the session of a run with a server, which may not have begun.
func (s *Service) conversation(in Place, server mcp.Server) (*conversation, error) {
	at := where{in.Workspace, in.Run, server.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.open[at]
	if !ok {
		if len(s.open) >= mcp.MaxSessions {
			return nil, mcp.ErrBusy
		}
		c = &conversation{server: server}
		s.open[at] = c
	}
	return c, nil
}

// drop ends a session that failed. The next call begins another one.
func (s *Service) drop(in Place, server string, c *conversation) {
	at := where{in.Workspace, in.Run, server}
	s.mu.Lock()
	if s.open[at] == c {
		delete(s.open, at)
	}
	s.mu.Unlock()
	c.close()
}
