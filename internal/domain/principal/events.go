package principal

import (
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// The event types of principals.
const (
	RegisteredType    = "principal.registered"
	QuarantinedType   = "principal.quarantined"
	UnquarantinedType = "principal.unquarantined"
	RoleChangedType   = "principal.role_changed"
	KeyIssuedType     = "key.issued"
	KeyRevokedType    = "key.revoked"
)

// The entity types under which these events are found.
const (
	Entity    = "principal"
	KeyEntity = "key"
)

// The names of the documents.
const (
	Projection    = "principals"
	KeyProjection = "api_keys"
)

// Registered is the data of principal.registered.
type Registered struct {
	Principal id.Principal     `json:"principal_id"`
	Kind      id.PrincipalKind `json:"kind"`
	Role      Role             `json:"role,omitempty"`
	Name      string           `json:"display_name"`
	Legacy    string           `json:"legacy_actor,omitempty"` // type:id, by which another program knew it
}

// Quarantined is the data of principal.quarantined and principal.unquarantined.
type Quarantined struct {
	Principal id.Principal `json:"principal_id"`
	Reason    string       `json:"reason,omitempty"`
}

// RoleChanged is the data of principal.role_changed.
type RoleChanged struct {
	Principal id.Principal `json:"principal_id"`
	From      Role         `json:"from_role"`
	To        Role         `json:"to_role"`
}

// KeyIssued is the data of key.issued.
type KeyIssued struct {
	Key       id.Key       `json:"key_id"`
	Principal id.Principal `json:"principal_id"`
	Hash      event.Digest `json:"secret_sha256"`
	Name      string       `json:"name,omitempty"`
	IssuedBy  id.Principal `json:"issued_by,omitempty"` // as IssuerOf says
}

// KeyRevoked is the data of key.revoked.
type KeyRevoked struct {
	Key    id.Key `json:"key_id"`
	Reason string `json:"reason,omitempty"`
}
