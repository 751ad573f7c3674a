package blueprint

import (
	"strconv"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// The names of the documents of blueprints, and the entity type of their events.
const (
	Projection       = "blueprints"
	CountProjection  = "blueprint_counts"  // one of each workspace
	SourceProjection = "blueprint_sources" // one of each version; the key is SourceKey
	Entity           = "blueprint"
)

// The event types of blueprints.
const (
	EventRegistered = "blueprint.registered" // of a name that there was not
	EventChanged    = "blueprint.changed"    // it has a new version
	EventRemoved    = "blueprint.removed"
)

// Bounds of the blueprints of a workspace.
const (
	MaxBlueprints = 1_000
	MaxVersions   = 100 // that the index lists; older ones stay in the log and are found by their hash
)

// Registered is the data of blueprint.registered and blueprint.changed.
type Registered struct {
	Name     string       `json:"name"`
	Version  int          `json:"version"` // rises by one with each change
	Hash     event.Digest `json:"blueprint_sha256"`
	Locked   event.Digest `json:"locked_sha256"` // with the pins
	Text     string       `json:"text"`
	Summary  Summary      `json:"summary"`
	Unpinned int          `json:"unpinned,omitempty"` // references without a pin
	Changes  []Change     `json:"changes,omitempty"`  // from the version before; the first 100
}

// Removed is the data of blueprint.removed.
type Removed struct {
	Name   string `json:"name"`
	Reason string `json:"reason,omitempty"`
}

// Summary is a blueprint's row in a list.
type Summary struct {
	Description string `json:"description,omitempty"`
	Adapter     string `json:"adapter"`
	Model       string `json:"model,omitempty"`
	Policy      string `json:"policy"`
	Tier        string `json:"tier"`
}

// Summarize returns the blueprint's row in a list.
func (b Blueprint) Summarize() Summary {
	e := b.Effective()
	return Summary{Description: b.Description, Adapter: e.Adapter.Kind, Model: b.Model(DefaultTask), Policy: e.Policy, Tier: e.Space.Tier}
}

// Edition is one version of a blueprint.
type Edition struct {
	Version int          `json:"version"`
	Hash    event.Digest `json:"blueprint_sha256"`
	Locked  event.Digest `json:"locked_sha256"`
	At      time.Time    `json:"at"`
	By      id.Principal `json:"by"`
}

// Entry is the document of a blueprint in the daemon's index.
type Entry struct {
	Name      string       `json:"name"`
	Workspace id.Workspace `json:"workspace_id"`
	Status    string       `json:"status" enum:"registered,removed"`
	Version   int          `json:"version"`
	Hash      event.Digest `json:"blueprint_sha256" doc:"Of what it says, without its pins"`
	Locked    event.Digest `json:"locked_sha256" doc:"With its pins: what a session records that it ran with"`
	Summary   Summary      `json:"summary"`
	Unpinned  int          `json:"unpinned" doc:"References without a pin; the agent starts only where there is none"`
	Changed   time.Time    `json:"changed_at"`
	ChangedBy id.Principal `json:"changed_by"`
	Reason    string       `json:"reason,omitempty" doc:"Of its removal"`
	Editions  []Edition    `json:"editions,omitempty" doc:"The newest versions, the newest last"`
}

// The states of an entry.
const (
	StatusRegistered = "registered"
	StatusRemoved    = "removed"
)

// Living reports whether the blueprint is registered now.
func (e Entry) Living() bool { return e.Status == StatusRegistered }

// Source is the document of one version's text.
type Source struct {
	Name    string       `json:"name"`
	Version int          `json:"version"`
	Locked  event.Digest `json:"locked_sha256"`
	Text    string       `json:"text"`
}

// SourceKey names the document of a version's text.
func SourceKey(name string, version int) string { return name + "@" + strconv.Itoa(version) }

// Count is how many blueprints a workspace has.
type Count struct {
	Living int `json:"living"`
}

// The refusals of blueprints.
var (
	// ErrNotFound means that the workspace has no such blueprint.
	ErrNotFound = fault.New(fault.NotFound, "blueprint_not_found", "this workspace has no such blueprint").
			With("`agentbox blueprint ls` lists those that it has.")
	// ErrFull refuses one blueprint more than a workspace may have.
	ErrFull = fault.New(fault.Exhausted, "too_many_blueprints", "a workspace has at most %d blueprints; remove one", MaxBlueprints)
	// ErrRemoved refuses a task for a blueprint that was removed. Runs that were begun before go on.
	ErrRemoved = fault.New(fault.Conflict, "blueprint_removed", "the blueprint was removed, so it takes no more tasks").
			With("register it again: agentbox blueprint register FILE")
	// ErrVersion refuses a version that the blueprint never had, or that the index no longer lists.
	ErrVersion = fault.New(fault.NotFound, "blueprint_version_not_found", "this blueprint has no such version").
			With("`agentbox blueprint show NAME` lists its versions.")
)
