// Package event is the envelope of the log: the fields that every entry has.
package event

import (
	"encoding/json"
	"slices"
	"time"

	"agentbox/internal/domain/id"
)

// Stream names an ordered sequence of events. Every event belongs to exactly one: that of its room, else that of its workspace.
type Stream struct {
	Type string `json:"stream_type"` // one of the StreamX constants
	ID   string `json:"stream_id"`
}

// The stream types.
const (
	StreamWorkspace = "workspace"
	StreamRoom      = "room"
)

// RoomStream is the stream of a room, and the workspace's own where there is none.
func RoomStream(ws id.Workspace, room id.Room) Stream {
	if room == "" {
		return WorkspaceStream(ws)
	}
	return Stream{Type: StreamRoom, ID: string(room)}
}

// WorkspaceStream is the stream of events that belong to no room.
func WorkspaceStream(ws id.Workspace) Stream {
	return Stream{Type: StreamWorkspace, ID: string(ws)}
}

// Actor says who acted, in the envelope's two fields.
type Actor struct {
	Type id.PrincipalKind `json:"actor_type"`
	ID   string           `json:"actor_id"`
}

// Zone is the posture under which an action was done; the default is Supervised.
type Zone string

// The zones, from the freest to the strictest.
const (
	Sandbox    Zone = "sandbox"
	Supervised Zone = "supervised"
	HighStakes Zone = "high_stakes"
)

// Redaction says how much of an event's data was taken out before it was stored.
type Redaction string

// The redaction levels.
const (
	RedactNone    Redaction = "none"
	RedactPartial Redaction = "partial"
	RedactFull    Redaction = "full"
)

// Origin is who causes events and why; it travels as an explicit argument through every use case.
type Origin struct {
	Principal   id.Principal
	Correlation id.Correlation // one per outside cause, kept through everything that follows from it
	Causation   id.Event       // the event that led to this one, where the caller knows it
	Follows     Subject        // the thing whose latest event led to this one, where that is not the thing itself; see Draft
	Token       id.Token       // the capability token under which the principal acts; "" if they act with their full rights
	By          id.Principal   // the authenticated principal, if that is another one who acts for the principal
	Issuer      id.Principal   // the issuer of the credential that was sent, if that is not the principal whom it names
	Trace       string         // traceparent (W3C) of the request behind it; "" where it belongs to no trace that anybody follows

	// Key is the idempotency key of the request behind it, scoped to its principal and endpoint. Command is the digest of the request. Once
	// puts them into one batch: that of the intent, or of the outcome if stopping comes first. Empty for none.
	Key     string
	Command Digest
}

// Once returns the batch with the idempotency key of the origin, so that a repeat of the request records nothing more.
func (o Origin) Once(b Batch) Batch {
	if o.Key != "" {
		b.Key, b.Digest = o.Key, o.Command
	}
	return b
}

// Header holds the fields that the author of an event sets. Empty strings mean "does not apply".
type Header struct {
	ID         id.Event     `json:"event_id"`
	Type       string       `json:"event_type"`    // noun.verb, a past participle: run.claimed
	Version    int          `json:"event_version"` // rises only when a change breaks readers; 1 at first
	OccurredAt time.Time    `json:"occurred_at"`   // UTC
	Workspace  id.Workspace `json:"workspace_id"`
	Actor      Actor        `json:"actor"`
	Principal  id.Principal `json:"actor_principal_id,omitempty"`
	Zone       Zone         `json:"zone"`
	Stream     Stream       `json:"stream"`

	Mission string    `json:"mission_id,omitempty"`
	Room    id.Room   `json:"room_id,omitempty"`
	Thread  id.Thread `json:"thread_id,omitempty"`
	Run     id.Run    `json:"run_id,omitempty"`
	Step    id.Step   `json:"step_id,omitempty"`

	EntityType string `json:"entity_type,omitempty"` // the thing that the event is about, if the ids above do not say
	EntityID   string `json:"entity_id,omitempty"`

	Correlation id.Correlation `json:"correlation_id"`
	Causation   id.Event       `json:"causation_id,omitempty"`

	PolicyContext json.RawMessage `json:"policy_context,omitempty"`
	ModelContext  json.RawMessage `json:"model_context,omitempty"`
	Display       json.RawMessage `json:"display,omitempty"`

	Redaction       Redaction `json:"redaction_level"`
	ContainsSecrets bool      `json:"contains_secrets"`
	IdempotencyKey  string    `json:"idempotency_key,omitempty"` // unique within the stream's workspace
}

