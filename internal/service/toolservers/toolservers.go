// Package toolservers keeps the MCP servers of a workspace and calls their tools: only those that a person trusts, each call through the
// gate and recorded.
package toolservers

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/mcp"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Parts are the dependencies of the service.
type Parts struct {
	Log    journal.Journal
	Docs   projection.Reader
	Gate   policy.Gate
	Clock  event.Clock
	Logger *slog.Logger
	Dialer mcp.Dialer
	Keys   model.Keys // a server's key is kept with those of models
	Grants mcp.Grants // of logins

	// Start starts the process of a server in a space, as a command like any other, and returns its standard input and output.
	Start func(ctx context.Context, in Place, command string) (io.ReadWriteCloser, error)
}

// Place is the place of a request to a server: for whom, and in which space.
type Place struct {
	Origin    event.Origin
	Workspace id.Workspace
	Room      id.Room
	Space     id.Space // its policy decides about hosts; commands run in it
	Run       id.Run   // of the agent; "" for none
}

// Service keeps servers. Make it with New; any goroutine may call its methods.
type Service struct {
	Parts

	logging sync.WaitGroup // logins that wait

	mu      sync.Mutex // guards all below
	open    map[where]*conversation
	logins  map[where]*login // without a run
	holders map[where]*holder
	closed  bool
}

// where names a session: an agent's run has one with each server.
type where struct {
	ws     id.Workspace
	run    id.Run
	server string
}

// conversation is a session that may not have begun yet.
type conversation struct {
	server mcp.Server
	use    sync.Mutex // held by the one call that uses it

	mu      sync.Mutex  // guards all below
	session mcp.Session // nil before it has begun
	over    bool
}

// now returns the session, nil where none has begun.
func (c *conversation) now() mcp.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// keep notes the session that has begun; false where the conversation is over already.
func (c *conversation) keep(session mcp.Session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.session = session
	}
	return !c.over
}

// close ends the session.
func (c *conversation) close() {
	c.mu.Lock()
	session := c.session
	c.session, c.over = nil, true
	c.mu.Unlock()
	if session != nil {
		session.Close()
	}
}

// New returns a service of the given parts.
func New(p Parts) *Service {
	return &Service{Parts: p, open: map[where]*conversation{}, logins: map[where]*login{}, holders: map[where]*holder{}}
}

// Definitions fold the documents of servers.
func Definitions() []projection.Definition {
	about := func(entity string) func(event.Event) []string {
		return func(e event.Event) []string {
			if e.EntityType != entity || e.EntityID == "" {
				return nil
			}
			return []string{e.EntityID}
		}
	}
	return []projection.Definition{
		projection.Define(mcp.Projection, 1, about(mcp.Entity), func(h mcp.Held, _ string, e event.Event) (mcp.Held, error) {
			return h.Evolve(e)
		}, func(h mcp.Held) []projection.Index {
			if !h.Living() {
				return nil
			}
			return []projection.Index{{Name: "living", Value: "true"}}
		}).Leads(mcp.Entity, nil),
		projection.Define(mcp.CountProjection, 1, func(e event.Event) []string {
			if e.EntityType != mcp.Entity {
				return nil
			}
			return []string{string(e.Workspace)}
		}, func(c mcp.Count, _ string, e event.Event) (mcp.Count, error) { return c.Evolve(e) }, nil),
		projection.Define(mcp.CallProjection, 1, about(mcp.CallEntity), func(c mcp.Call, _ string, e event.Event) (mcp.Call, error) {
			return c.Evolve(e)
		}, nil).Leads(mcp.CallEntity, nil),
	}
}

// load returns a document and its version, both zero where there is none.
func load[T any](ctx context.Context, docs projection.Reader, ws id.Workspace, name, key string) (T, uint64, error) {
	doc, version, err := projection.Load[T](ctx, docs, ws, name, key)
	if errors.Is(err, projection.ErrNotFound) {
		err = nil
	}
	return doc, version, err
}

// Left ends the sessions of a run that is not worked on any more.
func (s *Service) Left(ws id.Workspace, run id.Run) {
	s.end(func(at where) bool { return at.ws == ws && at.run == run })
}

// Halt ends the sessions of a workspace, of every workspace where none is named.
func (s *Service) Halt(ws id.Workspace, _ error) {
	s.end(func(at where) bool { return ws == "" || at.ws == ws })
}

// Close ends all sessions and logins.
func (s *Service) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end(func(where) bool { return true })
	s.logging.Wait()
	return nil
}

// end ends sessions, also those that are used, and logins that wait: the caller of one learns that it has ended.
func (s *Service) end(which func(where) bool) {
	var ended []*conversation
	s.mu.Lock()
	for at, c := range s.open {
		if which(at) {
			delete(s.open, at)
			ended = append(ended, c)
		}
	}
	for at, l := range s.logins {
		if which(at) {
			delete(s.logins, at)
			l.stop()
		}
	}
	s.mu.Unlock()
	var closing sync.WaitGroup // at once: a server takes its time over the end of its session
	for _, c := range ended {
		closing.Go(c.close)
	}
	closing.Wait()
}
