// Package space is an isolated place where code runs: its document, its events, and the contract of its drivers.
package space

import (
	"encoding/json"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// Projection is the name of the documents of spaces.
const Projection = "spaces"

// Status is the phase of a space's life.
type Status string

// The states of a space. Destroyed is final.
const (
	Creating  Status = "creating"
	Ready     Status = "ready"
	Running   Status = "running" // a run is under way
	Paused    Status = "paused"  // it was paused, as Pause tells, or a run waits for a person
	Destroyed Status = "destroyed"
)

// Space is the document of a space.
type Space struct {
	ID          id.Space          `json:"id"`
	SpaceID     id.Space          `json:"space_id"` // the same as ID, under the name that every other document has for it
	Workspace   id.Workspace      `json:"workspace_id"`
	Room        id.Room           `json:"room_id"`
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Status      Status            `json:"status"`
	Runtime     string            `json:"runtime,omitempty"`                   // the requested one: auto, nano, heavy or a tier; "" is the tier
	Tier        string            `json:"tier"`                                // in which it is now
	Policy      string            `json:"policy"`                              // the preset's name
	Bundle      event.Digest      `json:"policy_bundle"`                       // pinned content hash
	Env         map[string]string `json:"env,omitempty"`                       // with masks for secret values
	Secrets     *Secrets          `json:"env_secrets,omitempty" hidden:"true"` // not in answers to clients
	Metadata    map[string]string `json:"metadata,omitempty"`
	Limits      Limits            `json:"limits"`
	BestEffort  bool              `json:"best_effort,omitempty"`
	Unenforced  []string          `json:"unenforced,omitempty"`
	UID         int               `json:"host_uid,omitempty"`
	Node        id.Node           `json:"node_id,omitempty"` // of the daemon that has its files; "" for one that was made before daemons told
	CreatedBy   id.Principal      `json:"created_by"`
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
	ExpiresAt   time.Time         `json:"expires_at"`
	ActiveRun   id.Run            `json:"active_run_id,omitempty"` // the run that is under way or waits for a person
	Reason      string            `json:"reason,omitempty"`        // why it was destroyed: requested, expired, failed, moved, node_removed
	ForkedFrom  id.Space          `json:"forked_from,omitempty"`   // the space of which it is a fork
	ForkedAt    event.Digest      `json:"forked_snapshot_sha256,omitzero"`
	Withheld    int               `json:"withheld_files,omitempty"` // how many files of what it began with are withheld from code
	Rewinding   event.Digest      `json:"rewinding_to,omitzero"`    // the snapshot to which its files are on their way
	Pause       *Pause            `json:"pause,omitempty"`          // it is paused; nil for one that is not, also while a run waits for a person
	PauseAtEnd  bool              `json:"pause_at_end,omitempty"`   // at the end of its time it is paused, not destroyed
	Key         string            `json:"request_key,omitempty"`    // idempotency key of the request that made it
	// only in the answer to who makes it or changes its policy: what of its environment changes every command, what of the policy has no
	// effect, what ended
	Warnings []string `json:"warnings,omitempty"`
}

func digestJSON(v any) (event.Digest, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return event.Digest{}, err
	}
	canonical, err := policy.Canonicalize(raw)
	if err != nil {
		return event.Digest{}, err
	}
	return event.DigestOf(canonical), nil
}
