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

	EventRewindBegun  = "space.rewind_begun"  // a rewind of its files begins
	EventRewound      = "space.rewound"       // they have
	EventRewindFailed = "space.rewind_failed" // they have not
	EventForked       = "space.forked"        // another space begins with what its files were

	EventPolicy   = "space.policy.changed" // from now on another policy judges the actions in it
	EventPromoted = "space.promoted"       // from now on its code runs in a heavier tier
)

// Created is the data of space.created.
type Created struct {
	Space       id.Space          `json:"space_id"`
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Runtime     string            `json:"runtime,omitempty"` // the requested runtime: auto, nano, heavy or a tier's name
	Tier        string            `json:"tier"`              // in which it begins
	Policy      string            `json:"policy"`
	Bundle      event.Digest      `json:"policy_bundle"`
	Env         map[string]string `json:"env,omitempty"` // with masks for secret values
	Secrets     *Secrets          `json:"env_secrets,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	Limits      Limits            `json:"limits"`
	BestEffort  bool              `json:"best_effort,omitempty"`
	UID         int               `json:"host_uid,omitempty"`
	Node        id.Node           `json:"node_id,omitempty"` // of the daemon that makes it, and has its files
	ExpiresAt   time.Time         `json:"expires_at"`
	ForkedFrom  id.Space          `json:"forked_from,omitempty"` // the space of which it is a fork
	ForkedAt    event.Digest      `json:"forked_snapshot_sha256,omitzero"`
	PauseAtEnd  bool              `json:"pause_at_end,omitempty"` // at the end of its time it is paused, not destroyed
	Key         string            `json:"request_key,omitempty"`  // idempotency key of the request
}

// Secrets are the secret values of a space's environment, sealed with AES-256-GCM under a key of the workspace that is not in the log.
type Secrets struct {
	Generation uint32 `json:"key_generation"`
	Nonce      []byte `json:"nonce"`
	Sealed     []byte `json:"sealed"` // a JSON object of the values by name
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
	Withheld   int      `json:"withheld_files,omitempty"` // of what it began with; kept from code
	Kept
}

// Updated is the data of space.updated; nil means unchanged.
type Updated struct {
	Space       id.Space           `json:"space_id"`
	Name        *string            `json:"name,omitempty"`
	Description *string            `json:"description,omitempty"`
	Env         *map[string]string `json:"env,omitempty"`         // with masks for secret values
	Secrets     *Secrets           `json:"env_secrets,omitempty"` // of Env; nil where that has none
	Metadata    *map[string]string `json:"metadata,omitempty"`
}

// PolicyChanged is the data of space.policy.changed.
type PolicyChanged struct {
	Space  id.Space     `json:"space_id"`
	Policy string       `json:"policy"`
	Bundle event.Digest `json:"policy_bundle"`
	Was    event.Digest `json:"was_policy_bundle"`

	Withheld int `json:"withheld_files,omitempty"` // files that were moved out of the view of code
	Contexts int `json:"ended_contexts,omitempty"` // interpreter contexts that ended: their cells may have read what is withheld now
}

// Extended is the data of space.extended.
type Extended struct {
	Space     id.Space  `json:"space_id"`
	ExpiresAt time.Time `json:"expires_at"`
}

// RewindBegun is the data of space.rewind_begun.
type RewindBegun struct {
	Space id.Space     `json:"space_id"`
	To    event.Digest `json:"to_snapshot_sha256"`
	Hash  event.Digest `json:"action_sha256"`
}

// Rewound is the data of space.rewound: the files before and after.
type Rewound struct {
	Space     id.Space     `json:"space_id"`
	From      event.Digest `json:"from_snapshot_sha256,omitzero"` // zero where the daemon ended in between
	Recovered bool         `json:"recovered,omitempty"`           // a crash interrupted it, and the next daemon finished it
	Kept
}

// RewindFailed is the data of space.rewind_failed.
type RewindFailed struct {
	Space id.Space `json:"space_id"`
	Error string   `json:"error"` // a stable code
	Kept
}

// Forked is the data of space.forked.
type Forked struct {
	Space id.Space     `json:"space_id"`
	Fork  id.Space     `json:"fork_id"`
	At    event.Digest `json:"snapshot_sha256"`
}

// Promoted is the data of space.promoted. From now on the space's code runs in the tier To, and never again in From.
type Promoted struct {
	Space     id.Space `json:"space_id"`
	From      string   `json:"from"`
	To        string   `json:"to"`
	Code      string   `json:"code"`             // one of the codes of Why
	Reason    string   `json:"reason,omitempty"` // for a person
	Run       id.Run   `json:"run_id,omitempty"` // whose operation wanted it
	Operation string   `json:"operation_id,omitempty"`

	Unenforced []string `json:"unenforced,omitempty"` // bounds that the host does not enforce in the tier To
}

// Ended is the data of space.destroyed.
type Ended struct {
	Space  id.Space `json:"space_id"`
	Reason string   `json:"reason"` // requested, expired, failed, moved
}
