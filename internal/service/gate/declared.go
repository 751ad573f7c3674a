package gate

import (
	"context"
	"encoding/json"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// declare lays into an action what its workspace says of its type, where that is none of the registry's. What the caller wrote there counts nothing.
func (g *Gate) declare(ctx context.Context, c *consideration) error {
	a := &c.ruling.Action
	a.Declared = policy.Declaration{}
	if _, builtIn := policy.KindOf(a.Type); builtIn || policy.Declarable(a.Type) != nil {
		return nil
	}
	doc, version, err := g.types.Load(ctx, g.Docs, a.Workspace, policy.ActionTypeProjection, a.Type)
	if errors.Is(err, projection.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	a.Declared, c.ruling.Basis.Declared = doc.Declaration(), version
	return nil
}

// current refuses a question about an action of a type that its workspace has changed or retired since.
func (g *Gate) current(ctx context.Context, a policy.Action) error {
	if a.Declared.Version == 0 {
		return nil
	}
	doc, _, err := g.types.Load(ctx, g.Docs, a.Workspace, policy.ActionTypeProjection, a.Type)
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return err
	}
	if doc.Declaration() != a.Declared {
		return policy.ErrDeclarationChanged
	}
	return nil
}

// kindOf returns what is known of the action that an approval is about; false where that cannot be said.
func kindOf(doc policy.Approval) (policy.Kind, bool) {
	if k, ok := policy.KindOf(doc.Action); ok {
		return k, true
	}
	a, err := policy.ParseAction(doc.Request)
	if err != nil {
		return policy.Kind{}, false
	}
	return a.Kind()
}

// ActionTypes returns the action types that a workspace declared, by name, after the given one; the retired ones too where they are asked for.
func (g *Gate) ActionTypes(ctx context.Context, ws id.Workspace, retired bool, after string, limit int) ([]policy.ActionType, error) {
	q := projection.Query{Workspace: ws, Name: policy.ActionTypeProjection, After: after, Limit: limit}
	if !retired {
		q.Index = projection.Index{Name: "living", Value: "true"}
	}
	return projection.List[policy.ActionType](ctx, g.Docs, q)
}

// ActionType returns an action type that a workspace declared, also where it is retired.
func (g *Gate) ActionType(ctx context.Context, ws id.Workspace, name string) (policy.ActionType, error) {
	doc, _, err := g.actionType(ctx, ws, name)
	if err == nil && doc.Version == 0 {
		err = policy.ErrActionTypeNotFound
	}
	return doc, err
}

// actionType returns the document of a type and its version, both zero where it was never declared.
func (g *Gate) actionType(ctx context.Context, ws id.Workspace, name string) (policy.ActionType, uint64, error) {
	doc, version, err := projection.Load[policy.ActionType](ctx, g.Docs, ws, policy.ActionTypeProjection, name)
	if errors.Is(err, projection.ErrNotFound) {
		err = nil
	}
	return doc, version, err
}

// DeclareAction declares an action type of the workspace, or changes it, and returns it. A declaration that holds already records nothing.
func (g *Gate) DeclareAction(ctx context.Context, origin event.Origin, ws id.Workspace, cmd policy.Declare) (policy.ActionType, error) {
	err := journal.Again(func() error {
		doc, version, err := g.actionType(ctx, ws, cmd.Name)
		if err != nil {
			return err
		}
		count, counted, err := projection.Load[policy.ActionTypeCount](ctx, g.Docs, ws, policy.ActionTypeCountProjection, string(ws))
		if err != nil && !errors.Is(err, projection.ErrNotFound) {
			return err
		}
		typ, declared, err := doc.Declare(cmd, count.Living)
		if err == nil && typ == "" { // what changes nothing takes the same right
			return g.mayType(ctx, origin, ws, policy.ActionTypeDeclare, cmd.Name)
		}
		if err != nil {
			return err
		}
		return g.recordType(ctx, origin, ws, policy.ActionTypeDeclare, typ, cmd.Name, declared, []event.DocumentVersion{
			{Projection: policy.ActionTypeProjection, Key: cmd.Name, Version: version},
			{Projection: policy.ActionTypeCountProjection, Key: string(ws), Version: counted},
		})
	})
	if err != nil {
		return policy.ActionType{}, err
	}
	return g.ActionType(ctx, ws, cmd.Name)
}

// RetireAction ends an action type of the workspace: from now on what is of it is denied. Its name can be declared anew, under a higher version.
func (g *Gate) RetireAction(ctx context.Context, origin event.Origin, ws id.Workspace, name, reason string) (policy.ActionType, error) {
	err := journal.Again(func() error {
		doc, version, err := g.actionType(ctx, ws, name)
		if err != nil {
			return err
		}
		retired, err := doc.Retire(reason)
		if errors.Is(err, policy.ErrActionTypeNotFound) { // who may not retire any is told that first
			if refused := g.mayType(ctx, origin, ws, policy.ActionTypeRetire, name); refused != nil {
				return refused
			}
		}
		if err != nil {
			return err
		}
		return g.recordType(ctx, origin, ws, policy.ActionTypeRetire, policy.ActionTypeRetiredType, name, retired, []event.DocumentVersion{
			{Projection: policy.ActionTypeProjection, Key: name, Version: version},
		})
	})
	if err != nil {
		return policy.ActionType{}, err
	}
	return g.ActionType(ctx, ws, name)
}

// mayType refuses who may not do this to action types, where nothing is recorded.
func (g *Gate) mayType(ctx context.Context, origin event.Origin, ws id.Workspace, action, name string) error {
	r, err := g.Judge(ctx, policy.Action{Type: action, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Subject: name})
	if err == nil && !r.Decision.Allowed() {
		err = r.Decision.Refusal()
	}
	return err
}

// recordType records what is said of a declared action type.
func (g *Gate) recordType(ctx context.Context, origin event.Origin, ws id.Workspace, action, typ, name string, data any, expect []event.DocumentVersion) error {
	content, err := json.Marshal(data)
	if err != nil {
		return err
	}
	a := policy.Action{Type: action, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Subject: name, Content: event.DigestOf(content)}
	draft := event.New(typ, origin, ws, "", data).About(policy.ActionTypeEntity, name)
	draft.OccurredAt = g.Clock.Now().UTC()
	_, err = g.Record(ctx, origin, a, origin.Once(event.Batch{Workspace: ws, Drafts: []event.Draft{draft}, Documents: expect}))
	return err
}
