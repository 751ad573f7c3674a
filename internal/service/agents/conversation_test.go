package agents_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
	"agentbox/internal/service/agents"
	"agentbox/internal/service/tools"
)

// says is an answer of text alone.
func says(text string) model.Answer {
	return model.Answer{Parts: []model.Part{model.Text(text)}, Stop: model.StopEnd, Usage: model.Usage{Input: 10, Output: 2}}
}

// stopped is an answer of text that ended for a reason.
func stopped(why model.Stop, text string) model.Answer {
	return model.Answer{Stop: why, Parts: []model.Part{model.Text(text)}}
}

// cut is an answer that met its limit.
func cut(a model.Answer) model.Answer {
	a.Stop = model.StopLength
	return a
}

// calls is an answer of one tool call for each pair of a name and its arguments.
func calls(pairs ...string) model.Answer {
	a := model.Answer{Stop: model.StopTools, Usage: model.Usage{Input: 10, Output: 2}}
	for i := 0; i < len(pairs); i += 2 {
		a.Parts = append(a.Parts, model.Part{Type: model.CallPart, Call: &model.Call{ID: fmt.Sprintf("c%d", i/2), Name: pairs[i],
			Arguments: pairs[i+1]}})
	}
	return a
}

// conversation begins one of a blueprint.
func conversation(def blueprint.Blueprint) *agents.Conversation {
	return agents.Begin(def, append(tools.Builtin()[:5], agents.ReadResult()), "run_1", "Count to three.")
}

// asks returns the next request; the test fails where the conversation needs something else.
func asks(t *testing.T, c *agents.Conversation) model.Request {
	t.Helper()
	next := c.Next()
	if next.Request == nil {
		t.Fatalf("got %+v, want a request", next)
	}
	if err := next.Request.Check(); err != nil {
		t.Fatalf("the request is refused by every endpoint: %v", err)
	}
	return *next.Request
}

// failed returns how the conversation ended.
func failed(t *testing.T, c *agents.Conversation) string {
	t.Helper()
	next := c.Next()
	if next.End == nil {
		t.Fatalf("got %+v, want an end", next)
	}
	return next.End.Failure
}

// last returns the texts and results of the last message of a request.
func last(r model.Request) []string {
	var out []string
	for _, p := range r.Messages[len(r.Messages)-1].Parts {
		if p.Result != nil {
			out = append(out, p.Result.Text)
		} else {
			out = append(out, p.Text)
		}
	}
	return out
}

func TestATaskIsDone(t *testing.T) {
	c := conversation(blueprint.Blueprint{Instructions: "Be brief."})
	r := asks(t, c)
	if len(r.Messages) != 2 || !strings.HasSuffix(r.Messages[0].Parts[0].Text, "Be brief.") ||
		r.Messages[1].Parts[0].Text != "Count to three." ||
		len(r.Tools) != len(tools.Builtin()[:5])+1 || r.CacheKey != "run_1" {
		t.Fatalf("the first request is %+v", r)
	}
	c.Answered(calls("shell", `{"command":"seq 3"}`, "readFile", `{"path":"a"}`))
	next := c.Next()
	if len(next.Calls) != 2 || next.Calls[1].Name != "readFile" || c.Turn() != 0 {
		t.Fatalf("got %+v in turn %d", next, c.Turn())
	}
	c.Acted([]model.Result{{ID: "c0", Text: "1\n2\n3\n"}, {ID: "c1", Text: "none", Failed: true}})
	c.Hear("Hurry up.")
	if got := last(asks(t, c)); len(got) != 3 || got[0] != "1\n2\n3\n" || got[2] != "Hurry up." {
		t.Fatalf("the model is told %q", got)
	}
	c.Answered(says("Three."))
	end := c.Next().End
	var out struct {
		Report string      `json:"report"`
		Turns  int         `json:"turns"`
		Usage  model.Usage `json:"usage"`
	}
	if end == nil || end.Failure != "" || end.Summary != "Three." || json.Unmarshal(end.Output, &out) != nil || out.Report != "Three." ||
		out.Turns != 2 || out.Usage != (model.Usage{Input: 20, Output: 4}) {
		t.Errorf("the run ends with %+v, %s", end, end.Output)
	}
}

