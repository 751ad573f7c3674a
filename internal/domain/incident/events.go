package incident

import (
	"encoding/json"

	"agentbox/internal/domain/id"
)

// The event types of incidents.
const (
	EventOpened  = "incident.opened"
	EventRCA     = "incident.rca.updated"
	EventLearned = "incident.learning.logged"
	EventClosed  = "incident.closed"
)

// Entity is the entity type under which these events are found.
const Entity = "incident"

// Opened is the data of incident.opened.
type Opened struct {
	Incident   id.Incident     `json:"incident_id"`
	Title      string          `json:"title"`
	Severity   Severity        `json:"severity"`
	Category   string          `json:"category,omitempty"`
	Details    json.RawMessage `json:"details,omitempty"`
	EntityType string          `json:"about_type,omitempty"` // the thing that it is about; the envelope's entity is the incident
	EntityID   string          `json:"about_id,omitempty"`
	Key        string          `json:"idempotency_key,omitempty"`
}

// RCAUpdated is the data of incident.rca.updated.
type RCAUpdated struct {
	Incident id.Incident     `json:"incident_id"`
	Summary  string          `json:"summary,omitempty"`
	Analysis json.RawMessage `json:"analysis,omitempty"`
}

// LearningLogged is the data of incident.learning.logged.
type LearningLogged struct {
	Incident id.Incident `json:"incident_id"`
	Note     string      `json:"note"`
	Tags     []string    `json:"tags,omitempty"`
}

// Ended is the data of incident.closed.
type Ended struct {
	Incident id.Incident `json:"incident_id"`
	Reason   string      `json:"reason,omitempty"`
}
