package run

import (
	"slices"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// SpanKind says what a run did in a span of time.
type SpanKind string

// The kinds of span.
const (
	SpanQueued  SpanKind = "queued"  // other runs of the space came first
	SpanWaiting SpanKind = "waiting" // for a person
	SpanWorking SpanKind = "working" // the effect was under way
)

// Span is a part of a run's time. Index is that of the operation, -1 for the run itself.
type Span struct {
	Index int       `json:"index"`
	Kind  SpanKind  `json:"kind"`
	From  time.Time `json:"from"`
	To    time.Time `json:"to"` // the last that is known, for one that goes on
}

// Spans tells the time of a run from its events, which are in the order of the log. Their data are not needed.
func Spans(r Run, events []event.Event) []Span {
	var spans []Span
	var last time.Time
	operation := func(step id.Step) int {
		return slices.IndexFunc(r.Operations, func(p Progress) bool { return step != "" && p.Step == step })
	}
	open := map[int]int{} // operation to its open span
	begin := func(index int, kind SpanKind, at time.Time) {
		open[index] = len(spans)
		spans = append(spans, Span{Index: index, Kind: kind, From: at, To: at})
	}
	finish := func(index int, at time.Time) {
		if i, ok := open[index]; ok {
			spans[i].To = at
			delete(open, index)
		}
	}
	for _, e := range events {
		if !Touches(e) || e.Run != r.ID {
			continue
		}
		at := e.OccurredAt
		if at.After(last) {
			last = at
		}
		index := operation(e.Step)
		switch e.Type {
		case EventCreated:
			begin(-1, SpanQueued, at)
		case EventStarted:
			finish(-1, at)
		case EventSuspended:
			if index >= 0 {
				finish(index, at)
				begin(index, SpanWaiting, at)
			}
		case EventResumed:
			finish(index, at)
		case EventInvoked:
			if index >= 0 {
				begin(index, SpanWorking, at)
			}
		case EventSucceeded, EventErred, EventUnknown:
			if index < 0 {
				continue
			}
			if _, begun := open[index]; !begun { // decided at once: a moment
				begin(index, SpanWorking, at)
			}
			finish(index, at)
		}
	}
	for _, i := range open {
		spans[i].To = last
	}
	return spans
}
