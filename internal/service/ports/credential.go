package ports

import (
	"context"
	"errors"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/projection"
)

// Credential is the key or the session of a request for an address, or neither. The address ends with it.
type Credential struct {
	Key     id.Key
	Session id.Session
}

// valid reports whether the credential that made the address of an open port is still in force.
func (s *Service) valid(ctx context.Context, x *Exposure) (bool, error) {
	by := x.request.by
	if by.Key != "" {
		key, _, err := projection.Load[principal.Key](ctx, s.Docs, x.Workspace, principal.KeyProjection, string(by.Key))
		if err != nil || !key.RevokedAt.IsZero() {
			return false, unless(err)
		}
	}
	if by.Session != "" {
		session, _, err := projection.Load[principal.Session](ctx, s.Docs, x.Workspace, principal.SessionProjection, string(by.Session))
		if err != nil || !session.EndedAt.IsZero() || !s.Clock.Now().Before(session.RefreshUntil) {
			return false, unless(err)
		}
	}
	return true, nil
}

// unless returns an error, but nil for a document that was not found.
func unless(err error) error {
	if errors.Is(err, projection.ErrNotFound) {
		return nil
	}
	return err
}

// making identifies a request that makes an address under an idempotency key.
type making struct {
	workspace id.Workspace
	space     id.Space
	principal id.Principal
	key       string
}

// alone waits until no other request with the same key makes an address. The returned function ends this request.
func (s *Service) alone(ctx context.Context, m making) (end func(), err error) {
	for {
		s.mu.Lock()
		other := s.making[m]
		if other == nil {
			done := make(chan struct{})
			s.making[m] = done
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.making, m)
				close(done)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
