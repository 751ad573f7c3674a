package event

import (
	"encoding/json"

	"agentbox/internal/domain/id"
)

// RedactedType is the type of the event that records a redaction: its causation is the event whose data are to be destroyed. It is recorded
// before they are, so that a redaction which a crash interrupts is finished.
const RedactedType = "event.redacted"

// Redacted is the data of event.redacted.
type Redacted struct {
	Event   id.Event        `json:"event_id"`
	Type    string          `json:"event_type"`
	Seq     uint64          `json:"seq"`
	Reason  string          `json:"reason"`
	Remains json.RawMessage `json:"remains"` // the rest of the data: numbers, ids and words of the program, no text of a person
}

// RedactionOf drafts the redaction of an event, in the same stream and run. The remains are an object, or empty.
func RedactionOf(origin Origin, target Event, reason string, remains json.RawMessage) Draft {
	if len(remains) == 0 {
		remains = json.RawMessage(`{}`)
	}
	origin.Causation, origin.Correlation = target.ID, target.Correlation
	return New(RedactedType, origin, target.Workspace, target.Room, Redacted{
		Event: target.ID, Type: target.Type, Seq: target.Seq, Reason: reason, Remains: remains,
	}).In(target.Run, target.Step)
}
