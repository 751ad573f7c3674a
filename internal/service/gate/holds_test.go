package gate_test

import (
	"context"
	"reflect"
	"slices"
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
			if _, err := h.KillSwitch.Throw(ctx, h.origin(h.owner), ws, ""); err != nil {
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

// A ruling in which any field was changed is not the gate's own.
func TestRulingIsSealed(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "ls")
	a.Env = map[string]string{"LANG": "C"}
	tried := 0
	var flip func(t *testing.T, name string, at func(*policy.Ruling) reflect.Value)
	flip = func(t *testing.T, name string, at func(*policy.Ruling) reflect.Value) {
		r := h.judge(a)
		v := at(&r)
		switch {
		case name == ".Limits", name == ".Seal":
			return
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				flip(t, name+"."+v.Type().Field(i).Name, func(r *policy.Ruling) reflect.Value { return at(r).Field(i) })
			}
			return
		case v.Kind() == reflect.String:
			v.SetString(v.String() + "x")
		case v.CanInt():
			v.SetInt(v.Int() + 1)
		case v.CanUint():
			v.SetUint(v.Uint() + 1)
		case v.Kind() == reflect.Bool:
			v.SetBool(!v.Bool())
		case v.Kind() == reflect.Array:
			v.Index(0).SetUint(v.Index(0).Uint() ^ 1)
		case v.Type() == reflect.TypeFor[[]string]():
			v.Set(reflect.ValueOf(append(slices.Clone(v.Interface().([]string)), "x")))
		case v.Kind() == reflect.Slice:
			v.SetBytes(append(slices.Clone(v.Bytes()), 'x'))
		case v.Kind() == reflect.Map:
			v.Set(reflect.ValueOf(map[string]string{"LANG": "D"}))
		default:
			t.Fatalf("%s: a field of kind %s", name, v.Kind())
		}
		tried++
		if _, _, err := h.Begin(context.Background(), r, "", h.intent(a)); fault.CodeOf(err) != policy.ErrPermitMismatch.Code {
			t.Errorf("%s: got %v, want %v", name, err, policy.ErrPermitMismatch)
		}
	}
	flip(t, "", func(r *policy.Ruling) reflect.Value { return reflect.ValueOf(r).Elem() })
	if tried < 35 {
		t.Errorf("only %d fields were tried", tried)
	}
	r := h.judge(a)
	r.Canonical[5] ^= 1 // where it lies
	if _, _, err := h.Begin(context.Background(), r, "", h.intent(a)); fault.CodeOf(err) != policy.ErrPermitMismatch.Code {
		t.Errorf("bytes changed in place: got %v", err)
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
