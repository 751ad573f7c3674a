package gate_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gate/killswitch"
)

// beside returns the gate of another daemon of the same log, which follows it until the test ends.
func (h *house) beside() (g *gate.Gate, halted, lifted chan struct{}) {
	h.t.Helper()
	g, err := gate.New(h.parts)
	if err != nil {
		h.t.Fatal(err)
	}
	halted, lifted = make(chan struct{}, 8), make(chan struct{}, 8)
	g.KillSwitch.OnHalt(func(_ id.Workspace, cause error) {
		if errors.Is(cause, killswitch.ErrThrown) {
			halted <- struct{}{}
		}
	})
	g.KillSwitch.OnLift(func(id.Workspace) { lifted <- struct{}{} })
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- g.KillSwitch.Follow(ctx) }()
	h.t.Cleanup(func() {
		stop()
		if err := <-over; err != nil {
			h.t.Error(err)
		}
	})
	return g, halted, lifted
}

// thrown returns the last event that threw the kill switch.
func (h *house) thrown() id.Event {
	h.t.Helper()
	found, err := h.parts.Log.Read(context.Background(), journal.Query{Workspace: ws, Types: []string{policy.KillSwitchThrownType},
		Limit: 100})
	if err != nil || len(found) == 0 {
		h.t.Fatalf("the log has %d throws, %v", len(found), err)
	}
	return found[len(found)-1].ID
}

// A kill switch that one daemon throws stops effects of every other one, and one that any of them lifts is lifted for all.
func TestAKillSwitchIsThrownForAllDaemons(t *testing.T) {
	ctx := context.Background()
	h := build(t, func(p *gate.Parts) { p.Together = true })
	other, halted, lifted := h.beside()
	effect := h.shell("standard", "ls")
	ruling, err := other.Judge(ctx, effect)
	if err != nil {
		t.Fatal(err)
	}
	inFlight, _, err := other.Begin(ctx, ruling, "", h.intent(effect))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.KillSwitch.Throw(ctx, h.origin(h.owner), ws, "something smells"); err != nil {
		t.Fatal(err)
	}
	// A beginning action is refused at once, whether the other daemon has been told or not.
	if now, err := other.Judge(ctx, effect); err != nil || now.Decision.ReasonCode != policy.ReasonKillSwitch {
		t.Errorf("judged elsewhere: %s, %v", now.Decision.ReasonCode, err)
	}
	if _, _, err := other.Begin(ctx, ruling, "", h.intent(effect)); fault.CodeOf(err) != policy.ReasonKillSwitch {
		t.Errorf("begun elsewhere: %v", err)
	}
	<-halted
	_, err = inFlight.Redeem(policy.ShellExec)
	if !errors.Is(err, killswitch.ErrThrown) {
		t.Errorf("a permit of before: %v, want %v", err, killswitch.ErrThrown)
	}
	thrown := h.thrown()
	if halt, ok := errors.AsType[policy.Halt](err); !ok || halt.Event() != thrown {
		t.Errorf("the permit of before was refused by %v, want by the event %s", err, thrown)
	}
	if _, err := other.KillSwitch.Lift(ctx, h.origin(h.owner), ws, ""); err != nil {
		t.Fatal(err)
	}
	<-lifted
	mine, err := gate.New(h.parts) // whose memory is that of a daemon which just began
	if err != nil {
		t.Fatal(err)
	}
	if now, err := mine.Judge(ctx, effect); err != nil || now.Decision.Outcome != policy.Allow {
		t.Errorf("lifted elsewhere: %s, %v", now.Decision.ReasonCode, err)
	}
}

// The effects of an hour are counted over all daemons: however many begin at once, and wherever, no more begin than are allowed.
func TestTheQuotaIsThatOfAllDaemons(t *testing.T) {
	const most = 10
	h := build(t, func(p *gate.Parts) { p.Together, p.EffectsPerHour = true, most })
	gates := []*gate.Gate{h.Gate}
	for range 2 {
		g, _, _ := h.beside()
		gates = append(gates, g)
	}
	effect := h.shell("standard", "ls")
	var wg sync.WaitGroup
	var mu sync.Mutex
	began := 0
	for _, g := range gates {
		wg.Go(func() {
			for refused := 0; refused < 3; {
				ruling, err := g.Judge(context.Background(), effect)
				if err == nil {
					_, _, err = g.Begin(context.Background(), ruling, "", h.intent(effect))
				}
				if err != nil {
					refused++
					continue
				}
				mu.Lock()
				began++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if began != most {
		t.Errorf("%d effects began, want %d", began, most)
	}
}
