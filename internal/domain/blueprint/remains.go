package blueprint

import "agentbox/internal/domain/event"

// Remains returns what stays of an event's data after a redaction: which version of which blueprint it was, and not what it said.
func Remains(e event.Event) (any, error) {
	switch e.Type {
	case EventRegistered, EventChanged:
		d, err := event.Decode[Registered](e)
		d.Text, d.Changes, d.Summary.Description = "", nil, ""
		return d, err
	case EventRemoved:
		d, err := event.Decode[Removed](e)
		d.Reason = ""
		return d, err
	}
	return nil, nil
}
