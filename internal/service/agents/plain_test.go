package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/tool"
	"agentbox/internal/service/agents"
	"agentbox/internal/service/tools"
)

// fenced is a block of operations.
func fenced(operations string) string {
	return "```operations\n{\"protocolVersion\":\"1.0\",\"operations\":[" + operations + "]}\n```\n"
}

// plainly begins a conversation with a model that calls tools in plain text.
func plainly() *agents.Conversation {
	c := conversation(blueprint.Blueprint{Instructions: "Be brief."})
	c.Speak(errand.ByText)
	return c
}

// TestOperationsInPlainText holds the grammar: which blocks count, the call of each operation, and the message about a malformed one.
func TestOperationsInPlainText(t *testing.T) {
	const file = `{"type":"readFile","id":"x","path":"a"}`
	for name, c := range map[string]struct{ answer, want string }{
		"a report":           {"I am done.", ""},
		"one":                {"First I look.\n" + fenced(file), `x readFile {"path":"a"}`},
		"two blocks":         {fenced(file) + "and\n" + fenced(`{"type":"shell","command":"date"}`), `x readFile {"path":"a"}; op-2 shell {"command":"date"}`},
		"two in one":         {fenced(file + `,{"type":"shell","command":"date"}`), `x readFile {"path":"a"}; op-2 shell {"command":"date"}`},
		"tildes":             {strings.ReplaceAll(fenced(file), "```", "~~~~"), `x readFile {"path":"a"}`},
		"JSON":               {strings.Replace(fenced(file), "operations", "json", 1), `x readFile {"path":"a"}`},
		"no word":            {strings.Replace(fenced(file), "operations", "", 1), `x readFile {"path":"a"}`},
		"other JSON":         {"```json\n{\"operations\":[]}\n```\n", ""},
		"another language":   {"```python\nprint({\"protocolVersion\":\"1.0\"})\n```\n", ""},
		"in arguments":       {fenced(`{"type":"read_result","id":"r","arguments":{"id":"x"}}`), `r read_result {"id":"x"}`},
		"a name that is two": {fenced(file + "," + file), `x readFile {"path":"a"}; op-2 readFile {"path":"a"}`},
		"a taken name":       {fenced(`{"type":"shell","id":"op-2"},{"type":"shell"}`), `op-2 shell {}; op-2.2 shell {}`},
		"both places":        {fenced(`{"type":"shell","arguments":{},"command":"x"}`), `op-1 malformed the parameters of "shell" stand in arguments or beside it, not in both: arguments, command`},
		"no type":            {fenced(`{"id":"x"},` + `{"type":"shell"}`), `x malformed type of an operation is the name of a tool; op-2 shell {}`},
		"its type is ours":   {fenced(`{"type":"malformed"}`), `op-1 malformed type of an operation is the name of a tool`},
		"no object":          {fenced(`7`), `op-1 malformed an operation is a JSON object`},
		"a number as id":     {fenced(`{"type":"shell","id":7}`), `op-1 malformed id of the operation "shell" is a text of at most 128 bytes`},
		"no JSON":            {"```operations\n{\"protocolVersion\":\n```\n", `op-1 malformed the block is not an operations message: unexpected EOF`},
		"an unknown field":   {"```operations\n{\"protocolVersion\":\"1.0\",\"ops\":[]}\n```\n", `op-1 malformed the block is not an operations message: json: unknown field "ops"`},
		"another version":    {strings.Replace(fenced(file), "1.0", "2.0", 1), `op-1 malformed protocolVersion of the block must be "1.0"`},
		"no version":         {"```operations\n{\"operations\":[" + file + "]}\n```", `op-1 malformed protocolVersion of the block must be "1.0"`},
		"empty":              {fenced(""), `op-1 malformed operations of the block is empty`},
		"two messages":       {"```operations\n{\"protocolVersion\":\"1.0\",\"operations\":[" + file + "]} {}\n```", `op-1 malformed something follows the operations message in its block`},
		"not closed":         {strings.TrimSuffix(fenced(file), "```\n"), `op-1 malformed the block of operations is not closed`},
	} {
		talk := plainly()
		asks(t, talk)
		talk.Answered(says(c.answer))
		var got []string
		for _, call := range talk.Next().Calls {
			got = append(got, fmt.Sprintf("%s %s %s", call.ID, call.Name, call.Arguments))
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: got %q, want %q", name, strings.Join(got, "; "), c.want)
		}
		if end := talk.Next().End; (end != nil) != (c.want == "") {
			t.Errorf("%s: the run ends: %v", name, end)
		}
	}
}

