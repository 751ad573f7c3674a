package gate_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate"
)

// actor is somebody who acts in steps. Each step is one request to the log.
type actor struct {
	name     string
	act      func(ctx context.Context) error
	arrived  chan struct{} // is about to take a step
	goOn     chan struct{}
	finished chan struct{}
	saw      []uint64 // the places of the log at which the actor took steps: all that the actor can know
	err      error
}

type actorKey struct{}

// stage is the log as actors see it: each step waits until it is let go.
type stage struct {
	journal.Journal
	docs projection.Reader
}

func step(ctx context.Context) {
	if a, ok := ctx.Value(actorKey{}).(*actor); ok {
		a.arrived <- struct{}{}
		<-a.goOn
	}
}

func (s stage) Append(ctx context.Context, b event.Batch) (event.Receipt, error) {
	step(ctx)
	return s.Journal.Append(ctx, b)
}

func (s stage) Read(ctx context.Context, q journal.Query) ([]event.Event, error) {
	step(ctx)
	return s.Journal.Read(ctx, q)
}

func (s stage) Document(ctx context.Context, ws id.Workspace, name, key string) (projection.Document, error) {
	step(ctx)
	return s.docs.Document(ctx, ws, name, key)
}

func (s stage) Documents(ctx context.Context, q projection.Query) ([]projection.Document, error) {
	step(ctx)
	return s.docs.Documents(ctx, q)
}

// onStage puts the log of a house on stage.
func onStage(p *gate.Parts) { p.Log, p.Docs = stage{p.Log, p.Docs}, stage{p.Log, p.Docs} }

// order is who goes on at each point of a scene, as a number among those who can, and how many can. Where a scene has come to that it was
// at before, on another way, none is counted but the one who does: the others were let go there.
type order struct {
	t     *testing.T
	seen  map[string]bool // by the place of the log, and what the actors saw
	taken []int
	could []int
}

// perform lets actors act until all have finished, as the order has it; beyond its end the first one goes on.
func (o *order) perform(h *house, actors ...*actor) {
	t := o.t
	t.Helper()
	schedule, known := o.taken, false
	o.taken, o.could = nil, nil
	for _, a := range actors {
		a.arrived, a.goOn, a.finished = make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(a.finished)
			ctx := context.WithValue(context.Background(), actorKey{}, a)
			step(ctx)
			a.err = a.act(ctx)
		}()
	}
	ready := map[*actor]bool{}
	for left := slices.Clone(actors); ; {
		synctest.Wait()
		var can []*actor
		left = slices.DeleteFunc(left, func(a *actor) bool {
			select {
			case <-a.arrived:
				ready[a] = true
			case <-a.finished:
				return true
			default: // waits for another one, or has arrived before
			}
			return false
		})
		for _, a := range left {
			if ready[a] {
				can = append(can, a)
			}
		}
		if len(left) == 0 {
			return
		}
		if len(can) == 0 {
			t.Fatal("everybody waits for everybody")
		}
		head, err := h.log.Head(t.Context(), ws)
		if err != nil {
			t.Fatal(err)
		}
		next, choices := 0, len(can)
		if at := len(o.taken); at < len(schedule) {
			next = schedule[at]
		} else {
			scene := fmt.Sprint(head)
			for _, a := range actors {
				scene += fmt.Sprint(" ", a.saw, ready[a])
			}
			if known = known || o.seen[scene]; known {
				choices = 1
			}
			o.seen[scene] = true
		}
		o.taken, o.could = append(o.taken, next), append(o.could, choices)
		can[next].saw = append(can[next].saw, head)
		ready[can[next]] = false
		can[next].goOn <- struct{}{}
	}
}

// everyOrder runs a scene for each order in which its actors can take their steps, but for those that differ in nothing that anybody sees.
func everyOrder(t *testing.T, scene func(t *testing.T, o *order)) {
	t.Helper()
	orders, o := 0, &order{seen: map[string]bool{}}
	for more := true; more; orders++ {
		synctest.Test(t, func(t *testing.T) {
			o.t = t
			scene(t, o)
		})
		if t.Failed() {
			t.Fatalf("in the order %v", o.taken)
		}
		more = false
		for at := len(o.taken) - 1; at >= 0 && !more; at-- {
			if more = o.taken[at]+1 < o.could[at]; more {
				o.taken = append(slices.Clone(o.taken[:at]), o.taken[at]+1)
			}
		}
	}
	if orders < 10 {
		t.Errorf("there were only %d orders", orders)
	}
	t.Logf("%d orders", orders)
}

// uses takes from the log how often a standing approval was used, and fails where that was after it was revoked.
func (h *house) uses(t *testing.T) (used int) {
	t.Helper()
	revoked := false
	for _, e := range h.events() {
		switch e.Type {
		case policy.StandingRevokedType:
			revoked = true
		case policy.StandingUsedType:
			if used++; revoked {
				t.Error("it was used after it was revoked")
			}
		}
	}
	return used
}

// TestThreat13RevokedInEveryOrder lets somebody act by a standing approval while a person revokes it, in every order of what they ask of
// the log.
func TestThreat13RevokedInEveryOrder(t *testing.T) {
	everyOrder(t, func(t *testing.T, o *order) {
		h := build(t, onStage)
		standing, r := h.granted(t, 100)
		action := r.Action
		started := false
		worker := &actor{name: "worker", act: func(ctx context.Context) error {
			r, err := h.Judge(ctx, action)
			if err != nil || !r.Decision.Allowed() {
				return err
			}
			_, _, err = h.Begin(ctx, r, "", h.intent(action))
			started = err == nil
			return err
		}}
		owner := &actor{name: "owner", act: func(ctx context.Context) error {
			return h.Approvals.Revoke(ctx, h.origin(h.owner), ws, standing, "no more")
		}}
		o.perform(h, worker, owner)
		if owner.err != nil {
			t.Errorf("revoke: %v", owner.err)
		}
		if kind := fault.KindOf(worker.err); worker.err != nil && kind != fault.Waiting && kind != fault.Denied && kind != fault.Conflict {
			t.Errorf("begin: %v", worker.err)
		}
		if used := h.uses(t); used == 1 != started || used > 1 {
			t.Errorf("%d uses in the log, started: %t", used, started)
		}
		h.restart()
		if r := h.judge(action); r.Decision.Outcome != policy.RequireApproval {
			t.Errorf("after the revocation the gate says %s", r.Decision.Outcome)
		}
	})
}

// TestThreat09OneStartInEveryOrder lets two act by the same answer to one question, in every order of what they ask of the log.
func TestThreat09OneStartInEveryOrder(t *testing.T) {
	everyOrder(t, func(t *testing.T, o *order) {
		h := build(t, onStage)
		r, q := h.asked(h.shell("standard", "rm -r scratch"))
		h.approve(q, h.owner)
		starts := 0
		var actors []*actor
		for n := range 2 {
			actors = append(actors, &actor{name: fmt.Sprint("worker ", n), act: func(ctx context.Context) error {
				_, _, err := h.Begin(ctx, r, q.ID, h.intent(r.Action))
				if err == nil {
					starts++ // one goes on at a time
				}
				return err
			}})
		}
		o.perform(h, actors...)
		if n := h.count("tool.invoked"); starts != 1 || n != 1 {
			t.Errorf("it was started %d times, and recorded %d times", starts, n)
		}
	})
}
