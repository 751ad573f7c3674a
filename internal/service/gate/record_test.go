package gate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/service/gate"
)

// said is what a caller records of an action that is only recorded.
func (h *house) said(p id.Principal, typ string) (policy.Action, event.Batch) {
	a := policy.Action{Type: typ, Workspace: ws, Room: room, Principal: p}
	return a, event.Batch{Workspace: ws, Drafts: []event.Draft{event.New("test.said", h.origin(p), ws, room, struct{}{})}}
}

func TestRecordFollowsTheRights(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	daemon := id.NewPrincipal(h.ids, id.Service)
	who := map[string]id.Principal{
		"owner": h.owner, "admin": h.person("Ada", principal.Admin), "operator": h.person("Otto", principal.Operator),
		"member": h.person("Mia", principal.Member), "viewer": h.person("Vera", principal.Viewer), "agent": h.agent, "nobody": daemon,
	}
	for typ, allowed := range map[string]string{
		policy.RoomCreate:    "owner admin operator member",
		policy.MessageCreate: "owner admin operator member agent",
	} {
		for name, p := range who {
			a, b := h.said(p, typ)
			before, refusals := h.count("test.said"), h.count(policy.DeniedType)
			_, err := h.Record(ctx, h.origin(p), a, b)
			if may := slices.Contains(strings.Fields(allowed), name); may != (err == nil) {
				t.Errorf("%s of a %s: got %v, want allowed: %t", typ, name, err, may)
			}
			recorded := h.count("test.said") - before
			if err == nil && recorded != 1 || err != nil && recorded != 0 {
				t.Errorf("%s of a %s recorded %d events", typ, name, recorded)
			}
			switch code := fault.CodeOf(err); {
			case err == nil:
			case name == "nobody" && code != policy.ReasonPrincipalNotFound:
				t.Errorf("%s of nobody: got %v", typ, err)
			case name != "nobody" && (code != policy.ReasonRoleTooLow || fault.KindOf(err) != fault.Denied || h.count(policy.DeniedType) != refusals+
				1):
				t.Errorf("%s of a %s: got %v, and %d refusals in the log", typ, name, err, h.count(policy.DeniedType)-refusals)
			}
		}
	}
}

// Who is not entitled learns who is. A role makes no person of a service, no policy is asked any more, and a stranger fills no log.
func TestWhatWhoeverIsNotEntitledLearns(t *testing.T) {
	h := build(t, nil)
	service := h.service("mailer", principal.Overlord)
	none := h.bundle(`@id("none") forbid (principal, action, resource);`, true)
	for name, c := range map[string]struct {
		p    id.Principal
		want string
	}{
		"a viewer":            {h.person("Vera", principal.Viewer), "to make a room takes the role member"},
		"an agent":            {h.agent, "to make a room is not for agents"},
		"a service of a role": {service, "to make a room is not for services"},
	} {
		a, _ := h.said(c.p, policy.RoomCreate)
		e, err := h.Explain(t.Context(), a, &none)
		if err != nil || e.Decision.ReasonCode != policy.ReasonRoleTooLow || e.Decision.Reason != c.want || len(e.Parts) != 1 {
			t.Errorf("%s: got %s %q of %d parts, %v, want %q", name, e.Decision.ReasonCode, e.Decision.Reason, len(e.Parts), err, c.want)
		}
	}
	a, b := h.said(id.NewPrincipal(h.ids, id.Agent), policy.RoomCreate)
	before := len(h.events())
	if _, err := h.Record(t.Context(), h.origin(a.Principal), a, b); fault.CodeOf(err) != policy.ReasonPrincipalNotFound ||
		len(h.events()) != before {
		t.Errorf("a stranger: got %v, and %d events", err, len(h.events())-before)
	}
}

// A record is made under the token of its origin: an action that names none gets that one, and one that names another is refused.
func TestARecordIsMadeUnderTheTokenOfItsOrigin(t *testing.T) {
	g := newGrants(t)
	narrow := g.grant(g.agent, func(d *token.Granted) { d.Scopes.Rooms = []string{string(room)} })
	other := g.grant(g.agent)
	for name, c := range map[string]struct {
		origin, action id.Token
		in             id.Room
		code           string
	}{
		"none":                          {"", "", room, ""},
		"the same":                      {narrow, narrow, room, ""},
		"none in the action":            {narrow, "", room, ""},
		"none in the action, elsewhere": {narrow, "", "room_00000000000000000000000002", policy.ReasonScopeRoom},
		"none in the origin":            {"", narrow, room, policy.ReasonActionInvalid},
		"another one":                   {narrow, other, room, policy.ReasonActionInvalid},
	} {
		a, b := g.said(g.agent, policy.MessageCreate)
		origin := g.origin(g.agent)
		origin.Token, a.Token, a.Room = c.origin, c.action, c.in
		before := g.count("test.said")
		_, err := g.Record(t.Context(), origin, a, b)
		if n := g.count("test.said") - before; fault.CodeOf(err) != c.code || (n == 1) != (c.code == "") {
			t.Errorf("%s: got %v, and %d were recorded, want %q", name, err, n, c.code)
		}
	}
}

