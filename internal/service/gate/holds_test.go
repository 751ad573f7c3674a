package gate_test

import (
	"context"
	"sync/atomic"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	spaces "agentbox/internal/domain/space"
	"agentbox/internal/service/gate"
)

// counting is an evaluator that counts how often it is asked.
type counting struct {
	policy.Evaluator
	asked atomic.Int64
}

func (c *counting) Evaluate(b policy.Bundle, f policy.Facts) (policy.Verdict, error) {
	c.asked.Add(1)
	return c.Evaluator.Evaluate(b, f)
}

// The bundle is asked once for a ruling that is begun at once, and again when anything that the ruling rests on has changed since.
func TestBeginJudgesAgainWhatHasChanged(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name    string
		between func(t *testing.T, h *house)
		again   int64 // how often the bundle is asked between ruling and permit
		code    string
	}{
		{"nothing changed", func(*testing.T, *house) {}, 0, ""},
		{"quarantined", func(t *testing.T, h *house) {
			if err := h.Quarantine(ctx, h.origin(h.owner), ws, h.agent, true, ""); err != nil {
				t.Fatal(err)
			}
		}, 0, policy.ReasonAgentQuarantined},
		{"quarantined and released", func(t *testing.T, h *house) {
			for _, on := range []bool{true, false} {
				if err := h.Quarantine(ctx, h.origin(h.owner), ws, h.agent, on, ""); err != nil {
					t.Fatal(err)
				}
			}
		}, 1, ""},
		{"kill switch", func(t *testing.T, h *house) {
			if _, err := h.ThrowKillSwitch(ctx, h.origin(h.owner), ws, ""); err != nil {
				t.Fatal(err)
			}
		}, 0, policy.ReasonKillSwitch},
		{"the space is changed", func(t *testing.T, h *house) { h.about(t, spaces.EventUpdated, spaces.Updated{Space: space}) }, 1, ""},
		{"the space pins another policy", func(t *testing.T, h *house) {
			h.about(t, spaces.EventCreated, spaces.Created{Space: space, Bundle: h.bundles["restrictive"].Hash})
		}, 0, policy.ReasonPolicyUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked *counting
			h := build(t, func(p *gate.Parts) {
				asked = &counting{Evaluator: p.Evaluator}
				p.Evaluator = asked
			})
			h.about(t, spaces.EventCreated, spaces.Created{Space: space, Bundle: h.bundles["standard"].Hash})
			a := h.file("standard", policy.FileCreate, "report.md")
			r := h.judge(a)
			c.between(t, h)
			before := asked.asked.Load()
			_, _, err := h.Begin(ctx, r, "", h.intent(a))
			if fault.CodeOf(err) != c.code {
				t.Errorf("got %v, want %q", err, c.code)
			}
			if got := asked.asked.Load() - before; got != c.again {
				t.Errorf("the bundle was asked %d times, want %d", got, c.again)
			}
			if again := h.judge(a); c.code == "" && again.Decision.Outcome != policy.Allow {
				t.Errorf("judged anew: got %+v", again.Decision)
			}
		})
	}
}

// A ruling whose basis was changed is not the gate's own.
func TestBasisIsSealed(t *testing.T) {
	h := build(t, nil)
	a := h.file("standard", policy.FileCreate, "report.md")
	for name, change := range map[string]func(*policy.Ruling){
		"principal": func(r *policy.Ruling) { r.Basis.Principal++ },
		"space":     func(r *policy.Ruling) { r.Basis.Space++ },
	} {
		r := h.judge(a)
		change(&r)
		if _, _, err := h.Begin(context.Background(), r, "", h.intent(a)); fault.CodeOf(err) != policy.ErrPermitMismatch.Code {
			t.Errorf("%s: got %v, want %v", name, err, policy.ErrPermitMismatch)
		}
	}
}

// about records an event about the space.
func (h *house) about(t *testing.T, typ string, data any) {
	t.Helper()
	draft := event.New(typ, h.origin(h.owner), ws, "", data).About(spaces.EntityType, string(space))
	if _, err := h.log.Append(context.Background(), event.Batch{Workspace: ws, Drafts: []event.Draft{draft}}); err != nil {
		t.Fatal(err)
	}
}
