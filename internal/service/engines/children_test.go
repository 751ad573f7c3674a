package engines_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/spaces"
)

// under makes a run for a tool call of a claimed run.
func (h *house) under(k engines.Hold, c id.ToolCall, input string) (run.Run, error) {
	return h.Create(context.Background(), h.owner, engines.Request{Workspace: ws, Room: spaces.DefaultRoom, Input: json.RawMessage(input),
		Under: func(ctx context.Context) (run.Under, error) { return h.Steps.Vouch(ctx, ws, k.Token, c) }})
}

// TestARunForAToolCall holds that a call has one run, which the engine of the call claims although the workspace is full, and which ends
// with the run of the call.
func TestARunForAToolCall(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.tasks(1)
	h.ask("")
	parent, k := h.claim()
	c := h.call(k, h.step(k).ID)
	child, err := h.under(k, c.ID, `{}`)
	if err != nil || child.Parent == nil || child.Parent.Run != parent.ID || child.Parent.Call != c.ID {
		t.Fatalf("got %+v, %v", child, err)
	}
	again, err := h.under(k, c.ID, `{"other":1}`)
	if err != nil || again.ID != child.ID {
		t.Errorf("a repeat makes %s, %v; want %s", again.ID, err, child.ID)
	}
	if doc, err := h.Look.Call(ctx, ws, c.ID); err != nil || doc.Child != child.ID || doc.Status != step.Running {
		t.Errorf("the call is %+v, %v", doc, err)
	}
	h.nothing("a full workspace")
	if _, _, err := h.ClaimOne(ctx, h.owner, ws, parent.ID); !errors.Is(err, errand.ErrNothing) {
		t.Errorf("a run of nobody's call: %v", err)
	}
	claimed, token, err := h.ClaimOne(ctx, h.owner, ws, child.ID)
	if err != nil || claimed.ID != child.ID || claimed.Status != run.Running || token == "" {
		t.Fatalf("got %+v, %v", claimed, err)
	}
	if _, _, err := h.ClaimOne(ctx, h.owner, ws, child.ID); !errors.Is(err, errand.ErrNothing) {
		t.Errorf("a run that is claimed: %v", err)
	}
	if load, err := h.Service.Tasks(ctx, ws); err != nil || load.Running != 1 {
		t.Errorf("%d runs have a place, %v", load.Running, err)
	}
	if _, err := h.Steps.Succeed(ctx, h.owner, ws, engines.Shown{Token: k.Token}, c.ID, nil); err == nil {
		t.Error("the call succeeds before its run")
	}
	own := engines.Hold{Workspace: ws, Run: child.ID, Token: token}
	deeper := h.call(own, h.step(own).ID)
	grandchild, err := h.under(own, deeper.ID, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Cancel(ctx, h.owner, ws, parent.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	for _, r := range []id.Run{child.ID, grandchild.ID} {
		if doc, err := h.Find(ctx, ws, r); err != nil || doc.Status != run.Cancelled {
			t.Errorf("%s is %s, %v", r, doc.Status, err)
		}
	}
	if _, err := h.under(k, c.ID, `{}`); err != nil && !errors.Is(err, run.ErrNotRunning) && !errors.Is(err, run.ErrEnded) {
		t.Errorf("under a run that has ended: %v", err)
	}
}

// TestTheEndOfARunEndsWhatItsCallsHaveMade completes and fails a run whose call has a run that works.
func TestTheEndOfARunEndsWhatItsCallsHaveMade(t *testing.T) {
	h, ctx := open(t), t.Context()
	for name, end := range map[string]func(engines.Hold) error{
		"complete": func(k engines.Hold) error { _, err := h.Complete(ctx, h.owner, k, "", nil); return err },
		"fail":     func(k engines.Hold) error { _, err := h.Fail(ctx, h.owner, k, "broken", "", nil); return err },
	} {
		h.ask("")
		_, k := h.claim()
		made, err := h.under(k, h.call(k, h.step(k).ID).ID, `{}`)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := h.ClaimOne(ctx, h.owner, ws, made.ID); err != nil {
			t.Fatal(err)
		}
		if err := end(k); err != nil {
			t.Fatal(err)
		}
		if doc, err := h.Find(ctx, ws, made.ID); err != nil || doc.Status != run.Cancelled {
			t.Errorf("%s: %s, %v", name, doc.Status, err)
		}
	}
}
