package spaces_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
)

// counted counts how often lists are asked for.
type counted struct {
	projection.Reader

	lists int
}

func (c *counted) Documents(ctx context.Context, q projection.Query) ([]projection.Document, error) {
	c.lists++
	return c.Reader.Documents(ctx, q)
}

// TestStepLooksWhereItHasTo steps through the life of spaces: it looks at them when something was recorded, when the time of one is over,
// and once in a minute.
func TestStepLooksWhereItHasTo(t *testing.T) {
	s := testkit.Open(t, testkit.Options{Program: program, Idle: true})
	docs := &counted{Reader: s.Docs}
	k := spaces.New(spaces.Parts{
		Log: s.Log, Docs: docs, Gate: s.Gate, Library: s.Gate.Bundles, Store: s.Store, Clock: s.Clock, IDs: s.IDs,
		Logger: slog.New(slog.DiscardHandler), System: principal.System,
	})
	k.SetOccupants(s.Runs)
	soon := s.SpaceOf(spaces.Request{TTL: 2 * time.Hour})
	late := s.SpaceOf(spaces.Request{TTL: 4 * time.Hour})
	now := s.Clock.Now()
	step := func(after time.Duration, looks bool) {
		t.Helper()
		before := docs.lists
		if err := k.Ending.Step(t.Context(), now.Add(after)); err != nil {
			t.Fatal(err)
		}
		if looked := docs.lists > before; looked != looks {
			t.Errorf("after %s: it looked is %v, want %v", after, looked, looks)
		}
	}
	step(0, true)
	step(time.Second, false)
	step(59*time.Second, false)
	step(time.Minute, true)
	if _, err := s.Spaces.Settings.Extend(t.Context(), s.Origin, testkit.WS, late.ID, time.Hour); err != nil { // it ends before the other one
		t.Fatal(err)
	}
	step(61*time.Second, true)
	step(62*time.Second, false)
	step(59*time.Minute+50*time.Second, true)
	step(90*time.Minute, true)
	for doc, want := range map[*space.Space]space.Status{&late: space.Destroyed, &soon: soon.Status} {
		if got, err := s.Spaces.Catalog.Space(t.Context(), testkit.WS, doc.ID); err != nil || got.Status != want {
			t.Errorf("after 90 minutes the space that ends %s is %s, %v; want %s", doc.ExpiresAt, got.Status, err, want)
		}
	}
	step(90*time.Minute+time.Second, true) // that the space has ended was recorded
	step(90*time.Minute+2*time.Second, false)
	step(2*time.Hour, true)
	if got, err := s.Spaces.Catalog.Space(t.Context(), testkit.WS, soon.ID); err != nil || got.Status != space.Destroyed {
		t.Errorf("after two hours it is %s, %v", got.Status, err)
	}
}
