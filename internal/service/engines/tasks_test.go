package engines_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/engines"
)

// tasks lets n runs of the workspace run at the same time.
func (h *house) tasks(n int) {
	h.t.Helper()
	_, err := h.log.Append(context.Background(), event.Batch{Workspace: ws, Drafts: []event.Draft{
		event.New(workspace.EventUpdated, h.owner, ws, "", workspace.Updated{Workspace: ws, Tasks: n}).About(workspace.EntityType, string(ws)),
	}})
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) nothing(why string) {
	h.t.Helper()
	if doc, _, err := h.Claim(context.Background(), h.owner, ws, engines.Wanted{}); !errors.Is(err, errand.ErrNothing) {
		h.t.Errorf("%s: got %s, %v", why, doc.ID, err)
	}
	if offers, err := h.Offers(context.Background(), ws, engines.Wanted{}); offers || err != nil {
		h.t.Errorf("%s: offers %t, %v", why, offers, err)
	}
}

// TestNoMoreRunsThanAWorkspaceMay claims as many as may run, and no more before one ends, is given back, or may run beyond.
func TestNoMoreRunsThanAWorkspaceMay(t *testing.T) {
	h, ctx := open(t), t.Context()
	var asked []run.Run
	for range workspace.DefaultTasks + 4 {
		asked = append(asked, h.ask(""))
	}
	var held []engines.Hold
	for range workspace.DefaultTasks {
		_, k := h.claim()
		held = append(held, k)
	}
	sixth := asked[workspace.DefaultTasks].ID
	h.nothing("a sixth run")
	_, err := h.Begin(ctx, h.owner, engines.Hold{Workspace: ws, Run: sixth})
	h.code(err, "too_many_tasks")
	if doc, err := h.Find(ctx, ws, sixth); err != nil || doc.Status != run.Queued {
		t.Fatalf("the sixth is %s, %v", doc.Status, err)
	}

	if _, err := h.Complete(ctx, h.owner, held[0], "", nil); err != nil {
		t.Fatal(err)
	}
	if doc, _ := h.claim(); doc.ID != sixth {
		t.Errorf("when one has ended: %s, want %s", doc.ID, sixth)
	}
	h.nothing("a seventh")
	if _, err := h.Release(ctx, h.owner, held[1]); err != nil {
		t.Fatal(err)
	}
	if doc, _ := h.claim(); doc.ID != held[1].Run {
		t.Errorf("what was given back is the oldest: got %s, want %s", doc.ID, held[1].Run)
	}
	h.nothing("after it is claimed again")

	h.clock.move(run.ClaimTime) // an engine that has lost a run leaves its place to the next owner
	doc, fresh := h.claim()
	if doc.Attempts < 2 {
		t.Errorf("beyond their claims: %s at attempt %d", doc.ID, doc.Attempts)
	}

	h.tasks(workspace.DefaultTasks + 1)
	if doc, _ := h.claim(); doc.Attempts != 1 {
		t.Errorf("one more may run: %s at attempt %d", doc.ID, doc.Attempts)
	}
	h.tasks(1)
	if _, err := h.Fail(ctx, h.owner, fresh, "", "", nil); err != nil {
		t.Fatal(err)
	}
	if offers, err := h.Offers(ctx, ws, engines.Wanted{}); !offers || err != nil { // those whose claims have expired
		t.Errorf("offers %t, %v", offers, err)
	}
	_, err = h.Begin(ctx, h.owner, engines.Hold{Workspace: ws, Run: asked[len(asked)-1].ID})
	h.code(err, "too_many_tasks")
}

// TestOfManyEnginesNoMoreThanMayHaveRuns has them all claim at once.
func TestOfManyEnginesNoMoreThanMayHaveRuns(t *testing.T) {
	h, ctx := open(t), t.Context()
	const most, runs = 3, 12
	h.tasks(most)
	for range runs {
		h.ask("")
	}
	ended := 0
	for ended < runs {
		var working sync.WaitGroup
		var mu sync.Mutex
		var held []engines.Hold
		for range 8 {
			working.Go(func() {
				doc, token, err := h.Claim(ctx, h.owner, ws, engines.Wanted{})
				if errors.Is(err, errand.ErrNothing) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				held = append(held, engines.Hold{Workspace: ws, Run: doc.ID, Token: token})
			})
		}
		working.Wait()
		load, _, err := projection.Load[run.Load](ctx, h.log, ws, run.LoadProjection, string(ws))
		if err != nil || len(held) != most || len(load.Running) != most {
			t.Fatalf("%d engines have runs, %d run, %v; want %d", len(held), len(load.Running), err, most)
		}
		for _, k := range held {
			if _, err := h.Complete(ctx, h.owner, k, "", nil); err != nil {
				t.Fatal(err)
			}
			ended++
		}
	}
	h.nothing("after the last")
}
