package run

import "agentbox/internal/domain/event"

// ContentEvents are the events that name content: the operations of a run, and results that were too long for their event.
func ContentEvents() []string {
	return []string{EventCreated, EventSucceeded, EventErred, EventUnknown}
}

// ContentOf returns the content that an event names, nil for none. It is pure.
func ContentOf(e event.Event) (*Input, error) {
	switch e.Type {
	case EventCreated:
		d, err := event.Decode[Created](e)
		return &d.Input, err
	case EventSucceeded, EventErred, EventUnknown:
		d, err := event.Decode[Ended](e)
		return d.Stored, err
	}
	return nil, nil
}
