package principal

import (
	"crypto/subtle"
	"slices"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Bounds of logins and sessions.
const (
	AccessTime    = time.Hour           // an access token holds
	RefreshTime   = 30 * 24 * time.Hour // a refresh token holds, unless it is used before
	MaxTries      = 5                   // wrong passphrases in a row, after which a login is shut
	ShutTime      = 5 * time.Minute     // for which it is
	MinPassphrase = 12                  // bytes
	MaxPassphrase = 1_024
	SaltBytes     = 16
	maxEarlier    = 50 // refresh tokens that are remembered, to know one that is used again
)

// The entity types under which these events are found, and the names of the documents.
const (
	LoginEntity       = "login"
	SessionEntity     = "session"
	LoginProjection   = "logins"
	SessionProjection = "sessions"
)

// The event types of logins and sessions.
const (
	LoginSetType         = "login.set"
	LoginRefusedType     = "login.refused" // a wrong passphrase
	LoginShutType        = "login.shut"    // too many of them: an alert
	SessionBegunType     = "session.begun"
	SessionRefreshedType = "session.refreshed"
	SessionEndedType     = "session.ended"
)

// LoginKey returns the key of the login that an event is about: of the owner who was given a passphrase with the bootstrap token it is
// the workspace, of everybody else the person. It is "" for an event about none.
func LoginKey(e event.Event) string {
	switch {
	case e.EntityType == LoginEntity:
		return e.EntityID
	case e.Type == SessionBegunType:
		if d, err := event.Decode[SessionTokens](e); err == nil && d.Login != "" {
			return d.Login
		}
		return string(e.Workspace)
	}
	return ""
}

// Login is the document of a person's passphrase. The passphrase is stored nowhere; Verifier is its scrypt hash.
type Login struct {
	Principal id.Principal `json:"principal_id"`
	Workspace id.Workspace `json:"workspace_id"`
	Salt      []byte       `json:"salt"`
	Verifier  []byte       `json:"verifier"`
	Failures  int          `json:"failures,omitempty"` // in a row
	ShutUntil time.Time    `json:"shut_until,omitzero"`
	SetAt     time.Time    `json:"set_at"`
	IssuedBy  id.Principal `json:"issued_by,omitempty"` // a principal who may know the passphrase besides the person; "" for nobody
}

// LoginSet is the data of login.set.
type LoginSet struct {
	Principal id.Principal `json:"principal_id"`
	Salt      []byte       `json:"salt"`
	Verifier  []byte       `json:"verifier"`
	IssuedBy  id.Principal `json:"issued_by,omitempty"` // as IssuerOf says, where it is another one than the person
}

// LoginRefused is the data of login.refused and login.shut.
type LoginRefused struct {
	Principal id.Principal `json:"principal_id"`
	Failures  int          `json:"failures"`
	Until     time.Time    `json:"shut_until,omitzero"`
}

// Session is the document of a login of a person, from then until it ends. The tokens are stored nowhere.
type Session struct {
	ID           id.Session     `json:"session_id"`
	Workspace    id.Workspace   `json:"workspace_id"`
	Principal    id.Principal   `json:"principal_id"`
	Access       event.Digest   `json:"access_hmac_sha256"`
	AccessUntil  time.Time      `json:"access_until"`
	Refresh      event.Digest   `json:"refresh_hmac_sha256"`
	RefreshUntil time.Time      `json:"refresh_until"`
	Earlier      []event.Digest `json:"earlier,omitempty"`   // refresh tokens that were used
	IssuedBy     id.Principal   `json:"issued_by,omitempty"` // of its login
	BegunAt      time.Time      `json:"begun_at"`
	EndedAt      time.Time      `json:"ended_at,omitzero"`
	Reason       string         `json:"reason,omitempty"` // of its end: logout, or a refresh token that was used twice
}

// SessionTokens is the data of session.begun and session.refreshed.
type SessionTokens struct {
	Session      id.Session   `json:"session_id"`
	Principal    id.Principal `json:"principal_id"`
	Access       event.Digest `json:"access_hmac_sha256"`
	AccessUntil  time.Time    `json:"access_until"`
	Refresh      event.Digest `json:"refresh_hmac_sha256"`
	RefreshUntil time.Time    `json:"refresh_until"`
	// of session.begun, the key of the login that was used; "" for that of the workspace
	Login    string       `json:"login,omitempty"`
	IssuedBy id.Principal `json:"issued_by,omitempty"` // of that login
}

// SessionEnded is the data of session.ended.
type SessionEnded struct {
	Session id.Session `json:"session_id"`
	Reason  string     `json:"reason"`
}

// Opens reports whether the seal of an access token is that of the session, and it is in force.
func (s Session) Opens(seal event.Digest, now time.Time) bool {
	return same(seal, s.Access) && s.ID != "" && s.EndedAt.IsZero() && now.Before(s.AccessUntil)
}

// Refreshes reports whether the seal belongs to the session's refresh token that is in force. Again is true if the token was used before.
func (s Session) Refreshes(seal event.Digest, now time.Time) (ok, again bool) {
	if s.ID == "" || !s.EndedAt.IsZero() {
		return false, false
	}
	for _, earlier := range s.Earlier {
		again = same(seal, earlier) || again
	}
	return same(seal, s.Refresh) && now.Before(s.RefreshUntil), again
}

func same(a, b event.Digest) bool {
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && !b.IsZero()
}

// Evolve returns the login after an event about it.
func (l Login) Evolve(e event.Event) (Login, error) {
	switch e.Type {
	case LoginSetType:
		d, err := event.Decode[LoginSet](e)
		if err != nil {
			return l, err
		}
		return Login{Principal: d.Principal, Workspace: e.Workspace, Salt: d.Salt, Verifier: d.Verifier, SetAt: e.OccurredAt,
			IssuedBy: d.IssuedBy}, nil
	case LoginRefusedType, LoginShutType:
		d, err := event.Decode[LoginRefused](e)
		if err != nil {
			return l, err
		}
		l.Failures, l.ShutUntil = d.Failures, d.Until
	case SessionBegunType:
		l.Failures, l.ShutUntil = 0, time.Time{}
	}
	return l, nil
}

// Evolve returns the session after an event about it.
func (s Session) Evolve(e event.Event) (Session, error) {
	switch e.Type {
	case SessionBegunType, SessionRefreshedType:
		d, err := event.Decode[SessionTokens](e)
		if err != nil {
			return s, err
		}
		next := Session{
			ID: d.Session, Workspace: e.Workspace, Principal: d.Principal, Access: d.Access, AccessUntil: d.AccessUntil, Refresh: d.Refresh,
			RefreshUntil: d.RefreshUntil, BegunAt: e.OccurredAt, IssuedBy: d.IssuedBy,
		}
		if e.Type == SessionRefreshedType {
			next.BegunAt, next.Earlier = s.BegunAt, append(slices.Clip(s.Earlier), s.Refresh)
			next.Earlier = next.Earlier[max(0, len(next.Earlier)-maxEarlier):]
		}
		return next, nil
	case SessionEndedType:
		d, err := event.Decode[SessionEnded](e)
		if err != nil {
			return s, err
		}
		s.EndedAt, s.Reason = e.OccurredAt, d.Reason
	}
	return s, nil
}

// The refusals of a login.
var (
	ErrBootstrap = fault.New(fault.Denied, "bootstrap_forbidden",
		"this is not the bootstrap token of the daemon, which lies in bootstrap.key in its data directory")
	ErrOwnerExists = fault.New(fault.Conflict, "owner_already_exists", "the owner of this workspace has a passphrase; log in with it")
	ErrPassphrase  = fault.New(fault.Invalid, "invalid_passphrase", "a passphrase has %d to %d bytes", MinPassphrase, MaxPassphrase)
	ErrWrong       = fault.New(fault.Denied, "login_failed", "the name or the passphrase is wrong")
	ErrNotAPerson  = fault.New(fault.Denied, "not_a_person", "only people log in; agents and services have keys and tokens")
	ErrCurrent     = fault.New(fault.Invalid, "passphrase_needed",
		"you have a passphrase: send it as current_passphrase along with the new one")
	ErrShut    = fault.New(fault.Exhausted, "login_shut", "the passphrase was wrong %d times in a row; wait %s", MaxTries, ShutTime)
	ErrRefresh = fault.New(fault.Denied, "refresh_token_invalid",
		"this refresh token opens nothing: it was used, its session has ended, or its time is over; log in again")
)
