package gate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gate/approvals"
	"agentbox/internal/service/gate/authority"
)

// An operator answers once, in words or without; a scope says something only where somebody approves.
func TestAnOperatorAnswersOnce(t *testing.T) {
	h := build(t, nil)
	otto := h.person("otto", principal.Operator)
	until := h.clock.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		answer policy.Answer
		want   policy.ApprovalStatus
	}{
		"once":              {policy.Answer{Decision: policy.Approve, Scope: policy.ScopeOnce}, policy.Approved},
		"refused for a run": {policy.Answer{Decision: policy.Refuse, Scope: policy.ScopeRun, Uses: 1, ExpiresAt: until}, policy.Denied},
		"held for a run":    {policy.Answer{Decision: policy.Hold, Scope: policy.ScopeRun, Uses: 1, ExpiresAt: until}, policy.Held},
	} {
		_, q := h.asked(h.shell("standard", "rm -r scratch"))
		doc, err := h.Approvals.Decide(t.Context(), h.origin(otto), ws, q.ID, c.answer)
		if err != nil || doc.Status != c.want || doc.Standing != "" {
			t.Errorf("%s: got %s, %s, %v, want %s", name, doc.Status, doc.Standing, err, c.want)
		}
	}
	if n := h.count(policy.StandingGrantedType); n != 0 {
		t.Errorf("%d standing approvals were granted", n)
	}
}

