// Package token is capability tokens: authority that is narrowed, handed on and taken back.
//
// A holder may do what three things permit together: their role, the policy, and the scopes of the token and of every token that it was
// derived from. A token by itself gives no right. A policy may refer to one: `allow.delegated` lets agents and services do what a person
// named in a token (Delegates).
package token

import (
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// MaxDepth is how often a token may be handed on. A root has depth 0, a token derived from it 1, and no token has more than MaxDepth.
const MaxDepth = 3

// Token is the document of a capability token.
type Token struct {
	ID         id.Token     `json:"token_id"`
	Workspace  id.Workspace `json:"workspace_id"`
	IssuedTo   id.Principal `json:"issued_to_principal_id"` // the principal who may act under it
	GrantedBy  id.Principal `json:"granted_by_principal_id"`
	Parent     id.Token     `json:"parent_token_id,omitempty"` // that it was derived from
	Depth      int          `json:"depth"`
	Scopes     Scopes       `json:"scopes"`
	ValidUntil time.Time    `json:"valid_until,omitzero"` // never later than that of the parent; zero means without end
	RevokedAt  time.Time    `json:"revoked_at,omitzero"`
	RevokedBy  id.Principal `json:"revoked_by_principal_id,omitempty"`
	Reason     string       `json:"reason,omitempty"` // of the revocation
	CreatedAt  time.Time    `json:"created_at"`
	Hash       event.Digest `json:"secret_sha256,omitzero"` // of its bearer, where it has one
	IssuedBy   id.Principal `json:"issued_by,omitempty"`    // a principal who may know its bearer text besides its holder
}

// Expired reports whether the token's time is over. The last moment is the one before ValidUntil.
func (t Token) Expired(now time.Time) bool {
	return !t.ValidUntil.IsZero() && !now.Before(t.ValidUntil)
}

// Edge is one step by which authority was handed on.
type Edge struct {
	Parent    id.Token     `json:"parent_token_id"`
	Child     id.Token     `json:"child_token_id"`
	From      id.Principal `json:"from_principal_id"`
	To        id.Principal `json:"to_principal_id"`
	Depth     int          `json:"depth"`
	CreatedAt time.Time    `json:"created_at"`
	RevokedAt time.Time    `json:"revoked_at,omitzero"` // of the child itself
}

// Edge returns the derivation of the token; false for a root.
func (t Token) Edge() (Edge, bool) {
	return Edge{t.Parent, t.ID, t.GrantedBy, t.IssuedTo, t.Depth, t.CreatedAt, t.RevokedAt}, t.Parent != ""
}

// The errors of refused grants. A refused delegation is recorded under the same codes.
var (
	ErrNotFound       = fault.New(fault.NotFound, policy.ReasonTokenNotFound, "there is no such capability token in this workspace")
	ErrParentNotFound = fault.New(fault.NotFound, "parent_token_not_found", "there is no such parent token in this workspace")
	ErrParentNotYours = fault.New(fault.Denied, "parent_token_grantor_mismatch",
		"only the holder of the parent token derives others from it; under a token, only from that token and those derived from it")
	ErrParentRevoked = fault.New(fault.Denied, "parent_token_revoked", "the parent token, or one that it was derived from, was revoked")
	ErrParentExpired = fault.New(fault.Denied, "parent_token_expired",
		"the parent token, or one that it was derived from, has expired")
	ErrTooDeep          = fault.New(fault.Denied, "delegation_depth_exceeded", "a token may be handed on %d times at most", MaxDepth)
	ErrIssuedToNotFound = fault.New(fault.NotFound, "issued_to_principal_not_found",
		"this workspace has no principal of that id, so the token cannot be issued")
	ErrGrantorNotFound = fault.New(fault.NotFound, "granted_by_principal_not_found",
		"this workspace does not know the principal that grants the token")
	ErrInvalidUntil   = fault.New(fault.Invalid, "invalid_valid_until", "valid_until must lie in the future")
	ErrUnknownAction  = fault.New(fault.Invalid, "invalid_action", "there is no such action, so that a token for it permits nothing")
	ErrPermitsNothing = fault.New(fault.Invalid, "capability_permits_nothing", "this token would permit nothing").
				With("Name what it is for: action_types, or data_access.read to see something.")
	ErrInvalidScopes = fault.New(fault.Invalid, "invalid_scopes",
		"a scope has at most %d entries of 1 to %d bytes of printable ASCII; a domain is a host in small letters, *.host, or *", MaxEntries,
		MaxEntryBytes)
)
