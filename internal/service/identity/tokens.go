package identity

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Issued is a capability token. If the person who granted it may speak for its holder, it has its bearer text, which is shown once and
// stored nowhere.
type Issued struct {
	token.Token
	Bearer string
}

// tokens hands out authority that can be narrowed, and takes it back.
type tokens struct{ *core }

// ErrRootNotYours refuses a root token if the caller does not manage the principal who would hold it.
var ErrRootNotYours = fault.New(fault.Denied, policy.ReasonRoleTooLow,
	"a token that is derived from none is granted by an owner or an admin, to nobody above themselves").
	With("Name a token of your own as parent_token_id, or ask an owner.")

// under returns the origin of the grant of a token: one that narrows another follows from that one.
func under(origin event.Origin, d token.Granted) event.Origin {
	if d.Parent != "" {
		origin.Follows = event.Subject{Type: token.Entity, ID: string(d.Parent)}
	}
	return origin
}

// Grant makes a capability token. A caller under a token derives only from that token, and from tokens derived from it. A refused
// delegation is recorded.
func (r *tokens) Grant(ctx context.Context, origin event.Origin, ws id.Workspace, q token.Grant) (Issued, error) {
	var made Issued
	if q.Parent == "" {
		q.Parent = origin.Token
	}
	err := journal.Again(func() error {
		who, _, err := r.who(ctx, ws, origin.Principal)
		if errors.Is(err, errNobody) {
			return token.ErrGrantorNotFound
		}
		if err != nil {
			return err
		}
		target, version, err := r.who(ctx, ws, q.IssuedTo)
		if errors.Is(err, errNobody) {
			return token.ErrIssuedToNotFound
		}
		if err != nil {
			return err
		}
		chain, expect, err := r.chain(ctx, ws, q.Parent)
		if err != nil {
			return err
		}
		if err := r.declared(ctx, ws, q.Scopes.Actions); err != nil {
			return err
		}
		granted, err := r.decide(origin, q, who, target, chain)
		if err != nil {
			return err
		}
		expect = append(expect, event.DocumentVersion{Projection: principal.Projection, Key: string(target.ID), Version: version})
		made, err = r.issue(ctx, origin, ws, q, granted, speaksFor(who, target), expect)
		return err
	})
	if err != nil && q.Parent != "" && fault.KindOf(err) != fault.Internal && fault.KindOf(err) != fault.Unavailable {
		return Issued{}, errors.Join(err, r.attempted(ctx, origin, ws, q, err))
	}
	return made, err
}

// Narrow makes a token under which a principal does less than they may: for themselves, and derived from the token under which they act, if
// any. Everybody may bind themselves, because a token by itself gives no right. It has no bearer, so that only the daemon acts under it.
func (r *tokens) Narrow(ctx context.Context, origin event.Origin, ws id.Workspace, scopes token.Scopes,
	until time.Time) (token.Token, error) {
	q := token.Grant{IssuedTo: origin.Principal, Parent: origin.Token, Scopes: scopes, ValidUntil: until}
	var made Issued
	err := journal.Again(func() error {
		who, version, err := r.who(ctx, ws, origin.Principal)
		if errors.Is(err, errNobody) {
			return token.ErrGrantorNotFound
		}
		if err != nil {
			return err
		}
		chain, expect, err := r.chain(ctx, ws, q.Parent)
		if err != nil {
			return err
		}
		grant := q.Root
		if len(chain) > 0 {
			grant = func(by id.Principal, now time.Time) (token.Granted, error) { return q.Delegate(chain, by, now) }
		}
		granted, err := useful(q, grant, who.ID, r.Clock.Now().UTC())
		if err != nil {
			return err
		}
		expect = append(expect, event.DocumentVersion{Projection: principal.Projection, Key: string(who.ID), Version: version})
		made, err = r.issue(ctx, origin, ws, q, granted, false, expect)
		return err
	})
	if err != nil && q.Parent != "" && fault.KindOf(err) != fault.Internal && fault.KindOf(err) != fault.Unavailable {
		err = errors.Join(err, r.attempted(ctx, origin, ws, q, err))
	}
	return made.Token, err
}

// chain reads the tokens above one that is to be derived, with the versions that must not change meanwhile.
func (r *tokens) chain(ctx context.Context, ws id.Workspace, parent id.Token) ([]token.Token, []event.DocumentVersion, error) {
	if parent == "" {
		return nil, nil, nil
	}
	var expect []event.DocumentVersion
	chain, err := token.Chain(parent, func(t id.Token) (token.Token, error) {
		doc, version, err := projection.Load[token.Token](ctx, r.Docs, ws, token.Projection, string(t))
		if errors.Is(err, projection.ErrNotFound) {
			return doc, token.ErrNotFound
		}
		expect = append(expect, event.DocumentVersion{Projection: token.Projection, Key: string(t), Version: version})
		return doc, err
	})
	if errors.Is(err, token.ErrNotFound) {
		err = token.ErrParentNotFound
	}
	return chain, expect, err
}