// A question that two persons have decided is decided, also for the first of them. The assent of a person whose role is too low by now does
// not count.
func TestAnAssentAndItsEnd(t *testing.T) {
	h := build(t, nil)
	anna, otto := h.person("anna", principal.Admin), h.person("otto", principal.Admin)
	_, q := h.twoPersons("rm -r scratch")
	for _, p := range []id.Principal{anna, otto} {
		if _, err := h.decide(q, p, policy.Approve); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.decide(q, anna, policy.Approve); !errors.Is(err, policy.ErrAlreadyDecided) {
		t.Errorf("the first one again: got %v, want %v", err, policy.ErrAlreadyDecided)
	}
	_, q = h.twoPersons("rm -r other")
	grant := policy.Answer{Decision: policy.Approve, Scope: policy.ScopeRun, Uses: 1, ExpiresAt: h.clock.Now().Add(time.Hour)}
	if doc, err := h.Approvals.Decide(t.Context(), h.origin(anna), ws, q.ID, grant); err != nil || doc.Status != policy.Pending {
		t.Fatalf("got %s, %v", doc.Status, err)
	}
	lower := event.New(principal.RoleChangedType, h.origin(h.owner), ws, "", principal.RoleChanged{Principal: anna, From: principal.Admin,
		To: principal.Operator})
	if _, err := h.log.Append(t.Context(), event.Batch{Workspace: ws, Drafts: []event.Draft{lower.About(principal.Entity,
		string(anna))}}); err != nil {
		t.Fatal(err)
	}
	if doc, err := h.Approvals.Decide(t.Context(), h.origin(otto), ws, q.ID, grant); err != nil || doc.Status != policy.Pending {
		t.Errorf("with the assent of one who may not grant any more: got %s, %v", doc.Status, err)
	}
}

// A run of which nobody says who asked for it is asked about by the agent alone.
func TestARunThatNobodyAskedFor(t *testing.T) {
	of := &asker{}
	h := build(t, func(p *gate.Parts) { of.Reader, p.Docs = p.Docs, of })
	otto := h.person("otto", principal.Operator)
	_, q := h.twoPersons("rm -r scratch")
	for i, p := range []id.Principal{otto, h.owner} {
		want := []policy.ApprovalStatus{policy.Pending, policy.Approved}[i]
		if doc, err := h.decide(q, p, policy.Approve); err != nil || doc.Status != want {
			t.Errorf("person %d: got %s, %v, want %s", i+1, doc.Status, err, want)
		}
	}
}

// A permission that could cover everything is granted once only, and nobody can ask for more.
func TestNoStandingApprovalOfAToolThatRunsAnything(t *testing.T) {
	h := build(t, nil)
	until := h.clock.Now().Add(time.Hour)
	for tool, want := range map[string]error{"bash": policy.ErrStandingImpossible, "ls": nil, "": nil} {
		a := h.file("permissive", policy.ExternalWrite, "")
		a.Target, a.Tool, a.ToolHash = "example.com", tool, event.DigestOf([]byte(tool))
		r, q := h.asked(a)
		_, err := h.Approvals.Decide(t.Context(), h.origin(h.owner), ws, q.ID, policy.Answer{Decision: policy.Approve,
			Scope: policy.ScopeRun, Uses: 1, ExpiresAt: until})
		if !errors.Is(err, want) {
			t.Errorf("the tool %q is granted: got %v, want %v", tool, err, want)
		}
		if want != nil {
			_, err = h.Ask(t.Context(), h.origin(h.agent), r, policy.Ask{Scope: policy.ScopeRun}, event.Batch{Workspace: ws})
			if !errors.Is(err, want) {
				t.Errorf("the tool %q is asked for: got %v, want %v", tool, err, want)
			}
		}
	}
}

// Only persons decide, whatever role somebody else has.
func TestOnlyPersonsDecide(t *testing.T) {
	h := build(t, nil)
	engine := h.service("engine", principal.Admin)
	_, q := h.asked(h.shell("standard", "rm -r scratch"))
	if _, err := h.decide(q, engine, policy.Approve); !errors.Is(err, authority.ErrNotDecider) {
		t.Errorf("decides: got %v, want %v", err, authority.ErrNotDecider)
	}
	standing, _ := h.granted(t, 1)
	if err := h.Approvals.Revoke(t.Context(), h.origin(engine), ws, standing, ""); !errors.Is(err, authority.ErrNotDecider) {
		t.Errorf("revokes: got %v, want %v", err, authority.ErrNotDecider)
	}
	if _, err := h.KillSwitch.Throw(t.Context(), h.origin(engine), ws, ""); !errors.Is(err, authority.ErrNotDecider) {
		t.Errorf("throws: got %v, want %v", err, authority.ErrNotDecider)
	}
}

// A standing approval follows from the answer that made it, also outside of a run.
func TestAStandingApprovalOutsideOfARunFollowsFromItsAnswer(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "rm -r scratch")
	a.Run = ""
	_, q := h.asked(a)
	later := h.origin(h.owner)
	later.Correlation = "cor_later"
	if _, err := h.Approvals.Decide(t.Context(), later, ws, q.ID, policy.Answer{Decision: policy.Approve,
		Scope: policy.ScopeRoom, Uses: 1, ExpiresAt: h.clock.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	granted, decided := h.last(policy.StandingGrantedType), h.last(policy.ApprovalDecidedType)
	if granted.Causation != decided.ID || granted.Correlation != decided.Correlation || decided.Correlation != "cor_test" {
		t.Errorf("it is caused by %s in %s, want %s in %s", granted.Causation, granted.Correlation, decided.ID, decided.Correlation)
	}
	if _, err := h.Approvals.Get(t.Context(), ws, id.New[id.Approval](h.ids)); !errors.Is(err, approvals.ErrNotFound) {
		t.Errorf("another one: got %v", err)
	}
}

// Of many callers who ask once at the same time one asks, and the others find the question. A caller that is always behind gets an error.
func TestAskingOnceBehindSomebodyElse(t *testing.T) {
	h, log, other := rivals(t)
	a := policy.Action{Type: policy.ExternalWrite, Workspace: ws, Room: room, Principal: h.agent, Target: "example.com",
		Bundle: h.bundles["permissive"].Hash}
	plain := event.Batch{Workspace: ws}
	var first policy.Approval
	log.before = func() {
		r, err := other.Judge(t.Context(), a)
		if err == nil {
			first, err = other.AskOnce(t.Context(), h.origin(h.agent), r, plain)
		}
		if err != nil {
			t.Error(err)
		}
	}
	q, err := h.AskOnce(t.Context(), h.origin(h.agent), h.judge(a), plain)
	if err != nil || q.ID != first.ID || h.count(policy.ApprovalRequestedType) != 1 {
		t.Errorf("got %s, %v, want %s, and %d questions", q.ID, err, first.ID, h.count(policy.ApprovalRequestedType))
	}
	a.Target = "example.org"
	log.always, log.appends = true, 0
	if _, err := h.AskOnce(t.Context(), h.origin(h.agent), h.judge(a), plain); !errors.Is(err, journal.ErrConflict) ||
		log.appends != journal.Tries*journal.Tries {
		t.Errorf("in vain: got %v after %d appends", err, log.appends)
	}
}

// The first yes of two is held to the same bounds as an answer, is told where it could not be recorded, and counts no more where its
// person is quarantined while the second one is recorded.
func TestTheFirstYesOfTwo(t *testing.T) {
	h, log, _ := rivals(t)
	anna, otto := h.person("anna", principal.Operator), h.person("otto", principal.Operator)
	_, q := h.twoPersons("rm -r scratch")
	yes := func(by id.Principal, change func(*policy.Answer)) (policy.Approval, error) {
		answer := policy.Answer{Decision: policy.Approve}
		change(&answer)
		return h.Approvals.Decide(t.Context(), h.origin(by), ws, q.ID, answer)
	}
	plain := func(*policy.Answer) {}
	long := strings.Repeat("x", policy.MaxReasonBytes+1)
	if _, err := yes(anna, func(a *policy.Answer) { a.Reason = long }); !errors.Is(err, policy.ErrReasonTooLong) {
		t.Errorf("for a long reason: got %v", err)
	}
	if _, err := yes(anna, func(a *policy.Answer) { a.ExpiresAt = h.clock.Now() }); !errors.Is(err, policy.ErrInvalidExpiry) {
		t.Errorf("until now: got %v", err)
	}
	log.always, log.appends = true, 0
	if _, err := yes(anna, plain); !errors.Is(err, journal.ErrConflict) || log.appends != journal.Tries {
		t.Errorf("in vain: got %v after %d appends", err, log.appends)
	}
	log.always = false
	if n := h.count(policy.ApprovalAssentedType); n != 0 {
		t.Errorf("%d assents were recorded", n)
	}
	if doc, err := yes(anna, plain); err != nil || doc.Status != policy.Pending || len(doc.Assents) != 1 {
		t.Fatalf("got %s, %v", doc.Status, err)
	}
	log.before = func() {
		if err := h.Quarantine(t.Context(), h.origin(h.owner), ws, anna, true, ""); err != nil {
			t.Error(err)
		}
	}
	if doc, err := yes(otto, plain); err != nil || doc.Status != policy.Pending {
		t.Errorf("while the first one is quarantined: got %s, %v, want it pending", doc.Status, err)
	}
}

// Of two standing approvals that cover the same the newest is used.
func TestTheNewestStandingApprovalIsUsed(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "rm -r scratch")
	_, one := h.asked(a)
	_, two := h.asked(a)
	var granted [2]id.Standing
	for i, q := range []policy.Approval{one, two} {
		doc, err := h.Approvals.Decide(t.Context(), h.origin(h.owner), ws, q.ID, policy.Answer{Decision: policy.Approve,
			Scope: policy.ScopeRun, Uses: 1, ExpiresAt: h.clock.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		granted[i] = doc.Standing
	}
	for _, want := range []id.Standing{granted[1], granted[0], ""} {
		r := h.judge(a)
		if r.Standing != want {
			t.Errorf("got %s, want %s", r.Standing, want)
		}
		if err := begin(h, r, ""); (err == nil) != (want != "") {
			t.Errorf("begun: %v", err)
		}
	}
}

// Who answers about an action of the workspace's own is said by its declaration, and the kill switch holds what it stops.
func TestWhoAnswersAboutAnOwnAction(t *testing.T) {
	for zone, least := range map[event.Zone]principal.Role{event.Supervised: principal.Operator, event.HighStakes: principal.Admin} {
		h := build(t, nil)
		h.declare(func(d *policy.Declare) { d.Asks, d.Zone = true, zone })
		_, q := h.asked(h.deploys())
		if _, err := h.decide(q, h.person("mia", principal.Member), policy.Approve); !errors.Is(err, authority.ErrNotDecider) {
			t.Errorf("%s: a member: got %v", zone, err)
		}
		if least == principal.Admin {
			if _, err := h.decide(q, h.person("ina", principal.Operator), policy.Approve); !errors.Is(err, authority.ErrNotDecider) {
				t.Errorf("%s: an operator: got %v", zone, err)
			}
		}
		if doc, err := h.decide(q, h.person("otto", least), policy.Approve); err != nil || doc.Status != policy.Approved {
			t.Errorf("%s: the role %s: got %s, %v", zone, least, doc.Status, err)
		}
	}
}

// A command that is a vector alone is judged by the vector.
func TestAVectorAloneIsJudged(t *testing.T) {
	h := build(t, nil)
	for want, argv := range map[policy.Outcome][]string{policy.Allow: {"ls"}, policy.Deny: {"sudo", "ls"},
		policy.RequireApproval: {"rm", "-r", "x"}} {
		a := h.shell("standard", "")
		a.Argv = argv
		if d := h.judge(a).Decision; d.Outcome != want {
			t.Errorf("%q: got %s (%s), want %s", argv, d.Outcome, d.Reason, want)
		}
	}
}
