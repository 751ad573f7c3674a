package anthropic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/endpoint"
	"agentbox/internal/driver/endpoint/anthropic"
	"agentbox/internal/driver/endpoint/endpointtest"
)

func ask(t testing.TB, to model.Endpoint, e model.Entry, key string, r model.Request) (model.Answer, []model.Delta, error) {
	t.Helper()
	return endpointtest.Issue(policy.Issue).Ask(t.Context(), t, to, e, key, r)
}

func entry(v *endpointtest.Vendor) model.Entry {
	return model.Entry{Name: "m", Provider: model.Anthropic, BaseURL: v.URL, Model: "claude", AllowPrivate: true, IdleMS: 5000}
}

func driver(t testing.TB) *anthropic.Endpoint {
	c := endpoint.New()
	t.Cleanup(c.Close)
	return anthropic.New(c)
}

// sse writes events with their `event:` lines; bare without.
func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		var typ struct{ Type string }
		_ = json.Unmarshal([]byte(e), &typ)
		b.WriteString("event: " + typ.Type + "\ndata: " + e + "\n\n")
	}
	return b.String()
}

func bare(events ...string) string { return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n" }

const (
	start = `{"type":"message_start","message":{"id":"msg_1","model":"claude-5","usage":{"input_tokens":10,"cache_read_input_tokens":4,` +
		`"cache_creation_input_tokens":3,"output_tokens":1}}}`
	ping = `{"type":"ping"}`
	end  = `{"type":"message_stop"}`
)

func begin(n int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, n, block)
}

func piece(n int, delta string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, n, delta)
}

func ended(n int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, n) }

func stop(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":7,` +
		`"output_tokens_details":{"thinking_tokens":2}}}`
}

// hello is a block of text.
func hello() []string {
	return []string{begin(0, `{"type":"text","text":""}`), piece(0, `{"type":"text_delta","text":"Hi"}`), ended(0)}
}

// call is a block of a call in two pieces.
func call(n int) []string {
	return []string{begin(n, fmt.Sprintf(`{"type":"tool_use","id":"t%d","name":"f","input":{}}`, n)),
		piece(n, `{"type":"input_json_delta","partial_json":"{\"x\":"}`), piece(n, `{"type":"input_json_delta","partial_json":"1}"}`), ended(n)}
}

// twin is a call under the id of another one.
func twin(n int, id string) []string {
	blocks := call(n)
	blocks[0] = strings.Replace(blocks[0], fmt.Sprintf(`"t%d"`, n), `"`+id+`"`, 1)
	return blocks
}

func all(parts ...[]string) []string {
	list := []string{start, ping}
	for _, p := range parts {
		list = append(list, p...)
	}
	return list
}

func shown(a model.Answer) string {
	var b strings.Builder
	for _, p := range a.Parts {
		switch p.Type {
		case model.CallPart:
			fmt.Fprintf(&b, "%s:%s(%s) ", p.Call.ID, p.Call.Name, p.Call.Arguments)
		case model.ReasoningPart:
			fmt.Fprintf(&b, "<%s> ", p.Reasoning.Opaque)
		default:
			fmt.Fprintf(&b, "%q ", p.Text)
		}
	}
	return b.String() + string(a.Stop)
}

