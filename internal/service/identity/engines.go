package identity

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"agentbox/internal/domain/engine"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// EngineScopes are the default scopes of an engine's token: to claim runs, to renew the claims, and to give runs back.
func EngineScopes() token.Scopes {
	return token.Scopes{Rooms: []string{token.Any}, Actions: []string{policy.RunClaim, policy.RunRenew, policy.RunRelease}}
}

// EngineToken is a token with the text that is shown once.
type EngineToken struct {
	engine.Token
	Scopes token.Scopes
	Secret string
}

// engines keeps the engines and their credentials.
type engines struct {
	*core
	capabilities *tokens
}

// RegisterEngine registers an engine, which is a service.
func (r *engines) RegisterEngine(ctx context.Context, origin event.Origin, ws id.Workspace, name string) (engine.Engine, error) {
	if err := principal.CheckName(name); err != nil {
		return engine.Engine{}, err
	}
	p := id.NewPrincipal(r.IDs, id.Service)
	action := policy.Action{Type: policy.EngineRegister, Workspace: ws, Principal: origin.Principal, Token: origin.Token,
		Content: event.DigestOf([]byte(name))}
	receipt, err := r.Gate.Record(ctx, origin, action, origin.Once(event.Batch{
		Workspace: ws, Drafts: []event.Draft{
			r.draft(principal.RegisteredType, origin, ws, principal.Registered{Principal: p, Kind: id.Service, Name: name}, principal.Entity,
				string(p)),
			r.draft(engine.RegisteredType, origin, ws, engine.Registered{Engine: p, Name: name}, engine.Entity, string(p)),
		},
		Documents: []event.DocumentVersion{{Projection: principal.Projection, Key: string(p)}, {Projection: engine.Projection, Key: string(p)}},
	}))
	if err != nil {
		return engine.Engine{}, err
	}
	return engine.Engine{}.Evolve(receipt.Events[len(receipt.Events)-1])
}

// IssueEngineToken makes a token that identifies an engine, bound to a capability token of its own. If the caller acts under a capability
// token, the engine's token is derived from that.
func (r *engines) IssueEngineToken(ctx context.Context, origin event.Origin, ws id.Workspace, e id.Principal, scopes token.Scopes,
	until time.Time) (EngineToken, error) {
	var made EngineToken
	err := journal.Again(func() error {
		doc, version, err := r.engine(ctx, ws, e)
		if err != nil {
			return err
		}
		if doc.Inactive {
			return engine.ErrNoMore
		}
		who, _, err := r.who(ctx, ws, origin.Principal)
		if err != nil {
			return err
		}
		target, _, err := r.who(ctx, ws, e)
		if err != nil {
			return err
		}
		chain, expect, err := r.capabilities.chain(ctx, ws, origin.Token)
		if err != nil {
			return err
		}
		q := token.Grant{IssuedTo: e, Parent: origin.Token, Scopes: scopes, ValidUntil: until}
		granted, err := r.capabilities.decide(origin, q, who, target, chain)
		if err != nil {
			return err
		}
		made, err = r.issueEngine(ctx, origin, ws, q, granted, append(expect, event.DocumentVersion{Projection: engine.Projection, Key: string(e),
			Version: version}))
		return err
	})
	return made, err
}

// issueEngine records an engine's token together with the capability token to which it is bound.
func (r *engines) issueEngine(ctx context.Context, origin event.Origin, ws id.Workspace, q token.Grant, d token.Granted,
	expect []event.DocumentVersion) (EngineToken, error) {
	d.Token = id.New[id.Token](r.IDs)
	name := id.New[id.EngineToken](r.IDs)
	secret, err := principal.EngineForm.New(ws, string(name), r.Entropy)
	if err != nil {
		return EngineToken{}, err
	}
	asked, err := json.Marshal(q)
	if err != nil {
		return EngineToken{}, err
	}
	issued := engine.TokenIssued{Token: name, Engine: q.IssuedTo, Capability: d.Token, Seal: principal.Seal(r.Secret, secret),
		ExpiresAt: d.ValidUntil}
	action := policy.Action{Type: policy.EngineToken, Workspace: ws, Principal: origin.Principal, Token: origin.Token,
		Subject: string(q.IssuedTo), Content: event.DigestOf(asked)}
	receipt, err := r.Gate.Record(ctx, origin, action, origin.Once(event.Batch{
		Workspace: ws, Drafts: []event.Draft{
			r.draft(token.GrantedType, under(origin, d), ws, d, token.Entity, string(d.Token)),
			r.draft(engine.TokenIssuedType, origin, ws, issued, engine.TokenEntity, string(name)),
		},
		Documents: append(expect, event.DocumentVersion{Projection: token.Projection, Key: string(d.Token)},
			event.DocumentVersion{Projection: engine.TokenProjection, Key: string(name)}),
	}))
	if err != nil {
		return EngineToken{}, err
	}
	if receipt.Replayed {
		secret = "" // it was that of a token which was not made
	}
	doc, err := engine.Token{}.Evolve(receipt.Events[len(receipt.Events)-1])
	return EngineToken{doc, d.Scopes, secret}, err
}

