package gate_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gate/approvals"
)

func TestApprovedActionRunsOnceWithItsBytes(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "rm -r scratch")
	r, q := h.asked(a)
	if got := fault.CodeOf(begin(h, r, q.ID)); got != "approval_pending" {
		t.Errorf("begin before the answer: got %s, want approval_pending", got)
	}
	if got := fault.KindOf(begin(h, r, "")); got != fault.Waiting {
		t.Errorf("begin without naming an approval: got %s, want waiting", got)
	}
	h.approve(q, h.owner)
	permit, _, err := h.Begin(context.Background(), r, q.ID, h.intent(a))
	if err != nil {
		t.Fatalf("begin: %v", err)
	}
	redeemed, err := permit.Redeem(policy.ShellExec)
	if err != nil {
		t.Fatalf("redeem: %v", err)
	}
	if redeemed.Command != a.Command || redeemed.Operation != a.Operation {
		t.Errorf("redeemed %+v, want the action that was asked about", redeemed)
	}
	if got := begin(h, r, q.ID); !errors.Is(got, policy.ErrApprovalUsed) {
		t.Errorf("second begin: got %v, want %v", got, policy.ErrApprovalUsed)
	}
	if n := h.count("tool.invoked"); n != 1 {
		t.Errorf("got %d starts, want 1", n)
	}
}

func begin(h *house, r policy.Ruling, approval id.Approval) error {
	_, _, err := h.Begin(context.Background(), r, approval, h.intent(r.Action))
	return err
}

func TestDecisionsOnAnApproval(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name    string
		answers []policy.DecisionWord
		codes   []string
		status  policy.ApprovalStatus
	}{
		{"approve twice", []policy.DecisionWord{"approve", "approve"}, []string{"", "approval_already_decided"}, policy.Approved},
		{"deny then approve", []policy.DecisionWord{"deny", "approve"}, []string{"", "approval_already_decided"}, policy.Denied},
		{"hold then approve", []policy.DecisionWord{"hold", "hold", "approve", "deny"}, []string{"", "", "", "approval_already_decided"},
			policy.Approved},
		{"hold then deny", []policy.DecisionWord{"hold", "deny", "hold"}, []string{"", "", "approval_already_decided"}, policy.Denied},
		{"unknown words", []policy.DecisionWord{"", "yes", "Approve", "approved", "HOLD"}, []string{"invalid_decision", "invalid_decision",
			"invalid_decision", "invalid_decision", "invalid_decision"}, policy.Pending},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := build(t, nil)
			_, q := h.asked(h.shell("standard", "rm -r scratch"))
			for i, word := range c.answers {
				_, err := h.Approvals.Decide(ctx, h.origin(h.owner), ws, q.ID, policy.Answer{Decision: word})
				if got := fault.CodeOf(err); got != c.codes[i] {
					t.Errorf("answer %d, %q: got %q, want %q", i+1, word, got, c.codes[i])
				}
			}
			doc, err := h.Approvals.Get(ctx, ws, q.ID)
			if err != nil || doc.Status != c.status {
				t.Errorf("got %s, %v, want %s", doc.Status, err, c.status)
			}
		})
	}
}

func TestWhoMayDecide(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	stranger := id.NewPrincipal(h.ids, id.User)
	other, err := h.Agent(ctx, h.origin(h.owner), ws, "other")
	if err != nil {
		t.Fatal(err)
	}
	locked := h.person("Quentin", principal.Admin)
	if err := h.Quarantine(ctx, h.origin(h.owner), ws, locked, true, "left"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		who  id.Principal
		code string
	}{
		{h.owner, ""},
		{h.person("Ada Admin", principal.Admin), ""},
		{h.person("Otto Operator", principal.Operator), ""},
		{h.person("Mia Member", principal.Member), policy.ReasonRoleTooLow},
		{h.person("Vera Viewer", principal.Viewer), policy.ReasonRoleTooLow},
		{h.agent, policy.ReasonRoleTooLow},
		{other, policy.ReasonRoleTooLow},
		{locked, policy.ReasonRoleTooLow},
		{stranger, policy.ReasonPrincipalNotFound},
		{"", policy.ReasonPrincipalNotFound},
	} {
		_, q := h.asked(h.shell("standard", "rm -r scratch"))
		_, err := h.Approvals.Decide(ctx, h.origin(c.who), ws, q.ID, policy.Answer{Decision: policy.Approve})
		if got := fault.CodeOf(err); got != c.code {
			t.Errorf("%s: got %q, want %q", c.who, got, c.code)
		}
	}
}

