package agentcmd

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agentbox/internal/client"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/surface/cli/term"
	"agentbox/internal/surface/cli/termtest"
)

// turnOf is the event of a turn, with the reasons of the calls of the turn before it.
func turnOf(t *testing.T, n int, refused map[int]string) event.Event {
	t.Helper()
	input, err := json.Marshal(errand.Turn{Number: n, Refused: refused})
	if err != nil {
		t.Fatal(err)
	}
	return of(t, step.EventCreated, step.Created{Kind: errand.TurnKind, Title: fmt.Sprintf("turn %d", n+1), Input: input})
}

// answerOf is the event of an answer that proposes calls, each with its name as its id.
func answerOf(t *testing.T, stop model.Stop, names ...string) event.Event {
	t.Helper()
	said := model.Answer{Stop: stop, Parts: []model.Part{model.Text("I look.")}}
	for _, name := range names {
		said.Parts = append(said.Parts, model.Part{Type: model.CallPart, Call: &model.Call{ID: "id-" + name, Name: name, Arguments: `{"a": 1}`}})
	}
	return of(t, model.EventAnswered, model.Outcome{Answer: &said})
}

// madeOf is the event of a call that the loop makes.
func madeOf(t *testing.T, index int) event.Event {
	t.Helper()
	input, err := json.Marshal(errand.TurnCall{Index: index})
	if err != nil {
		t.Fatal(err)
	}
	return of(t, step.EventInvoked, step.Invoked{Tool: "x", Input: input})
}

// TestCallsThatWereNeverMadeAreTold draws the events of turns. Calls that were made, and those that policy refused, are not among the calls
// that were never made.
func TestCallsThatWereNeverMadeAreTold(t *testing.T) {
	many := make([]string, errand.MaxCalls+1)
	for i := range many {
		many[i] = "x"
	}
	stopped := of(t, run.EventCancelled, run.Finished{Error: "no longer wanted"})
	failed := of(t, run.EventFailed, run.Finished{Error: "time_limit", Message: "models and tools have worked for 5 seconds"})
	denied := of(t, policy.DeniedType, policy.Refused{Action: policy.ToolCall, Title: "call a tool: space.fly",
		Decision: policy.Decision{Reason: "no"}})
	no := func(tool, code string) event.Event {
		return of(t, policy.DeniedType, policy.Refused{Action: policy.ToolCall, Decision: policy.Decision{Reason: "no", ReasonCode: code},
			Title: policy.Title(policy.Action{Type: policy.ToolCall, Tool: tool})})
	}
	long := strings.Repeat("l", 128)
	forgotten := event.Event{}
	forgotten.Run, forgotten.Type, forgotten.Data, forgotten.Withheld = ownRun, step.EventCreated, json.RawMessage(`{}`), event.Forgotten
	begin := turnOf(t, 0, nil)
	for name, c := range map[string]struct {
		events []event.Event
		want   string
	}{
		"all are made": {[]event.Event{begin, answerOf(t, model.StopTools, "ls", "date"), madeOf(t, 1), madeOf(t, 0), turnOf(t, 1, nil)}, ""},
		"one is not valid": {[]event.Event{begin, answerOf(t, model.StopTools, "ls", "fly"), madeOf(t, 0),
			turnOf(t, 1, map[int]string{1: `not made: there is no tool "fly"`})}, `  ▸ fly a=1  ✗ not made: there is no tool "fly"` + "\n"},
		"an older log": {[]event.Event{begin, answerOf(t, model.StopTools, "fly"), turnOf(t, 1, nil)},
			"  ▸ fly a=1  ✗ not made: it was not valid\n"},
		"policy refuses one": {[]event.Event{begin, answerOf(t, model.StopTools, "fly"), denied,
			turnOf(t, 1, map[int]string{0: "refused: fly\nrule: x"})}, "  ▸ tool call a tool: space.fly  ✗ no\n"},
		"the answer is cut": {[]event.Event{begin, answerOf(t, model.StopLength, "ls", "date"), turnOf(t, 1, nil)},
			"  ▸ 2 calls ls, date  ✗ not made: the answer was cut at its limit\n"},
		"as many as there may be": {[]event.Event{begin, answerOf(t, model.StopTools, many[1:]...), turnOf(t, 1, nil)},
			"not made: it was not valid\n"},
		"too many": {[]event.Event{begin, answerOf(t, model.StopTools, many...), turnOf(t, 1, nil)},
			"✗ not made: an answer has at most 64 calls\n"},
		"the run is stopped": {[]event.Event{begin, answerOf(t, model.StopTools, "ls", "date"), madeOf(t, 0), stopped},
			"  ▸ date a=1  ✗ not made before the run was cancelled: no longer wanted\n"},
		"the time is over": {[]event.Event{begin, answerOf(t, model.StopTools, "ls", "fly", "date"), madeOf(t, 0), denied, failed},
			"  ▸ date a=1  ✗ not made before the run failed: models and tools have worked for 5 seconds\n"},
		"policy refuses a tool with a longer name": {[]event.Event{begin, answerOf(t, model.StopTools, "concat", "cat"),
			no("space.concat", ""), stopped}, "  ▸ cat a=1  ✗ not made before the run was cancelled: no longer wanted\n"},
		"policy refuses a tool with a dot": {[]event.Event{begin, answerOf(t, model.StopTools, "my.cat", "cat"),
			no("my.cat", ""), stopped}, "  ▸ cat a=1  ✗ not made before the run was cancelled: no longer wanted\n"},
		"policy refuses one of three": {[]event.Event{begin, answerOf(t, model.StopTools, "shell", "shell", "shell"),
			no("space.shell", ""), stopped}, "  ▸ 2 calls shell, shell  ✗ not made before the run was cancelled: no longer wanted\n"},
		"policy refuses all": {[]event.Event{begin, answerOf(t, model.StopTools, "shell", "shell"), no("space.shell", ""),
			no("shell", ""), stopped}, ""},
		"policy refuses the loop's own": {[]event.Event{begin, answerOf(t, model.StopTools, "read_result"),
			no("agent.read_result", ""), stopped}, ""},
		"policy refuses one with long name": {[]event.Event{begin, answerOf(t, model.StopTools, long), no(long, ""), stopped}, ""},
		"the kill switch is asked often": {[]event.Event{begin, answerOf(t, model.StopTools, "shell", "shell"),
			no("space.shell", policy.ReasonKillSwitch), no("space.shell", policy.ReasonKillSwitch), stopped},
			"  ▸ shell a=1  ✗ not made before the run was cancelled: no longer wanted\n"},
		"the kill switch ends": {[]event.Event{begin, answerOf(t, model.StopTools, "shell", "shell"),
			no("space.shell", policy.ReasonKillSwitch),
			of(t, step.EventInvoked, step.Invoked{Tool: "space.shell", Input: json.RawMessage(`{"index":0}`)}), stopped},
			"  ▸ shell a=1  ✗ not made before the run was cancelled: no longer wanted\n"},
		"the kill switch ends with a refusal": {[]event.Event{begin, answerOf(t, model.StopTools, "shell", "shell"),
			no("space.shell", policy.ReasonKillSwitch), no("space.shell", ""), stopped},
			"  ▸ shell a=1  ✗ not made before the run was cancelled: no longer wanted\n"},
		"calls in text": {[]event.Event{begin, answerOf(t, model.StopEnd), turnOf(t, 1, map[int]string{0: "refused: x", 2: "not made: no JSON"})},
			"  ▸ a call   ✗ not made: no JSON\n"},
		"another question to a model": {[]event.Event{begin, answerOf(t, model.StopTools, "ls"), answerOf(t, model.StopTools, "fly"),
			madeOf(t, 0), turnOf(t, 1, nil)}, ""},
		"no turn of the loop": {[]event.Event{answerOf(t, model.StopTools, "Bash"), stopped}, ""},
		"a redacted turn":     {[]event.Event{begin, forgotten, answerOf(t, model.StopTools, "ls"), stopped}, ""},
	} {
		var out strings.Builder
		told := teller{p: &term.Printer{Out: &out}, made: run.Run{ID: ownRun}, titles: map[string]string{}, failed: map[id.Run]bool{}}
		for _, e := range c.events {
			if told.tell(t.Context(), e); e.Type == policy.DeniedType && !strings.Contains(c.want, "space.fly") {
				out.Reset()
			}
		}
		var lines strings.Builder
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "✗") {
				lines.WriteString(line)
			}
		}
		if got := lines.String(); got != c.want && (c.want == "" || !strings.HasSuffix(got, c.want) || strings.Count(got, "\n") != 1) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestAConversationShowsCallsThatWereNeverMade follows a run while it works, resumes it, and resumes it after its end. The line of a call
