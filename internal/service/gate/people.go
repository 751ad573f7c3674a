package gate

import (
	"context"
	"crypto/subtle"
	"errors"

	"agentbox/internal/domain/engine"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Authenticate returns whose key, or capability token, a bearer is. What it names, principal and role are read anew each time, so that what
// was revoked opens nothing.
func (g *Gate) Authenticate(ctx context.Context, bearer string) (principal.Caller, error) {
	if principal.TokenForm.Is(bearer) {
		return g.bearsToken(ctx, bearer)
	}
	if principal.AccessForm.Is(bearer) {
		return g.hasSession(ctx, bearer)
	}
	ws, key, ok := principal.ParseBearer(bearer)
	if !ok {
		return principal.Caller{}, principal.ErrUnauthenticated
	}
	doc, _, err := projection.Load[principal.Key](ctx, g.Docs, ws, principal.KeyProjection, string(key))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return principal.Caller{}, err
	}
	// A key that is not there is compared like one that is, so that the time does not tell.
	if !doc.Opens(bearer) || doc.ID != key || doc.Workspace != ws {
		return principal.Caller{}, principal.ErrUnauthenticated
	}
	c, err := g.caller(ctx, ws, doc.Principal)
	c.Key, c.Issuer = key, another(doc.IssuedBy, doc.Principal)
	return c, err
}

// bearsToken returns who acts under the capability token whose bearer was sent. One that was revoked, or whose time is over, opens nothing.
func (g *Gate) bearsToken(ctx context.Context, bearer string) (principal.Caller, error) {
	ws, name, ok := principal.ParseToken(bearer)
	if !ok {
		return principal.Caller{}, principal.ErrUnauthenticated
	}
	chain, err := g.Chain(ctx, ws, name)
	if err != nil && !errors.Is(err, token.ErrNotFound) {
		return principal.Caller{}, err
	}
	var doc token.Token
	if len(chain) > 0 {
		doc = chain[0]
	}
	hash := principal.HashSecret(bearer)
	same := subtle.ConstantTimeCompare(hash[:], doc.Hash[:]) == 1
	if code, _ := token.Holds(chain, g.Clock.Now()); !same || doc.Hash.IsZero() || code != "" {
		return principal.Caller{}, principal.ErrUnauthenticated
	}
	c, err := g.caller(ctx, ws, doc.IssuedTo)
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
func (g *Gate) hasSession(ctx context.Context, access string) (principal.Caller, error) {
	ws, name, ok := principal.ParseAccess(access)
	if !ok {
		return principal.Caller{}, principal.ErrUnauthenticated
	}
	doc, _, err := projection.Load[principal.Session](ctx, g.Docs, ws, principal.SessionProjection, string(name))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return principal.Caller{}, err
	}
	if !doc.Opens(principal.Seal(g.Secret, access), g.Clock.Now()) {
		return principal.Caller{}, principal.ErrUnauthenticated
	}
	c, err := g.caller(ctx, ws, doc.Principal)
	c.Session, c.Issuer = name, doc.IssuedBy
	return c, err
}

// Engine returns the engine whose id and token were sent, as one who acts under the capability token to which its token is bound.
func (g *Gate) Engine(ctx context.Context, e id.Principal, secret string) (principal.Caller, error) {
	if e == "" || secret == "" {
		return principal.Caller{}, engine.ErrMissing
	}
	ws, name, ok := principal.ParseEngine(secret)
	if !ok {
		return principal.Caller{}, engine.ErrInvalid
	}
	doc, _, err := projection.Load[engine.Token](ctx, g.Docs, ws, engine.TokenProjection, string(name))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return principal.Caller{}, err
	}
	// A token that is not there is compared like one that is, so that the time does not tell.
	if !doc.Opens(principal.Seal(g.Secret, secret)) || doc.Engine != e || !doc.RevokedAt.IsZero() {
		return principal.Caller{}, engine.ErrInvalid
	}
	now := g.Clock.Now()
	if !doc.ExpiresAt.IsZero() && !now.Before(doc.ExpiresAt) {
		return principal.Caller{}, engine.ErrExpired
	}
	known, _, err := projection.Load[engine.Engine](ctx, g.Docs, ws, engine.Projection, string(e))
	if err == nil && known.Inactive || errors.Is(err, projection.ErrNotFound) {
		return principal.Caller{}, engine.ErrInactive
	}
	if err != nil {
		return principal.Caller{}, err
	}
	chain, err := g.Chain(ctx, ws, doc.Capability)
	if err != nil {
		return principal.Caller{}, err
	}
	if chain[0].IssuedTo != e {
		return principal.Caller{}, fault.New(fault.Denied, policy.ReasonTokenMismatch, "the capability token was issued to somebody else")
	}
	if code, reason := token.Holds(chain, now); code != "" {
		return principal.Caller{}, fault.New(fault.Denied, code, "%s", reason)
	}
	c, err := g.caller(ctx, ws, e)
	c.Token, c.Engine = doc.Capability, true
	return c, err
}

