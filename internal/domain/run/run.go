// Package run is one execution of a list of operations: its protocol, its events and its document.
package run

import (
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// Projection is the name of the documents of runs.
const Projection = "runs"

// Status is where a run stands.
type Status string

// The states of a run. Succeeded, Failed and Cancelled are final.
const (
	Queued           Status = "queued"
	Running          Status = "running"
	AwaitingApproval Status = "awaiting_approval"
	Succeeded        Status = "succeeded"
	Failed           Status = "failed"
	Cancelled        Status = "cancelled"
)

// Ended reports whether the state is final.
func (s Status) Ended() bool { return s == Succeeded || s == Failed || s == Cancelled }

// Protocol returns the word of protocol 1.0 for the state. The protocol has no word for a run that has not ended; Queued and Running use
// their own names.
func (s Status) Protocol() string {
	switch s {
	case Queued:
		return "queued"
	case Succeeded:
		return "completed"
	case Failed:
		return "error"
	case AwaitingApproval:
		return "awaiting_approval"
	case Cancelled:
		return "cancelled"
	}
	return "running"
}

// Run is the document of a run.
type Run struct {
	ID        id.Run       `json:"run_id"`
	Workspace id.Workspace `json:"workspace_id"`
	Room      id.Room      `json:"room_id"`
	Space     id.Space     `json:"space_id"`
	Agent     id.Principal `json:"agent_id"`     // the acting principal
	CreatedBy id.Principal `json:"requested_by"` // the requester
	Title     string       `json:"title,omitempty"`
	Status    Status       `json:"status"`
	Error     string       `json:"error,omitempty"` // why it failed or was cancelled
	Side
	Order                 // of a run that waits for an engine: the request
	Input      Input      `json:"input"`
	Operations []Progress `json:"operations"`
	Next       int        `json:"next"`               // index of the first operation without a result
	Redacted   bool       `json:"redacted,omitempty"` // data of its events were destroyed, so the run shows only the rest

	Parent   *Parent   `json:"parent,omitempty"`   // for which it is executed in its space
	Attempts int       `json:"attempts,omitempty"` // of engines to execute it
	Fence    uint64    `json:"fence,omitempty"`    // of the last claim
	Claim    *Claim    `json:"claim,omitempty"`    // while an engine has it
	Reported *Reported `json:"reported,omitempty"` // the report of its engine at its end

	Patterns  Patterns  `json:"artifact_patterns,omitempty"` // the files of its space that it keeps as artifacts when it ends
	Artifacts *Gathered `json:"artifacts_kept,omitempty"`    // which ones it has kept; absent until it ends

	Retention int64     `json:"retention_seconds,omitempty"` // how long its data are kept once it has ended; 0 for as long as those of others
	KeptUntil time.Time `json:"kept_until,omitzero"`         // when that is over
	Forgotten time.Time `json:"forgotten_at,omitzero"`       // when it was over, and they were redacted

	CreatedAt   time.Time      `json:"created_at"`
	StartedAt   time.Time      `json:"started_at,omitzero"`
	EndedAt     time.Time      `json:"ended_at,omitzero"`
	Correlation id.Correlation `json:"correlation_id"`
	Trace       string         `json:"traceparent,omitempty"` // of the request that made it, where that belongs to a trace

	Token id.Token `json:"capability_token_id,omitempty"` // under which it was asked for, and is executed

	// Imported is set where the run was not executed here: everything else is as its transcript tells it, ids included, except its own id,
	// its workspace and its room.
	Imported *Imported `json:"imported,omitempty"`
}

// Input names stored content: that of a run is its operations message, the canonical bytes of a Message under their hash.
type Input struct {
	Digest event.Digest `json:"sha256"`
	Size   int64        `json:"size_bytes"`
	Inline bool         `json:"inline,omitempty"` // nothing is stored: the message stands in run.created
}

// State is the progress of one operation.
type State string

// The states of an operation. Done is final: it has its result event.
const (
	Waiting  State = "waiting"  // its turn has not come
	Begun    State = "begun"    // its intent is recorded, its outcome is not
	Asking   State = "asking"   // a person has to decide
	Answered State = "answered" // a person has decided
	Done     State = "done"
)

// Progress is one operation of a run.
type Progress struct {
	ID      string `json:"operation_id"`
	Type    string `json:"type"`
	Summary string `json:"summary"`
	Context bool   `json:"context,omitempty"`
	State   State  `json:"state"`

	Step     id.Step     `json:"step_id,omitempty"`
	Approval id.Approval `json:"approval_id,omitempty"`
	Decision string      `json:"decision,omitempty"` // allow, deny or require_approval
	Reason   string      `json:"reason_code,omitempty"`
	Answer   string      `json:"answer,omitempty"`   // of the person: approved, denied, expired
	Event    id.Event    `json:"event_id,omitempty"` // of the entry that holds the result
	OK       bool        `json:"ok"`
	Kind     string      `json:"result_type,omitempty"`
	BegunAt  time.Time   `json:"begun_at,omitzero"`
	EndedAt  time.Time   `json:"ended_at,omitzero"`

	Snapshot event.Digest `json:"snapshot_sha256,omitzero"` // the space's files after it
}
