package run

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// SpanKind is the kind of work of a run in a span of time.
type SpanKind string

// The kinds of span.
const (
	SpanQueued  SpanKind = "queued"  // other runs of the space came first
	SpanWaiting SpanKind = "waiting" // for a person
	SpanWorking SpanKind = "working" // the effect was under way
)

// Span is a part of a run's time. Index is that of the operation, or -1 for the run itself. In a run that engines execute, it is that of
// the part.
type Span struct {
	Index int       `json:"index"`
	Kind  SpanKind  `json:"kind"`
	From  time.Time `json:"from"`
	To    time.Time `json:"to"` // the last that is known, for one that goes on

	Part   string `json:"part,omitempty"` // of a run that engines execute: see the Part constants
	ID     string `json:"id,omitempty"`   // of the attempt, the step or the tool call
	Name   string `json:"name,omitempty"` // its engine's name for it
	Failed bool   `json:"failed,omitempty"`
}

// The parts of a run that engines execute.
const (
	PartWhole   = "run"       // it was begun without a claim
	PartAttempt = "attempt"   // of an engine, from its claim to the claim's end
	PartStep    = "step"      // from its record to the last record in it
	PartCall    = "tool_call" // from its intent to its result
)

// Spans derives the time spans of a run from its events, which are in the order of the log. It needs their data only for the names of
// parts.
func Spans(r Run, events []event.Event) []Span {
	if r.Engine {
		return engineSpans(r, events)
	}
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

// engineSpans returns the time spans of a run that engines execute: its wait for an engine, and its attempts, steps and tool calls in the
// order in which they began.
func engineSpans(r Run, events []event.Event) []Span {
	var spans []Span
	var last time.Time
	parts := 0
	open := map[string]int{} // identifier to its open span; "" is the wait for an engine, and the run's identifier what works on it as a whole
	begin := func(key string, s Span, at time.Time) {
		s.From, s.To, s.Index = at, at, -1
		if s.Kind == SpanWorking {
			s.Index = parts
			parts++
		}
		open[key] = len(spans)
		spans = append(spans, s)
	}
	finish := func(key string, at time.Time, failed bool) {
		if i, ok := open[key]; ok {
			spans[i].To, spans[i].Failed = at, failed
			delete(open, key)
		}
	}
	whole := string(r.ID)
	for _, e := range events {
		if e.Run != r.ID {
			continue
		}
		at := e.OccurredAt
		var said struct { // fields that a label hides from the reader are absent
			Attempt id.Attempt `json:"attempt_id"`
			Kind    string     `json:"kind"`
			Title   string     `json:"title"`
			Tool    string     `json:"tool_name"`
		}
		_ = json.Unmarshal(e.Data, &said)
		call := e.EntityType == CallEntity
		switch {
		case e.Type == EventCreated:
			begin("", Span{Kind: SpanQueued}, at)
		case e.Type == EventClaimed:
			finish("", at, false)
			finish(whole, at, true) // the claim before has lapsed
			begin(whole, Span{Kind: SpanWorking, Part: PartAttempt, ID: string(said.Attempt)}, at)
		case e.Type == EventStarted:
			finish("", at, false)
			if _, claimed := open[whole]; !claimed {
				begin(whole, Span{Kind: SpanWorking, Part: PartWhole, ID: whole}, at)
			}
		case e.Type == EventReleased:
			finish(whole, at, true)
			begin("", Span{Kind: SpanQueued}, at)
		case (e.Type == EventCompleted || e.Type == EventFailed || e.Type == EventCancelled) && e.EntityType == EntityType:
			finish("", at, false)
			finish(whole, at, e.Type != EventCompleted)
		case e.Type == eventStep:
			begin(string(e.Step), Span{Kind: SpanWorking, Part: PartStep, ID: string(e.Step), Name: cmp.Or(said.Title, said.Kind)}, at)
		case e.Type == EventInvoked && call:
			begin(e.EntityID, Span{Kind: SpanWorking, Part: PartCall, ID: e.EntityID, Name: cmp.Or(said.Tool, said.Title)}, at)
		case (e.Type == EventSucceeded || e.Type == EventErred || e.Type == EventUnknown) && call:
			finish(e.EntityID, at, e.Type != EventSucceeded)
		case e.Type != EventRenewed && e.Step == "":
			continue // records beside the work of a run, such as its evidence, take no time
		}
		if i, ok := open[string(e.Step)]; ok && e.Step != "" {
			spans[i].To = at
		}
		last = at
	}
	for key, i := range open {
		if spans[i].Part != PartStep {
			spans[i].To = last
		}
		delete(open, key)
	}
	return spans
}

// eventStep is the type of the event that records a step of an engine's run: see package step.
const eventStep = "step.created"