// caller returns a principal as one who was authenticated.
func (g *Gate) caller(ctx context.Context, ws id.Workspace, p id.Principal) (principal.Caller, error) {
	who, err := g.who(ctx, ws, p)
	if errors.Is(err, errNobody) {
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

// Owner returns the owner of a workspace and makes one, with the given name, where there is none.
func (g *Gate) Owner(ctx context.Context, ws id.Workspace, name string) (id.Principal, error) {
	for range journal.Tries {
		found, err := projection.List[principal.Principal](ctx, g.Docs, projection.Query{
			Workspace: ws, Name: principal.Projection, Index: projection.Index{Name: "role", Value: string(principal.Overlord)}, Limit: 1,
		})
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			return found[0].ID, nil
		}
		owner := id.NewPrincipal(g.IDs, id.User)
		err = g.register(ctx, event.Origin{Principal: owner}, ws, principal.Registered{Principal: owner, Kind: id.User, Role: principal.Overlord, Name: name}, "owner")
		if !journal.Lost(err) {
			return owner, err
		}
	}
	return "", journal.ErrConflict
}

// register records a principal, without asking anybody; unique is what no other may be registered as.
func (g *Gate) register(ctx context.Context, origin event.Origin, ws id.Workspace, r principal.Registered, unique string) error {
	batch, err := g.registration(origin, ws, r, unique)
	if err == nil {
		_, err = g.Log.Append(ctx, batch)
	}
	return err
}

// registration is the batch that registers a principal.
func (g *Gate) registration(origin event.Origin, ws id.Workspace, r principal.Registered, unique string) (event.Batch, error) {
	draft := event.New(principal.RegisteredType, origin, ws, "", r).About(principal.Entity, string(r.Principal))
	draft.OccurredAt, draft.IdempotencyKey = g.Clock.Now().UTC(), "principal:"+unique
	return event.Batch{
		Workspace: ws, Drafts: []event.Draft{draft},
		Documents: []event.DocumentVersion{{Projection: principal.Projection, Key: string(r.Principal)}},
	}, principal.CheckName(r.Name)
}

// AddPerson registers a person with a role, which may not be mightier than that of whoever adds it.
func (g *Gate) AddPerson(ctx context.Context, origin event.Origin, ws id.Workspace, name string, role principal.Role) (id.Principal, error) {
	action := policy.Action{Type: policy.PrincipalAdd, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Subject: string(role), Content: event.DigestOf([]byte(name))}
	if err := g.mayGive(ctx, origin.Principal, ws, role); err != nil {
		return "", g.refused(ctx, origin, action, err)
	}
	p := id.NewPrincipal(g.IDs, id.User)
	batch, err := g.registration(origin, ws, principal.Registered{Principal: p, Kind: id.User, Role: role, Name: name}, string(p))
	if err != nil {
		return "", err
	}
	receipt, err := g.Record(ctx, origin, action, origin.Once(batch))
	if err != nil {
		return "", err
	}
	return id.Principal(receipt.Events[0].EntityID), nil
}

// refused records that the gate refuses what policy alone would not: why is the refusal, and is returned.
func (g *Gate) refused(ctx context.Context, origin event.Origin, a policy.Action, why error) error {
	return policy.RecordRefusal(ctx, g, g.Log.Append, origin, a, why)
}

// mayGive checks that whoever gives a role has it himself and keeps people.
func (g *Gate) mayGive(ctx context.Context, p id.Principal, ws id.Workspace, role principal.Role) error {
	who, err := g.who(ctx, ws, p)
	if err != nil {
		return err
	}
	if !role.AtLeast(principal.Viewer) {
		return principal.ErrInvalidRole
	}
	if who.Kind != id.User || who.Quarantined || !who.Role.AtLeast(principal.Admin) || !who.Role.AtLeast(role) {
		return principal.ErrMayNotGive
	}
	return nil
}

// ErrMayNotRegister refuses an agent to somebody who only reads.
var ErrMayNotRegister = fault.New(fault.Denied, policy.ReasonRoleTooLow, "to register an agent takes the role member").
	With("Ask an owner for the role member.")

// Agent implements policy.Agents.
func (g *Gate) Agent(ctx context.Context, origin event.Origin, ws id.Workspace, name string) (id.Principal, error) {
	for range journal.Tries {
		found, err := projection.List[principal.Principal](ctx, g.Docs, projection.Query{
			Workspace: ws, Name: principal.Projection, Index: projection.Index{Name: "agent", Value: name}, Limit: 1,
		})
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			return found[0].ID, nil
		}
		who, err := g.who(ctx, ws, origin.Principal)
		if err != nil {
			return "", err
		}
		if who.Kind == id.User && !who.Role.AtLeast(principal.Member) {
			return "", ErrMayNotRegister
		}
		alive, err := g.living(ctx, ws)
		if err != nil {
			return "", err
		}
		agent := id.NewPrincipal(g.IDs, id.Agent)
		batch, err := g.registration(origin, ws, principal.Registered{Principal: agent, Kind: id.Agent, Name: name}, "agent:"+name)
		if err != nil {
			return "", err
		}
		batch.Documents = append(batch.Documents, alive...)
		if _, err = g.Log.Append(ctx, batch); !journal.Lost(err) {
			return agent, err
		}
	}
	return "", journal.ErrConflict
}

