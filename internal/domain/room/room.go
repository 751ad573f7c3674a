// Package room is where people and agents talk: rooms, the threads in them, the messages in these, and how far somebody has read.
package room

import (
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// The names of the documents. The key of a room, thread or message is its id.
const (
	Projection         = "rooms"
	DefaultsProjection = "room_defaults" // the key is the workspace
	ThreadProjection   = "threads"
	MessageProjection  = "messages"
)

// The index entries by which documents are found.
const (
	IndexRoom   = "room"   // of a thread
	IndexThread = "thread" // of a message
)

// Room is the document of a room. That of the workspace's default room may have no document: see Default.
type Room struct {
	ID         id.Room      `json:"room_id"`
	Workspace  id.Workspace `json:"workspace_id"`
	Title      string       `json:"title"`
	Topic      string       `json:"topic,omitempty"`
	Mode       string       `json:"room_mode,omitempty"`    // a word of the client's own
	Lang       string       `json:"default_lang,omitempty"` // of its messages, a BCP 47 tag
	ToolPolicy string       `json:"tool_policy_ref,omitempty"`
	Mission    string       `json:"mission_id,omitempty"`
	Context    Context      `json:"context"` // the values set for this room itself
	CreatedBy  id.Principal `json:"created_by,omitempty"`
	CreatedAt  time.Time    `json:"created_at,omitzero"`
	UpdatedAt  time.Time    `json:"updated_at,omitzero"`
}

// Default is the room that every workspace has without anybody having made it.
func Default(ws id.Workspace) Room {
	return Room{ID: id.DefaultRoom, Workspace: ws, Title: "default"}
}

// Context has the instructions and rights of agents in a room. A nil field is inherited from the workspace. If the workspace does not set
// it either, there is no prompt and no summary, and only policy bounds the tools and models. The gate enforces the list of tools; engines
// are told the list of models.
type Context struct {
	Prompt *string   `json:"system_prompt,omitempty"`
	Tools  *[]string `json:"tool_allowlist,omitempty"`
	Models *[]string `json:"model_allowlist,omitempty"`
	Memory *string   `json:"memory_summary,omitempty"`
}

// Over returns the effective context: its own fields, and those of below for unset ones.
func (c Context) Over(below Context) Context {
	if c.Prompt == nil {
		c.Prompt = below.Prompt
	}
	if c.Tools == nil {
		c.Tools = below.Tools
	}
	if c.Models == nil {
		c.Models = below.Models
	}
	if c.Memory == nil {
		c.Memory = below.Memory
	}
	return c
}

// Defaults is the document of the values that the rooms of a workspace inherit.
type Defaults struct {
	Workspace id.Workspace `json:"workspace_id"`
	Context   Context      `json:"context"`
	UpdatedAt time.Time    `json:"updated_at,omitzero"`
}

// Status is whether a thread is talked in.
type Status string

// The states of a thread. Nothing is posted into one that is closed, until it is open again.
const (
	Open   Status = "open"
	Closed Status = "closed"
)

// Thread is the document of a thread.
type Thread struct {
	ID        id.Thread    `json:"thread_id"`
	Workspace id.Workspace `json:"workspace_id"`
	Room      id.Room      `json:"room_id"`
	Title     string       `json:"title"`
	Status    Status       `json:"status"`
	CreatedBy id.Principal `json:"created_by"`
	CreatedAt time.Time    `json:"created_at"`
	UpdatedAt time.Time    `json:"updated_at"`
}

// Message is the document of a message. Sender is the speaker. By is the principal who sent it: an owner or an engine may speak for an
// agent.
type Message struct {
	ID            id.Message       `json:"message_id"`
	Workspace     id.Workspace     `json:"workspace_id"`
	Room          id.Room          `json:"room_id"`
	Thread        id.Thread        `json:"thread_id"`
	Parent        id.Message       `json:"parent_message_id,omitempty"` // of the same thread
	SenderType    id.PrincipalKind `json:"sender_type"`
	Sender        string           `json:"sender_id"`
	By            id.Principal     `json:"actor_principal_id"`
	Content       string           `json:"content_md"`
	Lang          string           `json:"lang,omitempty"`
	Labels        []string         `json:"labels,omitempty"`
	SchemaVersion string           `json:"schema_version,omitempty"`
	Redacted      event.Withheld   `json:"withheld,omitempty"` // why the content is not there any more
	Event         id.Event         `json:"event_id"`
	StreamSeq     uint64           `json:"stream_seq"` // place in the room's stream; read positions count by it
	CreatedAt     time.Time        `json:"created_at"`
}
