package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/tool"
	"agentbox/internal/service/agents"
	"agentbox/internal/service/tools"
	"agentbox/internal/testkit/wall"
)

// listener keeps the requests of a world.
type listener struct {
	*world
	sent []model.Request
}

func (a *listener) Ask(ctx context.Context, q model.Ask) (model.Reply, error) {
	a.sent = append(a.sent, q.Request)
	return a.world.Ask(ctx, q)
}

// goOn performs a run that continues the conversation of the runs with the given ids.
func goOn(t *testing.T, a *listener, def blueprint.Blueprint, before map[id.Run]agents.Earlier, after id.Run) (errand.Result, error) {
	t.Helper()
	l := &agents.Loop{Records: a, Models: a, Clock: wall.Clock{}, Logger: slog.New(slog.DiscardHandler), Prepare: prepare,
		Read: func(context.Context, id.Workspace, string, int) (blueprint.Blueprint, event.Digest, error) {
			return def, event.DigestOf([]byte("locked")), nil
		},
		Tools: func(context.Context, id.Workspace, blueprint.Blueprint) ([]tool.Tool, event.Digest, error) {
			return tools.Builtin(), event.DigestOf([]byte("tools")), nil
		},
		Earlier: func(_ context.Context, _ id.Workspace, r id.Run) (agents.Earlier, error) {
			e, ok := before[r]
			if !ok {
				return e, errand.ErrForgotten
			}
			return e, nil
		},
	}
	input := mission(t, func(m *errand.Mission) { m.After, m.Task = after, "And to four." })
	return l.Perform(t.Context(), errand.Work{Run: "run_new", Input: input})
}

// earlierRun is the record of a run that a world has performed, or was killed in.
func earlierRun(w *world, task string, after id.Run) agents.Earlier {
	e := agents.Earlier{Task: task, After: after, Past: w.turns, Answers: map[int]model.Answer{}}
	for n := range w.turns {
		if a, ok := w.answers[model.Ask{Run: "run_1", Step: n + 1}.Name()]; ok {
			e.Answers[n] = a
		}
	}
	return e
}

// shown returns the messages of a request as text.
func shown(t *testing.T, r model.Request) []string {
	t.Helper()
	var all []string
	for _, m := range r.Messages[1:] { // behind the system's
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(raw))
	}
	return all
}

// TestAConversationGoesOn holds that a later run sends exactly the messages and answers of the earlier run, and then its own task.
func TestAConversationGoesOn(t *testing.T) {
	first := &listener{world: world5()}
	if got, err := goOn(t, first, blueprint.Blueprint{}, nil, ""); err != nil || got.Failure != "" {
		t.Fatalf("got %+v, %v", got, err)
	}
	e := agents.Earlier{Task: "And to four.", Past: first.turns, Answers: map[int]model.Answer{}}
	for n := range first.turns {
		e.Answers[n] = first.answers[model.Ask{Run: "run_new", Step: n + 1}.Name()]
	}
	next := &listener{world: newWorld(says("Four."))}
	next.done = first.done // the results of the first run's calls
	got, err := goOn(t, next, blueprint.Blueprint{}, map[id.Run]agents.Earlier{"run_1": e}, "run_1")
	if err != nil || got.Summary != "Four." {
		t.Fatalf("got %+v, %v", got, err)
	}
	last, now := shown(t, first.sent[len(first.sent)-1]), shown(t, next.sent[0])
	if len(now) != len(last)+2 || strings.Join(now[:len(last)], "\n") != strings.Join(last, "\n") {
		t.Fatalf("the later run sends\n%s\nwant what was sent before\n%s", strings.Join(now, "\n"), strings.Join(last, "\n"))
	}
	if !strings.Contains(now[len(last)], "Three.") || !strings.Contains(now[len(last)+1], "And to four.") {
		t.Errorf("got %q, want the last answer and the new task", now[len(last):])
	}
	if len(next.effects) != 0 {
		t.Errorf("%d calls of the earlier run were made again", len(next.effects))
	}
}

