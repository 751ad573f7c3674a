package testkit

import (
	"context"
	"errors"
	"strings"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit/wall"
)

// Context returns a context that ends with the test, or after wall.Patience.
func (s *Stack) Context() context.Context {
	ctx, cancel := context.WithTimeout(s.T.Context(), wall.Patience)
	s.T.Cleanup(cancel)
	return ctx
}

// Space makes a space of the standard policy.
func (s *Stack) Space() space.Space {
	s.T.Helper()
	return s.SpaceOf(spaces.Request{})
}

// SpaceOf makes a space.
func (s *Stack) SpaceOf(q spaces.Request) space.Space {
	s.T.Helper()
	q.Workspace = WS
	doc, err := s.Spaces.Creation.Create(s.Context(), s.Origin, q)
	s.must(err)
	return doc
}

// Message reads an operations message from its operations, a JSON array.
func (s *Stack) Message(operations string) run.Message {
	s.T.Helper()
	m, err := run.ParseMessage([]byte(`{"protocolVersion":"1.0","operations":` + operations + `}`))
	s.must(err)
	return m
}

// Start starts a run of operations, a JSON array.
func (s *Stack) Start(in id.Space, operations string) run.Run {
	s.T.Helper()
	doc, err := s.Runs.Start(s.Context(), s.Origin, runs.Request{Workspace: WS, Space: in, Message: s.Message(operations)})
	s.must(err)
	return doc
}

// Find returns a run as it stands.
func (s *Stack) Find(r id.Run) run.Run {
	s.T.Helper()
	doc, err := s.Runs.History.Find(s.Context(), WS, r)
	s.must(err)
	return doc
}

// Rest waits until a run has ended or waits for an answer that it does not have.
func (s *Stack) Rest(r id.Run) run.Run {
	s.T.Helper()
	return s.rest(r, s.rests)
}

func (s *Stack) rests(doc run.Run) bool {
	s.T.Helper()
	if doc.Status != run.AwaitingApproval {
		return doc.Status.Ended()
	}
	_, approval := doc.Pending()
	question, err := s.Gate.Approvals.Get(s.Context(), WS, approval)
	s.must(err)
	return question.Status == policy.Pending || question.Status == policy.Held
}

// RestOrDeath waits until a run rests or the daemon is dead; false for death.
func (s *Stack) RestOrDeath(r id.Run) (run.Run, bool) {
	s.T.Helper()
	ctx := s.Context()
	for {
		head, err := s.Log.Head(ctx, WS)
		s.must(err)
		if doc := s.Find(r); s.rests(doc) {
			return doc, !s.Log.Dead()
		}
		if err := s.Log.Wait(ctx, WS, head); errors.Is(err, journal.ErrClosed) {
			return run.Run{}, false
		} else if err != nil {
			s.T.Fatalf("run %s stays %s: %v", r, s.Find(r).Status, err)
		}
	}
}

// Ended waits until a run has ended.
func (s *Stack) Ended(r id.Run) run.Run {
	s.T.Helper()
	return s.rest(r, func(doc run.Run) bool { return doc.Status.Ended() })
}

func (s *Stack) rest(r id.Run, enough func(run.Run) bool) run.Run {
	s.T.Helper()
	ctx := s.Context()
	for {
		head, err := s.Log.Head(ctx, WS)
		s.must(err)
		if doc := s.Find(r); enough(doc) {
			return doc
		}
		if err := s.Log.Wait(ctx, WS, head); err != nil {
			s.T.Fatalf("run %s stays %s: %v", r, s.Find(r).Status, err)
		}
	}
}

// Prints waits until a command of the run has printed the text.
func (s *Stack) Prints(r id.Run, text string) {
	s.T.Helper()
	var seen strings.Builder
	for f, err := range s.Runs.Frames.Follow(s.Context(), WS, r, 1) {
		s.must(err)
		if f.Kind == livestream.Stdout {
			seen.Write(f.Data)
		}
		if strings.Contains(seen.String(), text) {
			return
		}
	}
	s.T.Fatalf("the run ended without printing %q; it printed %q", text, seen.String())
}

// Decide answers the question that a run waits for.
func (s *Stack) Decide(r id.Run, word policy.DecisionWord, reason string) {
	s.T.Helper()
	_, approval := s.Find(r).Pending()
	if approval == "" {
		s.T.Fatalf("run %s waits for nobody; it is %s", r, s.Find(r).Status)
	}
	_, err := s.Gate.Approvals.Decide(s.Context(), s.Origin, WS, approval, policy.Answer{Decision: word, Reason: reason})
	s.must(err)
}

// Tick lets an amount of time pass and ends everything that has expired by then.
func (s *Stack) Tick(d time.Duration) {
	s.T.Helper()
	s.Clock.Move(d)
	s.must(s.Spaces.Ending.Step(s.Context(), s.Clock.Now()))
	s.must(s.Gate.Approvals.Step(s.Context(), s.Clock.Now()))
}

// Results returns the results of a run, in order.
func (s *Stack) Results(r id.Run) []run.Result {
	s.T.Helper()
	m, err := s.Runs.History.Events(s.Context(), s.Find(r))
	s.must(err)
	return m.Events
}

// Events returns every event behind a place.
func (s *Stack) Events(after uint64) []event.Event {
	s.T.Helper()
	var all []event.Event
	for {
		page, err := s.Log.Read(s.Context(), journal.Query{Workspace: WS, From: after + uint64(len(all)) + 1, Limit: journal.MaxRead})
		s.must(err)
		all = append(all, page...)
		if len(page) < journal.MaxRead {
			return all
		}
	}
}

// File returns the content of a file of a space, as the owner reads it.
func (s *Stack) File(in id.Space, path string) string {
	s.T.Helper()
	f, err := s.Spaces.Files.Read(s.Context(), s.Origin, WS, in, path, spaces.Any)
	s.must(err)
	defer f.Close()
	var text strings.Builder
	buffer := make([]byte, 32<<10)
	for {
		n, err := f.Read(buffer)
		text.Write(buffer[:n])
		if err != nil {
			return text.String()
		}
	}
}
