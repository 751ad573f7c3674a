// Package step is the work of an engine in a run: its steps, its tool calls in them, and the artifacts that it makes.
package step

import (
	"encoding/json"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// The names of the documents.
const (
	Projection         = "steps"
	CallProjection     = "tool_calls"
	ArtifactProjection = "artifacts"
)

// The subjects of the events, under the ids of steps, tool calls and artifacts.
const (
	EntityType     = "step"
	CallEntity     = "tool_call"
	ArtifactEntity = "artifact"
)

// Limits of an engine's records.
const (
	MaxWord     = 128      // characters of a kind, and of a tool's name
	MaxTitle    = 200      // characters
	MaxValue    = 64 << 10 // bytes of an input, an output, an error, metadata and content that stands in an event
	MaxMessage  = 4_000    // characters
	MaxURI      = 2_000    // characters
	MaxMedia    = 200      // characters of a media type
	MaxArtifact = 1 << 30  // bytes of an artifact's content
)

// Step is the document of a unit of a run. Only the engine that recorded it vouches for it.
type Step struct {
	ID    id.Step         `json:"step_id"`
	Run   id.Run          `json:"run_id"`
	Room  id.Room         `json:"room_id"`
	Kind  string          `json:"kind"`
	Title string          `json:"title,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	Fence uint64          `json:"fence,omitempty"` // of the claim under which it was recorded
	// pending until a tool is called in it, running while a call is, then how the last one ended
	Status    Status       `json:"status"`
	Calls     int          `json:"open_tool_calls"` // that have not ended
	As        string       `json:"recorded_as"`     // always policy.Attested
	CreatedBy id.Principal `json:"created_by"`
	CreatedAt time.Time    `json:"created_at"`
	Redacted  bool         `json:"redacted,omitempty"`
}

// Status is where a tool call, or a step, stands.
type Status string

// The states of a tool call, and of a step. Of a call all but Running are final; only a step is Pending.
const (
	Pending   Status = "pending" // no tool was called in it yet
	Running   Status = "running"
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Unknown   Status = "unknown" // its run ended before anybody reported an outcome
)

// Call is the document of a tool call.
type Call struct {
	ID       id.ToolCall     `json:"tool_call_id"`
	Run      id.Run          `json:"run_id"`
	Step     id.Step         `json:"step_id"`
	Room     id.Room         `json:"room_id"`
	Tool     string          `json:"tool_name"`
	Title    string          `json:"title,omitempty"`
	Agent    id.Principal    `json:"agent_id,omitempty"` // the agent of the call, if another principal recorded it
	By       id.Principal    `json:"created_by"`
	Fence    uint64          `json:"fence,omitempty"`
	Status   Status          `json:"status"`
	Input    json.RawMessage `json:"input,omitempty"`
	Child    id.Run          `json:"child_run_id,omitempty"` // that the daemon executes for it in a space
	Output   json.RawMessage `json:"output,omitempty"`
	Error    json.RawMessage `json:"error,omitempty"`
	Message  string          `json:"message,omitempty"`
	Decision string          `json:"decision"` // of the gate
	Reason   string          `json:"reason_code"`
	Action   event.Digest    `json:"action_sha256,omitzero"` // that the gate decided on
	As       string          `json:"recorded_as"`            // policy.Permitted where its permit was shown, else policy.Attested
	BegunAt  time.Time       `json:"begun_at"`
	EndedAt  time.Time       `json:"ended_at,omitzero"`
	Redacted bool            `json:"redacted,omitempty"`
}

// Artifact is the document of an output of a run.
type Artifact struct {
	ID        id.Artifact     `json:"artifact_id"`
	Run       id.Run          `json:"run_id"`
	Step      id.Step         `json:"step_id"`
	Room      id.Room         `json:"room_id"`
	Kind      string          `json:"kind"`
	Title     string          `json:"title,omitempty"`
	Media     string          `json:"mime_type,omitempty"`
	Size      *int64          `json:"size_bytes,omitempty"` // as it was declared, or of the content in the event
	Digest    event.Digest    `json:"sha256,omitzero"`
	Content   Content         `json:"content"`
	Stored    *Stored         `json:"stored,omitempty"` // the content, where it was sent by itself
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	Fence     uint64          `json:"fence,omitempty"`
	Operation string          `json:"operation_id,omitempty"` // that has shown it, of a run in a space
	Path      string          `json:"path,omitempty"`         // of a file of a space that the run kept when it ended
	As        string          `json:"recorded_as"`            // policy.Permitted if the daemon's own log has the decision, else policy.Attested
	CreatedBy id.Principal    `json:"created_by"`
	CreatedAt time.Time       `json:"created_at"`
	Redacted  bool            `json:"redacted,omitempty"`
}

// Content is the content of an artifact inside its event. Its type is none, text, json or uri, and it has the field of that name.
type Content struct {
	Type string          `json:"type"`
	Text string          `json:"text,omitempty"`
	JSON json.RawMessage `json:"json,omitempty"`
	URI  string          `json:"uri,omitempty"`
}

// The types of content.
const (
	None = "none" // it is sent by itself, or never
	Text = "text"
	JSON = "json"
	URI  = "uri" // it lies elsewhere, and nobody looks at it here
)

// Stored names content that is kept outside the log.
type Stored struct {
	Digest event.Digest `json:"sha256"`
	Size   int64        `json:"size_bytes"`
}

// The errors of calls about steps.
var (
	ErrNotFound         = fault.New(fault.NotFound, "step_not_found", "there is no such step in this workspace")
	ErrCallNotFound     = fault.New(fault.NotFound, "tool_call_not_found", "there is no such tool call in this workspace")
	ErrArtifactNotFound = fault.New(fault.NotFound, "artifact_not_found", "there is no such artifact in this workspace")
	ErrCallEnded        = fault.New(fault.Conflict, "tool_call_not_running", "the tool call has ended")
	ErrChildOpen        = fault.New(fault.Conflict, "child_run_not_succeeded", "the run of this tool call has not succeeded")
	ErrMissingKind      = fault.New(fault.Invalid, "missing_kind", "kind is missing: a word that says what it is")
	ErrMissingTool      = fault.New(fault.Invalid, "missing_tool_name", "tool_name is missing")
	ErrNoContent        = fault.New(fault.NotFound, "artifact_without_content",
		"the artifact has no content here: it was not sent, lies elsewhere, or was redacted")
	ErrUndeclared = fault.New(fault.Conflict, "artifact_not_declared",
		"content is sent for an artifact whose content type is none and that says its size_bytes and sha256")
	ErrOtherContent = fault.New(fault.Invalid, "content_mismatch",
		"the content does not match the artifact's size_bytes and sha256; nothing was stored")
)

// Word reports whether a text is a word of the program: 1 to MaxWord of letters, digits and _.:/-
func Word(text string) bool {
	if text == "" || len(text) > MaxWord {
		return false
	}
	for _, c := range []byte(text) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '_' && c != '.' && c != ':' && c != '/' && c != '-' {
			return false
		}
	}
	return true
}

// Bytes returns the content that the event itself holds; false if the content is stored elsewhere.
func (c Content) Bytes() ([]byte, bool) {
	switch c.Type {
	case Text:
		return []byte(c.Text), true
	case JSON:
		return c.JSON, true
	}
	return nil, false
}
