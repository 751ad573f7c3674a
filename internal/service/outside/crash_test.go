package outside_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/outside"
	"agentbox/internal/spaceinit/inittest"
	"agentbox/internal/testkit"
)

// story is a program that asks before it acts outside, over the deaths of the daemon that it asks.
type story struct {
	*testkit.Stack
	t       *testing.T
	service *outside.Service
	agent   principal.Caller
	n       int // of the death
	deaths  int
}

// begin makes the service of the living daemon.
func (s *story) begin() {
	s.service = outside.New(outside.Parts{
		Log: s.Log, Docs: s.Docs, Gate: s.Gate, Clock: s.Clock,
		Place: func(context.Context, id.Workspace, id.Room, id.Thread) error { return nil },
	})
}

// does sends a request under a key until it is answered: after a death again, to the daemon that comes next. As in the API, a request
// whose events are in the log is not done again: recalled makes its answer of the last of them.
func (s *story) does(who id.Principal, what string, request func(event.Origin) error, recalled func(event.Event) error) {
	s.t.Helper()
	origin := event.Origin{Principal: who, Key: fmt.Sprint(what, " ", s.n), Command: event.DigestOf([]byte(what)), Correlation: "cor_1"}
	for {
		known, found, err := journal.Recall(s.Context(), s.Log, testkit.WS, origin.Key, origin.Command)
		switch {
		case err == nil && found:
			err = recalled(known[len(known)-1])
		case err == nil:
			err = request(origin)
		}
		if !s.Log.Dead() {
			if err != nil {
				s.t.Fatalf("death %d: %s: %v", s.n, what, err)
			}
			return
		}
		s.deaths++
		s.Crash()
		s.begin()
		if err == nil {
			return // the answer came through before
		}
	}
}

// evaluate asks whether the mail may be sent.
func (s *story) evaluate(what string, q outside.Question) (answer outside.Answer) {
	s.t.Helper()
	s.does(s.agent.Principal, what, func(origin event.Origin) (err error) {
		answer, err = s.service.Evaluate(s.Context(), origin, s.agent, q, false)
		return err
	}, func(last event.Event) (err error) {
		answer, err = s.service.Recall(s.Context(), testkit.WS, last.Seq)
		return err
	})
	return answer
}

// TestThreat14KilledBetweenEveryTwoEvents kills the daemon at each append in the life of an approval in turn. In one variant the caller
// still learns of the append, in the other it does not. Nothing is allowed that nobody approved, and each approval allows its action once.
func TestThreat14KilledBetweenEveryTwoEvents(t *testing.T) {
	program, err := inittest.Build()
	if err != nil {
		t.Fatal(err)
	}
	for name, death := range map[string]testkit.Death{"recorded": testkit.Recorded, "unconfirmed": testkit.Unconfirmed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stack := testkit.Open(t, testkit.Options{Program: program, SQLite: true, Idle: true})
			agent, err := stack.Identity.Agent(stack.Context(), stack.Origin, testkit.WS, "mailer")
			if err != nil {
				t.Fatal(err)
			}
			s := &story{Stack: stack, t: t, agent: principal.Caller{Workspace: testkit.WS, Principal: agent}}
			s.begin()
			appends := 0
			for s.n = 1; s.play(death); s.n++ {
				appends++
			}
			if appends < 5 {
				t.Errorf("the story has %d appends; where are the others?", appends)
			}
			s.check()
		})
	}
}

// play plays the story with a death at the nth append, and reports whether there was one.
func (s *story) play(death testkit.Death) bool {
	s.t.Helper()
	left := s.n
	s.deaths = 0
	s.Log.DieAt(func(event.Receipt) testkit.Death {
		if left--; left == 0 {
			return death
		}
		return testkit.Survive
	})
	q := outside.Question{Action: policy.EmailSend, Zone: event.HighStakes, Target: fmt.Sprintf("reader-%d@example.com", s.n),
		Request: []byte(`{"subject":"Report"}`)}
	refused := func(when string) {
		s.t.Helper()
		if a := s.evaluate(when, q); a.Decision.Outcome != policy.RequireApproval || !a.Blocked {
			s.t.Errorf("death %d, %s: %+v", s.n, when, a)
		}
	}
	decide := func(what string, approval id.Approval, word policy.DecisionWord) {
		s.t.Helper()
		s.does(s.Owner, what, func(origin event.Origin) error {
			_, err := s.Gate.Approvals.Decide(s.Context(), origin, testkit.WS, approval, policy.Answer{Decision: word})
			return err
		}, func(event.Event) error { return nil })
	}
	refused("before it is asked")
	var asked policy.Approval
	s.does(s.agent.Principal, "ask", func(origin event.Origin) (err error) {
		asked, err = s.service.Ask(s.Context(), origin, s.agent, q, outside.Words{}, policy.Ask{})
		return err
	}, func(last event.Event) (err error) {
		asked, err = s.Gate.Approvals.Get(s.Context(), testkit.WS, id.Approval(last.EntityID))
		return err
	})
	refused("while it is open")
	decide("hold", asked.ID, policy.Hold)
	refused("while it is held")
	decide("approve", asked.ID, policy.Approve)
	if a := s.evaluate("approved", q); a.Decision.Outcome != policy.Allow || a.Blocked || a.Approval != asked.ID {
		s.t.Errorf("death %d, approved: %+v", s.n, a)
	}
	refused("after its use")
	s.Clock.Move(time.Second)
	return s.deaths > 0
}

// check holds the log against what may be: each start stands behind an approval of its own that a person gave, and uses it up.
func (s *story) check() {
	s.t.Helper()
	approved, used, begun := map[id.Approval]bool{}, map[id.Approval]int{}, 0
	for _, e := range s.Events(0) {
		switch e.Type {
		case policy.ApprovalDecidedType:
			d, err := event.Decode[policy.ApprovalDecided](e)
			if err != nil {
				s.t.Fatal(err)
			}
			approved[id.Approval(e.EntityID)] = d.Status == policy.Approved && e.Principal == s.Owner
		case policy.ApprovalUsedType:
			used[id.Approval(e.EntityID)]++
		case policy.BegunType:
			d, err := event.Decode[policy.Begun](e)
			if err != nil || !approved[d.Approval] {
				s.t.Errorf("event %d is a start that nobody approved: %+v, %v", e.Seq, d, err)
			}
			begun++
		}
	}
	if begun != s.n || len(used) != s.n {
		s.t.Errorf("%d starts and %d used approvals in %d stories", begun, len(used), s.n)
	}
	for approval, n := range used {
		if n != 1 {
			s.t.Errorf("%s was used %d times", approval, n)
		}
	}
	s.Verify()
}
