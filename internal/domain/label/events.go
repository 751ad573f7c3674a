package label

import (
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// The event types of labels and accesses.
const (
	EventLabelled    = "resource.labelled"
	EventDenied      = "data.access.denied"
	EventMismatch    = "data.access.purpose_hint_mismatch"
	EventJustified   = "data.access.justified"
	EventUnjustified = "data.access.unjustified"
)

// The entity types under which these events are found.
const (
	Entity       = "resource_label"
	AccessEntity = "data_access"
)

// Labelled is the data of resource.labelled.
type Labelled struct {
	Resource
	Level    Level    `json:"label"`
	Was      Level    `json:"was"`
	Room     id.Room  `json:"label_room_id,omitempty"`
	Purposes []string `json:"purpose_tags,omitempty"`
}

// Accessed is the data of the events of an access.
type Accessed struct {
	Resource
	Action        string         `json:"action"` // read or write
	Level         Level          `json:"label"`  // by which it was decided
	Purposes      []string       `json:"purpose_tags,omitempty"`
	Justification string         `json:"justification,omitempty"`
	Decision      policy.Outcome `json:"decision"`
	Code          string         `json:"reason_code"`
	Reason        string         `json:"reason,omitempty"`
	Through       id.Principal   `json:"through_principal_id,omitempty"` // the principal who sent the request for the acting one
}
