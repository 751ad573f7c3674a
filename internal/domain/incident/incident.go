// Package incident is something that went wrong, with its cause and its learnings.
package incident

import (
	"encoding/json"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Projection is the name of the documents of incidents.
const Projection = "incidents"

// Severity is how bad an incident is.
type Severity string

// The severities, from the least to the worst.
const (
	Low      Severity = "low"
	Medium   Severity = "medium"
	High     Severity = "high"
	Critical Severity = "critical"
)

// Status is where an incident stands.
type Status string

// The states of an incident. Closed is final.
const (
	Open   Status = "open"
	Closed Status = "closed"
)

// Bounds of the fields of an incident, in bytes unless another unit is named.
const (
	MaxTitle    = 300
	MaxWord     = 100 // of a category, an entity type and a tag
	MaxEntity   = 200 // of an entity's id
	MaxKey      = 200 // of an idempotency key
	MaxText     = 4_000
	MaxDetails  = 64 << 10
	MaxTags     = 20  // tags of one learning
	MaxLearning = 100 // learnings of one incident
)

// The errors of checks on the fields of an incident.
var (
	// ErrNotFound means that the workspace has no such incident.
	ErrNotFound = fault.New(fault.NotFound, "incident_not_found", "there is no such incident in this workspace")
	// ErrMissingTitle refuses an incident that says nothing.
	ErrMissingTitle = fault.New(fault.Invalid, "missing_title", "say in title what went wrong, in at most %d bytes", MaxTitle)
	// ErrInvalidSeverity refuses a severity that is none.
	ErrInvalidSeverity = fault.New(fault.Invalid, "invalid_severity", "the severity must be low, medium, high or critical")
	// ErrInvalidKey refuses an idempotency key that is too long or no text.
	ErrInvalidKey = fault.New(fault.Invalid, "invalid_idempotency_key", "idempotency_key has 1 to %d bytes of text", MaxKey)
	// ErrTooLong refuses more than the bounds allow.
	ErrTooLong = fault.New(fault.Invalid, "incident_text_invalid", "a text is too long or is not UTF-8")
	// ErrInvalidDetails refuses details that are no object or too large.
	ErrInvalidDetails = fault.New(fault.Invalid, "invalid_details", "details are a JSON object of at most %d bytes", MaxDetails)
	// ErrMissingRCA refuses an analysis that says nothing.
	ErrMissingRCA = fault.New(fault.Invalid, "missing_rca_payload", "say in summary or in analysis what the cause was")
	// ErrMissingNote refuses a learning that says nothing.
	ErrMissingNote = fault.New(fault.Invalid, "missing_note", "say in note what was learned")
	// ErrTooMany refuses a learning more than an incident may have.
	ErrTooMany = fault.New(fault.Exhausted, "incident_learnings_full", "an incident has at most %d learnings", MaxLearning)
	// ErrClosed refuses to say more about an incident that is closed.
	ErrClosed = fault.New(fault.Conflict, "incident_closed", "the incident is closed; open another one that names it")
	// ErrAlreadyClosed refuses to close an incident twice.
	ErrAlreadyClosed = fault.New(fault.Conflict, "incident_already_closed", "the incident was closed before")
	// ErrWithoutRCA refuses to close an incident without a root cause.
	ErrWithoutRCA = fault.New(fault.Conflict, "incident_close_blocked_missing_rca",
		"write down the cause first: an incident is closed with an analysis of its root cause")
	// ErrWithoutLearning refuses to close an incident without a learning.
	ErrWithoutLearning = fault.New(fault.Conflict, "incident_close_blocked_missing_learning",
		"write down what was learned first: an incident is closed with at least one learning")
)

// RCA is the analysis of the root cause. The last one that was written counts.
type RCA struct {
	Summary  string          `json:"summary,omitempty"`
	Analysis json.RawMessage `json:"analysis,omitempty"` // text or an object
	By       id.Principal    `json:"principal_id"`
	At       time.Time       `json:"at"`
}

// Same reports whether an incident equals the one that would be opened. It ignores the place and the details.
func (i Incident) Same(o Opened) bool {
	return i.Title == o.Title && i.Severity == o.Severity && i.Category == o.Category && i.EntityType == o.EntityType &&
		i.EntityID == o.EntityID
}

// Learning is one thing that was learned.
type Learning struct {
	ID   id.Event     `json:"learning_id" doc:"Of the event that recorded it"`
	Note string       `json:"note"`
	Tags []string     `json:"tags,omitempty"`
	By   id.Principal `json:"principal_id"`
	At   time.Time    `json:"at"`
}

// Incident is the document of an incident.
type Incident struct {
	ID         id.Incident     `json:"incident_id"`
	Workspace  id.Workspace    `json:"workspace_id"`
	Room       id.Room         `json:"room_id,omitempty"`
	Thread     id.Thread       `json:"thread_id,omitempty"`
	Run        id.Run          `json:"run_id,omitempty"`
	EntityType string          `json:"entity_type,omitempty"` // the thing that it is about, if the ids above do not say
	EntityID   string          `json:"entity_id,omitempty"`
	Title      string          `json:"title"`
	Severity   Severity        `json:"severity"`
	Category   string          `json:"category,omitempty"`
	Details    json.RawMessage `json:"details,omitempty"`
	Key        string          `json:"idempotency_key,omitempty"`

	Status      Status       `json:"status"`
	OpenedBy    id.Principal `json:"opened_by"`
	OpenedAt    time.Time    `json:"opened_at"`
	RCA         *RCA         `json:"rca,omitempty"`
	Learning    []Learning   `json:"learning"`
	ClosedBy    id.Principal `json:"closed_by,omitempty"`
	ClosedAt    time.Time    `json:"closed_at,omitzero"`
	CloseReason string       `json:"close_reason,omitempty"`
}
