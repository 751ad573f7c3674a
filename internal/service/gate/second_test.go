package gate_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/service/gate/approvals"
	"agentbox/internal/service/gate/authority"
)

// bundle pins a policy of the short form.
func (h *house) bundle(text string, cedar bool) policy.Bundle {
	h.t.Helper()
	b, err := h.Bundles.ReadPolicy([]byte(text), cedar)
	if err == nil {
		err = h.Bundles.PinBundle(context.Background(), h.origin(h.owner), ws, b)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}

// twoPersons asks about a command under a policy that demands two persons.
func (h *house) twoPersons(command string) (policy.Ruling, policy.Approval) {
	h.t.Helper()
	a := h.shell("standard", command)
	a.Bundle = h.bundle("preset: standard\napprovers: 2\n", false).Hash
	return h.asked(a)
}

func (h *house) decide(q policy.Approval, by id.Principal, word policy.DecisionWord) (policy.Approval, error) {
	return h.Approvals.Decide(context.Background(), h.origin(by), ws, q.ID, policy.Answer{Decision: word})
}

func TestTwoPersonsHaveToApprove(t *testing.T) {
	h := build(t, nil)
	anna, otto := h.person("anna", principal.Operator), h.person("otto", principal.Operator)
	r, q := h.twoPersons("rm -r scratch")
	if q.Approvers != 2 {
		t.Fatalf("the question demands %d persons, want 2", q.Approvers)
	}
	doc, err := h.decide(q, anna, policy.Approve)
	if err != nil || doc.Status != policy.Pending || len(doc.Assents) != 1 || doc.Assents[0].By != anna {
		t.Fatalf("the first: got %s with %v, %v", doc.Status, doc.Assents, err)
	}
	if err := begin(h, r, q.ID); !errors.Is(err, policy.ErrApprovalPending) {
		t.Errorf("after one of two: got %v, want %v", err, policy.ErrApprovalPending)
	}
	if _, err := h.decide(q, anna, policy.Approve); !errors.Is(err, policy.ErrAlreadyAssented) {
		t.Errorf("the same person again: got %v, want %v", err, policy.ErrAlreadyAssented)
	}
	if _, err := h.decide(q, h.agent, policy.Approve); !errors.Is(err, authority.ErrNotDecider) {
		t.Errorf("the agent: got %v, want %v", err, authority.ErrNotDecider)
	}
	if doc, err = h.decide(q, otto, policy.Hold); err != nil || doc.Status != policy.Held || len(doc.Assents) != 1 {
		t.Errorf("held: got %s with %v, %v", doc.Status, doc.Assents, err)
	}
	h.restart()
	r = h.judge(r.Action)
	if doc, err = h.decide(q, otto, policy.Approve); err != nil || doc.Status != policy.Approved || doc.DecidedBy != otto {
		t.Fatalf("the second: got %s by %s, %v", doc.Status, doc.DecidedBy, err)
	}
	if err := begin(h, r, q.ID); err != nil {
		t.Errorf("after two of two: %v", err)
	}
	if err := begin(h, r, q.ID); !errors.Is(err, policy.ErrApprovalUsed) {
		t.Errorf("used twice: got %v, want %v", err, policy.ErrApprovalUsed)
	}
	if _, err := h.decide(q, h.owner, policy.Approve); !errors.Is(err, policy.ErrAlreadyDecided) {
		t.Errorf("a third: got %v, want %v", err, policy.ErrAlreadyDecided)
	}
}

func TestOneDenialEndsIt(t *testing.T) {
	for name, denier := range map[string]func(anna, otto id.Principal) id.Principal{
		"of the second":                func(_, otto id.Principal) id.Principal { return otto },
		"of who had approved it first": func(anna, _ id.Principal) id.Principal { return anna },
	} {
		h := build(t, nil)
		anna, otto := h.person("anna", principal.Operator), h.person("otto", principal.Operator)
		r, q := h.twoPersons("rm -r scratch")
		if _, err := h.decide(q, anna, policy.Approve); err != nil {
			t.Fatal(err)
		}
		if doc, err := h.decide(q, denier(anna, otto), policy.Refuse); err != nil || doc.Status != policy.Denied {
			t.Errorf("%s: got %s, %v", name, doc.Status, err)
		}
		if _, err := h.decide(q, h.owner, policy.Approve); !errors.Is(err, policy.ErrAlreadyDecided) {
			t.Errorf("%s: approved afterwards: %v", name, err)
		}
		if err := begin(h, r, q.ID); !errors.Is(err, policy.ErrApprovalDenied) {
			t.Errorf("%s: begun: %v", name, err)
		}
	}
}

// A second person is demanded only where there is one who could decide.
func TestWhoeverIsAloneIsNotLockedOut(t *testing.T) {
	h := build(t, nil)
	h.person("v", principal.Viewer)
	h.person("m", principal.Member)
	gone := h.person("gone", principal.Operator)
	if err := h.Quarantine(context.Background(), h.origin(h.owner), ws, gone, true, "left"); err != nil {
		t.Fatal(err)
	}
	r, q := h.twoPersons("rm -r scratch")
	if doc, err := h.decide(q, h.owner, policy.Approve); err != nil || doc.Status != policy.Approved {
		t.Errorf("alone: got %s, %v", doc.Status, err)
	}
	if err := begin(h, r, q.ID); err != nil {
		t.Error(err)
	}
	// Of two persons one asks: the other is the only one who could decide.
	otto := h.person("otto", principal.Operator)
	a := h.file("standard", policy.FileCreate, "docs/a")
	a.Principal = otto
	a.Bundle = h.bundle("preset: standard\napprovers: 2\nask: {paths: ['docs/**']}\n", false).Hash
	_, q = h.asked(a)
	if _, err := h.decide(q, otto, policy.Approve); !errors.Is(err, approvals.ErrOwnRequest) {
		t.Errorf("the own request: got %v, want %v", err, approvals.ErrOwnRequest)
	}
	if doc, err := h.decide(q, h.owner, policy.Approve); err != nil || doc.Status != policy.Approved {
		t.Errorf("the only other one: got %s, %v", doc.Status, err)
	}
}

// The assent of somebody who may not decide any more does not count, and one who is left alone afterwards can end it.
func TestAnAssentCountsOnlyWhileItsPersonMayDecide(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	anna := h.person("anna", principal.Operator)
	_, q := h.twoPersons("rm -r scratch")
	if doc, err := h.decide(q, anna, policy.Approve); err != nil || doc.Status != policy.Pending {
		t.Fatalf("got %s, %v", doc.Status, err)
	}
	otto := h.person("otto", principal.Operator)
	if err := h.Quarantine(ctx, h.origin(h.owner), ws, anna, true, "stolen key"); err != nil {
		t.Fatal(err)
	}
	if doc, err := h.decide(q, otto, policy.Approve); err != nil || doc.Status != policy.Pending {
		t.Fatalf("with the assent of one in quarantine: got %s, %v", doc.Status, err)
	}
	if err := h.Quarantine(ctx, h.origin(h.owner), ws, otto, true, "stolen too"); err != nil {
		t.Fatal(err)
	}
	if doc, err := h.decide(q, h.owner, policy.Approve); err != nil || doc.Status != policy.Approved {
		t.Errorf("the one who is left: got %s, %v", doc.Status, err)
	}
}

// Both persons approve the same: the scope is equal, and of the bounds the narrower ones hold.
func TestTwoPersonsGrantTogether(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	ada, otto := h.person("ada", principal.Admin), h.person("otto", principal.Operator)
	r, q := h.twoPersons("rm -r scratch")
	grant := func(by id.Principal, scope policy.Scope, uses int, d time.Duration) (policy.Approval, error) {
		return h.Approvals.Decide(ctx, h.origin(by), ws, q.ID, policy.Answer{Decision: policy.Approve, Scope: scope, Uses: uses,
			ExpiresAt: h.clock.Now().Add(d)})
	}
	if _, err := grant(ada, policy.ScopeRun, 101, time.Hour); fault.CodeOf(err) != "invalid_uses" {
		t.Errorf("too many uses: got %v", err)
	}
	if doc, err := grant(ada, policy.ScopeRun, 2, time.Hour); err != nil || doc.Status != policy.Pending {
		t.Fatalf("got %s, %v", doc.Status, err)
	}
	if n := h.count(policy.StandingGrantedType); n != 0 {
		t.Errorf("one person granted %d standing approvals", n)
	}
	if _, err := grant(otto, policy.ScopeRun, 2, time.Hour); !errors.Is(err, authority.ErrNotDecider) {
		t.Errorf("an operator: got %v, want %v", err, authority.ErrNotDecider)
	}
	if _, err := grant(h.owner, policy.ScopeWorkspace, 2, time.Hour); !errors.Is(err, policy.ErrAssentDiffers) {
		t.Errorf("another scope: got %v, want %v", err, policy.ErrAssentDiffers)
	}
	doc, err := grant(h.owner, policy.ScopeRun, 9, 2*time.Hour)
	if err != nil || doc.Status != policy.Approved || doc.Standing == "" {
		t.Fatalf("got %s, %v", doc.Status, err)
	}
	found, err := h.Approvals.Standings(ctx, ws, "", 10)
	if err != nil || len(found) != 1 || found[0].Uses != 2 || !found[0].EndsAt.Equal(h.clock.Now().Add(time.Hour)) {
		t.Errorf("got %+v, %v, want 2 uses within an hour", found, err)
	}
	if again := h.judge(r.Action); again.Standing != doc.Standing {
		t.Errorf("got %s, want the standing approval to hold", again.Decision.Outcome)
	}
}

// An admin cannot grant alone what an operator could approve too, because the admin is then not the only person who may approve.
func TestAnAdminDoesNotGrantAlone(t *testing.T) {
	h := build(t, nil)
	otto := h.person("otto", principal.Operator)
	_, q := h.twoPersons("rm -r scratch")
	doc, err := h.Approvals.Decide(context.Background(), h.origin(h.owner), ws, q.ID, policy.Answer{
		Decision: policy.Approve, Scope: policy.ScopeRun, Uses: 1, ExpiresAt: h.clock.Now().Add(time.Hour),
	})
	if err != nil || doc.Status != policy.Pending {
		t.Fatalf("got %s, %v, want pending", doc.Status, err)
	}
	if doc, err = h.decide(q, h.owner, policy.Approve); err != nil || len(doc.Assents) != 1 || doc.Assents[0].Scope != policy.ScopeOnce {
		t.Fatalf("with another scope: got %v, %v", doc.Assents, err)
	}
	if doc, err = h.decide(q, otto, policy.Approve); err != nil || doc.Status != policy.Approved || doc.Scope != policy.ScopeOnce {
		t.Errorf("got %s, scope %s, %v", doc.Status, doc.Scope, err)
	}
}

// The annotation stands on single rules; of the rules that ask, the strictest counts.
func TestARuleDemandsTwoPersons(t *testing.T) {
	h := build(t, nil)
	b := h.bundle(`
@id("any") permit (principal, action == Action::"shell.exec", resource);
@id("one") @decision("require_approval") permit (principal, action == Action::"shell.exec", resource) when { context.command == "rm" };
@id("two") @decision("require_approval") @approvers("2") permit (principal, action == Action::"shell.exec", resource) when { context.command == "rmdir" };
`, true)
	for command, want := range map[string]int{"rm a": 0, "rmdir a": 2, "rm a; rmdir b": 2, "rmdir b; rm a": 2, "rm a; eval b": 0, "ls": 0} {
		a := h.shell("standard", command)
		a.Bundle = b.Hash
		if d := h.judge(a).Decision; d.Approvers != want {
			t.Errorf("%s: %d approvers, want %d", command, d.Approvers, want)
		}
	}
	everything := h.bundle("preset: standard\napprovers: 2\n", false)
	for _, command := range []string{"rm -r a", "eval a", "PATH=x ls", "npm install", "cat $(x)"} {
		a := h.shell("standard", command)
		a.Bundle = everything.Hash
		if d := h.judge(a).Decision; d.Outcome == policy.RequireApproval && d.Approvers != 2 {
			t.Errorf("%s: %d approvers, want 2", command, d.Approvers)
		}
	}
	goOn := h.file("standard", policy.RunContinue, "")
	goOn.Bundle = everything.Hash
	if d := h.judge(goOn).Decision; d.Approvers != 2 {
		t.Errorf("going on: %d approvers, want 2", d.Approvers)
	}
}

// However many decide at once: one assent, one decision, and nothing is used twice.
func TestThreat09TwoPersonsAndARace(t *testing.T) {
	for round := range 8 {
		h := build(t, nil)
		var people []id.Principal
		for i := range 8 {
			people = append(people, h.person(fmt.Sprintf("p%d", i), principal.Operator))
		}
		r, q := h.twoPersons("rm -r scratch")
		var wg sync.WaitGroup
		for i, p := range people {
			wg.Go(func() {
				word := policy.Approve
				if round%2 == 1 && i == 3 {
					word = policy.Refuse
				}
				_, _ = h.decide(q, p, word)
				_, _ = h.decide(q, p, word)
			})
		}
		var started atomic.Int32
		for range 10 {
			wg.Go(func() {
				for range 5 {
					if begin(h, r, q.ID) == nil {
						started.Add(1)
					}
				}
			})
		}
		wg.Wait()
		doc, err := h.Approvals.Get(context.Background(), ws, q.ID)
		if err != nil || doc.Status != policy.Approved && doc.Status != policy.Denied {
			t.Fatalf("round %d: got %s, %v", round, doc.Status, err)
		}
		if n := h.count(policy.ApprovalDecidedType); n != 1 {
			t.Errorf("round %d: %d decisions, want 1", round, n)
		}
		if n := h.count(policy.ApprovalAssentedType); n > 1 || doc.Status == policy.Approved && (n != 1 || doc.Assents[0].By == doc.DecidedBy) {
			t.Errorf("round %d: %d assents by %v, decided by %s", round, n, doc.Assents, doc.DecidedBy)
		}
		if n := started.Load(); n > 1 || n == 1 && doc.Status != policy.Approved {
			t.Errorf("round %d: started %d times, %s", round, n, doc.Status)
		}
	}
}

// A mark that the gate made for one approver is none for a question that demands two.
func TestTheNumberOfApproversIsSealed(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "rm -r scratch")
	a.Bundle = h.bundle("preset: standard\napprovers: 2\n", false).Hash
	r := h.judge(a)
	r.Decision.Approvers = 0
	if _, err := h.Ask(context.Background(), h.origin(h.agent), r, policy.Ask{}, h.intent(a)); !errors.Is(err, policy.ErrPermitMismatch) {
		t.Errorf("got %v, want %v", err, policy.ErrPermitMismatch)
	}
}
