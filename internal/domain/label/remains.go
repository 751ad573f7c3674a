package label

import "agentbox/internal/domain/event"

// Remains returns what stays of the data of an access when they are redacted: what it was and how it was decided, and no text of anybody.
// It is nil for an event of another kind, and for labels: those say who may do what, and are not redacted.
func Remains(e event.Event) (any, error) {
	switch e.Type {
	case EventDenied, EventMismatch, EventJustified, EventUnjustified:
		d, err := event.Decode[Accessed](e)
		return Accessed{Resource: d.Resource, Action: d.Action, Level: d.Level, Decision: d.Decision, Code: d.Code, Through: d.Through}, err
	}
	return nil, nil
}
