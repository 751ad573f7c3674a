package run

import (
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// RetentionProjection is the name of the documents of when the time of runs' data is over.
const RetentionProjection = "retentions"

// RetentionPending is the index under which the retentions are found that have not come to their end; its only value is "true".
const RetentionPending = "pending"

// Retention is the document of when the time of the data of a run that has ended is over. Documents are in the order of that moment.
type Retention struct {
	Run     id.Run    `json:"run_id"`
	Until   time.Time `json:"kept_until"`
	Seconds int64     `json:"retention_seconds"` // from the end of the run; 0 where it is not known any more
	Over    bool      `json:"over,omitempty"`    // they were redacted, or are kept until another moment
}

// Key returns the key of a retention's document, which sorts by the moment.
func (r Retention) Key() string {
	return r.Until.UTC().Format("2006-01-02T15:04:05.000000000Z") + " " + string(r.Run)
}

// RetentionsOf returns the retention times of runs that an event sets: usually none.
func RetentionsOf(e event.Event) ([]Retention, error) {
	var said []Retention
	say := func(until time.Time, seconds int64, over bool) {
		if !until.IsZero() {
			said = append(said, Retention{Run: e.Run, Until: until, Seconds: seconds, Over: over})
		}
	}
	switch e.Type {
	case EventCompleted, EventFailed, EventCancelled:
		d, err := event.Decode[Finished](e)
		if err != nil {
			return nil, err
		}
		say(d.Until, d.Retention, false)
	case EventRetained:
		d, err := event.Decode[Retained](e)
		if err != nil {
			return nil, err
		}
		say(d.Was, 0, true)
		say(d.Until, d.Retention, false)
	case EventForgotten:
		d, err := event.Decode[Forgotten](e)
		if err != nil {
			return nil, err
		}
		say(d.Until, 0, true)
	}
	return said, nil
}

// Until returns when the time of a run's data is over that ends now; the zero time where they are kept for good.
func (r Run) Until(now time.Time) time.Time {
	if r.Retention == 0 {
		return time.Time{}
	}
	return now.UTC().Add(time.Duration(r.Retention) * time.Second)
}

// TooLong refuses to keep a run's data for longer than the operator's rules do.
func TooLong(most time.Duration) error {
	return fault.New(fault.Invalid, "retention_too_long", "by the operator's rules some of a run's data are kept for %s only", most).
		With("ask for at most that, or for nothing, and the rules hold alone")
}
