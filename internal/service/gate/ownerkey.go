package gate

import (
	"context"
	"encoding/json"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/projection"
)

var errLastOwnerKey = fault.New(fault.Conflict, "last_owner_key", "this is the last key of an owner: without it nobody would be the owner by a key").
	With("Make another one first (agentbox key issue, agentbox key rotate), or send last=true (--last). A restart of the daemon makes a new key for the local owner, in owner.key.")

// otherOwnerKey returns the document of another key in force of an owner, where key is that of one: revoking rests on it, so that of two
// requests that revoke the last two keys one fails. There is nothing to rest on where key is not an owner's.
func (g *Gate) otherOwnerKey(ctx context.Context, key principal.Key) ([]event.DocumentVersion, error) {
	owner, err := g.who(ctx, key.Workspace, key.Principal)
	if errors.Is(err, errNobody) || err == nil && owner.Role != principal.Overlord {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	q := projection.Query{
		Workspace: key.Workspace, Name: principal.Projection, Index: projection.Index{Name: "role", Value: string(principal.Overlord)}, Limit: 100,
	}
	for {
		owners, err := projection.List[principal.Principal](ctx, g.Docs, q)
		if err != nil {
			return nil, err
		}
		for _, o := range owners {
			q.After = string(o.ID)
			if o.Quarantined {
				continue
			}
			if other, err := g.keyInForce(ctx, key.Workspace, o.ID, key.ID); err != nil || other.Key != "" {
				return []event.DocumentVersion{other}, err
			}
		}
		if len(owners) < q.Limit {
			return nil, errLastOwnerKey
		}
	}
}

// keyInForce returns a key of a principal that opens something, but for one; the zero value where there is none.
func (g *Gate) keyInForce(ctx context.Context, ws id.Workspace, p id.Principal, but id.Key) (event.DocumentVersion, error) {
	q := projection.Query{Workspace: ws, Name: principal.KeyProjection, Index: projection.Index{Name: "principal", Value: string(p)}, Limit: 100, Newest: true}
	for {
		found, err := g.Docs.Documents(ctx, q)
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
