package space

import (
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// EntityType is the entity_type of every event that is about a space.
const EntityType = "space"

// Touches reports whether the event changes the document of the space that it is about.
func Touches(e event.Event) bool {
	if e.EntityType != EntityType {
		return false
	}
	switch e.Type {
	case EventCreated, EventReady, EventUpdated, EventExtended, EventDestroyed, EventRewindBegun, EventRewound, EventRewindFailed,
		EventPromoted, EventPolicy, EventPaused, EventResumed:
		return true
	}
	_, ok := activity[e.Type]
	return ok
}

// activity returns a space's status after an event of one of its runs.
var activity = map[string]Status{
	"run.started": Running, "run.resumed": Running, "run.suspended": Paused,
	"run.completed": Ready, "run.failed": Ready, "run.cancelled": Ready,
}

// ReasonRedacted is why a space is destroyed whose making was redacted after this copy of the log was made.
const ReasonRedacted = "redacted"

// Evolve returns the space after the event. It is pure.
func Evolve(s Space, e event.Event) (Space, error) {
	if s.Reason == ReasonRedacted {
		return s, nil
	}
	if status, ok := activity[e.Type]; ok {
		if beside, err := event.Decode[struct {
			Background bool `json:"background"`
		}](e); err != nil || beside.Background {
			return s, err
		}
		return s.during(e, status), nil
	}
	s.UpdatedAt = e.OccurredAt
	switch e.Type {
	case EventCreated:
		d, err := event.Decode[Created](e)
		if err != nil {
			return s, err
		}
		if e.Withheld == event.Destroyed {
			// Its creation data are gone, so nothing can run in it.
			return Space{
				ID: id.Space(e.EntityID), SpaceID: id.Space(e.EntityID), Workspace: e.Workspace, Room: e.Room, Status: Destroyed,
				Reason:    ReasonRedacted,
				CreatedBy: e.Principal, CreatedAt: e.OccurredAt, UpdatedAt: e.OccurredAt,
			}, nil
		}
		return Space{
			ID: d.Space, SpaceID: d.Space, Workspace: e.Workspace, Room: e.Room, Name: d.Name, Description: d.Description, Status: Creating,
			Runtime: d.Runtime, Tier: d.Tier,
			Policy: d.Policy, Bundle: d.Bundle, Env: d.Env, Secrets: d.Secrets, Metadata: d.Metadata, Limits: d.Limits,
			BestEffort: d.BestEffort, UID: d.UID,
			Node:      d.Node,
			CreatedBy: e.Principal, CreatedAt: e.OccurredAt, UpdatedAt: e.OccurredAt, ExpiresAt: d.ExpiresAt, Key: d.Key,
			ForkedFrom: d.ForkedFrom, ForkedAt: d.ForkedAt, PauseAtEnd: d.PauseAtEnd,
		}, nil
	case EventReady:
		d, err := event.Decode[Made](e)
		if err != nil {
			return s, err
		}
		s.Status, s.Unenforced, s.Withheld = Ready, d.Unenforced, d.Withheld
	case EventUpdated:
		d, err := event.Decode[Updated](e)
		if err != nil {
			return s, err
		}
		set(&s.Name, d.Name)
		set(&s.Description, d.Description)
		if d.Env != nil {
			s.Env, s.Secrets = *d.Env, d.Secrets
		}
		set(&s.Metadata, d.Metadata)
	case EventExtended:
		d, err := event.Decode[Extended](e)
		if err != nil {
			return s, err
		}
		s.ExpiresAt = d.ExpiresAt
	case EventRewindBegun:
		d, err := event.Decode[RewindBegun](e)
		if err != nil {
			return s, err
		}
		s.Rewinding = d.To
	case EventRewound, EventRewindFailed:
		s.Rewinding = event.Digest{}
	case EventPromoted:
		d, err := event.Decode[Promoted](e)
		if err != nil {
			return s, err
		}
		if d.To != "" { // else its data were redacted
			s.Tier, s.Unenforced = d.To, d.Unenforced
		}
	case EventPolicy:
		d, err := event.Decode[PolicyChanged](e)
		if err != nil {
			return s, err
		}
		s.Policy, s.Bundle = d.Policy, d.Bundle
	case EventPaused:
		d, err := event.Decode[PausedData](e)
		if err != nil {
			return s, err
		}
		s = s.paused(e, d)
	case EventResumed:
		d, err := event.Decode[ResumedData](e)
		if err != nil {
			return s, err
		}
		if s.Pause != nil {
			s.Status, s.Pause = s.Pause.Resumes, nil
		}
		if !d.ExpiresAt.IsZero() {
			s.ExpiresAt = d.ExpiresAt
		}
	case EventDestroyed:
		d, err := event.Decode[Ended](e)
		if err != nil {
			return s, err
		}
		s.Status, s.Reason, s.Pause = Destroyed, d.Reason, nil
	}
	return s, nil
}

// during returns the space after an event of a run. The end of a run that was never under way changes nothing.
func (s Space) during(e event.Event, status Status) Space {
	if s.Status == Destroyed || status == Ready && s.ActiveRun != e.Run {
		return s
	}
	s.ActiveRun = e.Run
	if status == Ready {
		s.ActiveRun = ""
	}
	if s.Pause == nil {
		s.Status = status
		return s
	}
	after := *s.Pause // the fold must not change the document before
	after.Resumes = status
	s.Pause = &after
	return s
}

// paused returns the space after it was paused.
func (s Space) paused(e event.Event, d PausedData) Space {
	if s.Status == Destroyed || s.Pause != nil {
		return s
	}
	s.Pause = &Pause{
		At: e.OccurredAt, By: e.Principal, Method: d.Method, Reason: d.Reason, ResumeOnRun: d.ResumeOnRun, AtEnd: d.AtEnd, Resumes: s.Status,
	}
	s.Status = Paused
	if !d.ExpiresAt.IsZero() {
		s.ExpiresAt = d.ExpiresAt
	}
	return s
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}
