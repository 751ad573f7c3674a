package engine

import "agentbox/internal/domain/event"

// Evolve returns the engine after an event about it.
func (g Engine) Evolve(e event.Event) (Engine, error) {
	switch e.Type {
	case RegisteredType:
		d, err := event.Decode[Registered](e)
		if err != nil {
			return g, err
		}
		return Engine{ID: d.Engine, Workspace: e.Workspace, Name: d.Name, CreatedBy: e.Principal, CreatedAt: e.OccurredAt}, nil
	case DeactivatedType:
		d, err := event.Decode[Deactivated](e)
		if err != nil {
			return g, err
		}
		if !g.Inactive {
			g.Inactive, g.Reason, g.DeactivatedAt = true, d.Reason, e.OccurredAt
		}
	}
	return g, nil
}

// Evolve returns the token after an event about it.
func (t Token) Evolve(e event.Event) (Token, error) {
	switch e.Type {
	case TokenIssuedType:
		d, err := event.Decode[TokenIssued](e)
		if err != nil {
			return t, err
		}
		return Token{ID: d.Token, Workspace: e.Workspace, Engine: d.Engine, Capability: d.Capability, Seal: d.Seal, ExpiresAt: d.ExpiresAt,
			CreatedAt: e.OccurredAt}, nil
	case TokenRevokedType:
		d, err := event.Decode[TokenRevoked](e)
		if err != nil {
			return t, err
		}
		if t.RevokedAt.IsZero() {
			t.RevokedAt, t.Reason = e.OccurredAt, d.Reason
		}
	}
	return t, nil
}
