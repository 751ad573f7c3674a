package gate_test

import (
	"context"
	"errors"
	"testing"

	"agentbox/internal/domain/policy"
	"agentbox/internal/service/gate"
)

// TestTwoActionsInOneCommit begins an action together with another one: both count, and where the other does not simply hold nothing is
// recorded.
func TestTwoActionsInOneCommit(t *testing.T) {
	ctx := context.Background()
	h := build(t, func(p *gate.Parts) { p.EffectsPerHour = 3 })
	a := h.shell("standard", "ls")
	other, err := h.Agent(ctx, h.origin(h.owner), ws, "other")
	if err != nil {
		t.Fatal(err)
	}
	b := a
	b.Principal = other
	mine, theirs := h.judge(a), h.judge(b)
	together := func(with policy.Ruling) error {
		_, _, err := h.Begin(ctx, mine, "", h.intent(a), with)
		return err
	}
	recorded := func() uint64 {
		head, err := h.Log.Head(ctx, ws)
		if err != nil {
			t.Fatal(err)
		}
		return head
	}
	apart := func(when string, with policy.Ruling) {
		t.Helper()
		before := recorded()
		if err := together(with); !errors.Is(err, policy.ErrApart) || recorded() != before {
			t.Errorf("%s: %v, %d events recorded; want %v and none", when, err, recorded()-before, policy.ErrApart)
		}
	}
	if err := together(theirs); err != nil {
		t.Fatal(err)
	}
	apart("of the same principal", mine)
	for range 2 { // with the one above that is all that they may
		if err := begin(h, theirs, ""); err != nil {
			t.Fatal(err)
		}
	}
	apart("beyond the other's quota", theirs)
	for range 2 { // what was refused has counted for nobody
		if err := begin(h, mine, ""); err != nil {
			t.Fatal(err)
		}
	}
	forged := theirs
	forged.Canonical = append([]byte{}, mine.Canonical...)
	if err := together(forged); err == nil {
		t.Error("a ruling that is not the gate's own")
	}
}