// Principal returns a principal of the workspace.
func (g *Gate) Principal(ctx context.Context, ws id.Workspace, p id.Principal) (principal.Principal, error) {
	doc, err := g.who(ctx, ws, p)
	if errors.Is(err, errNobody) {
		err = fault.New(fault.NotFound, "principal_not_found", "there is no such principal in this workspace")
	}
	return doc, err
}

// Quarantine stops a principal from doing anything, or ends that.
func (g *Gate) Quarantine(ctx context.Context, origin event.Origin, ws id.Workspace, p id.Principal, on bool, reason string) error {
	typ := principal.UnquarantinedType
	if on {
		typ = principal.QuarantinedType
	}
	action := policy.Action{Type: policy.AgentQuarantine, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Subject: string(p), Method: typ}
	if err := g.mayGive(ctx, origin.Principal, ws, principal.Viewer); err != nil {
		return g.refused(ctx, origin, action, err)
	}
	if len(reason) > policy.MaxReasonBytes {
		return policy.ErrReasonTooLong
	}
	doc, err := g.Principal(ctx, ws, p)
	if err != nil || doc.Quarantined == on {
		return err
	}
	if doc.Role == principal.Overlord {
		return g.refused(ctx, origin, action, fault.New(fault.Denied, policy.ReasonRoleTooLow, "an owner cannot be quarantined"))
	}
	draft := event.New(typ, origin, ws, "", principal.Quarantined{Principal: p, Reason: reason}).About(principal.Entity, string(p))
	draft.OccurredAt = g.Clock.Now().UTC()
	_, err = g.Record(ctx, origin, action, origin.Once(event.Batch{Workspace: ws, Drafts: []event.Draft{draft}}))
	return err
}

// ErrMayNotStop refuses to end a run for somebody who only reads, or for another agent than the run's own.
var ErrMayNotStop = fault.New(fault.Denied, policy.ReasonRoleTooLow, "you may not end this run: a viewer only reads, and an agent ends its own runs only").
	With("Ask an owner for the role member.")

// MayStop reports whether a principal may end a run of an agent: every person but a viewer may, and the agent itself. Where the role cannot
// be read, stopping goes before asking.
func (g *Gate) MayStop(ctx context.Context, ws id.Workspace, p, agent id.Principal) error {
	who, err := g.who(ctx, ws, p)
	if err != nil && !errors.Is(err, errNobody) || p == agent || err == nil && who.Kind == id.User && who.Role.AtLeast(principal.Member) {
		return nil
	}
	return ErrMayNotStop
}

