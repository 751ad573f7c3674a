package run

import (
	"encoding/json"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// The events of a run. Every one of them is about its space, or where an engine executes it, about the run.
const (
	EventCreated   = "run.created"
	EventStarted   = "run.started"
	EventSuspended = "run.suspended" // an operation waits for a person
	EventResumed   = "run.resumed"   // the person has answered
	EventCompleted = "run.completed"
	EventFailed    = "run.failed"
	EventCancelled = "run.cancelled"
	EventRetained  = "run.retained"  // how long its data are kept was set anew, when it had ended
	EventForgotten = "run.forgotten" // their time is over: everything in it that holds text was redacted
	EventImported  = "run.imported"  // a transcript of a run that was executed elsewhere was taken into the record
	EventClaimed   = "run.claimed"   // an engine owns it from now on
	EventRenewed   = "run.renewed"   // the engine lives, and owns it for another while
	EventReleased  = "run.released"  // the engine has given it back, not done

	EventInvoked   = "tool.invoked"   // an operation's intent, recorded before its effect
	EventSucceeded = "tool.succeeded" // its result
	EventErred     = "tool.failed"    // its result too
	EventUnknown   = "tool.unknown"   // its result, when a crash hid the outcome
)

// Created is the data of run.created.
type Created struct {
	Run        id.Run       `json:"run_id"`
	Space      id.Space     `json:"space_id"`
	Agent      id.Principal `json:"agent_id"`
	Title      string       `json:"title,omitempty"`
	Input      Input        `json:"input"`
	Message    *Message     `json:"message,omitempty"` // the operations themselves, where Input says that they stand here
	Operations []Outline    `json:"operations"`
	Trace      string       `json:"traceparent,omitempty"` // of the request that made it
	// how long its data are kept once it has ended; 0 for as long as those of others
	Retention int64   `json:"retention_seconds,omitempty"`
	Parent    *Parent `json:"parent,omitempty"`
	Side
	Order

	Artifacts Patterns `json:"artifact_patterns,omitempty"` // the files of its space that it keeps as artifacts when it ends

	Token id.Token `json:"capability_token_id,omitempty"` // under which it was asked for, and is executed
}

// Outline is an operation as the log shows it before it runs.
type Outline struct {
	ID      string `json:"operation_id"`
	Type    string `json:"type"`
	Summary string `json:"summary"`
	Context bool   `json:"context,omitempty"`
}

// Started is the data of run.started.
type Started struct {
	Run   id.Run `json:"run_id"`
	Child bool   `json:"child,omitempty"` // it runs in the place of the run of its engine: see Load

	Background bool `json:"background,omitempty"` // it runs beside the others of its space, and takes no place: see Load
	Kept
}

// Kept is the snapshot of the space's files that was made when an event happened, or the code of what kept it from being made.
type Kept struct {
	Snapshot *Snapshot `json:"snapshot,omitempty"`
	Error    string    `json:"snapshot_error,omitempty"`
}

// Snapshot is a state of a space's files, named by the hash of the tree of their folders.
type Snapshot struct {
	Root    event.Digest `json:"snapshot_sha256"`
	Files   int64        `json:"files"`
	Bytes   int64        `json:"size_bytes"`
	Omitted int64        `json:"omitted,omitempty"`
}

// Invoked is the data of tool.invoked.
type Invoked struct {
	Run       id.Run          `json:"run_id"`
	Operation string          `json:"operation_id"`
	Index     int             `json:"index"`
	Tool      string          `json:"tool_name"` // the operation's type
	Title     string          `json:"title"`
	Input     json.RawMessage `json:"input"` // the action's canonical bytes, without secrets
	Action    event.Digest    `json:"action_sha256"`
	Decision  string          `json:"decision"`
	Reason    string          `json:"reason_code"`
	Approval  id.Approval     `json:"approval_id,omitempty"`
}

// Ended is the data of tool.succeeded, tool.failed and tool.unknown: the result event, in place or, when it is large, as stored content.
type Ended struct {
	Run        id.Run       `json:"run_id"`
	Operation  string       `json:"operation_id"`
	Index      int          `json:"index"`
	Tool       string       `json:"tool_name"`
	Kind       string       `json:"result_type"`
	Decision   string       `json:"decision,omitempty"`
	Reason     string       `json:"reason_code,omitempty"`
	Action     event.Digest `json:"action_sha256,omitzero"`
	DurationMS int64        `json:"duration_ms"` // of a command as in its result; else from the beginning to the record
	Result     *Result      `json:"result,omitempty"`
	Stored     *Input       `json:"result_ref,omitempty"`
	Kept
}

// Suspended is the data of run.suspended.
type Suspended struct {
	Run       id.Run      `json:"run_id"`
	Operation string      `json:"operation_id"`
	Index     int         `json:"index"`
	Approval  id.Approval `json:"approval_id"`
	Reason    string      `json:"reason_code"`

	Background bool `json:"background,omitempty"`
}

// Resumed is the data of run.resumed.
type Resumed struct {
	Run       id.Run      `json:"run_id"`
	Operation string      `json:"operation_id"`
	Index     int         `json:"index"`
	Approval  id.Approval `json:"approval_id"`
	Answer    string      `json:"answer"` // approved, denied or expired
	Child     bool        `json:"child,omitempty"`

	Background bool `json:"background,omitempty"`
}

// Finished is the data of run.completed, run.failed and run.cancelled.
type Finished struct {
	Run     id.Run          `json:"run_id"`
	Summary string          `json:"summary,omitempty"`
	Error   string          `json:"error,omitempty"`
	Message string          `json:"message,omitempty"` // of the engine that executed it: the error in words
	Output  json.RawMessage `json:"output,omitempty"`  // of the engine that executed it, a JSON value

	Permit event.Digest `json:"permit_sha256,omitzero"` // of the text of the permit that its engine showed

	Retention int64     `json:"retention_seconds,omitempty"`
	Until     time.Time `json:"kept_until,omitzero"` // when that is over

	Artifacts *Gathered `json:"artifacts_kept,omitempty"` // of a run that asked for artifacts, and had begun
}

// Retained is the data of run.retained: how long the data of a run that has ended are kept from now on.
type Retained struct {
	Run       id.Run    `json:"run_id"`
	Retention int64     `json:"retention_seconds,omitempty"` // from its end; 0 for as long as those of others
	Until     time.Time `json:"kept_until,omitzero"`         // when that is over
	Was       time.Time `json:"was_kept_until,omitzero"`     // when it would have been
}

// Forgotten is the data of run.forgotten.
type Forgotten struct {
	Run   id.Run    `json:"run_id"`
	Until time.Time `json:"kept_until"` // the moment that has come
}