// TestAStoppedRunIsGoneOn stops an earlier run at every point. Each of its calls has one result. The later run sends the same requests when
// it is interrupted and resumed.
func TestAStoppedRunIsGoneOn(t *testing.T) {
	whole := world5()
	if _, err := perform(t, whole, blueprint.Blueprint{}); err != nil {
		t.Fatal(err)
	}
	for at := 1; at <= whole.asked; at++ {
		w := world5()
		w.kill = at
		if _, err := perform(t, w, blueprint.Blueprint{}); !errors.Is(err, errKilled) {
			t.Fatalf("stopped at %d: %v", at, err)
		}
		before := map[id.Run]agents.Earlier{"run_1": earlierRun(w, "Count to three.", "")}
		next := &listener{world: newWorld(says("Four."))}
		next.done = w.done
		if got, err := goOn(t, next, blueprint.Blueprint{}, before, "run_1"); err != nil || got.Summary != "Four." {
			t.Fatalf("stopped at %d: got %+v, %v", at, got, err)
		}
		r := next.sent[0]
		if err := r.Check(); err != nil {
			t.Fatalf("stopped at %d: %v", at, err)
		}
		if got := shown(t, r); !strings.Contains(got[0], "Count to three.") || !strings.Contains(got[len(got)-1], "And to four.") {
			t.Fatalf("stopped at %d: got %q", at, got)
		}
		again := &listener{world: next.world}
		if _, err := goOn(t, again, blueprint.Blueprint{}, before, "run_1"); err != nil || len(again.sent) != 1 || next.billed != 1 {
			t.Fatalf("stopped at %d: taken up again: %d requests, %d paid, %v", at, len(again.sent), next.billed, err)
		}
	}
}

// TestALongConversation holds that requests leave out the oldest tasks that do not fit, and say so; and it tests the bound of earlier runs.
func TestALongConversation(t *testing.T) {
	before := map[id.Run]agents.Earlier{}
	after := id.Run("")
	add := func(n int) {
		for range n {
			r := id.Run("run_old" + string(rune('a'+len(before)%26)) + strings.Repeat("x", len(before)/26))
			before[r] = agents.Earlier{Task: "old task " + string(r) + strings.Repeat(" word", 200), After: after,
				Past: map[int]errand.PastTurn{0: {}}, Answers: map[int]model.Answer{0: says("done")}}
			after = r
		}
	}
	add(40)
	next := &listener{world: newWorld(says("Four."))}
	small := blueprint.Blueprint{Context: blueprint.Context{Tokens: 6000}}
	if got, err := goOn(t, next, small, before, after); err != nil || got.Failure != "" {
		t.Fatalf("got %+v, %v", got, err)
	}
	now := strings.Join(shown(t, next.sent[0]), "\n")
	if !strings.Contains(now, "is left out") || strings.Contains(now, "old task run_olda ") || !strings.Contains(now, string(after)) {
		t.Errorf("got %.300q, want the newest tasks, and that others are left out", now)
	}
	add(agents.MaxEarlier - 40)
	next = &listener{world: newWorld(says("Four."))}
	if got, err := goOn(t, next, small, before, after); err != nil || got.Failure != "" {
		t.Errorf("%d earlier runs: got %+v, %v", len(before), got, err)
	}
	add(1)
	if got, err := goOn(t, &listener{world: newWorld(says("Four."))}, small, before, after); err != nil || got.Failure != agents.FailEarlier {
		t.Errorf("%d earlier runs: got %+v, %v", len(before), got, err)
	}
	if got, err := goOn(t, &listener{world: newWorld(says("Four."))}, small, nil, "run_redacted"); err != nil ||
		got.Failure != errand.ErrForgotten.Code {
		t.Errorf("an earlier run that was redacted: got %+v, %v", got, err)
	}
}