// IssueKey makes an API key for a principal and returns its text, which is stored nowhere. People make keys for themselves; for others
// only who keeps people does, and never for his peers or those above him. Whoever acts under a capability token makes none, for a key is not
// bound by it.
func (g *Gate) IssueKey(ctx context.Context, origin event.Origin, ws id.Workspace, p id.Principal, name string) (string, principal.Key, error) {
	if origin.Token != "" {
		return "", principal.Key{}, errNoKeyUnderToken
	}
	target, err := g.Principal(ctx, ws, p)
	if err != nil {
		return "", principal.Key{}, err
	}
	action := policy.Action{Type: policy.KeyIssue, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Subject: string(p), Content: event.DigestOf([]byte(name))}
	if origin.Principal != p {
		if err := g.mayIssue(ctx, origin.Principal, target); err != nil {
			return "", principal.Key{}, g.refused(ctx, origin, action, err)
		}
	}
	if err := principal.CheckName(name); err != nil {
		return "", principal.Key{}, err
	}
	issuer, err := g.issuer(ctx, ws, origin)
	if err != nil {
		return "", principal.Key{}, err
	}
	key := id.New[id.Key](g.IDs)
	bearer, err := principal.NewBearer(ws, key, g.Entropy)
	if err != nil {
		return "", principal.Key{}, err
	}
	draft := event.New(principal.KeyIssuedType, origin, ws, "", principal.KeyIssued{
		Key: key, Principal: p, Hash: principal.HashBearer(bearer), Name: name, IssuedBy: issuer,
	}).About(principal.KeyEntity, string(key))
	draft.OccurredAt = g.Clock.Now().UTC()
	_, err = g.Record(ctx, origin, action, origin.Once(event.Batch{
		Workspace: ws, Drafts: []event.Draft{draft}, Documents: []event.DocumentVersion{{Projection: principal.KeyProjection, Key: string(key)}},
	}))
	if err != nil {
		return "", principal.Key{}, err
	}
	doc, _, err := projection.Load[principal.Key](ctx, g.Docs, ws, principal.KeyProjection, string(key))
	return bearer, doc, err
}

// mayIssue refuses to make a key for somebody whom whoever asks does not keep, or who could be his second person.
func (g *Gate) mayIssue(ctx context.Context, p id.Principal, target principal.Principal) error {
	who, err := g.who(ctx, target.Workspace, p)
	if err != nil {
		return err
	}
	if who.Kind != id.User || who.Quarantined || !who.Role.AtLeast(principal.Admin) || target.Kind == id.User && !who.Role.Issues(target.Role) {
		return ErrMayNotIssue
	}
	return nil
}

// issuer returns who counts as having issued a key that origin makes.
func (g *Gate) issuer(ctx context.Context, ws id.Workspace, origin event.Origin) (id.Principal, error) {
	if origin.Issuer == "" {
		return principal.IssuerOf(origin, ""), nil
	}
	by, err := g.who(ctx, ws, origin.Issuer)
	if err != nil && !errors.Is(err, errNobody) {
		return "", err
	}
	return principal.IssuerOf(origin, by.Role), nil
}

// ErrMayNotIssue refuses a key for somebody else.
var ErrMayNotIssue = fault.New(fault.Denied, policy.ReasonRoleTooLow, "a key for another person is made by an owner, or for members and viewers by an admin; nobody makes one for his peers or those above him").
	With("Everybody makes keys for himself; ask an owner for the first one.")

var errNoKeyUnderToken = fault.New(fault.Denied, policy.ReasonScopeAction, "a key is not bound by a capability token, so whoever acts under one makes none").
	With("Grant a token that is derived from it; its bearer is used like a key.")

// keeps is the role below which nobody keeps the keys of a principal: a person's own.
func keeps(target principal.Principal) principal.Role {
	if target.Kind != id.User || target.Role == "" {
		return principal.Viewer
	}
	return target.Role
}

// RevokeKey ends a key at once. Its principal may, and a person who keeps people and is not below the principal. The last key of an owner is
// refused with last_owner_key unless last says that this is meant.
func (g *Gate) RevokeKey(ctx context.Context, origin event.Origin, ws id.Workspace, key id.Key, reason string, last bool) error {
	doc, _, err := projection.Load[principal.Key](ctx, g.Docs, ws, principal.KeyProjection, string(key))
	if errors.Is(err, projection.ErrNotFound) {
		return fault.New(fault.NotFound, "key_not_found", "there is no such key in this workspace")
	}
	if err != nil {
		return err
	}
	action := policy.Action{Type: policy.KeyRevoke, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Subject: string(key)}
	if doc.Principal != origin.Principal {
		target, err := g.who(ctx, ws, doc.Principal)
		if err != nil && !errors.Is(err, errNobody) {
			return err
		}
		if err := g.mayGive(ctx, origin.Principal, ws, keeps(target)); err != nil {
			return g.refused(ctx, origin, action, err)
		}
	}
	if !doc.RevokedAt.IsZero() {
		return nil
	}
	rests, err := g.otherOwnerKey(ctx, doc)
	if err != nil && !(last && errors.Is(err, errLastOwnerKey)) {
		return err
	}
	draft := event.New(principal.KeyRevokedType, origin, ws, "", principal.KeyRevoked{Key: key, Reason: reason}).About(principal.KeyEntity, string(key))
	draft.OccurredAt = g.Clock.Now().UTC()
	_, err = g.Record(ctx, origin, action, origin.Once(event.Batch{Workspace: ws, Drafts: []event.Draft{draft}, Documents: rests}))
	return err
}