// declared refuses actions that are neither of the registry nor declared in the workspace now.
func (r *tokens) declared(ctx context.Context, ws id.Workspace, actions []string) error {
	for _, action := range actions {
		if _, builtIn := policy.KindOf(action); builtIn || policy.Declarable(action) != nil {
			continue // those that there cannot be are refused with the rest of the scopes
		}
		doc, _, err := projection.Load[policy.ActionType](ctx, r.Docs, ws, policy.ActionTypeProjection, action)
		if err != nil && !errors.Is(err, projection.ErrNotFound) {
			return err
		}
		if !doc.Living() {
			return token.UnknownAction(action)
		}
	}
	return nil
}

// decide decides whether a token may be granted.
func (r *tokens) decide(origin event.Origin, q token.Grant, who, target principal.Principal, chain []token.Token) (token.Granted, error) {
	now := r.Clock.Now().UTC()
	if len(chain) == 0 {
		if !reaches(who, target) {
			return token.Granted{}, ErrRootNotYours
		}
		return useful(q, q.Root, who.ID, now)
	}
	if origin.Token != "" && !token.Within(chain, origin.Token) {
		return token.Granted{}, token.ErrParentNotYours
	}
	return useful(q, func(by id.Principal, now time.Time) (token.Granted, error) { return q.Delegate(chain, by, now) }, who.ID, now)
}

// useful is a grant that permits something.
func useful(q token.Grant, grant func(id.Principal, time.Time) (token.Granted, error), by id.Principal, now time.Time) (token.Granted,
	error) {
	d, err := grant(by, now)
	if err == nil {
		err = q.Useful(d)
	}
	return d, err
}

// speaksFor reports whether who may receive what lets them act as target. That is so for themselves, for an agent that they registered, and
// for somebody whom they manage and who could not be their second person.
func speaksFor(who, target principal.Principal) bool {
	return who.ID == target.ID || target.Kind == id.Agent && target.CreatedBy == who.ID ||
		reaches(who, target) && (target.Kind != id.User || who.Role.Issues(target.Role))
}

// issue records a token, by way of the gate.
func (r *tokens) issue(ctx context.Context, origin event.Origin, ws id.Workspace, q token.Grant, d token.Granted, bears bool,
	expect []event.DocumentVersion) (Issued, error) {
	made := Issued{}
	d.Token = id.New[id.Token](r.IDs)
	var err error
	if d.IssuedBy, err = r.issuer(ctx, ws, origin); err != nil {
		return Issued{}, err
	}
	if bears {
		if made.Bearer, err = principal.TokenForm.New(ws, string(d.Token), r.Entropy); err != nil {
			return Issued{}, err
		}
		d.Hash = principal.HashSecret(made.Bearer)
	}
	asked, err := json.Marshal(q)
	if err != nil {
		return Issued{}, err
	}
	action := policy.Action{Type: policy.CapabilityGrant, Workspace: ws, Principal: origin.Principal, Token: origin.Token,
		Subject: string(q.IssuedTo), Content: event.DigestOf(asked)}
	receipt, err := r.Gate.Record(ctx, origin, action, origin.Once(event.Batch{
		Workspace: ws, Drafts: []event.Draft{r.draft(token.GrantedType, under(origin, d), ws, d, token.Entity, string(d.Token))},
		Documents: append(expect, event.DocumentVersion{Projection: token.Projection, Key: string(d.Token)}),
	}))
	if err != nil {
		return Issued{}, err
	}
	if receipt.Replayed {
		made.Bearer = "" // it was that of a token which was not made
	}
	made.Token, err = token.Token{}.Evolve(receipt.Events[0])
	return made, err
}

// attempted records a delegation that was refused, and why.
func (r *tokens) attempted(ctx context.Context, origin event.Origin, ws id.Workspace, q token.Grant, why error) error {
	if q.Scopes.Check() != nil {
		q.Scopes = token.Scopes{} // nothing of what could not even be read
	}
	if _, err := id.Parse[id.Token](string(q.Parent)); err != nil {
		q.Parent = ""
	}
	if _, err := id.ParsePrincipal(string(q.IssuedTo)); err != nil {
		q.IssuedTo = ""
	}
	_, err := r.Log.Append(ctx, event.Batch{Workspace: ws, Drafts: []event.Draft{r.draft(token.AttemptedType, origin, ws, token.Attempted{
		Parent: q.Parent, From: origin.Principal, To: q.IssuedTo, Scopes: q.Scopes, Reason: fault.CodeOf(why),
	}, "", "")}})
	return err
}

