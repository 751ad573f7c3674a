package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/tool"
	"agentbox/internal/service/agents"
	"agentbox/internal/service/tools"
	"agentbox/internal/testkit/wall"
)

// prepare prepares the calls of a loop that offers only the built-in tools.
func prepare(t tool.Tool, arguments json.RawMessage) (json.RawMessage, error) {
	return tools.Prepare(t.Name, arguments)
}

var errKilled = errors.New("the daemon was killed")

// world is a daemon's record of one run, and the effects on its space. It can be killed before or after anything that it is asked.
type world struct {
	mu      sync.Mutex
	turns   map[int]errand.PastTurn
	steps   map[id.Step]int
	made    map[id.ToolCall]string // the operation of each call
	effects []string               // operations that were executed
	done    map[id.Run]tool.Result
	answers map[string]model.Answer // that were recorded
	script  []model.Answer
	billed  int
	refuse  map[string]errand.Verdict // by tool
	inbox   []string
	took    time.Duration // of each answer of the model
	worked  time.Duration // of each operation
	lefts   []errand.Left // of each operation

	asked int // how often anything was asked
	kill  int // at which of these it is killed; odd numbers before it is recorded, even ones after
}

func newWorld(script ...model.Answer) *world {
	return &world{turns: map[int]errand.PastTurn{}, steps: map[id.Step]int{}, made: map[id.ToolCall]string{}, done: map[id.Run]tool.Result{},
		answers: map[string]model.Answer{}, script: script, refuse: map[string]errand.Verdict{}}
}

// dies reports whether the daemon is killed now.
func (w *world) dies() bool {
	w.asked++
	return w.asked == w.kill
}

// do records something, unless the daemon is killed before; and tells nobody if it is killed after.
func (w *world) do(record func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dies() {
		return errKilled
	}
	record()
	if w.dies() {
		return errKilled
	}
	return nil
}

func (w *world) Past(context.Context, errand.Work) (out map[int]errand.PastTurn, err error) {
	err = w.do(func() {
		out = map[int]errand.PastTurn{}
		for n, t := range w.turns {
			t.Calls = maps.Clone(t.Calls)
			out[n] = t
		}
	})
	return out, err
}

func (w *world) Heard(_ context.Context, _ errand.Work, after int) (out []string, err error) {
	err = w.do(func() { out = w.inbox[min(after, len(w.inbox)):] })
	return out, err
}

func (w *world) Turn(_ context.Context, _ errand.Work, t errand.Turn) (s id.Step, err error) {
	err = w.do(func() {
		if before, ok := w.turns[t.Number]; ok {
			s = before.Step
			return
		}
		s = id.Step(fmt.Sprintf("step_%d", t.Number))
		w.turns[t.Number], w.steps[s] = errand.PastTurn{Turn: t, Step: s, Calls: map[int]errand.Progress{}}, t.Number
	})
	return s, err
}

func (w *world) Invoke(_ context.Context, _ errand.Work, s id.Step, tool string, c errand.TurnCall) (v errand.Verdict, err error) {
	err = w.do(func() {
		if no, ok := w.refuse[tool]; ok {
			v = no
			return
		}
		n := w.steps[s]
		p := w.turns[n].Calls[c.Index]
		if p.Call == "" {
			p.Call = id.ToolCall(fmt.Sprintf("tc_%d_%d", n, c.Index))
			w.turns[n].Calls[c.Index] = p
		}
		v = errand.Verdict{Call: p.Call, Permit: "prm"}
	})
	return v, err
}

func (w *world) Operate(_ context.Context, _ errand.Work, call id.ToolCall, _ id.Space, operation json.RawMessage,
	left errand.Left) (o errand.Outcome, err error) {
	err = w.do(func() {
		child := id.Run("run_of_" + string(call))
		if w.made[call] == "" {
			w.made[call] = string(operation)
			w.effects, w.lefts = append(w.effects, string(operation)), append(w.lefts, left)
			w.done[child] = tool.Result{OK: true, Text: "done " + string(call)}
		}
		o = errand.Outcome{Child: child, Status: "completed", OK: true, Worked: w.worked.Milliseconds()}
	})
	return o, err
}

func (w *world) Result(_ context.Context, _ errand.Work, o errand.Outcome) (r tool.Result, err error) {
	err = w.do(func() { r = w.done[o.Child] })
	return r, err
}