func TestNobodyApprovesHisOwnRequest(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	a := h.shell("standard", "rm -r scratch")
	a.Principal = h.owner
	_, q := h.asked(a)
	admin := h.person("Ada", principal.Admin)
	if _, err := h.Approvals.Decide(ctx, h.origin(h.owner), ws, q.ID, policy.Answer{Decision: policy.Approve}); !errors.Is(err,
		approvals.ErrOwnRequest) {
		t.Errorf("with a second person: got %v, want %v", err, approvals.ErrOwnRequest)
	}
	if err := h.Quarantine(ctx, h.origin(h.owner), ws, admin, true, "on leave"); err != nil {
		t.Fatal(err)
	}
	h.approve(q, h.owner) // a single owner is never locked out
}

func TestApprovalExpires(t *testing.T) {
	ctx := context.Background()
	h := build(t, func(p *gate.Parts) { p.QuestionTime = time.Hour })
	a := h.shell("standard", "rm -r scratch")
	r, open := h.asked(a)
	a.Operation = "op-2"
	r2, approved := h.asked(a)
	h.clock.move(59 * time.Minute)
	h.approve(approved, h.owner)
	h.clock.move(time.Minute - 1)
	if err := h.Approvals.Step(ctx, h.clock.Now()); err != nil || h.count("approval.expired") != 0 {
		t.Fatalf("a moment before its time: %v, %d expired", err, h.count("approval.expired"))
	}
	h.clock.move(1)
	if _, err := h.Approvals.Decide(ctx, h.origin(h.owner), ws, open.ID, policy.Answer{Decision: policy.Approve}); !errors.Is(err,
		policy.ErrApprovalExpired) {
		t.Errorf("decide after its time: got %v, want %v", err, policy.ErrApprovalExpired)
	}
	for range 2 {
		if err := h.Approvals.Step(ctx, h.clock.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if n := h.count("approval.expired"); n != 1 {
		t.Errorf("got %d expired, want 1", n)
	}
	if err := begin(h, r, open.ID); !errors.Is(err, policy.ErrApprovalExpired) {
		t.Errorf("begin: got %v, want %v", err, policy.ErrApprovalExpired)
	}
	h.clock.move(14*time.Minute - 1) // an answer can be used for a quarter of an hour, however late it came
	if err := begin(h, r2, approved.ID); err != nil {
		t.Errorf("begin within the time of use: %v", err)
	}
	a.Operation = "op-3"
	r3, late := h.asked(a)
	h.approve(late, h.owner)
	h.clock.move(time.Hour)
	if err := begin(h, r3, late.ID); !errors.Is(err, policy.ErrApprovalExpired) {
		t.Errorf("begin after the time of use: got %v, want %v", err, policy.ErrApprovalExpired)
	}
}

func TestThreat09OneApprovalStartsOnce(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "rm -r scratch")
	r, q := h.asked(a)
	h.approve(q, h.owner)
	var started atomic.Int32
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			permit, _, err := h.Begin(context.Background(), r, q.ID, h.intent(a))
			if err == nil {
				if _, err := permit.Redeem(policy.ShellExec); err == nil {
					started.Add(1)
				}
			} else if !errors.Is(err, policy.ErrApprovalUsed) {
				t.Errorf("got %v, want %v", err, policy.ErrApprovalUsed)
			}
		})
	}
	wg.Wait()
	if started.Load() != 1 || h.count("tool.invoked") != 1 || h.count("approval.used") != 1 {
		t.Errorf("got %d starts, %d intents, %d uses, want 1 of each", started.Load(), h.count("tool.invoked"), h.count("approval.used"))
	}
}

func TestThreat09KeyedIntentStartsOnce(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "ls")
	r := h.judge(a)
	intent := h.intent(a)
	intent.Key, intent.Digest = "once", event.DigestOf([]byte("once"))
	permit, _, err := h.Begin(context.Background(), r, "", intent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := permit.Redeem(policy.ShellExec); err != nil {
		t.Fatal(err)
	}
	again, receipt, err := h.Begin(context.Background(), r, "", intent)
	if err != nil || !receipt.Replayed {
		t.Fatalf("got %v, replayed %t, want the first receipt", err, receipt.Replayed)
	}
	if _, err := again.Redeem(policy.ShellExec); !errors.Is(err, policy.ErrNoPermit) {
		t.Errorf("got %v, want %v", err, policy.ErrNoPermit)
	}
}

