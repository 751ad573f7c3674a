package identity

import (
	"context"
	"encoding/json"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/projection"
)

// ErrMayNotIssue refuses a key for somebody else.
var ErrMayNotIssue = fault.New(fault.Denied, policy.ReasonRoleTooLow,
	"a key for another person is made by an owner, or for members and viewers by an admin; nobody makes one for their peers or those above").
	With("Everybody makes their own keys; ask an owner for the first one.")

var errNoKeyUnderToken = fault.New(fault.Denied, policy.ReasonScopeAction,
	"a key is not bound by a capability token, so a caller that acts under a token makes none").
	With("Grant a token that is derived from it; its bearer is used like a key.")

var errLastOwnerKey = fault.New(fault.Conflict, "last_owner_key",
	"this is the last key of an owner: without it no owner would have a key").
	With("Make another one first (agentbox key issue, agentbox key rotate), or send last=true (--last). A restart of the daemon makes a new " +
		"key for the local owner, in owner.key.")

// keys makes API keys and ends them.
type keys struct{ *core }

// IssueKey makes an API key for a principal and returns its text, which is stored nowhere. People make keys for themselves. Only persons
// who manage people make keys for others, and never for their peers or for those above them. A caller under a capability token makes none,
// because the token would not bound the key.
func (r *keys) IssueKey(ctx context.Context, origin event.Origin, ws id.Workspace, p id.Principal, name string) (string, principal.Key,
	error) {
	if origin.Token != "" {
		return "", principal.Key{}, errNoKeyUnderToken
	}
	target, _, err := r.who(ctx, ws, p)
	if err != nil {
		return "", principal.Key{}, err
	}
	action := policy.Action{Type: policy.KeyIssue, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Subject: string(p),
		Content: event.DigestOf([]byte(name))}
	if origin.Principal != p {
		if err := r.mayIssue(ctx, origin.Principal, target); err != nil {
			return "", principal.Key{}, r.refused(ctx, origin, action, err)
		}
	}
	if err := principal.CheckName(name); err != nil {
		return "", principal.Key{}, err
	}
	issuer, err := r.issuer(ctx, ws, origin)
	if err != nil {
		return "", principal.Key{}, err
	}
	key := id.New[id.Key](r.IDs)
	bearer, err := principal.NewBearer(ws, key, r.Entropy)
	if err != nil {
		return "", principal.Key{}, err
	}
	draft := event.New(principal.KeyIssuedType, origin, ws, "", principal.KeyIssued{
		Key: key, Principal: p, Hash: principal.HashBearer(bearer), Name: name, IssuedBy: issuer,
	}).About(principal.KeyEntity, string(key))
	draft.OccurredAt = r.Clock.Now().UTC()
	_, err = r.Gate.Record(ctx, origin, action, origin.Once(event.Batch{
		Workspace: ws, Drafts: []event.Draft{draft}, Documents: []event.DocumentVersion{{Projection: principal.KeyProjection, Key: string(key)}},
	}))
	if err != nil {
		return "", principal.Key{}, err
	}
	doc, _, err := projection.Load[principal.Key](ctx, r.Docs, ws, principal.KeyProjection, string(key))
	return bearer, doc, err
}

// mayIssue refuses to make a key if the caller does not manage the target, or if the target could be the caller's second person.
func (r *keys) mayIssue(ctx context.Context, p id.Principal, target principal.Principal) error {
	who, err := r.acting(ctx, target.Workspace, p)
	if err != nil {
		return err
	}
	if who.Kind != id.User || who.Quarantined || !who.Role.AtLeast(principal.Admin) || target.Kind == id.User &&
		!who.Role.Issues(target.Role) {
		return ErrMayNotIssue
	}
	return nil
}

// keeps returns the least role that may manage the keys of a principal: a person's own role.
func keeps(target principal.Principal) principal.Role {
	if target.Kind != id.User || target.Role == "" {
		return principal.Viewer
	}
	return target.Role
}

