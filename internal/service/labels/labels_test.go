package labels_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/memory"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/labels"
	"agentbox/internal/service/spaces"
)

// clock stands still until it is moved.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func (c *clock) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// TestAnAccessEndsAfterItsTime reads what was asked for until its time is over, to the nanosecond.
func TestAnAccessEndsAfterItsTime(t *testing.T) {
	ctx := context.Background()
	c := &clock{now: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)}
	ids := id.NewSource(c.Now, rand.Reader)
	log, err := memory.NewJournal(append(append(gate.Definitions(), labels.Definitions()...), spaces.Definition()), c, ids, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Parts{Log: log, Docs: log, Evaluator: cedar.New(), Clock: c, IDs: ids})
	if err != nil {
		t.Fatal(err)
	}
	people := identity.New(identity.Parts{Log: log, Docs: log, Gate: g, Clock: c, IDs: ids, Entropy: rand.Reader})
	owner, err := people.Owner(ctx, id.DefaultWorkspace, "owner")
	if err != nil {
		t.Fatal(err)
	}
	service := labels.New(labels.Parts{Log: log, Docs: log, Gate: g, Clock: c, Place: func(context.Context, id.Workspace, id.Room,
		id.Thread) error {
		return nil
	}})
	origin, thing := event.Origin{Principal: owner}, label.Resource{Type: "artifact", ID: "a"}
	reads := func(want error) {
		t.Helper()
		if err := service.MayRead(ctx, id.DefaultWorkspace, owner, thing, ""); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	reads(nil)
	if _, err := service.Label(ctx, origin, id.DefaultWorkspace, label.Label{Resource: thing, Level: label.Confidential}); err != nil {
		t.Fatal(err)
	}
	reads(labels.ErrAccessRequired)
	ask := func(action string) {
		t.Helper()
		if a, err := service.Request(ctx, origin, id.DefaultWorkspace, "", label.Request{Resource: thing, Action: action}); err != nil ||
			a.Decision.Outcome != policy.Allow {
			t.Fatalf("to %s: got %+v, %v", action, a, err)
		}
	}
	ask("write")
	reads(labels.ErrAccessRequired) // to write is not to read
	a, err := service.Request(ctx, origin, id.DefaultWorkspace, "", label.Request{Resource: thing, Action: "read"})
	if err != nil || a.Decision.Outcome != policy.Allow || a.Event == "" {
		t.Fatalf("got %+v, %v", a, err)
	}
	c.now = c.now.Add(label.AccessTime - time.Nanosecond)
	reads(nil)
	ask("write") // takes away nothing, and puts off no end
	reads(nil)
	c.now = c.now.Add(time.Nanosecond)
	reads(labels.ErrAccessRequired)
	if err := service.MayRead(ctx, "ws_other", owner, thing, ""); err != nil {
		t.Errorf("the label holds in another workspace: %v", err)
	}
}