// TestHowAConversationEnds plays one answer again and again: each that leads nowhere ends the run, at its number and not before.
func TestHowAConversationEnds(t *testing.T) {
	for name, c := range map[string]struct {
		def    blueprint.Blueprint
		answer model.Answer
		turns  int // that it takes
		want   string
	}{
		"steps":          {blueprint.Blueprint{Limits: blueprint.Limits{Steps: 3}}, calls("shell", `{"command":"date"}`), 3, agents.FailSteps},
		"tokens":         {blueprint.Blueprint{Limits: blueprint.Limits{Tokens: 24}}, calls("shell", `{"command":"date"}`), 2, agents.FailTokens},
		"the same":       {blueprint.Blueprint{}, calls("shell", `{"command":"date"}`), 6, agents.FailLoop},
		"empty":          {blueprint.Blueprint{}, model.Answer{Stop: model.StopEnd}, 3, agents.FailEmpty},
		"blank":          {blueprint.Blueprint{}, stopped(model.StopEnd, " \n\t"), 3, agents.FailEmpty},
		"cut":            {blueprint.Blueprint{}, stopped(model.StopLength, "on and"), 4, agents.FailCut},
		"refused":        {blueprint.Blueprint{}, stopped(model.StopRefusal, "no"), 1, agents.FailRefused},
		"filtered":       {blueprint.Blueprint{}, model.Answer{Stop: model.StopFilter}, 1, agents.FailFiltered},
		"never fits":     {blueprint.Blueprint{}, model.Answer{Stop: model.StopOverflow}, 1, agents.FailContext},
		"calls in a cut": {blueprint.Blueprint{}, cut(calls("shell", `{"comm`)), 4, agents.FailCut},
	} {
		t.Run(name, func(t *testing.T) {
			talk := conversation(c.def)
			for range c.turns {
				asks(t, talk)
				talk.Answered(c.answer)
				if wanted := talk.Next().Calls; wanted != nil {
					talk.Acted([]model.Result{{ID: "c0", Text: "Monday"}})
				}
			}
			if got := failed(t, talk); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestACallThatIsRepeatedIsTold(t *testing.T) {
	c := conversation(blueprint.Blueprint{})
	for i := range 3 {
		asks(t, c)
		c.Answered(calls("shell", `{"command":"date"}`))
		c.Acted([]model.Result{{ID: "c0", Text: "Monday"}})
		if told := len(last(asks(t, c))) == 2; told != (i == 2) {
			t.Errorf("after %d equal turns the model is told: %v", i+1, told)
		}
	}
	c.Answered(calls("shell", `{"command":"date"}`))
	c.Acted([]model.Result{{ID: "c0", Text: "Tuesday"}})
	if got := last(asks(t, c)); len(got) != 1 {
		t.Errorf("after a turn that differs the model is told %q", got)
	}
}

func TestAnAnswerHasAtMost64Calls(t *testing.T) {
	for _, n := range []int{64, 65} {
		var pairs []string
		for range n {
			pairs = append(pairs, "shell", `{"command":"date"}`)
		}
		c := conversation(blueprint.Blueprint{})
		asks(t, c)
		c.Answered(calls(pairs...))
		if next := c.Next(); (len(next.Calls) == 64) != (n == 64) {
			t.Errorf("of %d calls %d are made", n, len(next.Calls))
		}
		if n == 65 {
			if got := last(asks(t, c)); len(got) != 65 || !strings.Contains(got[64], "at most 64") {
				t.Errorf("the model is told %q", got[64])
			}
		}
	}
}

// TestLongResults: a long result is shortened, read_result shows the rest, and a context at its limit shortens the oldest results first.
func TestLongResults(t *testing.T) {
	c := conversation(blueprint.Blueprint{Context: blueprint.Context{ToolResult: 1000, Tokens: 7000}})
	for i := range 20 {
		r := asks(t, c)
		if got := r.MostTokens() / 3; got > 7000 {
			t.Fatalf("turn %d asks with %d tokens", i, got)
		}
		c.Answered(calls("shell", fmt.Sprintf(`{"command":"echo %d"}`, i)))
		c.Acted([]model.Result{{ID: fmt.Sprintf("c%d", 0), Text: strings.Repeat(string(rune('a'+i)), 2000)}})
	}
	r := asks(t, c)
	lengths := []int{}
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if p.Result != nil {
				lengths = append(lengths, len(p.Result.Text))
			}
		}
	}
	if len(lengths) != 20 || lengths[0] > 400 || lengths[19] < 1000 || lengths[19] > 1200 ||
		!strings.Contains(last(r)[0], `read_result with id "c0"`) {
		t.Errorf("the results have %v characters", lengths)
	}
}

// TestTheSameRecordLeadsToTheSameRequests goes through one record twice.
func TestTheSameRecordLeadsToTheSameRequests(t *testing.T) {
	play := func() (hashes []string) {
		c := conversation(blueprint.Blueprint{Context: blueprint.Context{Tokens: 3000}})
		for i := range 12 {
			h, err := asks(t, c).Hash()
			if err != nil {
				t.Fatal(err)
			}
			hashes = append(hashes, h.String())
			c.Answered(calls("shell", fmt.Sprintf(`{"command":"seq %d"}`, i)))
			c.Acted([]model.Result{{ID: "c0", Text: strings.Repeat("x", 300*i)}})
		}
		return hashes
	}
	if a, b := play(), play(); strings.Join(a, " ") != strings.Join(b, " ") {
		t.Errorf("%v and %v", a, b)
	}
}

// TestPicturesOfATask stand behind the task in every request, and count for its length.
func TestPicturesOfATask(t *testing.T) {
	c := conversation(blueprint.Blueprint{})
	c.Show([]model.Image{{MediaType: "image/png", Data: []byte("one")}, {MediaType: "image/gif", Data: []byte("two")}})
	check := func() {
		t.Helper()
		m := asks(t, c).Messages[1]
		if len(m.Parts) != 3 || m.Parts[0].Text != "Count to three." || string(m.Parts[1].Image.Data) != "one" ||
			string(m.Parts[2].Image.Data) != "two" {
			t.Errorf("got %+v", m)
		}
	}
	check()
	c.Answered(calls("readFile", `{"path":"a"}`))
	c.Acted([]model.Result{{ID: "c0", Text: "x"}})
	check()
	small := conversation(blueprint.Blueprint{Context: blueprint.Context{Tokens: 4_000}})
	small.Show([]model.Image{{MediaType: "image/png", Data: []byte("one")}})
	if got := failed(t, small); got != agents.FailContext {
		t.Errorf("a picture that does not fit: got %s", got)
	}
}

// TestReadResultIsATool checks the tool that the loop adds.
func TestReadResultIsATool(t *testing.T) {
	if err := agents.ReadResult().Check(); err != nil {
		t.Error(err)
	}
	if _, err := tool.HashOf([]tool.Tool{agents.ReadResult()}); err != nil {
		t.Error(err)
	}
}

// TestARequestThatDidNotFitIsShortened holds that each request after one that did not fit into the model's window is shorter, also where
// the blueprint's budget is far larger than that window, and that the run goes on for as long as there is something to shorten.
func TestARequestThatDidNotFitIsShortened(t *testing.T) {
	c := conversation(blueprint.Blueprint{})
	for n := range 4 {
		asks(t, c)
		c.Answered(calls("readFile", fmt.Sprintf(`{"path":"f%d"}`, n)))
		c.Acted([]model.Result{{ID: "c0", Text: strings.Repeat("long ", 800)}})
	}
	before, shorter := asks(t, c).MostTokens(), 0
	for c.Next().End == nil {
		c.Overflowed()
		if next := c.Next(); next.Request != nil {
			if now := next.Request.MostTokens(); now >= before {
				t.Fatalf("the request has %d after one of %d did not fit", now, before)
			} else {
				before, shorter = now, shorter+1
			}
		}
	}
	if got := failed(t, c); got != agents.FailContext || shorter == 0 {
		t.Errorf("got %s after %d shorter requests", got, shorter)
	}
}

// TestALongReportLosesItsMiddle holds that the output of a run fits into its end, whatever the model has said.
func TestALongReportLosesItsMiddle(t *testing.T) {
	for _, letter := range []string{"y", "\"", "\u00e9", "\u2028"} {
		for _, n := range []int{0, 1, 60 << 10, 64 << 10, 3 << 20} {
			c := conversation(blueprint.Blueprint{})
			asks(t, c)
			c.Answered(says("It is" + strings.Repeat(letter, n)))
			end := c.Next().End
			var out struct {
				Report string `json:"report"`
			}
			if end == nil || len(end.Output) > run.MaxReport || json.Unmarshal(end.Output, &out) != nil || !strings.HasPrefix(out.Report, "It is") {
				t.Errorf("%q %d times: the run ends with %.100v", letter, n, end)
			}
		}
	}
}
