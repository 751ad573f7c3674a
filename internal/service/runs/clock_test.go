package runs_test

import (
	"testing"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/audit"
	"agentbox/internal/testkit"
)

// Threat 30, of the clock alone: it is set back by a day while a question, a standing approval and a space's life are open, over a restart,
// and then forward beyond them all. The approved action is done once, nothing lives shorter than it was promised, and the log is intact.
func TestThreat30ClockThatJumps(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program, SQLite: true})
	in := s.Space().ID
	const ask = `[{"type":"shell","command":"echo once >> done; rm -r missing"}]`
	asked := s.Rest(s.Start(in, ask).ID)
	queued := s.Start(in, `[{"type":"shell","command":"echo second >> done"}]`)

	s.Tick(-24 * time.Hour)
	s.Restart()
	s.Tick(0)
	if doc := s.Rest(asked.ID); doc.Status != run.AwaitingApproval {
		t.Fatalf("after the jump back the run is %s", doc.Status)
	}
	late := s.Start(in, `[{"type":"shell","command":"echo third >> done"}]`)
	s.Decide(asked.ID, policy.Approve, "")
	for _, r := range []id.Run{asked.ID, queued.ID, late.ID} {
		s.Ended(r)
	}
	if got, want := s.File(in, "done"), "once\nsecond\nthird\n"; got != want {
		t.Errorf("what was done: %q, want %q", got, want)
	}

	open := s.Rest(s.Start(in, ask).ID)
	_, question := open.Pending()
	s.Tick(25 * time.Hour) // an hour beyond the time of this question, and well within that of the space
	if doc := s.Ended(open.ID); doc.Operations[0].OK {
		t.Errorf("the run whose question expired did it: %+v", doc.Operations[0])
	}
	_, err := s.Gate.Approvals.Decide(t.Context(), s.Origin, testkit.WS, question, policy.Answer{Decision: policy.Approve})
	if fault.CodeOf(err) != policy.ReasonApprovalExpired {
		t.Errorf("an expired question was answered: %v", err)
	}
	if doc, err := s.Spaces.Catalog.Space(t.Context(), testkit.WS, in); err != nil || doc.Status != space.Ready {
		t.Errorf("the space, whose time is not over, is %s, %v", doc.Status, err)
	}
	s.Tick(12 * time.Hour)
	if doc, err := s.Spaces.Catalog.Space(t.Context(), testkit.WS, in); err != nil || doc.Status != space.Destroyed {
		t.Errorf("the space, whose time is over, is %s, %v", doc.Status, err)
	}
	report, err := audit.Verify(t.Context(), s.Log, testkit.WS)
	if err != nil || !report.OK {
		t.Errorf("the log: %+v, %v", report.Findings, err)
	}
}
