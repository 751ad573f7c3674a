package incident

import "agentbox/internal/domain/event"

// Remains returns what stays of the data of an incident's event when it is redacted: ids and words of the program, by which the incident's
// document can still be folded, and no text of anybody. It is nil for an event of another kind.
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
