package toolservers

import (
	"context"
	"errors"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/mcp"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/web"
	"agentbox/internal/kernel/deadline"
	"agentbox/internal/kernel/journal"
)

// Visit is where a person logs in, and until when.
type Visit struct {
	Address string
	Until   time.Time
}

// login is a login that waits for its person.
type login struct {
	server mcp.Server
	by     id.Principal
	run    func(dialer mcp.Dialer, permit policy.Permit, to mcp.Target, redirect string)
	stop   context.CancelFunc
	shown  chan string       // the address, once
	back   chan mcp.Returned // what the browser came back with, once
	done   chan struct{}     // closed when all below is set

	grant mcp.Grant
	facts mcp.LoggedIn
	err   error
}

// Login begins a person's login at a server, from a space whose policy permits the server and its issuer. The person visits the address
// with a browser. The issuer sends the browser to the redirect address, and FinishLogin gets what it came with. A login at the same server
// that waits already is given up.
func (s *Service) Login(ctx context.Context, in Place, name, redirect string) (Visit, error) {
	held, err := s.Get(ctx, in.Workspace, name)
	if err == nil {
		err = mcp.CheckRedirect(redirect)
	}
	if err == nil && !held.Server.Login {
		err = fault.New(fault.Conflict, "mcp_login_unwanted", "nobody logs in to the MCP server %s", name).
			With("set it to a server with a login: agentbox mcp add " + name + " --url URL --login")
	}
	if err := errors.Join(s.may(ctx, in.Origin, in.Workspace, policy.MCPConfigure, name), err); err != nil {
		return Visit{}, err
	}
	to, err := s.target(ctx, in, held.Server)
	if err != nil {
		return Visit{}, err
	}
	until := s.Clock.Now().UTC().Add(mcp.LoginTime)
	for {
		permit, err := s.permits(ctx, in, &to, false)
		if err != nil {
			return Visit{}, err
		}
		l, err := s.begun(ctx, in, held.Server, until)
		if err != nil {
			return Visit{}, err
		}
		s.logging.Go(func() {
			l.run(s.Dialer, permit, to, redirect)
			s.drops(in.Workspace, name, l) // where nobody has finished it
		})
		select {
		case address := <-l.shown:
			return Visit{address, until}, nil
		case <-l.done:
			if !errors.Is(l.err, web.ErrPrivate) || to.Private {
				return Visit{}, l.err
			}
			to.Private = true
		case <-ctx.Done():
			s.drops(in.Workspace, name, l)
			return Visit{}, context.Cause(ctx)
		}
	}
}

