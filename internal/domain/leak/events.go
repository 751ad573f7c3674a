package leak

import (
	"cmp"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// EventDetected is the type of the event that says that a secret was taken out of another one before that was recorded.
const EventDetected = "secret.leaked.detected"

// Entity is the entity type under which these events are found; its id is that of the event in which the secret was.
const Entity = "event"

// Detected is the data of secret.leaked.detected.
type Detected struct {
	Event   id.Event `json:"event_id"`
	Type    string   `json:"event_type"`
	Matches []Match  `json:"matches"`
}

// actor is who finds secrets.
var actor = event.Actor{Type: id.Service, ID: "dlp"}

// Clean returns a draft without the secrets in its data. If there were secrets, it also drafts the event that reports them, in the name of
// a service. Without a service, the event is in the name of the draft's author. The draft gets an id, because the other event names it.
func Clean(d event.Draft, by id.Principal, eventID func() id.Event) (clean event.Draft, said event.Draft, leaked bool) {
	data, found := Scan(d.Data)
	if len(found) == 0 {
		return d, event.Draft{}, false
	}
	d.Data, d.Redaction, d.ContainsSecrets = data, event.RedactPartial, true
	if d.ID == "" {
		d.ID = eventID()
	}
	origin := event.Origin{Principal: cmp.Or(by, d.Principal), Correlation: d.Correlation, Causation: d.ID}
	return d, tell(d, origin, by, found), true
}

func tell(d event.Draft, origin event.Origin, by id.Principal, found []Match) event.Draft {
	said := event.New(EventDetected, origin, d.Workspace, d.Room, Detected{Event: d.ID, Type: d.Type, Matches: found}).In(d.Run,
		d.Step).About(Entity, string(d.ID))
	said.Thread = d.Thread
	if by != "" {
		said.Actor = actor
	}
	return said
}

// Tell marks a draft for secrets that were found outside its data, such as in content that it names. It also drafts the event that reports
// them. The draft gets an id, because the other event names it. Taken says that the secrets were removed.
func Tell(d event.Draft, by id.Principal, eventID func() id.Event, found []Match, taken bool) (marked event.Draft, said event.Draft) {
	if d.ContainsSecrets = true; taken {
		d.Redaction = event.RedactPartial
	}
	if d.ID == "" {
		d.ID = eventID()
	}
	origin := event.Origin{Principal: cmp.Or(by, d.Principal), Correlation: d.Correlation, Causation: d.ID}
	return d, tell(d, origin, by, found[:min(len(found), MaxMatches)])
}

// InHeader reports whether a secret stands where nothing can be taken out: in the ids and keys of a draft.
func InHeader(d event.Draft) bool {
	for _, text := range []string{d.IdempotencyKey, d.EntityID, string(d.Correlation), string(d.Thread), string(d.Run), string(d.Step),
		string(d.Room), d.Mission} {
		if _, found := Text(text); len(found) > 0 {
			return true
		}
	}
	return false
}

// Remains returns what stays of the data of secret.leaked.detected when it is redacted: nothing of any secret. It is nil for an event of
// another kind.
func Remains(e event.Event) (any, error) {
	if e.Type != EventDetected {
		return nil, nil
	}
	d, err := event.Decode[Detected](e)
	return Detected{Event: d.Event, Type: d.Type}, err
}