// that was never made stands where the model proposed it.
func TestAConversationShowsCallsThatWereNeverMade(t *testing.T) {
	yes := true
	frames := framesOf(t, model.Delta{Type: model.TextPart, Text: "I look."},
		model.Delta{Type: model.CallPart, ID: "id-ls", Name: "ls"}, model.Delta{Type: model.CallPart, ID: "id-fly", Name: "fly"},
		run.Outline{ID: "tc_1", Type: "ls", Summary: "."}, run.Result{Type: "ls", OperationID: "tc_1", Success: &yes},
		model.Delta{Type: model.CallPart, ID: "id-swim", Name: "swim"}, model.Delta{Type: model.CallPart, Text: `{"a": 1}`},
		model.Delta{Type: model.TextPart, Text: "I "}, model.Delta{Type: model.TextPart, Text: "walk."},
		model.Delta{Type: model.CallPart, ID: "id-walk", Name: "walk"})
	events := []event.Event{turnOf(t, 0, nil), answerOf(t, model.StopTools, "ls", "fly"), madeOf(t, 0),
		turnOf(t, 1, map[int]string{1: "not made: no tool"}), answerOf(t, model.StopTools, "swim"),
		turnOf(t, 2, map[int]string{0: "not made: no water"}), answerOf(t, model.StopTools, "walk")}
	end := of(t, run.EventCancelled, run.Finished{Error: "enough"})
	const want = `I look.
  ▸ ls .  ✓ ok
  ▸ fly a=1  ✗ not made: no tool
  ▸ swim a=1  ✗ not made: no water
I walk.
  ▸ walk a=1  ✗ not made before the run was cancelled: enough
the run was cancelled: 
`
	for name, c := range map[string]struct {
		status       run.Status
		past, events []event.Event
	}{
		"it was resumed":       {run.Running, events, []event.Event{end}},
		"resumed in its midst": {run.Running, events[:4], append(events[4:len(events):len(events)], end)},
		"resumed after it":     {run.Cancelled, append(events[:len(events):len(events)], end), nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := &recordedRun{past: c.past, events: c.events, frames: frames, ends: make(chan struct{}), clock: termtest.Clock{},
				ended: client.RunShown{Run: run.Run{ID: ownRun, Status: run.Cancelled}}}
			close(d.ends)
			screen, ended := d.attends(t, c.status)
			ended()
			if got := screen.String(); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
