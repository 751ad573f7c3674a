package token

import (
	"cmp"

	"agentbox/internal/domain/event"
)

// Evolve returns the token after an event about it.
func (t Token) Evolve(e event.Event) (Token, error) {
	switch e.Type {
	case GrantedType:
		d, err := event.Decode[Granted](e)
		if err != nil {
			return t, err
		}
		return Token{
			ID: d.Token, Workspace: e.Workspace, IssuedTo: d.IssuedTo, GrantedBy: d.GrantedBy, Parent: d.Parent, Depth: d.Depth, Scopes: d.Scopes,
			ValidUntil: d.ValidUntil, CreatedAt: e.OccurredAt, Hash: d.Hash,
			IssuedBy: cmp.Or(d.IssuedBy, d.GrantedBy),
		}, nil
	case RevokedType:
		d, err := event.Decode[Revoked](e)
		if err != nil {
			return t, err
		}
		if t.RevokedAt.IsZero() {
			t.RevokedAt, t.RevokedBy, t.Reason = e.OccurredAt, d.By, d.Reason
		}
	}
	return t, nil
}
