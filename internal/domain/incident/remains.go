package incident

import "agentbox/internal/domain/event"

// Remains returns the part of an incident event's data that stays after a redaction: ids and words of the program, no text of a person. The
// incident's document can still be folded from it. It is nil for events of other kinds.
func Remains(e event.Event) (any, error) {
	switch e.Type {
	case EventOpened:
		d, err := event.Decode[Opened](e)
		return Opened{Incident: d.Incident, Severity: d.Severity}, err
	case EventRCA:
		d, err := event.Decode[RCAUpdated](e)
		return RCAUpdated{Incident: d.Incident}, err
	case EventLearned:
		d, err := event.Decode[LearningLogged](e)
		return LearningLogged{Incident: d.Incident}, err
	case EventClosed:
		d, err := event.Decode[Ended](e)
		return Ended{Incident: d.Incident}, err
	}
	return nil, nil
}
