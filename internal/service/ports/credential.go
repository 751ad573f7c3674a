package ports

import (
	"context"
	"errors"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/projection"
)

// Credential is by what the caller of a request was known: a key, a session, or neither. An address that they made with it ends with it.
type Credential struct {
	Key     id.Key
	Session id.Session
}

// valid reports whether the credential is in force by which the address of an open port was made.
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

// unless is an error other than that there is no such document.
func unless(err error) error {
	if errors.Is(err, projection.ErrNotFound) {
		return nil
	}
	return err
}

// making names the request with an idempotency key that makes an address.
type making struct {
	workspace id.Workspace
	space     id.Space
	principal id.Principal
	key       string
}

// alone waits until no other request with the same key makes an address, and returns what ends this one.
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
