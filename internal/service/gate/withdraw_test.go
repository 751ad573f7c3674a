package gate_test

import (
	"context"
	"errors"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
)

// A question whose asker has ended is withdrawn together with the asker's own events; one that has its answer keeps it.
func TestWithdraw(t *testing.T) {
	h := build(t, nil)
	ctx := context.Background()
	a := h.shell("standard", "rm -rf build")
	_, open := h.asked(a)
	_, decided := h.asked(h.shell("standard", "rm -rf dist"))
	h.approve(decided, h.owner)

	ended := event.New("run.cancelled", h.origin(h.owner), ws, room, struct{}{}).In(run, "")
	receipt, err := h.Withdraw(ctx, h.origin(h.owner), open.ID, "the run ended", event.Batch{Workspace: ws, Drafts: []event.Draft{ended}})
	if err != nil || len(receipt.Events) != 2 || receipt.Events[0].Type != policy.ApprovalWithdrawnType ||
		receipt.Events[1].Type != "run.cancelled" {
		t.Fatalf("got %+v, %v; want approval.withdrawn and the caller's event", receipt.Events, err)
	}
	doc, err := h.Approvals.Get(ctx, ws, open.ID)
	if err != nil || doc.Status != policy.Withdrawn || doc.Reason != "the run ended" {
		t.Errorf("got %s (%s), %v", doc.Status, doc.Reason, err)
	}
	if _, err := h.Approvals.Decide(ctx, h.origin(h.owner), ws, open.ID, policy.Answer{Decision: policy.Approve}); !errors.Is(err,
		policy.ErrApprovalWithdrawn) {
		t.Errorf("deciding it: %v", err)
	}
	if _, _, err := h.Begin(ctx, h.judge(a), open.ID, h.intent(a)); !errors.Is(err, policy.ErrApprovalWithdrawn) {
		t.Errorf("using it: %v", err)
	}
	h.clock.move(48 * policy.DefaultQuestionTime)
	if err := h.Approvals.Step(ctx, h.clock.Now()); err != nil || h.count(policy.ApprovalExpiredType) != 0 {
		t.Errorf("it expired once more, %v", err)
	}

	receipt, err = h.Withdraw(ctx, h.origin(h.owner), decided.ID, "too late", event.Batch{Workspace: ws, Drafts: []event.Draft{ended}})
	if err != nil || len(receipt.Events) != 1 {
		t.Errorf("of one that has its answer: %+v, %v; want the caller's event alone", receipt.Events, err)
	}
	if doc, err := h.Approvals.Get(ctx, ws, decided.ID); err != nil || doc.Status != policy.Approved {
		t.Errorf("the answer became %s, %v", doc.Status, err)
	}
	if _, err := h.Withdraw(ctx, h.origin(h.owner), decided.ID, "", event.Batch{Workspace: ws}); !errors.Is(err, policy.ErrAlreadyDecided) {
		t.Errorf("with nothing to record: %v", err)
	}
	if _, err := h.Withdraw(ctx, h.origin(h.owner), "appr_none", "", event.Batch{Workspace: ws}); err == nil {
		t.Error("a question that nobody asked was withdrawn")
	}
}
