package identity

import (
	"context"
	"crypto/subtle"
	"errors"

	"agentbox/internal/domain/engine"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/kernel/projection"
)

// callers knows who sends a request.
type callers struct{ *core }

// Authenticate returns the caller to whom a bearer belongs; a bearer is a key or a capability token. It reads the principal, the role and
// the named rights each time, so that a revoked credential opens nothing.
func (r *callers) Authenticate(ctx context.Context, bearer string) (principal.Caller, error) {
	if principal.TokenForm.Is(bearer) {
		return r.bearsToken(ctx, bearer)
	}
	if principal.AccessForm.Is(bearer) {
		return r.hasSession(ctx, bearer)
	}
	ws, key, ok := principal.ParseBearer(bearer)
	if !ok {
		return principal.Caller{}, principal.ErrUnauthenticated
	}
	doc, _, err := projection.Load[principal.Key](ctx, r.Docs, ws, principal.KeyProjection, string(key))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return principal.Caller{}, err
	}
	// A key that is not there is compared like one that is, so that the time does not tell.
	if !doc.Opens(bearer) || doc.ID != key || doc.Workspace != ws {
		return principal.Caller{}, principal.ErrUnauthenticated
	}
	c, err := r.caller(ctx, ws, doc.Principal)
	c.Key, c.Issuer = key, another(doc.IssuedBy, doc.Principal)
	return c, err
}

// bearsToken returns the principal who acts under the capability token with this bearer. A revoked or expired token opens nothing.
func (r *callers) bearsToken(ctx context.Context, bearer string) (principal.Caller, error) {
	ws, name, ok := principal.ParseToken(bearer)
	if !ok {
		return principal.Caller{}, principal.ErrUnauthenticated
	}
	chain, err := r.derived(ctx, ws, name)
	if err != nil && !errors.Is(err, token.ErrNotFound) {
		return principal.Caller{}, err
	}
	var doc token.Token
	if len(chain) > 0 {
		doc = chain[0]
	}
	hash := principal.HashSecret(bearer)
	same := subtle.ConstantTimeCompare(hash[:], doc.Hash[:]) == 1
	if code, _ := token.Holds(chain, r.Clock.Now()); !same || doc.Hash.IsZero() || code != "" {
		return principal.Caller{}, principal.ErrUnauthenticated
	}
	c, err := r.caller(ctx, ws, doc.IssuedTo)
	c.Token, c.Issuer = name, another(doc.IssuedBy, doc.IssuedTo)
	return c, err
}

// another returns who issued a credential where that is not whom it names.
func another(issuer, p id.Principal) id.Principal {
	if issuer == p {
		return ""
	}
	return issuer
}

// hasSession returns whose session an access token is of.
func (r *callers) hasSession(ctx context.Context, access string) (principal.Caller, error) {
	ws, name, ok := principal.ParseAccess(access)
	if !ok {
		return principal.Caller{}, principal.ErrUnauthenticated
	}
	doc, _, err := projection.Load[principal.Session](ctx, r.Docs, ws, principal.SessionProjection, string(name))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return principal.Caller{}, err
	}
	if !doc.Opens(principal.Seal(r.Secret, access), r.Clock.Now()) {
		return principal.Caller{}, principal.ErrUnauthenticated
	}
	c, err := r.caller(ctx, ws, doc.Principal)
	c.Session, c.Issuer = name, doc.IssuedBy
	return c, err
}