// TestAnswers holds what each stream means.
func TestAnswers(t *testing.T) {
	for _, c := range []struct{ name, stream, want string }{
		{"text", sse(all(hello(), []string{stop("end_turn"), end})...), `"Hi" end`},
		{"without event lines", bare(all(hello(), []string{stop("end_turn"), end})...), `"Hi" end`},
		{"an event of a later day", sse(all(hello(), []string{`{"type":"sparkle"}`, stop("end_turn"), end})...), `"Hi" end`},
		{"calls", sse(all(hello(), call(1), call(2), []string{stop("tool_use"), end})...), `"Hi" t1:f({"x":1}) t2:f({"x":1}) tools`},
		{"one id for two calls", sse(all(call(1), twin(2, "t1"), twin(3, "t1"), []string{stop("tool_use"), end})...),
			`t1:f({"x":1}) t1_call_1:f({"x":1}) t1_call_2:f({"x":1}) tools`},
		{"a call cut by max_tokens", sse(all(call(0)[:2], []string{stop("max_tokens"), end})...), `t0:f({"x":) length`},
		{"refusal", sse(all([]string{stop("refusal"), end})...), `refusal`},
		{"window is full", sse(all(hello(), []string{stop("model_context_window_exceeded"), end})...), `"Hi" overflow`},
		{"thinking", sse(all([]string{begin(0, `{"type":"thinking","thinking":"","signature":""}`),
			piece(0, `{"type":"thinking_delta","thinking":"hm"}`), piece(0, `{"type":"signature_delta","signature":"sig=="}`), ended(0),
			begin(1, `{"type":"redacted_thinking","data":"xyz"}`), ended(1)}, call(2), []string{stop("tool_use"), end})...),
			`<{"signature":"sig==","thinking":"hm","type":"thinking"}> <{"type":"redacted_thinking","data":"xyz"}> t2:f({"x":1}) tools`},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := endpointtest.Serve(t, endpointtest.Say(c.stream))
			a, _, err := ask(t, driver(t), entry(v), "", endpointtest.Hello())
			want := model.Usage{Input: 10, CacheRead: 4, CacheWrite: 3, Output: 7, Reasoning: 2}
			if got := shown(a); err != nil || got != c.want || a.Usage != want || a.Unknown || a.Model != "claude-5" {
				t.Errorf("got %s, %+v, %v, want %s", got, a, err, c.want)
			}
			if a.Stop == model.StopLength && a.Calls() != nil {
				t.Errorf("a call of a cut answer may be run: %v", a.Calls())
			}
		})
	}
}