func TestThreat14NothingStartsWithoutAnApprovalInTheLog(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "rm -r scratch")
	r, q := h.asked(a)
	// Only the log counts: neither the claims of a caller nor a restart of the daemon change it.
	forged := r
	forged.Decision.Outcome = policy.Allow
	for name, try := range map[string]func() error{
		"pending":           func() error { return begin(h, r, q.ID) },
		"no approval":       func() error { return begin(h, r, "") },
		"invented approval": func() error { return begin(h, r, id.New[id.Approval](h.ids)) },
		"forged ruling":     func() error { return begin(h, forged, "") },
		"glance":            func() error { _, err := h.Glance(r); return err },
	} {
		if err := try(); err == nil {
			t.Errorf("%s: it began", name)
		}
	}
	h.restart()
	if err := begin(h, h.judge(a), q.ID); fault.CodeOf(err) != "approval_pending" {
		t.Errorf("after a restart: got %v", err)
	}
	if err := begin(h, r, q.ID); !errors.Is(err, policy.ErrPermitMismatch) {
		t.Errorf("a ruling of an earlier process: got %v, want %v", err, policy.ErrPermitMismatch)
	}
	h.approve(q, h.owner)
	h.restart()
	if err := begin(h, h.judge(a), q.ID); err != nil {
		t.Errorf("approved, after a restart: %v", err)
	}
	h.restart()
	if err := begin(h, h.judge(a), q.ID); !errors.Is(err, policy.ErrApprovalUsed) {
		t.Errorf("used, after a restart: got %v", err)
	}
	if n := h.count("tool.invoked"); n != 1 {
		t.Errorf("got %d starts, want 1", n)
	}
}

func TestNoLogNoEffect(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "ls")
	r := h.judge(a)
	if err := h.log.Close(); err != nil {
		t.Fatal(err)
	}
	permit, _, err := h.Begin(context.Background(), r, "", h.intent(a))
	if !errors.Is(err, journal.ErrClosed) {
		t.Errorf("got %v, want %v", err, journal.ErrClosed)
	}
	if _, err := permit.Redeem(policy.ShellExec); !errors.Is(err, policy.ErrNoPermit) {
		t.Errorf("got %v, want %v", err, policy.ErrNoPermit)
	}
}

func TestAnIntentIsAlwaysRecorded(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "ls")
	if _, _, err := h.Begin(context.Background(), h.judge(a), "", event.Batch{Workspace: ws}); err != nil {
		t.Fatal(err)
	}
	if n := h.count(policy.BegunType); n != 1 {
		t.Errorf("got %d, want the gate's own record of the intent", n)
	}
	foreign := h.intent(a)
	foreign.Workspace = "ws_other"
	if _, _, err := h.Begin(context.Background(), h.judge(a), "", foreign); fault.CodeOf(err) != "workspace_mismatch" {
		t.Errorf("events of another workspace: got %v", err)
	}
}

func TestWithdrawnQuestionsStayUnanswered(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	r, q := h.asked(h.shell("standard", "rm -r scratch"))
	if _, err := h.Withdraw(ctx, h.origin(h.owner), q.ID, "the run was cancelled", h.intent(r.Action)); err != nil {
		t.Fatal(err)
	}
	if n := h.count("approval.withdrawn"); n != 1 {
		t.Errorf("got %d, want the withdrawal in the log", n)
	}
	if _, err := h.Approvals.Decide(ctx, h.origin(h.owner), ws, q.ID, policy.Answer{Decision: policy.Approve}); !errors.Is(err,
		policy.ErrApprovalWithdrawn) {
		t.Errorf("decide: got %v", err)
	}
	if err := begin(h, r, q.ID); !errors.Is(err, policy.ErrApprovalWithdrawn) {
		t.Errorf("begin: got %v", err)
	}
	_, answered := h.asked(h.shell("standard", "rm -r other"))
	h.approve(answered, h.owner)
	if _, err := h.Withdraw(ctx, h.origin(h.owner), answered.ID, "late", h.intent(r.Action)); err != nil {
		t.Fatal(err)
	}
	if doc, err := h.Approvals.Get(ctx, ws, answered.ID); err != nil || doc.Status != policy.Approved {
		t.Errorf("an answer was taken back: %s, %v", doc.Status, err)
	}
}

