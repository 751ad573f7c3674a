// Package label says how sensitive a piece of data is, and who may access it for which purpose.
package label

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// The names of the documents.
const (
	Projection       = "resource_labels"
	AccessProjection = "data_accesses"
	GuardProjection  = "label_guards" // the key is the workspace
)

// Level is how sensitive a resource is.
type Level string

// The levels, from the least to the most strict. Data without a label are Internal.
const (
	Public       Level = "public"
	Internal     Level = "internal"
	Restricted   Level = "restricted"   // only in the room that the label names
	Confidential Level = "confidential" // each access needs a request, in the label's room if it names one, and is recorded
	// for the purposes that the label names; for another one only with a justification, else a person decides
	SensitivePII Level = "sensitive_pii"
)

var rank = map[Level]int{Public: 1, Internal: 2, Restricted: 3, Confidential: 4, SensitivePII: 5}

// AtLeast reports whether a level is another one or stricter.
func (l Level) AtLeast(other Level) bool { return rank[l] >= rank[other] }

// AccessTime is how long an allowed access lasts.
const AccessTime = time.Hour

// Bounds of the fields of a label, in bytes unless another unit is named.
const (
	MaxType          = 50 // of a resource's type: small letters, digits and underscores
	MaxID            = 200
	MaxTags          = 20
	MaxTag           = 50
	MaxJustification = 2_000
)

// The errors of checks on the fields of a label.
var (
	// ErrInvalidResource refuses what names no resource.
	ErrInvalidResource = fault.New(fault.Invalid, "invalid_resource",
		"name the resource: resource_type of 1 to %d small letters, digits and underscores, and resource_id of 1 to %d bytes", MaxType, MaxID)
	// ErrInvalidLabel refuses a level that is none, or a restriction without a room.
	ErrInvalidLabel = fault.New(fault.Invalid, "invalid_label",
		"the label must be public, internal, restricted, confidential or sensitive_pii; restricted takes room_id")
	// ErrInvalidTags refuses purposes that are none.
	ErrInvalidTags = fault.New(fault.Invalid, "invalid_purpose_tags", "purpose_tags are at most %d words of 1 to %d bytes, each once", MaxTags,
		MaxTag)
	// ErrIdleTags refuses purposes of a label that does not compare them.
	ErrIdleTags = fault.New(fault.Invalid, "invalid_purpose_tags",
		"purpose_tags bind what is confidential or sensitive_pii; this label would not compare them").
		With("Leave purpose_tags out, or label the resource confidential or sensitive_pii.")
	// ErrInvalidAction refuses an access that is neither reading nor writing.
	ErrInvalidAction = fault.New(fault.Invalid, "invalid_action", "the action must be read or write")
	// ErrInvalidJustification refuses a justification that is too long or no text.
	ErrInvalidJustification = fault.New(fault.Invalid, "invalid_justification", "a justification has at most %d bytes of text",
		MaxJustification)
)

// The types of resources whose labels Agentbox itself enforces, wherever it shows them. A label also guards the contents of the labelled
// thing: the messages of a room, the output of a run, the runs and the forks of a space.
const (
	OfRoom     = "room"
	OfThread   = "thread"
	OfMessage  = "message"
	OfSpace    = "space" // its files, and what runs in it
	OfRun      = "run"
	OfStep     = "step"
	OfToolCall = "tool_call"
	OfArtifact = "artifact"
	OfApproval = "approval"
	OfIncident = "incident"
)

// Resource names a piece of data.
type Resource struct {
	Type string `json:"resource_type"` // room, artifact, or any word of who keeps it
	ID   string `json:"resource_id"`
}

// Key is the key of the resource's document.
func (r Resource) Key() string { return r.Type + "/" + r.ID }

// Check refuses what names nothing.
func (r Resource) Check() error {
	if r.Type == "" || len(r.Type) > MaxType || strings.Trim(r.Type, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" ||
		r.ID == "" || len(r.ID) > MaxID || !utf8.ValidString(r.ID) {
		return ErrInvalidResource
	}
	return nil
}

// Label is the document of a resource's label.
type Label struct {
	Resource
	Workspace id.Workspace `json:"workspace_id"`
	Level     Level        `json:"label"`
	Room      id.Room      `json:"room_id,omitempty"`
	Purposes  []string     `json:"purpose_tags,omitempty"`
	SetBy     id.Principal `json:"set_by,omitempty"`
	SetAt     time.Time    `json:"set_at,omitzero"`
}

// Check refuses a label that says nothing that can be held.
func (l Label) Check() error {
	if err := l.Resource.Check(); err != nil {
		return err
	}
	if rank[l.Level] == 0 || l.Level == Restricted && l.Room == "" {
		return ErrInvalidLabel
	}
	if len(l.Purposes) > 0 && !l.Level.AtLeast(Confidential) {
		return ErrIdleTags
	}
	return checkTags(l.Purposes)
}

func checkTags(tags []string) error {
	if len(tags) > MaxTags {
		return ErrInvalidTags
	}
	for i, tag := range tags {
		if tag == "" || len(tag) > MaxTag || !utf8.ValidString(tag) || slices.Contains(tags[:i], tag) {
			return ErrInvalidTags
		}
	}
	return nil
}

// Lowers reports whether another label in this one's place would let anybody nearer: it is less strict, or for another room, or for more
// purposes.
func (l Label) Lowers(next Label) bool {
	if !next.Level.AtLeast(l.Level) {
		return true
	}
	if l.Level.AtLeast(Restricted) && l.Room != "" && next.Room != l.Room {
		return true
	}
	if !l.forPurposes(l.Level) {
		return false
	}
	return !next.forPurposes(next.Level) || slices.ContainsFunc(next.Purposes, func(tag string) bool {
		return !slices.Contains(l.Purposes,
			tag)
	})
}

// Guards is the document that counts the resources of each type with a label that hides them from somebody. If there are none, no further
// check is needed.
type Guards struct {
	Types map[string]int `json:"types,omitempty"`
}

// On reports whether a resource of one of the types is guarded.
func (g Guards) On(types ...string) bool {
	return slices.ContainsFunc(types, func(typ string) bool { return g.Types[typ] > 0 })
}

// Access is the document of the last allowed accesses of a principal to a resource: reading and writing are separate.
type Access struct {
	Resource
	Principal id.Principal `json:"principal_id"`
	Reads     Nearness     `json:"reads,omitzero"`
	Writes    Nearness     `json:"writes,omitzero"`
}

// Nearness is when somebody was last allowed to do one thing with a resource, and how sensitive this was then; zero for never.
type Nearness struct {
	At    time.Time `json:"at"`
	Level Level     `json:"label"`
}

// Holds reports whether the allowed access still opens a resource of a level.
func (n Nearness) Holds(l Level, now time.Time) bool {
	return n.Level.AtLeast(l) && now.Before(n.At.Add(AccessTime))
}

// AccessKey is the key of the document of an access.
func AccessKey(p id.Principal, r Resource) string { return string(p) + "/" + r.Key() }