// AuthenticateEngine returns the engine with this id and token. It acts under the capability token to which its token is bound.
func (r *callers) AuthenticateEngine(ctx context.Context, e id.Principal, secret string) (principal.Caller, error) {
	if e == "" || secret == "" {
		return principal.Caller{}, engine.ErrMissing
	}
	ws, name, ok := principal.ParseEngine(secret)
	if !ok {
		return principal.Caller{}, engine.ErrInvalid
	}
	doc, _, err := projection.Load[engine.Token](ctx, r.Docs, ws, engine.TokenProjection, string(name))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return principal.Caller{}, err
	}
	// A token that is not there is compared like one that is, so that the time does not tell.
	if !doc.Opens(principal.Seal(r.Secret, secret)) || doc.Engine != e || !doc.RevokedAt.IsZero() {
		return principal.Caller{}, engine.ErrInvalid
	}
	now := r.Clock.Now()
	if !doc.ExpiresAt.IsZero() && !now.Before(doc.ExpiresAt) {
		return principal.Caller{}, engine.ErrExpired
	}
	known, _, err := projection.Load[engine.Engine](ctx, r.Docs, ws, engine.Projection, string(e))
	if err == nil && known.Inactive || errors.Is(err, projection.ErrNotFound) {
		return principal.Caller{}, engine.ErrInactive
	}
	if err != nil {
		return principal.Caller{}, err
	}
	chain, err := r.derived(ctx, ws, doc.Capability)
	if err != nil {
		return principal.Caller{}, err
	}
	if chain[0].IssuedTo != e {
		return principal.Caller{}, fault.New(fault.Denied, policy.ReasonTokenMismatch, "the capability token was issued to somebody else")
	}
	if code, reason := token.Holds(chain, now); code != "" {
		return principal.Caller{}, fault.New(fault.Denied, code, "%s", reason)
	}
	c, err := r.caller(ctx, ws, e)
	c.Token, c.Engine = doc.Capability, true
	return c, err
}

// caller returns a principal as one who was authenticated.
func (r *callers) caller(ctx context.Context, ws id.Workspace, p id.Principal) (principal.Caller, error) {
	who, err := r.acting(ctx, ws, p)
	if errors.Is(err, errStranger) {
		return principal.Caller{}, principal.ErrUnauthenticated
	}
	if err != nil {
		return principal.Caller{}, err
	}
	if who.Quarantined {
		return principal.Caller{}, fault.New(fault.Denied, policy.ReasonAgentQuarantined, "this principal is quarantined and may do nothing")
	}
	return principal.Caller{Principal: who.ID, Workspace: ws, Role: who.Role}, nil
}

// The refusals of a caller who names another principal.
var (
	ErrActsForNobody = fault.New(fault.NotFound, "principal_not_found", "there is no such principal in this workspace")
	ErrNotYours      = fault.New(fault.Denied, "agent_actor_id_mismatch",
		"you are not that principal and may not act for it: an owner, an admin or an engine acts for an agent of the workspace, and nobody for "+
			"anybody else").
		With("Leave the field out to act as yourself.")
)

// ActsFor returns the caller as the principal and under the capability token that a request names in its body. Empty values mean the
// caller's own. An owner, an admin and an engine may act for the agents of their workspace. A caller who acts under a token may narrow it
// to one that was derived from it. Events of the returned caller name both who acts and who was authenticated.
func (r *callers) ActsFor(ctx context.Context, c principal.Caller, p id.Principal, t id.Token) (principal.Caller, error) {
	if p != "" && p != c.Principal {
		target, err := r.acting(ctx, c.Workspace, p)
		if errors.Is(err, errStranger) {
			return principal.Caller{}, ErrActsForNobody
		}
		if err != nil {
			return principal.Caller{}, err
		}
		self, err := r.acting(ctx, c.Workspace, c.Principal)
		if err != nil {
			return principal.Caller{}, err
		}
		if c.By != "" || !self.MayActFor(target) {
			return principal.Caller{}, ErrNotYours
		}
		if target.Quarantined {
			return principal.Caller{}, fault.New(fault.Denied, policy.ReasonAgentQuarantined, "this principal is quarantined and may do nothing")
		}
		c.Principal, c.By, c.Role, c.Key = p, c.Principal, "", ""
	}
	if t == "" || t == c.Token {
		return c, nil
	}
	chain, err := r.derived(ctx, c.Workspace, t)
	if err != nil {
		return principal.Caller{}, err
	}
	if holder := chain[0].IssuedTo; holder != c.Principal && holder != c.By {
		return principal.Caller{}, fault.New(fault.Denied, policy.ReasonTokenMismatch, "the capability token was issued to somebody else")
	}
	if c.Token != "" && !token.Within(chain, c.Token) {
		return principal.Caller{}, fault.New(fault.Denied, policy.ReasonTokenMismatch,
			"a request under a capability token may name only one that was derived from it")
	}
	if code, reason := token.Holds(chain, r.Clock.Now()); code != "" {
		return principal.Caller{}, fault.New(fault.Denied, code, "%s", reason)
	}
	c.Token = t
	return c, nil
}