// begun notes a login that waits, until its time is over.
func (s *Service) begun(ctx context.Context, in Place, server mcp.Server, until time.Time) (*login, error) {
	at := where{ws: in.Workspace, server: server.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	before, again := s.logins[at]
	switch {
	case s.closed:
		return nil, mcp.ErrNoLogin
	case again:
		before.stop()
	case len(s.logins) >= mcp.MaxLogins:
		return nil, mcp.ErrLoginsFull
	}
	l := &login{server: server, by: in.Origin.Principal, shown: make(chan string, 1), back: make(chan mcp.Returned, 1),
		done: make(chan struct{})}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop, l.run = stop, func(dialer mcp.Dialer, permit policy.Permit, to mcp.Target, redirect string) {
		defer close(l.done)
		defer stop()
		open, end := deadline.Within(run, s.Clock, until.Sub(s.Clock.Now()), mcp.ErrNoLogin)
		defer end()
		l.grant, l.facts, l.err = dialer.Login(open, permit, to, mcp.Browser{Redirect: redirect, Visit: l.visit})
	}
	s.logins[at] = l
	return l, nil
}

// visit hands the address on, and waits for the person.
func (l *login) visit(ctx context.Context, address string) (mcp.Returned, error) {
	select {
	case l.shown <- address:
	default:
		return mcp.Returned{}, mcp.Failed("wants two logins at once")
	}
	select {
	case back := <-l.back:
		return back, nil
	case <-ctx.Done():
		return mcp.Returned{}, mcp.ErrNoLogin
	}
}

// drops gives a login up that has not been finished.
func (s *Service) drops(ws id.Workspace, name string, l *login) {
	at := where{ws: ws, server: name}
	s.mu.Lock()
	if s.logins[at] == l {
		delete(s.logins, at)
	}
	s.mu.Unlock()
	l.stop()
}

// FinishLogin ends the login of the same principal with what the browser came back with, and keeps what the issuer gives.
func (s *Service) FinishLogin(ctx context.Context, origin event.Origin, ws id.Workspace, name string, back mcp.Returned) (mcp.Held, error) {
	at := where{ws: ws, server: name}
	s.mu.Lock()
	l := s.logins[at]
	if l != nil && l.by == origin.Principal {
		delete(s.logins, at) // an answer counts once, a wrong one too
	}
	s.mu.Unlock()
	if l == nil || l.by != origin.Principal {
		return mcp.Held{}, errors.Join(s.may(ctx, origin, ws, policy.MCPConfigure, string(ws)), mcp.ErrNoLogin)
	}
	defer l.stop()
	l.back <- back
	select {
	case <-l.done:
	case <-ctx.Done():
		return mcp.Held{}, context.Cause(ctx)
	}
	if l.err != nil {
		return mcp.Held{}, l.err
	}
	permit, err := s.loggedIn(ctx, origin, ws, l)
	if err == nil {
		err = s.using(ws, name).locked(ctx, func() error { return s.Grants.Keep(ctx, permit, ws, name, l.grant) })
	}
	if err != nil {
		return mcp.Held{}, err
	}
	s.end(func(at where) bool { return at.ws == ws && at.server == name && at.run != "" }) // sessions of the login before
	return s.Get(ctx, ws, name)
}

// loggedIn records a login, if the server is still the one for which it was made.
func (s *Service) loggedIn(ctx context.Context, origin event.Origin, ws id.Workspace, l *login) (permit policy.Permit, err error) {
	name := l.server.Name
	a := policy.Action{Type: policy.MCPConfigure, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Subject: name,
		Method: mcp.MethodLogin}
	ruling, approval, err := policy.Client{Gate: s.Gate, Append: s.Log.Append, Known: true}.Ask(ctx, origin, a)
	if err != nil {
		return permit, err
	}
	err = journal.Again(func() error {
		held, version, err := load[mcp.Held](ctx, s.Docs, ws, mcp.Projection, name)
		if err == nil && (!held.Living() || held.Server != l.server) {
			err = mcp.ErrNoLogin // it was changed meanwhile
		}
		if err != nil {
			return err
		}
		draft := event.New(mcp.EventLoggedIn, origin, ws, "", l.facts).About(mcp.Entity, name)
		draft.OccurredAt = s.Clock.Now().UTC()
		permit, _, err = s.Gate.Begin(ctx, ruling, approval, event.Batch{Workspace: ws, Drafts: []event.Draft{draft},
			Documents: []event.DocumentVersion{{Projection: mcp.Projection, Key: name, Version: version}}})
		return err
	})
	return permit, err
}

// Logout destroys the tokens of a login. The issuer is not told.
func (s *Service) Logout(ctx context.Context, origin event.Origin, ws id.Workspace, name string) error {
	err := journal.Again(func() error {
		held, version, err := load[mcp.Held](ctx, s.Docs, ws, mcp.Projection, name)
		if err != nil {
			return err
		}
		if !held.Living() || held.Session == nil {
			err := mcp.ErrNotFound
			if held.Living() {
				err = mcp.ErrLogin
			}
			return errors.Join(s.may(ctx, origin, ws, policy.MCPConfigure, string(ws)), err)
		}
		return s.record(ctx, origin, ws, policy.MCPConfigure, mcp.EventLoggedOut, name, mcp.LoggedOut{Name: name}, []event.DocumentVersion{
			{Projection: mcp.Projection, Key: name, Version: version},
		})
	})
	if err != nil {
		return err
	}
	return s.forget(ctx, ws, name)
}

// forget destroys the grant of a server, and ends the sessions that use it.
func (s *Service) forget(ctx context.Context, ws id.Workspace, name string) error {
	s.end(func(at where) bool { return at.ws == ws && at.server == name })
	return s.using(ws, name).locked(ctx, func() error { return s.Grants.Forget(ctx, ws, name) })
}

// holder is the grant of a server while sessions use it.
type holder struct {
	s    *Service
	ws   id.Workspace
	name string
	free chan struct{} // has one element while nobody uses the grant
}

var _ mcp.Holder = (*holder)(nil)

// using returns the holder of a server's grant: the same one each time.
func (s *Service) using(ws id.Workspace, name string) *holder {
	at := where{ws: ws, server: name}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.holders[at]
	if h == nil {
		h = &holder{s, ws, name, make(chan struct{}, 1)}
		h.free <- struct{}{}
		s.holders[at] = h
	}
	return h
}

// locked calls f while nobody else uses the grant.
func (h *holder) locked(ctx context.Context, f func() error) error {
	select {
	case <-h.free:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { h.free <- struct{}{} }()
	return f()
}

// Use implements mcp.Holder.
func (h *holder) Use(ctx context.Context, f func(mcp.Grant) (mcp.Grant, error)) error {
	return h.locked(ctx, func() error {
		now, err := h.s.Grants.Grant(ctx, h.ws, h.name)
		if err != nil && !errors.Is(err, mcp.ErrLogin) {
			return err
		}
		next, err := f(now)
		if err != nil || next == now {
			return err
		}
		return h.s.Grants.Renew(ctx, h.ws, h.name, next)
	})
}
