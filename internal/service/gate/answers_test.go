package gate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gate/approvals"
	"agentbox/internal/service/gate/authority"
)

// Who says which action they saw answers that one, and no other.
func TestAnAnswerIsToTheActionThatThePersonSaw(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	_, q := h.asked(h.shell("standard", "rm -r scratch"))
	_, other := h.asked(h.shell("standard", "rm -r other"))
	for _, word := range []policy.DecisionWord{policy.Approve, policy.Refuse, policy.Hold} {
		if _, err := h.Approvals.Decide(ctx, h.origin(h.owner), ws, q.ID, policy.Answer{Decision: word, Saw: &other.ActionHash}); !errors.Is(err,
			policy.ErrOtherAction) {
			t.Errorf("%s of another action: got %v, want %v", word, err, policy.ErrOtherAction)
		}
		if _, err := h.Approvals.Decide(ctx, h.origin(h.owner), ws, q.ID, policy.Answer{Decision: word, Saw: &event.Digest{}}); !errors.Is(err,
			policy.ErrOtherAction) {
			t.Errorf("%s of a hash of zeros: got %v, want %v", word, err, policy.ErrOtherAction)
		}
	}
	if doc, err := h.Approvals.Get(ctx, ws, q.ID); err != nil || doc.Status != policy.Pending {
		t.Errorf("the question is %s, %v", doc.Status, err)
	}
	if doc, err := h.Approvals.Decide(ctx, h.origin(h.owner), ws, q.ID, policy.Answer{Decision: policy.Approve,
		Saw: &q.ActionHash}); err != nil || doc.Status != policy.Approved {
		t.Errorf("of the action that they saw: got %s, %v", doc.Status, err)
	}
}

// Who sends a question for an agent has asked it: they do not answer it, with no credential that they could know.
func TestWhoeverSentAQuestionDoesNotAnswerIt(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	anna, otto := h.person("anna", principal.Admin), h.person("otto", principal.Admin)
	origin := h.origin(h.agent)
	origin.By = anna
	q, err := h.Ask(ctx, origin, h.judge(h.shell("standard", "rm -r scratch")), policy.Ask{}, event.Batch{Workspace: ws})
	if err != nil || q.Through != anna {
		t.Fatalf("the question goes through %q, %v", q.Through, err)
	}
	if _, err := h.decide(q, anna, policy.Approve); !errors.Is(err, approvals.ErrOwnRequest) {
		t.Errorf("who sent it: got %v, want %v", err, approvals.ErrOwnRequest)
	}
	issued := h.origin(otto)
	issued.Issuer = anna
	if _, err := h.Approvals.Decide(ctx, issued, ws, q.ID, policy.Answer{Decision: policy.Approve}); !errors.Is(err,
		approvals.ErrOwnCredential) {
		t.Errorf("with a key of theirs: got %v, want %v", err, approvals.ErrOwnCredential)
	}
	if doc, err := h.decide(q, otto, policy.Approve); err != nil || doc.Status != policy.Approved {
		t.Errorf("another person: got %s, %v", doc.Status, err)
	}
}

// While the kill switch is on nobody approves an effect. To deny it, to hold it, and to approve what it does not stop, go on.
func TestUnderTheKillSwitchNoEffectIsApproved(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	read := h.file("standard", policy.FileRead, "docs/a.md")
	read.Bundle = h.bundle("preset: standard\nask: {paths: ['docs/**']}\n", false).Hash
	_, free := h.asked(read)
	_, once := h.asked(h.shell("standard", "rm -r scratch"))
	_, refused := h.asked(h.shell("standard", "rm -r other"))
	_, decided := h.asked(h.shell("standard", "rm -r third"))
	h.approve(decided, h.owner)
	if _, err := h.KillSwitch.Throw(ctx, h.origin(h.owner), ws, "something smells"); err != nil {
		t.Fatal(err)
	}
	until := h.clock.Now().Add(time.Hour)
	for _, answer := range []policy.Answer{{Decision: policy.Approve}, {Decision: policy.Approve, Scope: policy.ScopeRun, Uses: 1,
		ExpiresAt: until}} {
		if _, err := h.Approvals.Decide(ctx, h.origin(h.owner), ws, once.ID, answer); !errors.Is(err, approvals.ErrKillSwitchHolds) {
			t.Errorf("approved for %q: got %v, want %v", answer.Scope, err, approvals.ErrKillSwitchHolds)
		}
	}
	for _, c := range []struct {
		q    policy.Approval
		word policy.DecisionWord
		want policy.ApprovalStatus
	}{{free, policy.Approve, policy.Approved}, {refused, policy.Hold, policy.Held}, {refused, policy.Refuse, policy.Denied}} {
		if doc, err := h.decide(c.q, h.owner, c.word); err != nil || doc.Status != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.word, doc.Status, err, c.want)
		}
	}
	if _, err := h.decide(decided, h.owner, policy.Approve); !errors.Is(err, policy.ErrAlreadyDecided) {
		t.Errorf("what was decided before: got %v, want %v", err, policy.ErrAlreadyDecided)
	}
	if _, err := h.KillSwitch.Lift(ctx, h.origin(h.owner), ws, ""); err != nil {
		t.Fatal(err)
	}
	h.approve(once, h.owner)
}