func (w *world) Conclude(_ context.Context, _ errand.Work, call id.ToolCall, _ string, o errand.Outcome) error {
	return w.do(func() {
		for _, t := range w.turns {
			for i, p := range t.Calls {
				if p.Call == call {
					p.Ended, p.OK, p.Outcome = true, o.OK, o
					t.Calls[i] = p
				}
			}
		}
	})
}

func (w *world) Origin(context.Context, errand.Work) (event.Origin, id.Room, error) {
	return event.Origin{Principal: "usr_1"}, "room_1", nil
}

// Ask implements model.Asker: an answer that was recorded is not paid for again.
func (w *world) Ask(_ context.Context, a model.Ask) (reply model.Reply, err error) {
	if err := a.Check(); err != nil {
		return reply, err
	}
	err = w.do(func() {
		held, ok := w.answers[a.Name()]
		if !ok {
			held = w.script[min(a.Step-1, len(w.script)-1)]
			w.answers[a.Name()] = held
			w.billed++
		}
		reply = model.Reply{Answer: held, Repeated: ok, Took: w.took}
	})
	return reply, err
}

// perform works on the run as one daemon does.
func perform(t *testing.T, w *world, def blueprint.Blueprint) (errand.Result, error) {
	t.Helper()
	return loopOf(w, def).Perform(t.Context(), errand.Work{Run: "run_1", Input: mission(t, nil)})
}

// loopOf is the loop of a daemon.
func loopOf(w *world, def blueprint.Blueprint) *agents.Loop {
	return &agents.Loop{Records: w, Models: w, Clock: wall.Clock{}, Logger: slog.New(slog.DiscardHandler), Prepare: prepare,
		Read: func(context.Context, id.Workspace, string, int) (blueprint.Blueprint, event.Digest, error) {
			return def, event.DigestOf([]byte("locked")), nil
		},
		Tools: func(context.Context, id.Workspace, blueprint.Blueprint) ([]tool.Tool, event.Digest, error) {
			return tools.Builtin(), event.DigestOf([]byte("tools")), nil
		},
	}
}

