package anthropic_test

import (
	"strings"
	"testing"

	"agentbox/internal/domain/model"
	"agentbox/internal/driver/endpoint"
	"agentbox/internal/driver/endpoint/endpointtest"
)

// TestAHostileAnswer has more blocks than an answer can have, tells numbers below 0, and gives a call the id that another one would get.
func TestAHostileAnswer(t *testing.T) {
	many := []string{start}
	for i := range endpoint.MaxParts + 1 {
		many = append(many, begin(i, `{"type":"text","text":""}`), ended(i))
	}
	v := endpointtest.Serve(t, endpointtest.Say(sse(append(many, stop("end_turn"), end)...)))
	_, _, err := ask(t, driver(t), entry(v), "", endpointtest.Hello())
	if f, failed := model.FailureOf(err); !failed || f.Code != "too_many_parts" || f.Class != model.Final {
		t.Errorf("many blocks: got %v", err)
	}

	below := `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":-7}}`
	begun := strings.Replace(start, `"input_tokens":10`, `"input_tokens":-10`, 1)
	v = endpointtest.Serve(t, endpointtest.Say(sse(append(append([]string{begun}, hello()...), below, end)...)))
	a, _, err := ask(t, driver(t), entry(v), "", endpointtest.Hello())
	if want := (model.Usage{CacheRead: 4, CacheWrite: 3, Output: 1}); err != nil || a.Usage != want {
		t.Errorf("numbers below 0: got %+v, %v", a.Usage, err)
	}

	v = endpointtest.Serve(t, endpointtest.Say(sse(all(twin(1, "a_call_2"), twin(2, "a"), twin(3, "a"), []string{stop("tool_use"), end})...)))
	a, _, err = ask(t, driver(t), entry(v), "", endpointtest.Hello())
	if got := shown(a); err != nil || got != `a_call_2:f({"x":1}) a:f({"x":1}) a_call_2_call_2:f({"x":1}) tools` {
		t.Errorf("ids: got %s, %v", got, err)
	}
}
