package principal

import (
	"cmp"

	"agentbox/internal/domain/event"
)

// Evolve returns the principal after an event about it.
func (p Principal) Evolve(e event.Event) (Principal, error) {
	switch e.Type {
	case RegisteredType:
		d, err := event.Decode[Registered](e)
		if err != nil {
			return p, err
		}
		return Principal{ID: d.Principal, Workspace: e.Workspace, Kind: d.Kind, Role: d.Role, Name: d.Name, Legacy: d.Legacy,
			CreatedBy: e.Principal, CreatedAt: e.OccurredAt}, nil
	case QuarantinedType:
		d, err := event.Decode[Quarantined](e)
		if err != nil {
			return p, err
		}
		p.Quarantined, p.Reason = true, d.Reason
	case RoleChangedType:
		d, err := event.Decode[RoleChanged](e)
		if err != nil {
			return p, err
		}
		p.Role = d.To
	case UnquarantinedType:
		p.Quarantined, p.Reason = false, ""
	}
	return p, nil
}

// Evolve returns the key after an event about it.
func (k Key) Evolve(e event.Event) (Key, error) {
	switch e.Type {
	case KeyIssuedType:
		d, err := event.Decode[KeyIssued](e)
		if err != nil {
			return k, err
		}
		return Key{
			ID: d.Key, Workspace: e.Workspace, Principal: d.Principal, Hash: d.Hash, Name: d.Name, CreatedAt: e.OccurredAt,
			IssuedBy: cmp.Or(d.IssuedBy, e.Principal, d.Principal), // an event of old says it by who caused it
		}, nil
	case KeyRevokedType:
		k.RevokedAt = e.OccurredAt
	}
	return k, nil
}