func TestACommandWithoutArgumentsIsNotBegun(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "ls")
	a.Argv = nil
	if err := begin(h, h.judge(a), ""); fault.CodeOf(err) != policy.ReasonActionInvalid {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestOpenQuestionsAreBounded(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "rm -r scratch")
	for range approvals.MaxOpen {
		h.asked(a)
	}
	_, err := h.Ask(context.Background(), h.origin(h.agent), h.judge(a), policy.Ask{}, event.Batch{Workspace: ws})
	if fault.KindOf(err) != fault.Exhausted {
		t.Errorf("question %d: got %v, want exhausted", approvals.MaxOpen+1, err)
	}
}

func TestApprovalsOfAnotherWorkspaceAreNotThere(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	_, q := h.asked(h.shell("standard", "rm -r scratch"))
	stranger, err := h.Owner(ctx, "ws_other", "Olaf")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Approvals.Get(ctx, "ws_other", q.ID); !errors.Is(err, approvals.ErrNotFound) {
		t.Errorf("get: got %v", err)
	}
	if _, err := h.Approvals.Decide(ctx, h.origin(stranger), "ws_other", q.ID, policy.Answer{Decision: policy.Approve}); !errors.Is(err,
		approvals.ErrNotFound) {
		t.Errorf("decide: got %v", err)
	}
	if _, err := h.Approvals.Decide(ctx, h.origin(stranger), ws, q.ID, policy.Answer{Decision: policy.Approve}); fault.CodeOf(
		err) != policy.ReasonPrincipalNotFound {
		t.Errorf("decide as a stranger: got %v", err)
	}
	list, err := h.Approvals.List(ctx, "ws_other", approvals.Filter{})
	if err != nil || len(list) != 0 {
		t.Errorf("list: got %d, %v", len(list), err)
	}
}

func TestApprovalKeepsItsBytesThroughTheStore(t *testing.T) {
	h := build(t, nil)
	// Characters that encoding/json rewrites when it embeds JSON.
	a := h.shell("standard", "rm -r '<a>&\u2028' && echo \"\\\\\"")
	r, q := h.asked(a)
	if string(q.Request) != string(r.Canonical) {
		t.Fatalf("got %s, want %s", q.Request, r.Canonical)
	}
	if got, err := policy.ParseAction(q.Request); err != nil || got.Command != a.Command {
		t.Fatalf("parse: %v, %q", err, got.Command)
	}
	h.approve(q, h.owner)
	if err := begin(h, r, q.ID); err != nil {
		t.Errorf("begin: %v", err)
	}
}

func TestListingApprovals(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	a := h.shell("standard", "rm -r scratch")
	var asked []id.Approval
	for range 3 {
		_, q := h.asked(a)
		asked = append(asked, q.ID)
	}
	a.Run = "run_00000000000000000000000002"
	_, other := h.asked(a)
	doc, err := h.Approvals.Get(ctx, ws, asked[0])
	if err != nil {
		t.Fatal(err)
	}
	h.approve(doc, h.owner)
	for _, c := range []struct {
		filter approvals.Filter
		want   []id.Approval
	}{
		{approvals.Filter{}, []id.Approval{other.ID, asked[2], asked[1], asked[0]}},
		{approvals.Filter{Status: policy.Pending}, []id.Approval{other.ID, asked[2], asked[1]}},
		{approvals.Filter{Run: run}, []id.Approval{asked[2], asked[1], asked[0]}},
		{approvals.Filter{Run: run, Status: policy.Approved}, []id.Approval{asked[0]}},
		{approvals.Filter{Space: space, Status: policy.Pending, Limit: 1}, []id.Approval{other.ID}},
		{approvals.Filter{After: asked[1]}, []id.Approval{asked[0]}},
	} {
		got, err := h.Approvals.List(ctx, ws, c.filter)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, q := range got {
			ids = append(ids, string(q.ID))
		}
		var want []string
		for _, q := range c.want {
			want = append(want, string(q))
		}
		if strings.Join(ids, " ") != strings.Join(want, " ") {
			t.Errorf("%+v: got %v, want %v", c.filter, ids, want)
		}
	}
}
