package token

import (
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// The event types of capability tokens.
const (
	GrantedType   = "agent.capability.granted"
	RevokedType   = "agent.capability.revoked"
	AttemptedType = "agent.delegation.attempted" // a delegation that was refused
)

// Entity is the entity type under which these events are found.
const Entity = "capability_token"

// Projection is the name of the documents of tokens.
const Projection = "capability_tokens"

// Granted is the data of agent.capability.granted.
type Granted struct {
	Token      id.Token     `json:"token_id"`
	IssuedTo   id.Principal `json:"issued_to_principal_id"`
	GrantedBy  id.Principal `json:"granted_by_principal_id"`
	Parent     id.Token     `json:"parent_token_id,omitempty"`
	Depth      int          `json:"depth"`
	Scopes     Scopes       `json:"scopes"`
	ValidUntil time.Time    `json:"valid_until,omitzero"`
	Hash       event.Digest `json:"secret_sha256,omitzero"`
	IssuedBy   id.Principal `json:"issued_by,omitempty"` // as principal.IssuerOf says
}

// Revoked is the data of agent.capability.revoked.
type Revoked struct {
	Token  id.Token     `json:"token_id"`
	By     id.Principal `json:"revoked_by_principal_id"`
	Reason string       `json:"reason,omitempty"`
}

// Attempted is the data of agent.delegation.attempted.
type Attempted struct {
	Parent id.Token     `json:"parent_token_id,omitempty"`
	From   id.Principal `json:"from_principal_id"`
	To     id.Principal `json:"to_principal_id,omitempty"`
	Scopes Scopes       `json:"scopes"`
	Reason string       `json:"denied_reason"`
}