// RevokeEngineToken ends a token of an engine at once, with the capability token to which it is bound.
func (r *engines) RevokeEngineToken(ctx context.Context, origin event.Origin, ws id.Workspace, e id.Principal, t id.EngineToken,
	reason string) (engine.Token, error) {
	if len(reason) > policy.MaxReasonBytes {
		return engine.Token{}, policy.ErrReasonTooLong
	}
	err := journal.Again(func() error {
		doc, version, err := r.engineToken(ctx, ws, e, t)
		if err != nil {
			return err
		}
		target, _, err := r.who(ctx, ws, e)
		if err != nil {
			return err
		}
		who, _, err := r.who(ctx, ws, origin.Principal)
		if err != nil {
			return err
		}
		action := policy.Action{Type: policy.EngineToken, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Subject: string(t),
			Method: "revoke"}
		if !reaches(who, target) {
			return policy.RecordRefusal(ctx, r.Gate, r.Log.Append, origin, action, principal.ErrMayNotGive)
		}
		if !doc.RevokedAt.IsZero() {
			return nil
		}
		_, err = r.Gate.Record(ctx, origin, action, origin.Once(event.Batch{
			Workspace: ws, Drafts: []event.Draft{
				r.draft(token.RevokedType, origin, ws, token.Revoked{Token: doc.Capability, By: origin.Principal, Reason: reason}, token.Entity,
					string(doc.Capability)),
				r.draft(engine.TokenRevokedType, origin, ws, engine.TokenRevoked{Token: t, Engine: e, Reason: reason}, engine.TokenEntity, string(t)),
			},
			Documents: []event.DocumentVersion{{Projection: engine.TokenProjection, Key: string(t), Version: version}},
		}))
		return err
	})
	if err != nil {
		return engine.Token{}, err
	}
	doc, _, err := r.engineToken(ctx, ws, e, t)
	return doc, err
}

// DeactivateEngine ends an engine for good: no token of it opens anything any more.
func (r *engines) DeactivateEngine(ctx context.Context, origin event.Origin, ws id.Workspace, e id.Principal, reason string) (engine.Engine,
	error) {
	if len(reason) > policy.MaxReasonBytes {
		return engine.Engine{}, policy.ErrReasonTooLong
	}
	err := journal.Again(func() error {
		doc, version, err := r.engine(ctx, ws, e)
		if err != nil || doc.Inactive {
			return err
		}
		action := policy.Action{Type: policy.EngineRegister, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Subject: string(e),
			Method: "deactivate"}
		_, err = r.Gate.Record(ctx, origin, action, origin.Once(event.Batch{
			Workspace: ws, Drafts: []event.Draft{r.draft(engine.DeactivatedType, origin, ws, engine.Deactivated{Engine: e, Reason: reason},
				engine.Entity, string(e))},
			Documents: []event.DocumentVersion{{Projection: engine.Projection, Key: string(e), Version: version}},
		}))
		return err
	})
	if err != nil {
		return engine.Engine{}, err
	}
	doc, _, err := r.engine(ctx, ws, e)
	return doc, err
}

// Engine returns an engine of the workspace.
func (r *engines) Engine(ctx context.Context, ws id.Workspace, e id.Principal) (engine.Engine, error) {
	doc, _, err := r.engine(ctx, ws, e)
	return doc, err
}

// Engines returns engines of the workspace, the newest first.
func (r *engines) Engines(ctx context.Context, ws id.Workspace, after id.Principal, limit int) ([]engine.Engine, error) {
	return projection.List[engine.Engine](ctx, r.Docs, projection.Query{Workspace: ws, Name: engine.Projection, After: string(after),
		Newest: true, Limit: limit})
}

// EngineTokens returns the tokens of an engine, the newest first.
func (r *engines) EngineTokens(ctx context.Context, ws id.Workspace, e id.Principal, after id.EngineToken, limit int) ([]engine.Token,
	error) {
	if _, _, err := r.engine(ctx, ws, e); err != nil {
		return nil, err
	}
	return projection.List[engine.Token](ctx, r.Docs, projection.Query{
		Workspace: ws, Name: engine.TokenProjection, Index: projection.Index{Name: "engine", Value: string(e)}, After: string(after),
		Newest: true, Limit: limit,
	})
}

func (r *engines) engine(ctx context.Context, ws id.Workspace, e id.Principal) (engine.Engine, uint64, error) {
	doc, version, err := projection.Load[engine.Engine](ctx, r.Docs, ws, engine.Projection, string(e))
	if errors.Is(err, projection.ErrNotFound) {
		err = engine.ErrNotFound
	}
	return doc, version, err
}

func (r *engines) engineToken(ctx context.Context, ws id.Workspace, e id.Principal, t id.EngineToken) (engine.Token, uint64, error) {
	doc, version, err := projection.Load[engine.Token](ctx, r.Docs, ws, engine.TokenProjection, string(t))
	if errors.Is(err, projection.ErrNotFound) || err == nil && doc.Engine != e {
		err = engine.ErrTokenNotFound
	}
	return doc, version, err
}