// Revoke takes a token back, with all tokens that were derived from it. The grantor and the holder of the token may do so, and those of
// each token that it was derived from, and owners and admins. A token that was revoked before does not change.
func (r *tokens) Revoke(ctx context.Context, origin event.Origin, ws id.Workspace, t id.Token, reason string) (token.Token, error) {
	if len(reason) > policy.MaxReasonBytes {
		return token.Token{}, policy.ErrReasonTooLong
	}
	err := journal.Again(func() error {
		chain, expect, err := r.chain(ctx, ws, t)
		if errors.Is(err, token.ErrParentNotFound) || err == nil && len(chain) == 0 {
			return token.ErrNotFound
		}
		if err != nil {
			return err
		}
		who, _, err := r.who(ctx, ws, origin.Principal)
		if err != nil {
			return err
		}
		action := policy.Action{Type: policy.CapabilityRevoke, Workspace: ws, Principal: origin.Principal, Token: origin.Token,
			Subject: string(t)}
		if !mayRevoke(origin, who, chain) {
			return policy.RecordRefusal(ctx, r.Gate, r.Log.Append, origin, action, principal.ErrMayNotGive)
		}
		if !chain[0].RevokedAt.IsZero() {
			return nil
		}
		revoked := token.Revoked{Token: t, By: origin.Principal, Reason: reason}
		_, err = r.Gate.Record(ctx, origin, action, origin.Once(event.Batch{
			Workspace: ws, Drafts: []event.Draft{r.draft(token.RevokedType, origin, ws, revoked, token.Entity, string(t))}, Documents: expect[:1],
		}))
		return err
	})
	if err != nil {
		return token.Token{}, err
	}
	return r.Token(ctx, ws, t)
}

func mayRevoke(origin event.Origin, who principal.Principal, chain []token.Token) bool {
	if origin.Token != "" && !token.Within(chain, origin.Token) {
		return false
	}
	if who.Kind == id.User && who.Role.AtLeast(principal.Admin) {
		return true
	}
	for _, t := range chain {
		if t.IssuedTo == who.ID || t.GrantedBy == who.ID {
			return true
		}
	}
	return false
}

// Token returns a capability token of the workspace.
func (r *tokens) Token(ctx context.Context, ws id.Workspace, t id.Token) (token.Token, error) {
	doc, _, err := projection.Load[token.Token](ctx, r.Docs, ws, token.Projection, string(t))
	if errors.Is(err, projection.ErrNotFound) {
		err = token.ErrNotFound
	}
	return doc, err
}

// InForce returns "active" for a token that is in force. It returns "revoked" or "expired" if that is true of it or of one above it.
func (r *tokens) InForce(ctx context.Context, ws id.Workspace, t token.Token) (string, error) {
	chain, _, err := r.chain(ctx, ws, t.ID)
	if err != nil && !errors.Is(err, token.ErrParentNotFound) {
		return "", err
	}
	switch code, _ := token.Holds(chain, r.Clock.Now()); code {
	case "":
		return "active", nil
	case policy.ReasonTokenExpired:
		return "expired", nil
	}
	return "revoked", nil
}

// Tokens returns tokens of the workspace, the newest first: those that a principal holds, or all where none is named.
func (r *tokens) Tokens(ctx context.Context, ws id.Workspace, holder id.Principal, after id.Token, limit int) ([]token.Token, error) {
	q := projection.Query{Workspace: ws, Name: token.Projection, After: string(after), Newest: true, Limit: limit}
	if holder != "" {
		q.Index = projection.Index{Name: "principal", Value: string(holder)}
	}
	return projection.List[token.Token](ctx, r.Docs, q)
}

// Edges returns the steps by which authority was handed on, the newest first: those from or to a principal, or all where none is named.
func (r *tokens) Edges(ctx context.Context, ws id.Workspace, of id.Principal, after id.Token, limit int) ([]token.Edge, error) {
	q := projection.Query{Workspace: ws, Name: token.Projection, After: string(after), Newest: true, Limit: limit,
		Index: projection.Index{Name: "derived", Value: "true"}}
	if of != "" {
		q.Index = projection.Index{Name: "edge", Value: string(of)}
	}
	found, err := projection.List[token.Token](ctx, r.Docs, q)
	edges := make([]token.Edge, 0, len(found))
	for _, t := range found {
		if e, ok := t.Edge(); ok {
			edges = append(edges, e)
		}
	}
	return edges, err
}
