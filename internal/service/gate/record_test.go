package gate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
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
			case name != "nobody" && (code != policy.ReasonRoleTooLow || fault.KindOf(err) != fault.Denied || h.count(policy.DeniedType) != refusals+1):
				t.Errorf("%s of a %s: got %v, and %d refusals in the log", typ, name, err, h.count(policy.DeniedType)-refusals)
			}
		}
	}
}

// What is only recorded goes on under the kill switch: people have to talk about what is wrong.
func TestRecordGoesOnUnderTheKillSwitch(t *testing.T) {
	ctx := context.Background()
	h := build(t, func(p *gate.Parts) { p.EffectsPerHour = 1 })
	if _, err := h.ThrowKillSwitch(ctx, h.origin(h.owner), ws, "something smells"); err != nil {
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
	bundle, err := policy.NewBundle("quiet", `@id("quiet") forbid (principal is Agent, action == Action::"message.create", resource);`, policy.Limits{FileBytes: 1, CommandMS: 1})
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
	if _, err := h.Record(context.Background(), h.origin(h.owner), a, b); fault.KindOf(err) != fault.Internal {
		t.Errorf("an effect: got %v", err)
	}
	a, b = h.said(h.owner, policy.MessageCreate)
	b.Drafts = nil
	if _, err := h.Record(context.Background(), h.origin(h.owner), a, b); fault.KindOf(err) != fault.Internal {
		t.Errorf("nothing: got %v", err)
	}
	a.Type = "message.invented"
	_, b = h.said(h.owner, a.Type)
	if _, err := h.Record(context.Background(), h.origin(h.owner), a, b); fault.CodeOf(err) != policy.ReasonUnknownAction {
		t.Errorf("an unknown action: got %v", err)
	}
}
