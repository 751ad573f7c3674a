// Package models has the catalogue of a workspace's models and sends requests to them: by routes, within budgets, with retries and a
// record.
package models

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/kernel/projection"
)

// Parts are the dependencies of the service.
type Parts struct {
	Log       journal.Journal
	Docs      projection.Reader
	Gate      policy.Gate
	Clock     event.Clock
	IDs       *id.Source
	Entropy   io.Reader // spreads retries
	Logger    *slog.Logger
	Endpoints map[string]model.Endpoint // by provider
	Keys      model.Keys
	Prices    func() model.Prices // as the file said when it could be used the last time
	Live      livestream.Store    // gets the pieces of answers of runs; may be nil

	// Together is true if other daemons record into the same log. Then the versions of documents protect a budget.
	Together bool
}

// Service has the models of workspaces and sends requests to them. Make it with New; any goroutine may call its methods.
type Service struct {
	Parts
	names    locks // of requests: one call of the same request at a time
	scopes   locks // of usage: reading and reserving a budget are one step
	breakers breakers

	mu      sync.Mutex // guards running
	running map[*pending]struct{}
}

// pending is a request that is under way.
type pending struct {
	ws  id.Workspace
	end context.CancelCauseFunc
}

var _ model.Asker = (*Service)(nil)

// New returns a service of the given parts.
func New(p Parts) *Service { return &Service{Parts: p, running: map[*pending]struct{}{}} }

// Definitions fold the documents of models.
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
		projection.Define(model.Projection, 2, about(model.Entity), func(h model.Held, _ string, e event.Event) (model.Held, error) {
			return h.Evolve(e)
		}, func(h model.Held) []projection.Index {
			if !h.Living() {
				return nil
			}
			return []projection.Index{{Name: "living", Value: "true"}}
		}).Leads(model.Entity, nil),
		projection.Define(model.SettingsProjection, 2, func(e event.Event) []string {
			if e.EntityType != model.Entity && e.EntityType != model.SettingsEntity {
				return nil
			}
			return []string{string(e.Workspace)}
		}, func(s model.Settings, _ string, e event.Event) (model.Settings, error) { return s.Evolve(e) }, nil),
		projection.Define(model.CallProjection, 2, about(model.CallEntity), func(c model.Called, _ string, e event.Event) (model.Called, error) {
			return c.Evolve(e)
		}, nil).Leads(model.CallEntity, nil),
		projection.Define(model.UsageProjection, 1, func(e event.Event) []string {
			var keys []string
			for _, s := range model.ScopesOf(e) {
				keys = append(keys, s.Key())
			}
			return keys
		}, foldUsage, func(u model.Used) []projection.Index {
			return []projection.Index{{Name: "scope", Value: u.Scope}, {Name: "day", Value: u.Scope + "/" + u.Day}}
		}),
	}
}

// foldUsage folds an event into the usage that the key names.
func foldUsage(u model.Used, key string, e event.Event) (model.Used, error) {
	scope, rest, _ := strings.Cut(key, "/")
	u.Scope = scope
	switch scope {
	case model.ScopeRun:
		u.ID = rest
	case model.ScopeWorkspace:
		u.Day = rest
	default:
		at := strings.LastIndexByte(rest, '/')
		u.ID, u.Day = rest[:max(at, 0)], rest[at+1:]
	}
	return u.Evolve(e)
}

// Halt ends the requests of a workspace that are under way, or those of all workspaces for "".
func (s *Service) Halt(ws id.Workspace, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.running {
		if ws == "" || f.ws == ws {
			f.end(cause)
		}
	}
}

// haltable returns a context that Halt ends, until release is called.
func (s *Service) haltable(ctx context.Context, ws id.Workspace) (_ context.Context, release func()) {
	ctx, end := context.WithCancelCause(ctx)
	f := &pending{ws, end}
	s.mu.Lock()
	s.running[f] = struct{}{}
	s.mu.Unlock()
	return ctx, func() {
		s.mu.Lock()
		delete(s.running, f)
		s.mu.Unlock()
		end(nil)
	}
}

// load returns a document and its version. Both are zero if there is none.
func load[T any](ctx context.Context, docs projection.Reader, ws id.Workspace, name, key string) (T, uint64, error) {
	doc, version, err := projection.Load[T](ctx, docs, ws, name, key)
	if errors.Is(err, projection.ErrNotFound) {
		err = nil
	}
	return doc, version, err
}

// sleep waits for a time, until ctx ends, or until early is closed, which may be nil.
func (s *Service) sleep(ctx context.Context, d time.Duration, early <-chan struct{}) error {
	if d <= 0 {
		return ctx.Err()
	}
	c, stop := s.Clock.NewTimer(d)
	defer stop()
	select {
	case <-c:
		return nil
	case <-early:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
