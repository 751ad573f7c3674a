package engine

import (
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// The event types of engines.
const (
	RegisteredType   = "engine.registered"
	DeactivatedType  = "engine.deactivated"
	TokenIssuedType  = "engine.token.issued"
	TokenRevokedType = "engine.token.revoked"
)

// The entity types under which these events are found.
const (
	Entity      = "engine"
	TokenEntity = "engine_token"
)

// The names of the documents.
const (
	Projection      = "engines"
	TokenProjection = "engine_tokens"
)

// Registered is the data of engine.registered.
type Registered struct {
	Engine id.Principal `json:"engine_id"`
	Name   string       `json:"display_name"`
}

// Deactivated is the data of engine.deactivated.
type Deactivated struct {
	Engine id.Principal `json:"engine_id"`
	Reason string       `json:"reason,omitempty"`
}

// TokenIssued is the data of engine.token.issued.
type TokenIssued struct {
	Token      id.EngineToken `json:"token_id"`
	Engine     id.Principal   `json:"engine_id"`
	Capability id.Token       `json:"capability_token_id"`
	Seal       event.Digest   `json:"secret_hmac_sha256"`
	ExpiresAt  time.Time      `json:"expires_at,omitzero"`
}

// TokenRevoked is the data of engine.token.revoked.
type TokenRevoked struct {
	Token  id.EngineToken `json:"token_id"`
	Engine id.Principal   `json:"engine_id"`
	Reason string         `json:"reason,omitempty"`
}
