package policy_test

import (
	"context"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
)

// recorder is a verdict that keeps the last action and batch that it is asked to record.
type recorder struct {
	verdict
	action policy.Action
	batch  event.Batch
}

func (r *recorder) Record(_ context.Context, _ event.Origin, a policy.Action, b event.Batch) (event.Receipt, error) {
	r.action, r.batch = a, b
	return event.Receipt{}, nil
}

// TestAChangeIsRecordedByItsEvent holds that the action of a change seals the data of its event, and that the batch has the request's key.
func TestAChangeIsRecordedByItsEvent(t *testing.T) {
	g := &recorder{}
	origin := event.Origin{Principal: "usr_1", Token: "cap_1", Key: "k", Command: event.DigestOf([]byte("c"))}
	at := time.Unix(1_800_000_000, 0).UTC()
	expect := []event.DocumentVersion{{Projection: "blueprints", Key: "n", Version: 3}}
	c := policy.Change{Workspace: "ws_1", Action: policy.BlueprintRegister, Entity: "blueprint", Key: "n", Event: "blueprint.registered",
		Data: map[string]int{"a": 1}, At: at, Expect: expect}
	if err := c.Record(t.Context(), g, origin); err != nil {
		t.Fatal(err)
	}
	if a := g.action; a.Type != c.Action || a.Workspace != "ws_1" || a.Principal != "usr_1" || a.Token != "cap_1" || a.Subject != "n" ||
		a.Content != event.DigestOf([]byte(`{"a":1}`)) {
		t.Errorf("got the action %+v", a)
	}
	b := g.batch
	if b.Workspace != "ws_1" || b.Key != "k" || b.Digest != origin.Command || len(b.Documents) != 1 || b.Documents[0] != expect[0] ||
		len(b.Drafts) != 1 {
		t.Fatalf("got the batch %+v", b)
	}
	if d := b.Drafts[0]; d.Type != c.Event || d.EntityType != "blueprint" || d.EntityID != "n" || !d.OccurredAt.Equal(at) {
		t.Errorf("got the draft %+v", d)
	}
	if err := (policy.Change{Data: func() {}}).Record(t.Context(), g, origin); err == nil {
		t.Error("data without JSON were recorded")
	}
}

// TestWhoMayMakeAChange holds that May returns the refusal of every decision but an allowance.
func TestWhoMayMakeAChange(t *testing.T) {
	for outcome, want := range map[policy.Outcome]fault.Kind{policy.Deny: fault.Denied, policy.RequireApproval: fault.Waiting} {
		g := &recorder{verdict: verdict{decision: policy.Decision{Outcome: outcome, ReasonCode: "no", Reason: "no"}}}
		if err := (policy.Change{Action: policy.BlueprintRegister}).May(t.Context(), g, event.Origin{}); fault.KindOf(err) != want || err == nil {
			t.Errorf("%v: got %v, want %v", outcome, err, want)
		}
	}
	g := &recorder{verdict: verdict{decision: policy.Decision{Outcome: policy.Allow}}}
	if err := (policy.Change{Action: policy.BlueprintRegister}).May(t.Context(), g, event.Origin{}); err != nil {
		t.Error(err)
	}
}
