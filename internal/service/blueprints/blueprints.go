// Package blueprints keeps the index of a workspace's blueprints: their texts, their versions and their pins.
package blueprints

import (
	"context"
	"errors"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Resolve returns the present content hash of the thing with a name, for a blueprint that refers to it.
type Resolve func(ctx context.Context, ws id.Workspace, name string, b blueprint.Blueprint) (event.Digest, error)

// Parts are the dependencies of the service.
type Parts struct {
	Docs  projection.Reader
	Gate  policy.Gate
	Clock event.Clock

	// Resolve has a function for each kind of reference besides blueprints.
	Resolve map[blueprint.Kind]Resolve
}

// Service keeps blueprints. Make it with New; any goroutine may call its methods.
type Service struct{ Parts }

// New returns a service of the given parts.
func New(p Parts) *Service { return &Service{p} }

// Definitions fold the documents of blueprints.
func Definitions() []projection.Definition {
	name := func(e event.Event) []string {
		if e.EntityType != blueprint.Entity || e.EntityID == "" {
			return nil
		}
		return []string{e.EntityID}
	}
	return []projection.Definition{
		projection.Define(blueprint.Projection, 1, name, func(b blueprint.Entry, _ string, e event.Event) (blueprint.Entry, error) {
			return b.Evolve(e)
		}, func(b blueprint.Entry) []projection.Index {
			if !b.Living() {
				return nil
			}
			return []projection.Index{{Name: "living", Value: "true"}}
		}).Leads(blueprint.Entity, nil),
		projection.Define(blueprint.CountProjection, 1, func(e event.Event) []string {
			if e.EntityType != blueprint.Entity {
				return nil
			}
			return []string{string(e.Workspace)}
		}, func(c blueprint.Count, _ string, e event.Event) (blueprint.Count, error) { return c.Evolve(e) }, nil),
		projection.Define(blueprint.SourceProjection, 1, func(e event.Event) []string {
			if e.Type != blueprint.EventRegistered && e.Type != blueprint.EventChanged {
				return nil
			}
			d, err := event.Decode[blueprint.Registered](e)
			if err != nil || d.Name == "" {
				return nil
			}
			return []string{blueprint.SourceKey(d.Name, d.Version)}
		}, func(s blueprint.Source, _ string, e event.Event) (blueprint.Source, error) { return s.Evolve(e) }, nil),
	}
}

// List returns at most limit entries of a workspace in the order of their names, after the given name. If removed is true, it includes
// removed entries.
func (s *Service) List(ctx context.Context, ws id.Workspace, removed bool, after string, limit int) ([]blueprint.Entry, error) {
	q := projection.Query{Workspace: ws, Name: blueprint.Projection, After: after, Limit: limit}
	if !removed {
		q.Index = projection.Index{Name: "living", Value: "true"}
	}
	return projection.List[blueprint.Entry](ctx, s.Docs, q)
}

// Get returns the entry of a name, also a removed one. It returns blueprint.ErrNotFound if there never was one.
func (s *Service) Get(ctx context.Context, ws id.Workspace, name string) (blueprint.Entry, error) {
	doc, _, err := s.find(ctx, ws, name)
	if err == nil && doc.Version == 0 {
		err = blueprint.ErrNotFound
	}
	return doc, err
}

// find returns an entry and the version of its document. Both are zero if there never was one.
func (s *Service) find(ctx context.Context, ws id.Workspace, name string) (blueprint.Entry, uint64, error) {
	return load[blueprint.Entry](ctx, s.Docs, ws, blueprint.Projection, name)
}

func load[T any](ctx context.Context, docs projection.Reader, ws id.Workspace, name, key string) (T, uint64, error) {
	doc, version, err := projection.Load[T](ctx, docs, ws, name, key)
	if errors.Is(err, projection.ErrNotFound) {
		err = nil
	}
	return doc, version, err
}

// Text returns the text of a version, 0 for the newest. It returns blueprint.ErrVersion if there is no such version.
func (s *Service) Text(ctx context.Context, ws id.Workspace, name string, version int) (blueprint.Source, error) {
	entry, err := s.Get(ctx, ws, name)
	if err != nil {
		return blueprint.Source{}, err
	}
	if version == 0 {
		version = entry.Version
	}
	doc, _, err := load[blueprint.Source](ctx, s.Docs, ws, blueprint.SourceProjection, blueprint.SourceKey(name, version))
	if err == nil && doc.Version == 0 {
		err = blueprint.ErrVersion
	}
	return doc, err
}

// Read returns a version of a registered blueprint, 0 for the newest. It returns blueprint_invalid if this program finds problems in the
// text.
func (s *Service) Read(ctx context.Context, ws id.Workspace, name string, version int) (blueprint.Blueprint, blueprint.Source, error) {
	text, err := s.Text(ctx, ws, name, version)
	if err != nil {
		return blueprint.Blueprint{}, text, err
	}
	b, problems := Read([]byte(text.Text))
	return b, text, Refusal(problems)
}

// Register registers a text, or makes it the next version of its name, and returns the entry. To register
// the text of the newest version again records nothing.
func (s *Service) Register(ctx context.Context, origin event.Origin, ws id.Workspace, text []byte) (blueprint.Entry, error) {
	next, problems := Read(text)
	if err := Refusal(problems); err != nil {
		return blueprint.Entry{}, err
	}
	err := journal.Again(func() error {
		entry, version, err := s.find(ctx, ws, next.Name)
		if err != nil {
			return err
		}
		before, was, err := s.newest(ctx, ws, entry)
		if err != nil {
			return err
		}
		count, counted, err := load[blueprint.Count](ctx, s.Docs, ws, blueprint.CountProjection, string(ws))
		if err != nil {
			return err
		}
		typ, data, err := entry.Register(next, string(text), before, was, count.Living)
		if err == nil && typ == "" { // a change without an effect needs the same right
			return s.may(ctx, origin, ws, policy.BlueprintRegister, next.Name)
		}
		if err != nil {
			return err
		}
		return s.record(ctx, origin, ws, policy.BlueprintRegister, typ, next.Name, data, []event.DocumentVersion{
			{Projection: blueprint.Projection, Key: next.Name, Version: version},
			{Projection: blueprint.CountProjection, Key: string(ws), Version: counted},
		})
	})
	if err != nil {
		return blueprint.Entry{}, err
	}
	return s.Get(ctx, ws, next.Name)
}

// newest returns the newest version of an entry and its text. Both are empty if there is none, or if it was redacted.
func (s *Service) newest(ctx context.Context, ws id.Workspace, entry blueprint.Entry) (blueprint.Blueprint, string, error) {
	if entry.Version == 0 {
		return blueprint.Blueprint{}, "", nil
	}
	text, _, err := load[blueprint.Source](ctx, s.Docs, ws, blueprint.SourceProjection, blueprint.SourceKey(entry.Name, entry.Version))
	before, _ := Read([]byte(text.Text)) // if this program cannot read all of the version, it differs in more places
	return before, text.Text, err
}

// Remove removes a blueprint from the index. Its versions stay readable, and the name can be registered again.
func (s *Service) Remove(ctx context.Context, origin event.Origin, ws id.Workspace, name, reason string) (blueprint.Entry, error) {
	err := journal.Again(func() error {
		entry, version, err := s.find(ctx, ws, name)
		if err != nil {
			return err
		}
		data, err := entry.Remove(reason)
		if errors.Is(err, blueprint.ErrNotFound) { // a caller who may not remove any gets that error first
			if refused := s.may(ctx, origin, ws, policy.BlueprintRemove, name); refused != nil {
				return refused
			}
		}
		if err != nil {
			return err
		}
		return s.record(ctx, origin, ws, policy.BlueprintRemove, blueprint.EventRemoved, name, data, []event.DocumentVersion{
			{Projection: blueprint.Projection, Key: name, Version: version},
		})
	})
	if err != nil {
		return blueprint.Entry{}, err
	}
	return s.Get(ctx, ws, name)
}

// may returns the refusal of a caller without the right, where the request would record nothing.
func (s *Service) may(ctx context.Context, origin event.Origin, ws id.Workspace, action, name string) error {
	return policy.Change{Workspace: ws, Action: action, Key: name}.May(ctx, s.Gate, origin)
}

// record records an event about a blueprint.
func (s *Service) record(ctx context.Context, origin event.Origin, ws id.Workspace, action, typ, name string, data any,
	expect []event.DocumentVersion) error {
	return policy.Change{Workspace: ws, Action: action, Entity: blueprint.Entity, Key: name, Event: typ, Data: data,
		At: s.Clock.Now().UTC(), Expect: expect}.Record(ctx, s.Gate, origin)
}