// TestFailures holds the class of each failure.
func TestFailures(t *testing.T) {
	say, refuse := endpointtest.Say, endpointtest.Refuse
	problem := func(typ, message, more string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q%s}}`, typ, message, more)
	}
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request)
		class  model.Class
		code   string
	}{
		{"no message_stop", say(sse(all(hello(), []string{stop("end_turn")})...)), model.Retry, ""},
		{"no stop_reason", say(sse(all(hello(), []string{end})...)), model.Retry, "no_finish"},
		{"an open block", say(sse(all(hello()[:2], []string{stop("end_turn"), end})...)), model.Retry, "block_open"},
		{"a piece of no block", say(sse(all(hello()[1:2])...)), model.Retry, "block_missing"},
		{"a block twice", say(sse(all(hello()[:1], hello()[:1])...)), model.Retry, "block_twice"},
		{"empty", say(sse(all([]string{stop("end_turn"), end})...)), model.Retry, "empty"},
		{"an unknown end", say(sse(all(hello(), []string{stop("tired"), end})...)), model.Retry, "unknown_finish"},
		{"not JSON", say("data: {{\n\n"), model.Retry, "not_json"},
		{"overloaded within", say(sse(all(hello(), []string{problem("overloaded_error", "x", "")})...)), model.Busy, "overloaded_error"},
		{"invalid within", say(sse(problem("invalid_request_error", "x", ""))), model.Final, "invalid_request_error"},
		{"dropped", endpointtest.Break(sse(all(hello())...)), model.Retry, ""},
		{"HTML", refuse(200, "<html>"), model.Final, "not_a_stream"},
		{"400", refuse(400, problem("invalid_request_error", "x", "")), model.Final, "invalid_request_error"},
		{"overflow", refuse(400, problem("invalid_request_error", "prompt is too long: 9 > 8", "")), model.Overflow, "invalid_request_error"},
		{"401", refuse(401, problem("authentication_error", "x", "")), model.Final, "authentication_error"},
		{"402", refuse(402, problem("billing_error", "x", "")), model.Money, "billing_error"},
		{"413", refuse(413, problem("request_too_large", "x", "")), model.Final, "request_too_large"},
		{"429", refuse(429, problem("rate_limit_error", "x", ""), "Retry-After", "3"), model.Busy, "rate_limit_error"},
		{"429 spend limit", refuse(429, problem("rate_limit_error", "x",
			`,"details":{"error_code":"enforced_spend_limit_reached"}`)), model.Money,
			"rate_limit_error"},
		{"500", refuse(500, problem("api_error", "x", "")), model.Retry, "api_error"},
		{"504", refuse(504, problem("timeout_error", "x", "")), model.Retry, "timeout_error"},
		{"529", refuse(529, problem("overloaded_error", "x", "")), model.Busy, "overloaded_error"},
		{"529 without a body", refuse(529, ""), model.Busy, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := endpointtest.Serve(t, c.answer)
			_, _, err := ask(t, driver(t), entry(v), "", endpointtest.Hello())
			if f, ok := model.FailureOf(err); !ok || f.Class != c.class || f.Code != c.code {
				t.Errorf("got %+v, %v, want class %s, code %q", f, err, c.class, c.code)
			}
		})
	}
}

// TestARequest holds what goes out: results first and in one message, thinking as it came, at most four ends of cached prefixes.
func TestARequest(t *testing.T) {
	cached := func(text string) model.Part { return model.Part{Type: model.TextPart, Text: text, Cache: true} }
	thought := `{"type":"thinking","thinking":"hm","signature":"sig=="}`
	r := model.Request{
		Messages: []model.Message{
			{Role: model.System, Parts: []model.Part{cached("s1"), cached("s2")}},
			{Role: model.User, Parts: []model.Part{cached("u1")}},
			{Role: model.Assistant, Parts: []model.Part{
				{Type: model.ReasoningPart, Reasoning: &model.Reasoning{Dialect: "anthropic", Text: "hm", Opaque: thought}},
				{Type: model.ReasoningPart, Reasoning: &model.Reasoning{Dialect: "zai", Text: "no"}},
				{Type: model.CallPart, Call: &model.Call{ID: "a", Name: "f", Arguments: `{"x":`}},
				{Type: model.CallPart, Call: &model.Call{ID: "b", Name: "f"}}}},
			{Role: model.User, Parts: []model.Part{cached("u2"),
				{Type: model.ResultPart, Result: &model.Result{ID: "a", Text: "bad", Failed: true}}}},
			{Role: model.User, Parts: []model.Part{{Type: model.ResultPart, Result: &model.Result{ID: "b", Images: []model.Image{{
				MediaType: "image/png", Data: []byte("png")}}}}, cached("u3")}},
		},
		Tools: []model.Tool{{Name: "f", Schema: json.RawMessage(`{"type":"object"}`)}}, Schema: json.RawMessage(`{"type":"object"}`),
		Effort: model.EffortLow,
	}
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	v := endpointtest.Serve(t, endpointtest.Say(sse(all(hello(), []string{stop("end_turn"), end})...)))
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "from the environment")
	if _, _, err := ask(t, driver(t), entry(v), "sk-1", r); err != nil {
		t.Fatal(err)
	}
	const mark = `,"cache_control":{"type":"ephemeral"}`
	want := `{"model":"claude","max_tokens":8192,"stream":true,"system":[` +
		`{"type":"text","text":"s1"},{"type":"text","text":"s2"` + mark + `}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"u1"` + mark + `}]},{"role":"assistant","content":[` + thought +
		`,{"type":"tool_use","id":"a","name":"f","input":{"malformed_arguments":"{\"x\":"}},` +
		`{"type":"tool_use","id":"b","name":"f","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"bad"}],"is_error":true},` +
		`{"type":"tool_result","tool_use_id":"b","content":[` +
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cG5n"}}]},` +
		`{"type":"text","text":"u2"` + mark + `},{"type":"text","text":"u3"` + mark + `}]}],` +
		`"tools":[{"name":"f","input_schema":{"type":"object"}}],"thinking":{"type":"adaptive"},` +
		`"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object"}}}}`
	if got := string(v.Body()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	h := v.Header()
	if h.Get("X-Api-Key") != "sk-1" || h.Get("Authorization") != "" || h.Get("Anthropic-Version") != "2023-06-01" ||
		v.Path() != "/v1/messages" {
		t.Errorf("headers %v, path %s", h, v.Path())
	}
}