// Actions that only record go on under the kill switch: people have to talk about the trouble.
func TestRecordGoesOnUnderTheKillSwitch(t *testing.T) {
	ctx := context.Background()
	h := build(t, func(p *gate.Parts) { p.EffectsPerHour = 1 })
	if _, err := h.KillSwitch.Throw(ctx, h.origin(h.owner), ws, "something smells"); err != nil {
		t.Fatal(err)
	}
	for range 3 { // nor does it count against the quota
		a, b := h.said(h.owner, policy.MessageCreate)
		if _, err := h.Record(ctx, h.origin(h.owner), a, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Quarantine(ctx, h.origin(h.owner), ws, h.agent, true, "odd"); err != nil {
		t.Fatal(err)
	}
	a, b := h.said(h.agent, policy.MessageCreate)
	if _, err := h.Record(ctx, h.origin(h.agent), a, b); fault.CodeOf(err) != policy.ReasonAgentQuarantined {
		t.Errorf("of a quarantined agent: got %v", err)
	}
}

// A bundle need not permit what is only recorded, but it may forbid it.
func TestABundleForbidsWhatIsRecorded(t *testing.T) {
	h := build(t, nil)
	bundle, err := policy.NewBundle("quiet", `@id("quiet") forbid (principal is Agent, action == Action::"message.create", resource);`,
		policy.Limits{FileBytes: 1, CommandMS: 1})
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[id.Principal]policy.Outcome{h.agent: policy.Deny, h.owner: policy.Allow} {
		a, _ := h.said(p, policy.MessageCreate)
		e, err := h.Explain(context.Background(), a, &bundle)
		if err != nil || e.Decision.Outcome != want {
			t.Errorf("%s: got %s (%s), %v, want %s", p, e.Decision.Outcome, e.Decision.Reason, err, want)
		}
	}
}

func TestRecordIsForWhatIsOnlyRecorded(t *testing.T) {
	h := build(t, nil)
	a, b := h.said(h.owner, policy.SpaceCreate)
	if _, err := h.Record(context.Background(), h.origin(h.owner), a, b); err == nil || fault.CodeOf(err) != policy.ReasonActionInvalid {
		t.Errorf("an effect: got %v", err)
	}
	a, b = h.said(h.owner, policy.MessageCreate)
	b.Drafts = nil
	if _, err := h.Record(context.Background(), h.origin(h.owner), a, b); err == nil || fault.CodeOf(err) != policy.ReasonActionInvalid {
		t.Errorf("nothing: got %v", err)
	}
	a.Type = "message.invented"
	_, b = h.said(h.owner, a.Type)
	if _, err := h.Record(context.Background(), h.origin(h.owner), a, b); fault.CodeOf(err) != policy.ReasonUnknownAction {
		t.Errorf("an unknown action: got %v", err)
	}
}

// A bundle that asks about what an engine records of a run asks once for the same request, and lets it pass once after a person's yes:
// also where a service sends it for an agent.
func TestABundleAsksAboutWhatIsRecordedOfARun(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	bundle := h.bundle(`
@id("any") permit (principal, action, resource);
@id("ask") @decision("require_approval") permit (principal, action in [Action::"tool.call", Action::"run.complete", Action::"incident.open"], resource);`, true)
	service := id.NewPrincipal(h.ids, id.Service)
	draft := event.New(principal.RegisteredType, h.origin(h.owner), ws, "", principal.Registered{Principal: service, Kind: id.Service,
		Name: "engine"})
	if _, err := h.log.Append(ctx, event.Batch{Workspace: ws, Drafts: []event.Draft{draft.About(principal.Entity,
		string(service))}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		typ    string
		by, of id.Principal
	}{{policy.ToolCall, service, h.agent}, {policy.ToolCall, service, service}, {policy.RunComplete, service, service}, {policy.IncidentOpen,
		h.owner, h.owner}} {
		a, b := h.said(c.of, c.typ)
		a.Run, a.Bundle = run, bundle.Hash
		record := func() error {
			_, err := h.Record(ctx, h.origin(c.by), a, b)
			return err
		}
		before, asked := h.count("test.said"), h.count(policy.ApprovalRequestedType)
		first, second := record(), record()
		question, ok := errors.AsType[*policy.Asked](first)
		if again, both := errors.AsType[*policy.Asked](second); !ok || !both || question.Approval != again.Approval ||
			fault.KindOf(first) != fault.Waiting {
			t.Fatalf("%s by %s for %s: got %v and %v, want one question", c.typ, c.by, c.of, first, second)
		}
		if n := h.count(policy.ApprovalRequestedType) - asked; n != 1 {
			t.Errorf("%s: %d questions, want 1", c.typ, n)
		}
		q, err := h.Approvals.Get(ctx, ws, question.Approval)
		if err != nil || q.RequestedBy != c.of || (q.Through == c.by) != (c.by != c.of) {
			t.Errorf("%s: the question is of %s through %s, %v", c.typ, q.RequestedBy, q.Through, err)
		}
		h.approve(q, h.person("anna "+string(q.ID), principal.Admin))
		if err := record(); err != nil {
			t.Errorf("%s after a yes: %v", c.typ, err)
		}
		if err := record(); fault.KindOf(err) != fault.Waiting {
			t.Errorf("%s a second time: got %v, want another question", c.typ, err)
		}
		if n := h.count("test.said") - before; n != 1 {
			t.Errorf("%s was recorded %d times, want once", c.typ, n)
		}
	}
}
