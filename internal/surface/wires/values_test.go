package wires

import (
	"net/http"
	"strings"
	"testing"

	"agentbox/internal/domain/model"
)

// TestARequestOfManyValues: a short value of JSON takes a hundred times its bytes when it is decoded, so code of the space could have the
// daemon take gigabytes. What stands in a text is no value.
func TestARequestOfManyValues(t *testing.T) {
	o, s := serve(t)
	many := strings.Repeat("{},", MaxValues) + "{}"
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"m1","messages":[` + many + `]}`,
		"/v1/messages":         `{"model":"m1","max_tokens":9,"messages":[{"role":"user","content":[` + many + `]}]}`,
		"/v1/responses":        `{"model":"m1","input":[` + many + `]}`,
	} {
		if resp, said := post(t, s, path, body); resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(said, "values") {
			t.Errorf("%s: %d %.200s", path, resp.StatusCode, said)
		}
	}
	if len(o.asked) != 0 {
		t.Errorf("%d questions were asked", len(o.asked))
	}
	text := strings.Repeat(`{[,\"\\`, MaxValues)
	resp, said := post(t, s, "/v1/chat/completions", `{"model":"m1","messages":[{"role":"system","content":"`+text+
		`"},{"role":"user","content":"say"}]}`)
	if resp.StatusCode != 200 {
		t.Errorf("a long text: %d %.200s", resp.StatusCode, said)
	}
	for n, want := range map[int]bool{MaxValues - 1: true, MaxValues: true, MaxValues + 1: false} {
		if err := few([]byte("[" + strings.Repeat("0,", n-1) + "0]")); (err == nil) != want {
			t.Errorf("%d values: %v", n, err)
		}
	}
}

// TestTheNamesOfCallsAreRemembered within the bound of the memory, too: a vendor chooses them.
func TestTheNamesOfCallsAreRemembered(t *testing.T) {
	s := New(nil, nil)
	name := strings.Repeat("x", 1<<20)
	for i := range 64 {
		s.keep(model.Reply{Answer: model.Answer{Parts: []model.Part{
			{Type: model.ReasoningPart, Reasoning: &model.Reasoning{Dialect: "d", Text: "I"}},
			{Type: model.CallPart, Call: &model.Call{ID: strings.Repeat("i", i), Name: name}},
		}}})
	}
	if held := len(s.thought.held); held == 0 || held > maxThought>>20 {
		t.Errorf("%d answers are remembered", held)
	}
}