// RevokeKey ends a key at once. Its principal may, and a person who keeps people and is not below the principal. The last key of an owner
// is refused with last_owner_key unless last says that this is meant.
func (r *keys) RevokeKey(ctx context.Context, origin event.Origin, ws id.Workspace, key id.Key, reason string, last bool) error {
	doc, _, err := projection.Load[principal.Key](ctx, r.Docs, ws, principal.KeyProjection, string(key))
	if errors.Is(err, projection.ErrNotFound) {
		return fault.New(fault.NotFound, "key_not_found", "there is no such key in this workspace")
	}
	if err != nil {
		return err
	}
	action := policy.Action{Type: policy.KeyRevoke, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Subject: string(key)}
	if doc.Principal != origin.Principal {
		target, err := r.acting(ctx, ws, doc.Principal)
		if err != nil && !errors.Is(err, errStranger) {
			return err
		}
		if err := r.mayGive(ctx, origin.Principal, ws, keeps(target)); err != nil {
			return r.refused(ctx, origin, action, err)
		}
	}
	if !doc.RevokedAt.IsZero() {
		return nil
	}
	rests, err := r.otherOwnerKey(ctx, doc)
	if err != nil && !(last && errors.Is(err, errLastOwnerKey)) {
		return err
	}
	draft := event.New(principal.KeyRevokedType, origin, ws, "", principal.KeyRevoked{Key: key, Reason: reason}).About(principal.KeyEntity,
		string(key))
	draft.OccurredAt = r.Clock.Now().UTC()
	_, err = r.Gate.Record(ctx, origin, action, origin.Once(event.Batch{Workspace: ws, Drafts: []event.Draft{draft}, Documents: rests}))
	return err
}

// otherOwnerKey returns the document of another key in force of an owner, where key is that of one: revoking rests on it, so that of two
// requests that revoke the last two keys one fails. There is nothing to rest on where key is not an owner's.
func (r *keys) otherOwnerKey(ctx context.Context, key principal.Key) ([]event.DocumentVersion, error) {
	owner, err := r.acting(ctx, key.Workspace, key.Principal)
	if errors.Is(err, errStranger) || err == nil && owner.Role != principal.Overlord {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	q := projection.Query{
		Workspace: key.Workspace, Name: principal.Projection, Index: projection.Index{Name: "role", Value: string(principal.Overlord)},
		Limit: 100,
	}
	for {
		owners, err := projection.List[principal.Principal](ctx, r.Docs, q)
		if err != nil {
			return nil, err
		}
		for _, o := range owners {
			q.After = string(o.ID)
			if o.Quarantined {
				continue
			}
			if other, err := r.keyInForce(ctx, key.Workspace, o.ID, key.ID); err != nil || other.Key != "" {
				return []event.DocumentVersion{other}, err
			}
		}
		if len(owners) < q.Limit {
			return nil, errLastOwnerKey
		}
	}
}

// keyInForce returns a valid key of a principal other than a given one; the zero value if there is none.
func (r *keys) keyInForce(ctx context.Context, ws id.Workspace, p id.Principal, but id.Key) (event.DocumentVersion, error) {
	q := projection.Query{Workspace: ws, Name: principal.KeyProjection, Index: projection.Index{Name: "principal", Value: string(p)},
		Limit: 100, Newest: true}
	for {
		found, err := r.Docs.Documents(ctx, q)
		if err != nil {
			return event.DocumentVersion{}, err
		}
		for _, d := range found {
			var k principal.Key
			if err := json.Unmarshal(d.Body, &k); err != nil {
				return event.DocumentVersion{}, err
			}
			if k.ID != but && k.RevokedAt.IsZero() {
				return event.DocumentVersion{Projection: principal.KeyProjection, Key: d.Key, Version: d.Version}, nil
			}
			q.After = d.Key
		}
		if len(found) < q.Limit {
			return event.DocumentVersion{}, nil
		}
	}
}

// Keys returns API keys, the newest first: those of a principal, or all where none is named.
func (r *keys) Keys(ctx context.Context, ws id.Workspace, of id.Principal, after id.Key, limit int) ([]principal.Key, error) {
	q := projection.Query{Workspace: ws, Name: principal.KeyProjection, After: string(after), Newest: true, Limit: limit}
	if of != "" {
		q.Index = projection.Index{Name: "principal", Value: string(of)}
	}
	return projection.List[principal.Key](ctx, r.Docs, q)
}

// Key returns an API key of the workspace; never what opens with it.
func (r *keys) Key(ctx context.Context, ws id.Workspace, k id.Key) (principal.Key, error) {
	doc, _, err := projection.Load[principal.Key](ctx, r.Docs, ws, principal.KeyProjection, string(k))
	if errors.Is(err, projection.ErrNotFound) {
		err = fault.New(fault.NotFound, "key_not_found", "there is no such key in this workspace")
	}
	return doc, err
}