func mission(t *testing.T, change func(*errand.Mission)) json.RawMessage {
	t.Helper()
	m := errand.Mission{Version: 1, Blueprint: "counter", Edition: 1, Locked: event.DigestOf([]byte("locked")), Loop: agents.Hash(),
		Tools: event.DigestOf([]byte("tools")), Space: "spc_1", Task: "Count to three."}
	if change != nil {
		change(&m)
	}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// script is a run with calls side by side, in order, refused ones, wrong ones, and one of read_result.
func script() []model.Answer {
	return []model.Answer{
		calls("readFile", `{"path":"a"}`, "readFile", `{"path":"b"}`, "createFile", `{"path":"c","content":"1"}`, "fly", `{}`),
		calls("deleteFile", `{"path":"c"}`, "shell", `{"command":"seq 3"}`, "shell", `not JSON`, "readFile", `{"wings":2}`),
		calls("read_result", `{"id":"c1"}`),
		{Stop: model.StopEnd},
		says("Three."),
	}
}

func world5() *world {
	w := newWorld(script()...)
	w.refuse["space.deleteFile"] = errand.Verdict{Code: "policy_denied", Reason: "files stay"}
	w.inbox = []string{"Hurry up."}
	return w
}

// TestKilledAtEveryPoint kills the daemon before and after each thing that it records. The next one ends the run as if nothing had been: no
// effect happens twice, no answer is paid for twice, and no request differs.
func TestKilledAtEveryPoint(t *testing.T) {
	whole := world5()
	want, err := perform(t, whole, blueprint.Blueprint{})
	if err != nil || want.Failure != "" || want.Summary != "Three." || len(whole.effects) != 4 || whole.billed != 5 {
		t.Fatalf("got %+v, %v, %d effects, %d answers", want, err, len(whole.effects), whole.billed)
	}
	if whole.asked < 40 {
		t.Fatalf("only %d points", whole.asked)
	}
	for at := 1; at <= whole.asked; at++ {
		w := world5()
		w.kill = at
		if _, err := perform(t, w, blueprint.Blueprint{}); !errors.Is(err, errKilled) {
			t.Fatalf("killed at %d: %v", at, err)
		}
		got, err := perform(t, w, blueprint.Blueprint{})
		if err != nil || got.Summary != want.Summary || got.Failure != "" || string(got.Output) != string(want.Output) {
			t.Fatalf("killed at %d: got %+v, %v", at, got, err)
		}
		if len(w.effects) != len(whole.effects) || w.billed != whole.billed {
			t.Errorf("killed at %d: %d effects, %d answers", at, len(w.effects), w.billed)
		}
		for n, turn := range whole.turns {
			if w.turns[n].Request != turn.Request {
				t.Errorf("killed at %d: turn %d asks something else", at, n)
			}
		}
	}
}

func TestWhatAModelIsToldOfItsCalls(t *testing.T) {
	w := world5()
	if _, err := perform(t, w, blueprint.Blueprint{}); err != nil {
		t.Fatal(err)
	}
	c := agents.Begin(blueprint.Blueprint{}, append(tools.Builtin(), agents.ReadResult()),
		agents.CacheKey(errand.Mission{Locked: event.DigestOf([]byte("locked")), Task: "Count to three."}), "Count to three.")
	c.Hear("Hurry up.")
	first := c.Next().Request
	hash, err := first.Hash()
	if err != nil || hash != w.turns[0].Request {
		t.Errorf("the first turn asks %s, %v", w.turns[0].Request, err)
	}
	if got := w.turns[2].Refused[0]; got != "refused: deleteFile\nrule: policy_denied\nreason: files stay\n"+
		"instead: Go on without it, or ask a person with ask_person." {
		t.Errorf("the refusal is recorded as %q", got)
	}
	if got := w.turns[0].Heard; len(got) != 1 || got[0] != "Hurry up." || len(w.turns[1].Heard) != 0 {
		t.Errorf("the first turn heard %q, the second %q", got, w.turns[1].Heard)
	}
}

// TestASkippedCallIsRecordedOnce proposes a call that is not valid, and then an answer without calls. The turn behind the call records why
// it was skipped, in at most 120 characters, and the next one does not.
func TestASkippedCallIsRecordedOnce(t *testing.T) {
	w := newWorld(calls(strings.Repeat("ü", 200), `{}`), says(""), calls("fly", `{}`), says("Done."))
	if _, err := perform(t, w, blueprint.Blueprint{}); err != nil {
		t.Fatal(err)
	}
	if got := []rune(w.turns[1].Refused[0]); len(got) != 120 || !strings.HasPrefix(string(got), `not made: there is no tool "ü`) {
		t.Errorf("the turn behind a long name records %d characters: %q", len(got), string(got))
	}
	if got := w.turns[2].Refused; len(got) != 0 {
		t.Errorf("the turn behind an empty answer records %v", got)
	}
	if got := w.turns[3].Refused[0]; !strings.HasPrefix(got, `not made: there is no tool "fly"; the tools are `) {
		t.Errorf("it records %q", got)
	}
}

// TestARefusalIsNotAskedAboutAgain holds that a refused call stays refused when the run is resumed, even if the policy has changed.
func TestARefusalIsNotAskedAboutAgain(t *testing.T) {
	w := world5()
	if _, err := perform(t, w, blueprint.Blueprint{}); err != nil {
		t.Fatal(err)
	}
	delete(w.refuse, "space.deleteFile")
	before := len(w.effects)
	if got, err := perform(t, w, blueprint.Blueprint{}); err != nil || got.Summary != "Three." || len(w.effects) != before {
		t.Errorf("got %+v, %v, %d effects, want %d", got, err, len(w.effects), before)
	}
}

// TestWhatDiffersEndsTheRun holds that a run ends if its blueprint, pins, tools or loop have other hashes than at its start.
func TestWhatDiffersEndsTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		input json.RawMessage
		want  string
	}{
		"no mission": {json.RawMessage(`{"agent_run":2}`), agents.FailInput},
		"unknown": {json.RawMessage(`{"agent_run":1,"blueprint":"a","blueprint_version":1,"space_id":"spc_1","task":"t","x":1}`),
			agents.FailInput},
		"blueprint": {mission(t, func(m *errand.Mission) { m.Locked = event.DigestOf(nil) }), agents.FailChanged},
		"tools":     {mission(t, func(m *errand.Mission) { m.Tools = event.DigestOf(nil) }), agents.FailChanged},
		"loop":      {mission(t, func(m *errand.Mission) { m.Loop = event.DigestOf(nil) }), agents.FailChanged},
		"gone":      {mission(t, func(m *errand.Mission) { m.Blueprint = "gone" }), agents.FailChanged},
		"policy":    {mission(t, func(m *errand.Mission) { m.Pins = map[string]string{"policy": "sha256:0"} }), agents.FailChanged},
		"a record":  {mission(t, func(m *errand.Mission) { m.Task = "Count to four." }), agents.FailDiverged},
	} {
		w := world5()
		if _, err := perform(t, w, blueprint.Blueprint{}); err != nil {
			t.Fatal(err)
		}
		l := &agents.Loop{Records: w, Models: w, Clock: wall.Clock{}, Logger: slog.New(slog.DiscardHandler), Prepare: prepare,
			Read: func(_ context.Context, _ id.Workspace, name string, _ int) (blueprint.Blueprint, event.Digest, error) {
				if name == "gone" {
					return blueprint.Blueprint{}, event.Digest{}, blueprint.ErrNotFound
				}
				return blueprint.Blueprint{}, event.DigestOf([]byte("locked")), nil
			},
			Tools: func(context.Context, id.Workspace, blueprint.Blueprint) ([]tool.Tool, event.Digest, error) {
				return tools.Builtin(), event.DigestOf([]byte("tools")), nil
			},
		}
		l.Pins = func(context.Context, id.Workspace, blueprint.Blueprint) (blueprint.Pins, error) {
			return blueprint.Pins{Policy: "sha256:1"}, nil
		}
		got, err := l.Perform(t.Context(), errand.Work{Run: "run_1", Input: c.input})
		if err != nil || got.Failure != c.want || got.Message == "" {
			t.Errorf("%s: got %+v, %v, want %s", name, got, err, c.want)
		}
	}
}

