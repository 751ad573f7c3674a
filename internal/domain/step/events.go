package step

import (
	"encoding/json"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// The events of steps. Those of tool calls have the names of those of operations, and are about a tool call instead of a space.
const (
	EventCreated         = "step.created"
	EventInvoked         = "tool.invoked"
	EventSucceeded       = "tool.succeeded"
	EventFailed          = "tool.failed"
	EventUnknown         = "tool.unknown"
	EventArtifactCreated = "artifact.created"
	EventArtifactStored  = "artifact.stored"
)

// Created is the data of step.created.
type Created struct {
	Step  id.Step         `json:"step_id"`
	Run   id.Run          `json:"run_id"`
	Kind  string          `json:"kind"`
	Title string          `json:"title,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	Fence uint64          `json:"fence,omitempty"`
}

// Invoked is the data of tool.invoked of an engine's tool call.
type Invoked struct {
	Call     id.ToolCall     `json:"tool_call_id"`
	Run      id.Run          `json:"run_id"`
	Tool     string          `json:"tool_name"`
	Title    string          `json:"title,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"`
	Agent    id.Principal    `json:"agent_id,omitempty"`
	Action   event.Digest    `json:"action_sha256"` // of the action that the gate decided on
	Decision string          `json:"decision"`
	Reason   string          `json:"reason_code"`
	Fence    uint64          `json:"fence,omitempty"`
}

// Ended is the data of tool.succeeded, tool.failed and tool.unknown of an engine's tool call.
type Ended struct {
	Call    id.ToolCall     `json:"tool_call_id"`
	Run     id.Run          `json:"run_id"`
	Tool    string          `json:"tool_name"`
	Output  json.RawMessage `json:"output,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
	Message string          `json:"message,omitempty"`
	Fence   uint64          `json:"fence,omitempty"`
	Permit  event.Digest    `json:"permit_sha256,omitzero"` // of the text of the permit that was shown
}

// ArtifactCreated is the data of artifact.created.
type ArtifactCreated struct {
	Artifact id.Artifact     `json:"artifact_id"`
	Run      id.Run          `json:"run_id"`
	Kind     string          `json:"kind"`
	Title    string          `json:"title,omitempty"`
	Media    string          `json:"mime_type,omitempty"`
	Size     *int64          `json:"size_bytes,omitempty"`
	Digest   event.Digest    `json:"sha256,omitzero"`
	Content  Content         `json:"content"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Fence    uint64          `json:"fence,omitempty"`

	Operation string `json:"operation_id,omitempty"` // that has shown it, in a space; the daemon vouches for that

	Path  string `json:"path,omitempty"`  // of a file of a space that the daemon kept when the run ended
	Taken bool   `json:"taken,omitempty"` // it is such a file; the daemon vouches for that
}

// ArtifactStored is the data of artifact.stored: the content arrived, and it matches the declaration.
type ArtifactStored struct {
	Artifact id.Artifact `json:"artifact_id"`
	Run      id.Run      `json:"run_id"`
	Content  Stored      `json:"content_ref"`
	Fence    uint64      `json:"fence,omitempty"`
}
