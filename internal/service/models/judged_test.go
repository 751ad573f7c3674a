package models_test

import (
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/projection"
)

// TestWhoMayNotAsk refuses a viewer, and ends a request when the kill switch is thrown.
func TestWhoMayNotAsk(t *testing.T) {
	f := start(t)
	a := f.question(1)
	a.Origin = event.Origin{Principal: "usr_00000000000000000000000009"}
	if _, err := f.Ask(t.Context(), a); fault.KindOf(err) != fault.Denied || f.vendor.count("one") != 0 {
		t.Errorf("got %v", err)
	}
	f.gate.KillSwitch.OnHalt(f.Halt)
	f.vendor.script["one"] = []step{func(emit func(model.Delta) error) (model.Answer, error) {
		if _, err := f.gate.KillSwitch.Throw(t.Context(), f.owner, ws, "stop"); err != nil {
			t.Error(err)
		}
		return says("too late")(emit)
	}}
	if _, err := f.Ask(t.Context(), f.question(2)); err == nil {
		t.Error("an answer came under the kill switch")
	}
	if used := f.used(); used.Reserved.Tokens != 0 || used.Guessed != 1 {
		t.Errorf("got %+v", used)
	}
	if _, err := f.Ask(t.Context(), f.question(3)); fault.CodeOf(err) != policy.ReasonKillSwitch || f.vendor.count("two") != 0 {
		t.Errorf("got %v", err)
	}
}

// TestAQuestionIsAnsweredLater asks a person if the policy of the run's space says so. The same request continues after the answer.
func TestAQuestionIsAnsweredLater(t *testing.T) {
	f := start(t)
	b, err := f.gate.Bundles.ReadPolicy([]byte("ask: {actions: [model.call]}"), false)
	if err == nil {
		err = f.gate.Bundles.PinBundle(t.Context(), f.owner, ws, b)
	}
	if err != nil {
		t.Fatal(err)
	}
	in := id.Space("spc_00000000000000000000000001")
	draft := event.New(space.EventCreated, f.owner, ws, room, space.Created{Space: in, Name: "a", Bundle: b.Hash}).
		About(space.EntityType, string(in))
	if _, err := f.log.Append(t.Context(), event.Batch{Workspace: ws, Drafts: []event.Draft{draft}}); err != nil {
		t.Fatal(err)
	}
	a := f.question(1)
	a.Space = in
	for range 2 {
		if _, err := f.Ask(t.Context(), a); fault.KindOf(err) != fault.Waiting || f.vendor.count("one")+f.vendor.count("two") != 0 {
			t.Fatalf("got %v", err)
		}
	}
	open, err := projection.List[policy.Approval](t.Context(), f.docs, projection.Query{Workspace: ws, Name: policy.ApprovalProjection})
	if err != nil || len(open) != 1 {
		t.Fatalf("got %d questions, %v", len(open), err)
	}
	if _, err := f.gate.Approvals.Decide(t.Context(), f.owner, ws, open[0].ID, policy.Answer{Decision: policy.Approve}); err != nil {
		t.Fatal(err)
	}
	if r, err := f.Ask(t.Context(), a); err != nil || r.Text() != "Hi" {
		t.Errorf("got %+v, %v", r, err)
	}
}
