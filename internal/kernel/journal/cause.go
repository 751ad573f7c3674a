package journal

import (
	"cmp"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/leak"
)

// lines are the events of a batch as causes of those that stand behind them in it.
type lines struct {
	first  event.Cause
	few    []line // of a batch of at most fewDrafts, of which a list is searched faster than a map
	many   map[event.Subject]event.Cause
	drafts int
}

const fewDrafts = 16

type line struct {
	of    event.Subject
	cause event.Cause
}

// follow fills in the cause and the correlation of an event. The cause is the first of these that exists:
//   - the cause in the draft;
//   - the latest event about the subject that the draft follows;
//   - the latest event about its entity, its step or its run, in this batch or before;
//   - the first event of its batch.
//
// An event takes the correlation of its cause. There are two exceptions. An event of a run that follows something else keeps the
// correlation of its run. An event whose only cause is the first of its batch keeps that of its request. An event without a cause begins
// something. Before holds the events before it in its batch.
func (s *lines) follow(l Ledger, e *event.Event, follows event.Subject, before []event.Event) error {
	if e.Causation != "" {
		// The author did not know yet which correlation its cause takes over, if the cause is in the same batch.
		for i := range before {
			if before[i].ID == e.Causation {
				e.Correlation = before[i].Correlation
			}
		}
		return nil
	}
	if follows == event.Beginning {
		return nil
	}
	own, err := s.own(l, e)
	if err != nil {
		return err
	}
	cause := own
	if follows.ID != "" {
		other, err := s.find(l, e, follows)
		if err != nil {
			return err
		}
		if other.Event != "" {
			if cause = other; e.Run != "" { // all of a run is found by one correlation
				cause.Correlation = cmp.Or(own.Correlation, other.Correlation)
			}
		}
	}
	if cause.Event == "" && s.first.Event != "" {
		cause = event.Cause{Event: s.first.Event, Correlation: cmp.Or(e.Correlation, s.first.Correlation)}
	}
	if cause.Event != "" {
		e.Causation, e.Correlation = cause.Event, cause.Correlation
	}
	return nil
}

// own returns the latest event about what an event is about.
func (s *lines) own(l Ledger, e *event.Event) (event.Cause, error) {
	subjects, n := e.Subjects()
	for _, of := range subjects[:n] {
		if cause, err := s.find(l, e, of); err != nil || cause.Event != "" {
			return cause, err
		}
	}
	return event.Cause{}, nil
}

func (s *lines) find(l Ledger, e *event.Event, of event.Subject) (event.Cause, error) {
	for i := len(s.few) - 1; i >= 0; i-- {
		if s.few[i].of == of {
			return s.few[i].cause, nil
		}
	}
	if cause, ok := s.many[of]; ok {
		return cause, nil
	}
	return l.Cause(e.Workspace, of)
}

// add notes an event as the latest one about its entity, or where that is none, about its step and its run.
func (s *lines) add(e *event.Event) {
	if s.drafts == 1 || e.Type == leak.EventDetected {
		return // no event follows it; and the report of a leak causes nothing
	}
	cause := e.Cause()
	if s.first.Event == "" {
		s.first = cause
	}
	subjects, n := e.Subjects()
	if n > 0 && subjects[0].Type == e.EntityType {
		n = 1
	}
	for _, of := range subjects[:n] {
		if s.drafts <= fewDrafts {
			s.few = append(s.few, line{of, cause})
			continue
		}
		if s.many == nil {
			s.many = map[event.Subject]event.Cause{}
		}
		s.many[of] = cause
	}
}
