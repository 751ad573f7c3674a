package agents_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/tool"
	"agentbox/internal/service/agents"
	"agentbox/internal/testkit/wall"
)

// TestTheTimeOfARun plays a run whose model takes a second for each answer and whose tools take two for each operation. Operations that
// only look are made side by side, and count once.
func TestTheTimeOfARun(t *testing.T) {
	for _, c := range []struct {
		seconds, effects, answers int
		want                      string
	}{
		// 1 answer, 2 for the two readFiles at once, 2 createFile; 1 answer, (deleteFile is refused) 2 shell; 1, 1, 1
		{12, 4, 5, ""}, {11, 4, 5, ""}, {10, 4, 4, agents.FailTime}, {9, 4, 3, agents.FailTime}, {8, 4, 2, agents.FailTime},
		{6, 3, 2, agents.FailTime}, {5, 3, 1, agents.FailTime}, {3, 2, 1, agents.FailTime}, {1, 0, 1, agents.FailTime},
	} {
		w := world5()
		w.took, w.worked = time.Second, 2*time.Second
		def := blueprint.Blueprint{Limits: blueprint.Limits{Seconds: c.seconds, ToolSeconds: 3}}
		got, err := perform(t, w, def)
		if err != nil || got.Failure != c.want || len(w.effects) != c.effects || w.billed != c.answers {
			t.Errorf("%d seconds: got %+v, %v, %d effects, %d answers; want %q, %d and %d", c.seconds, got, err, len(w.effects), w.billed, c.want,
				c.effects, c.answers)
		}
		for i, left := range w.lefts {
			spent := []time.Duration{1, 1, 3, 6}[i] * time.Second
			if left.Call != 3*time.Second || left.Run != time.Duration(c.seconds)*time.Second-spent {
				t.Errorf("%d seconds: operation %d has %+v left", c.seconds, i, left)
			}
		}
	}
}

// TestTheTimeOfARunThatIsKilled kills the daemon at every point of a run that ends at its limit. The next daemon comes to the same
// decision.
func TestTheTimeOfARunThatIsKilled(t *testing.T) {
	for _, seconds := range []int{3, 6, 8, 10} {
		def := blueprint.Blueprint{Limits: blueprint.Limits{Seconds: seconds}}
		slow := func() *world {
			w := world5()
			w.took, w.worked = time.Second, 2*time.Second
			return w
		}
		whole := slow()
		want, err := perform(t, whole, def)
		if err != nil || want.Failure != agents.FailTime {
			t.Fatalf("got %+v, %v", want, err)
		}
		for at := 1; at <= whole.asked; at++ {
			w := slow()
			w.kill = at
			if _, err := perform(t, w, def); !errors.Is(err, errKilled) {
				t.Fatalf("killed at %d: %v", at, err)
			}
			got, err := perform(t, w, def)
			if err != nil || got.Failure != want.Failure || got.Message != want.Message || string(got.Output) != string(want.Output) {
				t.Fatalf("%d seconds, killed at %d: got %+v, %v; want %+v", seconds, at, got, err, want)
			}
			if len(w.effects) != len(whole.effects) || w.billed != whole.billed {
				t.Errorf("%d seconds, killed at %d: %d effects, %d answers", seconds, at, len(w.effects), w.billed)
			}
			for n, turn := range whole.turns {
				if w.turns[n].Worked != turn.Worked {
					t.Errorf("killed at %d: turn %d begins after %d ms, want %d", at, n, w.turns[n].Worked, turn.Worked)
				}
			}
		}
	}
}

// late is a model that does not answer in time.
type late struct{ asked []time.Duration }

func (l *late) Ask(_ context.Context, a model.Ask) (model.Reply, error) {
	l.asked = append(l.asked, a.Time)
	return model.Reply{Took: a.Time}, model.ErrTime
}

// TestAnAnswerThatIsLateEndsTheRun holds that the rest of the run's time bounds each request to a model.
func TestAnAnswerThatIsLateEndsTheRun(t *testing.T) {
	w, m := world5(), &late{}
	l := &agents.Loop{Records: w, Models: m, Clock: wall.Clock{}, Logger: slog.New(slog.DiscardHandler), Prepare: prepare,
		Read: func(context.Context, id.Workspace, string, int) (blueprint.Blueprint, event.Digest, error) {
			return blueprint.Blueprint{Limits: blueprint.Limits{Seconds: 7}}, event.DigestOf([]byte("locked")), nil
		},
		Tools: func(context.Context, id.Workspace, blueprint.Blueprint) ([]tool.Tool, event.Digest, error) {
			return nil, event.DigestOf([]byte("tools")), nil
		},
	}
	got, err := l.Perform(t.Context(), errand.Work{Run: "run_1", Input: mission(t, nil)})
	if err != nil || got.Failure != agents.FailTime || len(m.asked) != 1 || m.asked[0] != 7*time.Second {
		t.Errorf("got %+v, %v; asked with %v", got, err, m.asked)
	}
}