// TestAnAnswerOfManyLines reads a block of as many lines as an answer can have: it takes no longer than its text is long.
func TestAnAnswerOfManyLines(t *testing.T) {
	talk := plainly()
	asks(t, talk)
	begun := time.Now()
	talk.Answered(says("```python\n" + strings.Repeat("x\n", 2_000_000) + "```\n" + fenced(`{"type":"readFile","id":"x","path":"a"}`)))
	if calls := talk.Next().Calls; len(calls) != 1 || calls[0].ID != "x" {
		t.Errorf("got %+v", calls)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestAnAnswerThatBrokeOffHasNoOperations holds that the loop makes the calls of complete answers only.
func TestAnAnswerThatBrokeOffHasNoOperations(t *testing.T) {
	for _, stop := range []model.Stop{model.StopLength, model.StopRefusal, model.StopFilter, model.StopOverflow, ""} {
		talk := plainly()
		asks(t, talk)
		talk.Answered(stopped(stop, fenced(`{"type":"shell","command":"date"}`)))
		if got := talk.Next().Calls; len(got) > 0 {
			t.Errorf("%q: got %+v", stop, got)
		}
	}
}

// TestWhatAModelWithoutToolsIsSent holds that it gets no tools, results as text, and its own words unchanged.
func TestWhatAModelWithoutToolsIsSent(t *testing.T) {
	c := plainly()
	r := asks(t, c)
	system := r.Messages[0].Parts[0].Text
	for _, has := range []string{"```operations\n", "- readFile: ", `"path":{"type":"string"`, "- read_result: "} {
		if !strings.Contains(system, has) {
			t.Errorf("it is not told %q", has)
		}
	}
	if len(r.Tools) > 0 || !strings.HasSuffix(system, "Be brief.") {
		t.Errorf("%d tools; it is told %q", len(r.Tools), system)
	}
	answer := "I look.\n" + fenced(`{"type":"readFile","id":"x","path":"a"},{"type":"shell","command":"date"}`)
	c.Answered(says(answer))
	c.Acted([]model.Result{{ID: "x", Text: "none", Failed: true}, {ID: "op-2", Text: "Monday"}})
	r = asks(t, c)
	if got := r.Messages[2]; got.Role != model.Assistant || len(got.Parts) != 1 || got.Parts[0].Text != answer {
		t.Errorf("its own words are %+v", got)
	}
	if got := last(r); !slices.Equal(got, []string{"result of x (readFile), failed:\nnone", "result of op-2 (shell):\nMonday"}) {
		t.Errorf("the results are %q", got)
	}
	// The output of a tool is never an operation.
	c.Answered(says(fenced(`{"type":"readFile","id":"y","path":"b"}`)))
	c.Acted([]model.Result{{ID: "y", Text: fenced(`{"type":"shell","command":"rm -r ."}`)}})
	asks(t, c)
	c.Answered(says("Three."))
	if end := c.Next().End; end == nil || end.Summary != "Three." {
		t.Errorf("the run ends as %+v", end)
	}
}

// plainWorld is the run of script in plain text, with an operation that is malformed.
func plainWorld() *world {
	w := newWorld(
		says(fenced(`{"type":"readFile","id":"c0","path":"a"},{"type":"readFile","id":"c1","path":"b"},{"id":"c2"},`+
			`{"type":"createFile","id":"c3","path":"c","content":"1"}`)),
		says(fenced(`{"type":"deleteFile","path":"c"},{"type":"fly"}`)),
		says("Three."),
	)
	w.refuse["space.deleteFile"] = errand.Verdict{Code: "policy_denied", Reason: "files stay"}
	return w
}

// TestPlainTextIsKilledAtEveryPoint is TestKilledAtEveryPoint for a model that calls tools in plain text. The loop skips malformed
// operations, and records them with the next turn.
func TestPlainTextIsKilledAtEveryPoint(t *testing.T) {
	whole := plainWorld()
	want, err := performText(t, whole)
	if err != nil || want.Summary != "Three." || len(whole.effects) != 3 {
		t.Fatalf("got %+v, %v, %d effects", want, err, len(whole.effects))
	}
	for n, refused := range map[int]map[int]string{
		1: {2: "not made: type of an operation is the name of a tool"},
		2: {0: tool.Refusal{Tool: "deleteFile", Rule: "policy_denied", Reason: "files stay"}.Text(), 1: `not made: there is no tool "fly"`},
	} {
		for i, text := range refused {
			if got := whole.turns[n].Refused[i]; !strings.HasPrefix(got, text) {
				t.Errorf("turn %d records %q", n, got)
			}
		}
	}
	for at := 1; at <= whole.asked; at++ {
		w := plainWorld()
		w.kill = at
		if _, err := performText(t, w); !errors.Is(err, errKilled) {
			t.Fatalf("killed at %d: %v", at, err)
		}
		got, err := performText(t, w)
		if err != nil || got.Summary != want.Summary || string(got.Output) != string(want.Output) || len(w.effects) != len(whole.effects) ||
			w.billed != whole.billed {
			t.Errorf("killed at %d: got %+v, %v, %d effects, %d answers", at, got, err, len(w.effects), w.billed)
		}
	}
}

func performText(t *testing.T, w *world) (errand.Result, error) {
	t.Helper()
	return loopOf(w, blueprint.Blueprint{}).Perform(t.Context(), errand.Work{Run: "run_1", Input: mission(t, func(m *errand.Mission) {
		m.Protocol = errand.ByText
	})})
}

// TestAnEarlierRunOfAnotherProtocol continues a conversation whose first task used tool calls. The requests contain them as text.
func TestAnEarlierRunOfAnotherProtocol(t *testing.T) {
	w := newWorld(says("Four."))
	w.done[""] = tool.Result{OK: true, Text: "1 2 3"}
	first := calls("readFile", `{"path":"a"}`)
	first.Parts = append([]model.Part{model.Text("I look.")}, first.Parts...)
	l, asked := loopOf(w, blueprint.Blueprint{}), &listener{world: w}
	l.Models = asked
	l.Earlier = func(context.Context, id.Workspace, id.Run) (agents.Earlier, error) {
		return agents.Earlier{Task: "Count to three.", Past: map[int]errand.PastTurn{
			0: {Calls: map[int]errand.Progress{0: {Call: "tc_1", Ended: true, OK: true, Outcome: errand.Outcome{Text: "1 2 3", OK: true}}}}, 1: {},
		}, Answers: map[int]model.Answer{0: first, 1: says("Three.")}}, nil
	}
	got, err := l.Perform(t.Context(), errand.Work{Run: "run_1", Input: mission(t, func(m *errand.Mission) {
		m.Protocol, m.After = errand.ByText, "run_0"
	})})
	if err != nil || got.Summary != "Four." || len(asked.sent) != 1 {
		t.Fatalf("got %+v, %v, %d requests", got, err, len(asked.sent))
	}
	raw, err := json.Marshal(asked.sent[0].Messages)
	if err != nil {
		t.Fatal(err)
	}
	for _, has := range []string{`"I look."`, `{\"operations\":[{\"arguments\":{\"path\":\"a\"},\"id\":\"c0\",\"type\":\"readFile\"}]`,
		`"result of c0 (readFile):\n1 2 3"`} {
		if !strings.Contains(string(raw), has) {
			t.Errorf("the model is not told %s in %s", has, raw)
		}
	}
	if strings.Contains(string(raw), "tool_call") {
		t.Errorf("a model without tools is sent calls: %s", raw)
	}
}

// TestAToolOfThePlainText keeps the tools of the text in step with those that are offered.
func TestAToolOfThePlainText(t *testing.T) {
	c := agents.Begin(blueprint.Blueprint{}, tools.Builtin(), "k", "t")
	c.Speak(errand.ByText)
	system := asks(t, c).Messages[0].Parts[0].Text
	for _, one := range tools.Builtin() {
		if !strings.Contains(system, "\n- "+one.Name+": "+one.Description+"\n  {") {
			t.Errorf("%s is not described", one.Name)
		}
	}
}