// Draft is an event that is not yet in the log. Data is a JSON object; its bytes are stored and committed to as they are.
type Draft struct {
	Header
	Data json.RawMessage

	// Follows names the thing whose latest event caused this one. The log looks the event up when it records the draft; see journal.Planner.
	// Without it the log looks at the entity, the step and the run of the header, in this order.
	Follows Subject
}

// Event is an entry of the log.
type Event struct {
	Header
	Seq        uint64    `json:"seq"`         // place in the workspace, from 1, without gaps
	StreamSeq  uint64    `json:"stream_seq"`  // place in the stream, from 1, without gaps
	RecordedAt time.Time `json:"recorded_at"` // when the log took it; outside the hash
	Chain      Chain     `json:"chain"`

	Data json.RawMessage `json:"data"`

	// Withheld says why the data are missing. Then Data is the rest that a redaction left, or {}, and Redaction is RedactFull.
	Withheld Withheld `json:"withheld,omitempty"`
}

// Clone returns a copy of an event that shares no bytes with it.
func Clone(e Event) Event {
	e.Data = slices.Clone(e.Data)
	e.PolicyContext, e.ModelContext, e.Display = slices.Clone(e.PolicyContext), slices.Clone(e.ModelContext), slices.Clone(e.Display)
	e.Chain.Salt = slices.Clone(e.Chain.Salt)
	return e
}

// Withheld says why the data of an event cannot be read.
type Withheld string

// The reasons for which data are withheld; empty where they are not.
const (
	Forgotten Withheld = "redacted"      // the log says that they were destroyed, and by whom
	Destroyed Withheld = "key_destroyed" // their key was destroyed after this copy of the log was made, which does not say why
	Sealed    Withheld = "sealed"        // their key is not here, as in a backup that was restored without keys
	Labelled  Withheld = "labelled"      // the data exist, and a label hides them from this reader
)

// Withhold removes the data from an event, except for the remains, which are an object or empty.
func (e *Event) Withhold(why Withheld, remains json.RawMessage) {
	if len(remains) == 0 {
		remains = json.RawMessage(`{}`)
	}
	if e.Withheld == "" {
		e.Chain.Redaction, e.Redaction = e.Redaction, RedactFull
	}
	e.Withheld, e.Data, e.Chain.Salt = why, remains, nil
}

// Recorded returns the event with the header as it was recorded, which its hash covers, where its data were taken out since.
func (e Event) Recorded() Event {
	if e.Withheld != "" {
		e.Redaction, e.Chain.Redaction = e.Chain.Redaction, ""
	}
	return e
}

// Chain ties an event to the one before it in its stream. The hash covers the header, the places and the commitment, never the data
// itself, so that data can be destroyed while the chain stays valid.
type Chain struct {
	HashVersion int    `json:"hash_version"`    // 2: salted commitment
	Salt        []byte `json:"salt,omitempty"`  // 16 random bytes; destroyed together with the data
	Commitment  Digest `json:"data_commitment"` // SHA-256 of salt and data
	Prev        Digest `json:"prev_event_hash"` // zero for the first event of a stream
	Hash        Digest `json:"event_hash"`

	// Redaction is the level that was recorded, which the hash covers, where that of the event says that its data were taken out since.
	Redaction Redaction `json:"redaction_level,omitempty"`
}

// Shown is an event as answers and streams show it. Its hashes are also at the top level, where every client of this contract looks for
// them. The other fields that tie it to its stream are in its chain.
type Shown struct {
	Event
	Prev *Digest `json:"prev_event_hash" nullable:"true" doc:"Of the event before it in its stream, as in chain; null of the first"`
	Hash Digest  `json:"event_hash" doc:"As in chain"`
}

// Show returns an event as it is shown.
func Show(e Event) Shown {
	shown := Shown{Event: e, Hash: e.Chain.Hash}
	if !e.Chain.Prev.IsZero() {
		shown.Prev = &e.Chain.Prev
	}
	return shown
}

// Clock tells the time and wakes. The app makes it once and hands it down.
type Clock interface {
	// Now returns the present time.
	Now() time.Time
	// NewTimer returns a channel that receives once after d, and a function that releases the timer early.
	NewTimer(d time.Duration) (c <-chan time.Time, stop func())
}