// Who may decide may revoke, once, with a reason of bounded length.
func TestWhoRevokesAStandingApproval(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	s, r := h.granted(t, 10)
	for _, p := range []id.Principal{h.agent, h.person("Mia", principal.Member), h.person("Vera", principal.Viewer)} {
		if err := h.Approvals.Revoke(ctx, h.origin(p), ws, s, ""); !errors.Is(err, authority.ErrNotDecider) {
			t.Errorf("%s: got %v, want %v", p, err, authority.ErrNotDecider)
		}
	}
	if err := h.Approvals.Revoke(ctx, h.origin(id.NewPrincipal(h.ids, id.User)), ws, s,
		""); fault.CodeOf(err) != policy.ReasonPrincipalNotFound {
		t.Errorf("a stranger: got %v", err)
	}
	if err := h.Approvals.Revoke(ctx, h.origin(h.owner), ws, id.New[id.Standing](h.ids), ""); !errors.Is(err, approvals.ErrStandingNotFound) {
		t.Errorf("one that is not there: got %v, want %v", err, approvals.ErrStandingNotFound)
	}
	if err := h.Approvals.Revoke(ctx, h.origin(h.owner), ws, s, strings.Repeat("x", policy.MaxReasonBytes+1)); !errors.Is(err,
		policy.ErrReasonTooLong) {
		t.Errorf("a long reason: got %v, want %v", err, policy.ErrReasonTooLong)
	}
	if d := h.judge(r.Action).Decision; d.Outcome != policy.Allow {
		t.Fatalf("nobody has revoked it, and it does not hold: %s", d.Reason)
	}
	for range 2 {
		if err := h.Approvals.Revoke(ctx, h.origin(h.person("Otto"+strings.Repeat("o", h.count(policy.StandingRevokedType)), principal.Operator)),
			ws, s, strings.Repeat("x", policy.MaxReasonBytes)); err != nil {
			t.Errorf("an operator: %v", err)
		}
	}
	if n := h.count(policy.StandingRevokedType); n != 1 {
		t.Errorf("it was revoked %d times, want once", n)
	}
	if d := h.judge(r.Action).Decision; d.Outcome != policy.RequireApproval {
		t.Errorf("revoked: got %s", d.Outcome)
	}
}

// One step ends every question whose time is over, pending or held, and no other.
func TestAStepEndsAllQuestionsThatAreOver(t *testing.T) {
	ctx := context.Background()
	h := build(t, func(p *gate.Parts) { p.QuestionTime = time.Hour })
	var over []policy.Approval
	for _, name := range []string{"a", "b", "c", "d"} {
		_, q := h.asked(h.shell("standard", "rm -r "+name))
		over = append(over, q)
	}
	for _, q := range over[2:] {
		if _, err := h.decide(q, h.owner, policy.Hold); err != nil {
			t.Fatal(err)
		}
	}
	h.clock.move(time.Minute)
	_, open := h.asked(h.shell("standard", "rm -r e"))
	h.clock.move(59 * time.Minute)
	if err := h.Approvals.Step(ctx, h.clock.Now()); err != nil {
		t.Fatal(err)
	}
	for _, q := range over {
		if doc, err := h.Approvals.Get(ctx, ws, q.ID); err != nil || doc.Status != policy.Expired {
			t.Errorf("over: got %s, %v", doc.Status, err)
		}
	}
	if doc, err := h.Approvals.Get(ctx, ws, open.ID); err != nil || doc.Status != policy.Pending {
		t.Errorf("open: got %s, %v", doc.Status, err)
	}
	if n := h.count(policy.ApprovalExpiredType); n != len(over) {
		t.Errorf("%d questions ended, want %d", n, len(over))
	}
}

// Approvals are found by their run, their space and their status, and by two of them together.
func TestApprovalsAreFoundByWhatTheyBelongTo(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	here := h.shell("standard", "rm -r a")
	elsewhere := here
	elsewhere.Run, elsewhere.Space = "run_00000000000000000000000002", "spc_00000000000000000000000002"
	_, pending := h.asked(here)
	_, held := h.asked(here)
	_, foreign := h.asked(elsewhere)
	for _, q := range []policy.Approval{held, foreign} {
		if _, err := h.decide(q, h.owner, policy.Hold); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		filter approvals.Filter
		want   []id.Approval
	}{
		{"all", approvals.Filter{}, []id.Approval{foreign.ID, held.ID, pending.ID}},
		{"of a run", approvals.Filter{Run: run}, []id.Approval{held.ID, pending.ID}},
		{"of a run, held", approvals.Filter{Run: run, Status: policy.Held}, []id.Approval{held.ID}},
		{"of a space", approvals.Filter{Space: space}, []id.Approval{held.ID, pending.ID}},
		{"of a space, pending", approvals.Filter{Space: space, Status: policy.Pending}, []id.Approval{pending.ID}},
		{"of another space", approvals.Filter{Space: elsewhere.Space}, []id.Approval{foreign.ID}},
		{"held", approvals.Filter{Status: policy.Held}, []id.Approval{foreign.ID, held.ID}},
		{"after one", approvals.Filter{After: foreign.ID, Limit: 1}, []id.Approval{held.ID}},
	} {
		found, err := h.Approvals.List(ctx, ws, c.filter)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, q := range found {
			got = append(got, string(q.ID))
		}
		if want := strings.Join(idsOf(c.want), " "); strings.Join(got, " ") != want {
			t.Errorf("%s: got %s, want %s", c.name, strings.Join(got, " "), want)
		}
	}
}

func idsOf(list []id.Approval) (text []string) {
	for _, a := range list {
		text = append(text, string(a))
	}
	return text
}
