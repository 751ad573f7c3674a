package room

import "agentbox/internal/domain/id"

// The events of rooms, threads and messages. All but the defaults are recorded in the room's stream.
const (
	EventCreated        = "room.created"
	EventUpdated        = "room.updated"
	EventDefaultsSet    = "room.defaults_set" // the values that the rooms of the workspace inherit
	EventThreadCreated  = "thread.created"
	EventThreadUpdated  = "thread.updated"
	EventMessageCreated = "message.created"
)

// The entity types under which the events are found.
const (
	EntityType     = "room"
	DefaultsEntity = "room_defaults" // its id is the workspace
	ThreadEntity   = "thread"
	MessageEntity  = "message"
)

// Created is the data of room.created.
type Created struct {
	Room       id.Room `json:"room_id"`
	Title      string  `json:"title"`
	Topic      string  `json:"topic,omitempty"`
	Mode       string  `json:"room_mode,omitempty"`
	Lang       string  `json:"default_lang,omitempty"`
	ToolPolicy string  `json:"tool_policy_ref,omitempty"`
	Mission    string  `json:"mission_id,omitempty"`
	Context    Context `json:"context,omitzero"`
}

// Updated is the data of room.updated; nil means unchanged.
type Updated struct {
	Room       id.Room  `json:"room_id"`
	Title      *string  `json:"title,omitempty"`
	Topic      *string  `json:"topic,omitempty"`
	Mode       *string  `json:"room_mode,omitempty"`
	Lang       *string  `json:"default_lang,omitempty"`
	ToolPolicy *string  `json:"tool_policy_ref,omitempty"`
	Context    Context  `json:"context,omitzero"`
	Inherit    []string `json:"inherit,omitempty"` // fields of the context that are unset again
}

// DefaultsSet is the data of room.defaults_set; nil means unchanged.
type DefaultsSet struct {
	Context Context  `json:"context,omitzero"`
	Inherit []string `json:"inherit,omitempty"` // fields of the context that are unset again
}

// ThreadCreated is the data of thread.created.
type ThreadCreated struct {
	Thread id.Thread `json:"thread_id"`
	Title  string    `json:"title"`
	Status Status    `json:"status"`
}

// ThreadUpdated is the data of thread.updated; nil means unchanged.
type ThreadUpdated struct {
	Thread id.Thread `json:"thread_id"`
	Title  *string   `json:"title,omitempty"`
	Status *Status   `json:"status,omitempty"`
}

// MessageCreated is the data of message.created.
type MessageCreated struct {
	Message       id.Message       `json:"message_id"`
	Thread        id.Thread        `json:"thread_id"`
	Parent        id.Message       `json:"parent_message_id,omitempty"`
	SenderType    id.PrincipalKind `json:"sender_type"`
	Sender        string           `json:"sender_id"`
	Content       string           `json:"content_md"`
	Lang          string           `json:"lang,omitempty"`
	Labels        []string         `json:"labels,omitempty"`
	SchemaVersion string           `json:"schema_version,omitempty"`
}
