package simulation

import (
	"context"

	"agentbox/internal/documents"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/audit"
	"agentbox/internal/testkit"
)

// ended takes note of a daemon's end and holds what it leaves against what must be.
func (s *simulation) ended(crashed bool) {
	s.world.mu.Lock()
	for d := range s.world.begun {
		if !crashed && !s.world.hidden[d] {
			s.wrong("the daemon was stopped and leaves operation %s without a result", d)
		}
	}
	s.world.mu.Unlock()
	s.world.died()
	s.verify("after a daemon")
}

// verify holds the log against what must be at every moment: it proves itself, the documents follow from it, every run obeys the rules of
// runs, and no question is open whose run has ended.
func (s *simulation) verify(when string) {
	ctx := context.Background()
	report, err := audit.Verify(ctx, s.log, WS)
	if err != nil || !report.OK {
		s.wrong("%s the log is damaged: %+v, %v", when, report.Findings, err)
	}
	documents, err := audit.VerifyProjections(ctx, s.log, s.log, documents.All(), WS)
	if err != nil || !documents.OK {
		s.wrong("%s documents are not what the log says: %+v, %v", when, documents.Findings, err)
	}
	runs := map[id.Run][]event.Event{}
	for from := uint64(1); ; {
		page, err := s.log.Read(ctx, journal.Query{Workspace: WS, From: from, Limit: journal.MaxRead})
		if err != nil {
			s.wrong("%s the log cannot be read: %v", when, err)
			return
		}
		for _, e := range page {
			from = e.Seq + 1
			if e.Run != "" && run.Touches(e) {
				runs[e.Run] = append(runs[e.Run], e)
			}
		}
		if len(page) < journal.MaxRead {
			break
		}
	}
	for r, events := range runs {
		doc, _, err := projection.Load[run.Run](ctx, s.log, WS, run.Projection, string(r))
		if err != nil {
			s.wrong("%s run %s: %v", when, r, err)
			continue
		}
		for _, broken := range testkit.RunRules(doc, events) {
			s.wrong("%s %s", when, broken)
		}
		s.holds(ctx, doc, events)
	}
}

// holds holds one run against what was done in its space, and against the questions about it.
func (s *simulation) holds(ctx context.Context, doc run.Run, events []event.Event) {
	for i, e := range events {
		if e.Type != run.EventUnknown {
			continue
		}
		if i+1 == len(events) || events[i+1].Type != run.EventSuspended && events[i+1].Type != run.EventCancelled &&
			events[i+1].Type != run.EventFailed {
			s.wrong("run %s has an unknown result at %d and asks nobody", doc.ID, e.Seq)
		}
	}
	s.world.mu.Lock()
	for _, p := range doc.Operations {
		d := deed{doc.ID, p.ID}
		spec, known := run.SpecOf(p.Type)
		effect := !known || spec.Changes != run.ChangesNothing
		if p.State == run.Done && p.OK && effect && s.world.done[d] != 1 {
			s.wrong("operation %s succeeded and was done %d times", d, s.world.done[d])
		}
		if s.world.hidden[d] && p.State == run.Done && s.world.ended[d] != run.EventUnknown {
			s.wrong("operation %s was interrupted and has the result %s", d, s.world.ended[d])
		}
	}
	s.world.mu.Unlock()
	if !doc.Status.Ended() {
		return
	}
	for _, status := range []policy.ApprovalStatus{policy.Pending, policy.Held} {
		open, err := projection.List[policy.Approval](ctx, s.log, projection.Query{
			Workspace: WS, Name: policy.ApprovalProjection, Index: projection.Index{Name: "run_status", Value: string(doc.ID) + " " +
				string(status)}, Limit: 10,
		})
		if err != nil || len(open) > 0 {
			s.wrong("run %s is %s and has %d open questions; %v", doc.ID, doc.Status, len(open), err)
		}
	}
}