// forgetful is a partly redacted record.
type forgetful struct{ *world }

func (forgetful) Past(context.Context, errand.Work) (map[int]errand.PastTurn, error) {
	return nil, errand.ErrForgotten
}

// TestARedactedRecordEndsTheRun holds that the loop does not repeat a call whose record was redacted.
func TestARedactedRecordEndsTheRun(t *testing.T) {
	w := world5()
	l := &agents.Loop{Records: forgetful{w}, Models: w, Clock: wall.Clock{}, Logger: slog.New(slog.DiscardHandler), Prepare: prepare,
		Read: func(context.Context, id.Workspace, string, int) (blueprint.Blueprint, event.Digest, error) {
			return blueprint.Blueprint{}, event.DigestOf([]byte("locked")), nil
		},
		Tools: func(context.Context, id.Workspace, blueprint.Blueprint) ([]tool.Tool, event.Digest, error) {
			return tools.Builtin(), event.DigestOf([]byte("tools")), nil
		},
	}
	got, err := l.Perform(t.Context(), errand.Work{Run: "run_1", Input: mission(t, nil)})
	if err != nil || got.Failure != errand.ErrForgotten.Code || len(w.effects) != 0 || w.billed != 0 {
		t.Errorf("got %+v, %v, %d effects, %d answers", got, err, len(w.effects), w.billed)
	}
}

// failing is a model that gives no answer.
type failing struct{ err error }

func (f failing) Ask(context.Context, model.Ask) (model.Reply, error) { return model.Reply{}, f.err }

func TestAModelThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"final":    {&model.Failure{Class: model.Final, Message: "no such model"}, agents.FailModel},
		"money":    {&model.Failure{Class: model.Money, Message: "no money"}, agents.FailModel},
		"overflow": {&model.Failure{Class: model.Overflow, Message: "too long"}, agents.FailContext},
		"budget":   {model.ErrBudget, agents.FailBudget},
		"price":    {model.ErrPrice, agents.FailBudget},
		"refused":  {fault.New(fault.Denied, "policy_denied", "no"), "policy_denied"},
	} {
		w := world5()
		l := &agents.Loop{Records: w, Models: failing{c.err}, Clock: wall.Clock{}, Logger: slog.New(slog.DiscardHandler), Prepare: prepare,
			Read: func(context.Context, id.Workspace, string, int) (blueprint.Blueprint, event.Digest, error) {
				return blueprint.Blueprint{}, event.DigestOf([]byte("locked")), nil
			},
			Tools: func(context.Context, id.Workspace, blueprint.Blueprint) ([]tool.Tool, event.Digest, error) {
				return nil, event.DigestOf([]byte("tools")), nil
			},
		}
		got, err := l.Perform(t.Context(), errand.Work{Run: "run_1", Input: mission(t, nil)})
		if err != nil || got.Failure != c.want || strings.TrimSpace(got.Message) == "" {
			t.Errorf("%s: got %+v, %v, want %s", name, got, err, c.want)
		}
	}
}
