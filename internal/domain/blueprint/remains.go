package blueprint

import "agentbox/internal/domain/event"

// Remains returns the data of an event that stay after a redaction: the blueprint and its version, without its text.
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
