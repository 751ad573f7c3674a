package label

import "agentbox/internal/domain/event"

// Remains returns the part of an access event's data that stays after a redaction: the resource and the decision, and no text of a person.
// It is nil for events of other kinds. It is also nil for labels, which are not redacted, because they say who may do what.
func Remains(e event.Event) (any, error) {
	switch e.Type {
	case EventDenied, EventMismatch, EventJustified, EventUnjustified:
		d, err := event.Decode[Accessed](e)
		return Accessed{Resource: d.Resource, Action: d.Action, Level: d.Level, Decision: d.Decision, Code: d.Code, Through: d.Through}, err
	}
	return nil, nil
}
