package run

import (
	"strconv"
	"strings"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// RetentionProjection is the name of the documents of type Retention.
const RetentionProjection = "retentions"

// RetentionPending is the index of the retentions that have not ended; its only value is "true".
const RetentionPending = "pending"

// Retention is the document of how long the data of an ended run are kept. Documents are in the order of the end of that time.
type Retention struct {
	Run     id.Run    `json:"run_id"`
	Until   time.Time `json:"kept_until"`
	Seconds int64     `json:"retention_seconds"` // from the end of the run; 0 if it is not known any more
	Over    bool      `json:"over,omitempty"`    // they were redacted, or are kept until another moment
}

// The bounds of a retention.
const (
	MinRetention = time.Minute // less would race with work in progress
	MaxRetention = 100 * 365 * day
)

const day = 24 * time.Hour

// ParseRetention reads a retention: in days, or as Go writes a duration, in whole seconds: 30d, 36h, 90m. It returns retention_invalid
// outside of MinRetention to MaxRetention.
func ParseRetention(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int64
		n, err = strconv.ParseInt(days, 10, 64)
		d = time.Duration(min(max(n, 0), int64(MaxRetention/day)+1)) * day
	}
	if err != nil || d < MinRetention || d > MaxRetention || d%time.Second != 0 {
		return 0, fault.New(fault.Invalid, "retention_invalid",
			"%.40q is not a duration for which data can be kept: it has days, or hours, minutes and seconds, from 1m to %dd, as in 30d or 36h", text,
			MaxRetention/day)
	}
	return d, nil
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

// Until returns the end of the retention of a run that ends now; the zero time if its data are kept for good.
func (r Run) Until(now time.Time) time.Time {
	if r.Retention == 0 {
		return time.Time{}
	}
	return now.UTC().Add(time.Duration(r.Retention) * time.Second)
}

// TooLong returns the error for a retention above that of the operator's rules.
func TooLong(most time.Duration) error {
	return fault.New(fault.Invalid, "retention_too_long", "by the operator's rules some of a run's data are kept for %s only", most).
		With("ask for at most that, or for nothing, and the rules hold alone")
}
