package testkit

import (
	"fmt"

	"agentbox/internal/documents"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/audit"
)

// Verify checks the invariants: the log is intact, the documents follow from it, and every run obeys the rules of runs.
func (s *Stack) Verify() {
	s.T.Helper()
	ctx := s.Context()
	report, err := audit.Verify(ctx, s.Log, WS)
	s.must(err)
	if !report.OK {
		s.T.Errorf("the log is damaged: %+v", report.Findings)
	}
	documents, err := audit.VerifyProjections(ctx, s.Log, s.Docs, documents.All(), WS)
	s.must(err)
	if !documents.OK {
		s.T.Errorf("documents are not what the log says: %+v", documents.Findings)
	}
	for r, events := range byRun(s.Events(0)) {
		s.verify(r, events)
	}
}

// VerifyRun checks that a run obeys the rules of runs.
func (s *Stack) VerifyRun(r id.Run) {
	s.T.Helper()
	events, err := s.Log.Read(s.Context(), journal.Query{Workspace: WS, Run: r, Limit: journal.MaxRead})
	s.must(err)
	s.verify(r, byRun(events)[r])
}

func byRun(all []event.Event) map[id.Run][]event.Event {
	runs := map[id.Run][]event.Event{}
	for _, e := range all {
		if e.Run != "" && run.Touches(e) {
			runs[e.Run] = append(runs[e.Run], e)
		}
	}
	return runs
}

func (s *Stack) verify(r id.Run, events []event.Event) {
	s.T.Helper()
	for _, broken := range RunRules(s.Find(r), events) {
		s.T.Error(broken)
	}
}

// RunRules holds the events of one run against the rules, and says which are broken: one result for each operation, in order; one intent
// before each effect; nothing behind the end but how long it is kept; nothing left under way at the end.
func RunRules(doc run.Run, events []event.Event) (broken []string) {
	say := func(format string, args ...any) {
		broken = append(broken, string(doc.ID)+": "+fmt.Sprintf(format, args...))
	}
	next, begun, ended := 0, -1, ""
	for _, e := range events {
		if ended != "" && e.Type != run.EventRetained && e.Type != run.EventForgotten {
			say("%s comes behind %s", e.Type, ended)
		}
		switch e.Type {
		case run.EventInvoked:
			d, err := event.Decode[run.Invoked](e)
			if err != nil || begun >= 0 || d.Index != next {
				say("operation %d is begun; %d is next, %d under way; %v", d.Index, next, begun, err)
			}
			begun = d.Index
		case run.EventSucceeded, run.EventErred, run.EventUnknown:
			d, err := event.Decode[run.Ended](e)
			spec, known := run.SpecOf(d.Tool)
			effect := !known || spec.Changes != run.ChangesNothing
			if err != nil || d.Index != next {
				say("operation %d has a result; %d is next; %v", d.Index, next, err)
			}
			if (e.Type == run.EventUnknown || effect && e.Type == run.EventSucceeded) && begun != d.Index {
				say("operation %d has the result %s without an intent", d.Index, e.Type)
			}
			next, begun = d.Index+1, -1
		case run.EventCompleted, run.EventFailed, run.EventCancelled:
			ended = e.Type
			if begun >= 0 {
				say("%s leaves operation %d under way", e.Type, begun)
			}
		}
	}
	if ended == run.EventCompleted && next != len(doc.Operations) {
		say("completed after %d of %d operations", next, len(doc.Operations))
	}
	return broken
}
