package space

import (
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// The events of a space.
const (
	EventCreated   = "space.created"
	EventStarted   = "space.started" // its processes are about to be started, at first or again
	EventReady     = "space.ready"   // it was made, with its files, and started for the first time
	EventUpdated   = "space.updated"
	EventExtended  = "space.extended"
	EventDestroyed = "space.destroyed"
)

// Created is the data of space.created.
type Created struct {
	Space       id.Space          `json:"space_id"`
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Tier        string            `json:"tier"`
	Policy      string            `json:"policy"`
	Bundle      event.Digest      `json:"policy_bundle"`
	Env         map[string]string `json:"env,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	Limits      Limits            `json:"limits"`
	BestEffort  bool              `json:"best_effort,omitempty"`
	UID         int               `json:"host_uid,omitempty"`
	ExpiresAt   time.Time         `json:"expires_at"`
	Key         string            `json:"request_key,omitempty"` // idempotency key of the request
}

// Started is the data of space.started.
type Started struct {
	Space id.Space `json:"space_id"`
	Tier  string   `json:"tier"`
}

// Made is the data of space.ready.
type Made struct {
	Space      id.Space `json:"space_id"`
	Unenforced []string `json:"unenforced,omitempty"`
	Seeded     int      `json:"seeded_files,omitempty"`
}

// Updated is the data of space.updated; nil means unchanged.
type Updated struct {
	Space       id.Space           `json:"space_id"`
	Name        *string            `json:"name,omitempty"`
	Description *string            `json:"description,omitempty"`
	Env         *map[string]string `json:"env,omitempty"`
	Metadata    *map[string]string `json:"metadata,omitempty"`
}

// Extended is the data of space.extended.
type Extended struct {
	Space     id.Space  `json:"space_id"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Ended is the data of space.destroyed.
type Ended struct {
	Space  id.Space `json:"space_id"`
	Reason string   `json:"reason"` // requested, expired, failed
}
