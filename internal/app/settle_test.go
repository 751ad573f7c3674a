package app_test

import (
	"context"
	"log/slog"
	"math"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit/wall"
)

// mute is a log whose database does not answer who reads until the log is closed.
type mute struct{ journal.Journal }

func (m mute) Read(ctx context.Context, q journal.Query) ([]event.Event, error) {
	return nil, m.Wait(context.WithoutCancel(ctx), q.Workspace, math.MaxUint64)
}

// rushed is a clock whose timers fire at once.
type rushed struct{ app.Clock }

func (rushed) NewTimer(time.Duration) (<-chan time.Time, func()) {
	fired := make(chan time.Time, 1)
	fired <- time.Time{}
	return fired, func() {}
}

// A daemon ends although the evidence of a run cannot be collected, because the database is away.
func TestADaemonEndsWhileEvidenceCannotBeCollected(t *testing.T) {
	a, err := app.Open(t.Context(), app.Default(t.TempDir()), rushed{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	a.Engines.Log = mute{a.Engines.Log}
	owner := event.Origin{Principal: a.Owner}
	doc, err := a.Engines.Create(t.Context(), owner, engines.Request{Workspace: id.DefaultWorkspace, Room: spaces.DefaultRoom, Title: "a run"})
	if err == nil {
		_, err = a.Engines.Cancel(t.Context(), owner, id.DefaultWorkspace, doc.ID, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- a.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(wall.Patience):
		t.Fatal("it waits for ever")
	}
}
