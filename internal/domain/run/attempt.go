package run

import (
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// AttemptProjection is the name of the documents of what engines tried, one for each run.
const AttemptProjection = "run_attempts"

// Why an attempt is over.
const (
	ReleasedByHand    = "manual_release"
	ReleasedSilent    = "engine_silent" // its engine was silent for too long, and others waited for its place
	ReleasedCompleted = "run_completed"
	ReleasedFailed    = "run_failed"
	ReleasedCancelled = "run_cancelled"
	ReleasedLapsed    = "lease_expired_reclaimed"
)

// Tries is the document of the attempts of engines to execute a run.
type Tries struct {
	Run      id.Run    `json:"run_id"`
	Attempts []Attempt `json:"attempts"` // the last MaxAttempts of them, in order
}

// Attempt is one try of an engine to execute a run.
type Attempt struct {
	ID       id.Attempt   `json:"attempt_id"`
	Number   int          `json:"attempt"` // from 1
	Engine   id.Principal `json:"engine_id"`
	Fence    uint64       `json:"fence"`
	Since    time.Time    `json:"claimed_at"`
	Renewed  time.Time    `json:"renewed_at"`
	Released time.Time    `json:"released_at,omitzero"`
	Reason   string       `json:"release_reason,omitempty"`
}

var endReason = map[string]string{EventCompleted: ReleasedCompleted, EventFailed: ReleasedFailed, EventCancelled: ReleasedCancelled}

// Tried reports whether the event may change the attempts of its run.
func Tried(e event.Event) bool {
	switch e.Type {
	case EventClaimed, EventRenewed, EventReleased:
		return e.Run != ""
	case EventCompleted, EventFailed, EventCancelled:
		return e.Run != "" && e.EntityType == EntityType
	}
	return false
}

// Evolve returns the attempts after an event of their run. It is pure.
func (t Tries) Evolve(e event.Event) (Tries, error) {
	t.Run = e.Run
	list := make([]Attempt, len(t.Attempts), len(t.Attempts)+1)
	copy(list, t.Attempts)
	var last *Attempt
	if len(list) > 0 {
		last = &list[len(list)-1]
	}
	end := func(reason string) {
		if last != nil && last.Released.IsZero() {
			last.Released, last.Reason = e.OccurredAt, reason
		}
	}
	switch e.Type {
	case EventClaimed:
		d, err := event.Decode[Claimed](e)
		if err != nil {
			return t, err
		}
		end(ReleasedLapsed)
		next := Attempt{ID: d.Attempt, Number: 1, Engine: d.Engine, Fence: d.Fence, Since: e.OccurredAt, Renewed: e.OccurredAt}
		if last != nil {
			next.Number = last.Number + 1
		}
		if list = append(list, next); len(list) > MaxAttempts {
			list = list[len(list)-MaxAttempts:]
		}
	case EventRenewed:
		if last != nil {
			last.Renewed = e.OccurredAt
		}
	case EventReleased:
		d, err := event.Decode[Released](e)
		if err != nil {
			return t, err
		}
		end(d.Reason)
	default:
		end(endReason[e.Type])
	}
	t.Attempts = list
	return t, nil
}
