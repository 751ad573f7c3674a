// Package actiontypes keeps the action types that workspaces declare for themselves.
package actiontypes

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Parts are the dependencies of the service.
type Parts struct {
	Docs  projection.Reader
	Clock event.Clock
	Gate  policy.Recorder
}

// Service declares action types and retires them. Make it with New; any goroutine may call its methods.
type Service struct {
	Parts
	types projection.Known[policy.ActionType]
}

// New returns a service of the given parts.
func New(parts Parts) *Service { return &Service{Parts: parts} }

// Declaration returns a workspace's present declaration of a type and the version of its document. It is zero if it was never declared.
func (s *Service) Declaration(ctx context.Context, ws id.Workspace, typ string) (policy.Declaration, uint64, error) {
	doc, version, err := s.types.Load(ctx, s.Docs, ws, policy.ActionTypeProjection, typ)
	if errors.Is(err, projection.ErrNotFound) {
		return policy.Declaration{}, 0, nil
	}
	if err != nil {
		return policy.Declaration{}, 0, err
	}
	return doc.Declaration(), version, nil
}

// Current refuses an action whose type its workspace has changed or retired since the action was judged.
func (s *Service) Current(ctx context.Context, a policy.Action) error {
	if a.Declared.Version == 0 {
		return nil
	}
	now, _, err := s.Declaration(ctx, a.Workspace, a.Type)
	if err != nil {
		return err
	}
	if now != a.Declared {
		return policy.ErrDeclarationChanged
	}
	return nil
}

// List returns the action types that a workspace declared, by name, after the given one; the retired ones too where they are asked for.
func (s *Service) List(ctx context.Context, ws id.Workspace, retired bool, after string, limit int) ([]policy.ActionType, error) {
	q := projection.Query{Workspace: ws, Name: policy.ActionTypeProjection, After: after, Limit: limit}
	if !retired {
		q.Index = projection.Index{Name: "living", Value: "true"}
	}
	return projection.List[policy.ActionType](ctx, s.Docs, q)
}

// Get returns an action type that a workspace declared, also a retired one.
func (s *Service) Get(ctx context.Context, ws id.Workspace, name string) (policy.ActionType, error) {
	doc, _, err := s.Find(ctx, ws, name)
	if err == nil && doc.Version == 0 {
		err = policy.ErrActionTypeNotFound
	}
	return doc, err
}

// Find returns the document of a type and its version. Both are zero if it was never declared.
func (s *Service) Find(ctx context.Context, ws id.Workspace, name string) (policy.ActionType, uint64, error) {
	doc, version, err := projection.Load[policy.ActionType](ctx, s.Docs, ws, policy.ActionTypeProjection, name)
	if errors.Is(err, projection.ErrNotFound) {
		err = nil
	}
	return doc, version, err
}

// Declare declares an action type of the workspace, or changes it, and returns it. The present declaration again records nothing.
func (s *Service) Declare(ctx context.Context, origin event.Origin, ws id.Workspace, cmd policy.Declare) (policy.ActionType, error) {
	err := journal.Again(func() error {
		doc, version, err := s.Find(ctx, ws, cmd.Name)
		if err != nil {
			return err
		}
		count, counted, err := projection.Load[policy.ActionTypeCount](ctx, s.Docs, ws, policy.ActionTypeCountProjection, string(ws))
		if err != nil && !errors.Is(err, projection.ErrNotFound) {
			return err
		}
		typ, declared, err := doc.Declare(cmd, count.Living)
		if err == nil && typ == "" { // a change without an effect needs the same right
			return s.may(ctx, origin, ws, policy.ActionTypeDeclare, cmd.Name)
		}
		if err != nil {
			return err
		}
		return s.record(ctx, origin, ws, policy.ActionTypeDeclare, typ, cmd.Name, declared, []event.DocumentVersion{
			{Projection: policy.ActionTypeProjection, Key: cmd.Name, Version: version},
			{Projection: policy.ActionTypeCountProjection, Key: string(ws), Version: counted},
		})
	})
	if err != nil {
		return policy.ActionType{}, err
	}
	return s.Get(ctx, ws, cmd.Name)
}

// Retire ends an action type of the workspace: from now on its actions are denied. Its name can be declared again, under a higher version.
func (s *Service) Retire(ctx context.Context, origin event.Origin, ws id.Workspace, name, reason string) (policy.ActionType, error) {
	err := journal.Again(func() error {
		doc, version, err := s.Find(ctx, ws, name)
		if err != nil {
			return err
		}
		retired, err := doc.Retire(reason)
		if errors.Is(err, policy.ErrActionTypeNotFound) { // a caller who may not retire any gets that error first
			if refused := s.may(ctx, origin, ws, policy.ActionTypeRetire, name); refused != nil {
				return refused
			}
		}
		if err != nil {
			return err
		}
		return s.record(ctx, origin, ws, policy.ActionTypeRetire, policy.ActionTypeRetiredType, name, retired, []event.DocumentVersion{
			{Projection: policy.ActionTypeProjection, Key: name, Version: version},
		})
	})
	if err != nil {
		return policy.ActionType{}, err
	}
	return s.Get(ctx, ws, name)
}

// may returns the refusal of a caller without the right, where the request would record nothing.
func (s *Service) may(ctx context.Context, origin event.Origin, ws id.Workspace, action, name string) error {
	return policy.Change{Workspace: ws, Action: action, Key: name}.May(ctx, s.Gate, origin)
}

// record records an event about a declared action type.
func (s *Service) record(ctx context.Context, origin event.Origin, ws id.Workspace, action, typ, name string, data any,
	expect []event.DocumentVersion) error {
	return policy.Change{Workspace: ws, Action: action, Entity: policy.ActionTypeEntity, Key: name, Event: typ, Data: data,
		At: s.Clock.Now().UTC(), Expect: expect}.Record(ctx, s.Gate, origin)
}
