package incident

import (
	"errors"
	"fmt"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// Evolve returns the incident after an event about it.
func (i Incident) Evolve(e event.Event) (Incident, error) {
	switch e.Type {
	case EventOpened:
		d, err := event.Decode[Opened](e)
		if err != nil {
			return i, err
		}
		return Incident{
			ID: id.Incident(e.EntityID), Workspace: e.Workspace, Room: e.Room, Thread: e.Thread, Run: e.Run, EntityType: d.EntityType,
			EntityID: d.EntityID,
			Title:    d.Title, Severity: d.Severity, Category: d.Category, Details: d.Details, Key: d.Key, Status: Open, OpenedBy: e.Principal,
			OpenedAt: e.OccurredAt, Learning: []Learning{},
		}, nil
	case EventRCA:
		d, err := event.Decode[RCAUpdated](e)
		if err != nil || d.Incident != i.ID {
			return i, misplaced(e, err)
		}
		i.RCA = &RCA{Summary: d.Summary, Analysis: d.Analysis, By: e.Principal, At: e.OccurredAt}
	case EventLearned:
		d, err := event.Decode[LearningLogged](e)
		if err != nil || d.Incident != i.ID {
			return i, misplaced(e, err)
		}
		i.Learning = append(slices.Clone(i.Learning), Learning{ID: e.ID, Note: d.Note, Tags: d.Tags, By: e.Principal, At: e.OccurredAt})
	case EventClosed:
		d, err := event.Decode[Ended](e)
		if err != nil || d.Incident != i.ID {
			return i, misplaced(e, err)
		}
		i.Status, i.CloseReason, i.ClosedBy, i.ClosedAt = Closed, d.Reason, e.Principal, e.OccurredAt
	}
	return i, nil
}

// misplaced is the error of an event that says in its data that it is about something else than its envelope says.
func misplaced(e event.Event, err error) error {
	return errors.Join(err, fmt.Errorf("%s %s is about something else than %s", e.Type, e.ID, e.EntityID))
}
