package app_test

import (
	"log/slog"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/spaces"
)

// setTo is the machine's clock, set to another time.
type setTo struct {
	app.Clock
	off time.Duration
}

func (c setTo) Now() time.Time { return c.Clock.Now().Add(c.off) }

// An id that is made after the clock was set back, also over a restart, sorts behind the earlier ids.
func TestIdentifiersAfterTheClockWasSetBack(t *testing.T) {
	dir := t.TempDir()
	var keys []id.Key
	var events []id.Event
	for _, off := range []time.Duration{0, 365 * 24 * time.Hour, -24 * time.Hour, 0} {
		a, err := app.Open(t.Context(), app.Default(dir), setTo{off: off}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		_, key, err := a.Identity.IssueKey(t.Context(), event.Origin{Principal: a.Owner}, id.DefaultWorkspace, a.Owner, "test")
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key.ID)
		last, err := a.Log.Read(t.Context(), journal.Query{Workspace: id.DefaultWorkspace, Last: true, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, last[0].ID)
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; i < len(keys); i++ {
		if keys[i] <= keys[i-1] || events[i] <= events[i-1] {
			t.Errorf("start %d: got key %s and event %s, want them behind %s and %s", i, keys[i], events[i], keys[i-1], events[i-1])
		}
	}
}

// P-Closed: a daemon on a machine whose clock lost its power starts, tells what is in its log, and does nothing.
func TestUnderAClockThatCannotBeReadNothingIsDone(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		clock event.Clock
		want  policy.Outcome
		code  string
	}{
		{app.Clock{}, policy.Allow, policy.ReasonDefaultAllow},
		{setTo{off: time.Until(time.Unix(3600, 0))}, policy.Deny, policy.ReasonClockUnreadable},
		{app.Clock{}, policy.Allow, policy.ReasonDefaultAllow},
	} {
		a, err := app.Open(t.Context(), app.Default(dir), c.clock, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ruling, err := a.Gate.Judge(t.Context(), policy.Action{Type: policy.SpaceCreate, Workspace: id.DefaultWorkspace, Principal: a.Owner,
			Room: spaces.DefaultRoom})
		if err != nil || ruling.Decision.Outcome != c.want || ruling.Decision.ReasonCode != c.code {
			t.Errorf("at %s: got %s %s, %v", c.clock.Now(), ruling.Decision.Outcome, ruling.Decision.ReasonCode, err)
		}
		if events, err := a.Log.Read(t.Context(), journal.Query{Workspace: id.DefaultWorkspace, Limit: 10}); err != nil || len(events) == 0 {
			t.Errorf("at %s: got %d events, %v", c.clock.Now(), len(events), err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
