package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/endpoint"
	"agentbox/internal/driver/endpoint/endpointtest"
	"agentbox/internal/driver/endpoint/openai"
)

func permit(t testing.TB, e model.Entry, r model.Request) policy.Permit {
	return endpointtest.Issue(policy.Issue).Permit(t, e, r)
}

func ask(t testing.TB, to model.Endpoint, e model.Entry, key string, r model.Request) (model.Answer, []model.Delta, error) {
	t.Helper()
	return endpointtest.Issue(policy.Issue).Ask(t.Context(), t, to, e, key, r)
}

// entry returns an entry of a dialect at a vendor.
func entry(v *endpointtest.Vendor, dialect string) model.Entry {
	return model.Entry{Name: "m", Provider: model.OpenAI, Dialect: dialect, BaseURL: v.URL, Model: "glm", AllowPrivate: true, IdleMS: 5000}
}

func driver(t testing.TB) *openai.Endpoint {
	c := endpoint.New()
	t.Cleanup(c.Close)
	return openai.New(c)
}

// sse writes events as data lines.
func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

const (
	done   = "[DONE]"
	stop   = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	tools  = `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
	length = `{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`
	used   = `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},` +
		`"completion_tokens_details":{"reasoning_tokens":2}}}`
)

func text(s string) string { return delta(`"content":` + quote(s)) }

func delta(members string) string {
	return `{"id":"x","model":"glm-5","choices":[{"index":0,"delta":{` + members + `},"finish_reason":null}]}`
}

func quote(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

func call(index int, id, name, arguments string) string {
	return delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}]`, index, id, name,
		quote(arguments)))
}

// shown writes an answer on one line.
func shown(a model.Answer) string {
	var b strings.Builder
	for _, p := range a.Parts {
		switch p.Type {
		case model.CallPart:
			fmt.Fprintf(&b, "%s:%s(%s) ", p.Call.ID, p.Call.Name, p.Call.Arguments)
		case model.ReasoningPart:
			fmt.Fprintf(&b, "<%s> ", p.Reasoning.Text)
		default:
			fmt.Fprintf(&b, "%q ", p.Text)
		}
	}
	return b.String() + string(a.Stop)
}

// TestAnswers holds what each stream means, the odd ones of compatible servers among them.
func TestAnswers(t *testing.T) {
	for _, c := range []struct{ name, dialect, stream, want string }{
		{"text", "openai", sse(text("Hel"), text("lo"), stop, used, done), `"Hello" end`},
		{"done without an empty line", "openai", sse(text("a"), stop) + "data: [DONE]", `"a" end`},
		{"lines end with CRLF", "openai", strings.ReplaceAll(sse(text("a"), stop, done), "\n", "\r\n"), `"a" end`},
		{"comments and no space", "openai", ": ping\n\ndata:" + text("a") + "\n\n" + sse(stop, done), `"a" end`},
		{"byte order mark", "openai", "\ufeff" + sse(text("a"), stop, done), `"a" end`},
		{"an end without [DONE]", "generic", sse(text("a"), stop), `"a" end`},
		{"null error", "generic", sse(`{"error":null,"choices":[{"index":0,"delta":{"content":"a"}}]}`, stop, done), `"a" end`},
		{"null choices", "zai", sse(text("a"), `{"choices":null}`, stop, done), `"a" end`},
		{"no choices", "zai", sse(`{"id":"x"}`, text("a"), stop, done), `"a" end`},
		{"null content", "openai", sse(delta(`"role":"assistant","content":null`), text("a"), stop, done), `"a" end`},
		{"the id changes", "generic", sse(text("a"), strings.Replace(text("b"), `"x"`, `"y"`, 1), stop, done), `"ab" end`},
		{"another choice", "openai", sse(`{"choices":[{"index":1,"delta":{"content":"no"}}]}`, text("a"), stop, done), `"a" end`},
		{"parallel calls", "openai", sse(call(0, "a", "f", ""), call(0, "", "", `{"x":`), call(1, "b", "g", ""), call(0, "", "", "1}"),
			call(1, "", "", "{}"), tools, done), `a:f({"x":1}) b:g({}) tools`},
		{"all calls have index 0", "ollama", sse(call(0, "a", "f", `{"x":1}`), call(0, "b", "g", `{}`), stop, done),
			`a:f({"x":1}) b:g({}) tools`},
		{"the id in each piece", "generic", sse(call(0, "a", "f", `{"x"`), call(0, "a", "", `:1}`), tools, done), `a:f({"x":1}) tools`},
		{"two entries of one index", "vllm", sse(delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}},`+
			`{"index":0,"function":{"arguments":"{\"x\":1}"}}]`), tools, done), `a:f({"x":1}) tools`},
		{"no ids", "llamacpp", sse(call(0, "", "f", `{}`), call(0, "", "g", `{"y":2}`), tools, done),
			`call_0:f({}) call_1:g({"y":2}) tools`},
		{"null ids", "llamacpp", sse(delta(`"tool_calls":[{"index":0,"id":null,"function":{"name":"f","arguments":null}}]`), tools, done),
			`call_0:f() tools`},
		{"one id for two calls", "generic", sse(call(0, "a", "f", `{}`), call(1, "a", "g", `{}`), tools, done), `a:f({}) acall_1:g({}) tools`},
		{"arguments as an object", "ollama", sse(delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}]`),
			stop, done), `a:f({"x":1}) tools`},
		{"malformed arguments stay", "openai", sse(call(0, "a", "f", `{"x":`), tools, done), `a:f({"x":) tools`},
		{"a cut call", "openai", sse(call(0, "a", "f", `{"x":`), length, done), `a:f({"x":) length`},
		{"refusal", "openai", sse(delta(`"refusal":"I will not."`), stop, done), `"I will not." refusal`},
		{"filter", "openai", sse(text("a"), `{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}`, done), `"a" filter`},
		{"z.ai's filter", "zai", sse(`{"choices":[{"index":0,"delta":{},"finish_reason":"sensitive"}]}`, done), `filter`},
		{"window is full", "zai", sse(text("a"), `{"choices":[{"index":0,"delta":{},"finish_reason":"model_context_window_exceeded"}]}`, done),
			`"a" overflow`},
		{"reasoning_content", "zai", sse(delta(`"reasoning_content":"h"`), delta(`"reasoning_content":"m"`), text("a"), stop, done),
			`<hm> "a" end`},
		{"reasoning", "vllm", sse(delta(`"reasoning":"hm"`), text("a"), stop, done), `<hm> "a" end`},
		{"reasoning alone, cut", "zai", sse(delta(`"reasoning_content":"hm"`), length, done), `<hm> length`},
		{"large", "openai", sse(text(strings.Repeat("y", 1<<20)), stop, done), `"` + strings.Repeat("y", 1<<20) + `" end`},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := endpointtest.Serve(t, endpointtest.Say(c.stream))
			a, seen, err := ask(t, driver(t), entry(v, c.dialect), "", endpointtest.Hello())
			if got := shown(a); err != nil || got != c.want {
				t.Fatalf("got %.200s, %v, want %.200s", got, err, c.want)
			}
			all := ""
			for _, d := range seen {
				if d.Type == model.TextPart {
					all += d.Text
				}
			}
			if all != a.Text() {
				t.Errorf("the pieces are %.100q, the text is %.100q", all, a.Text())
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
	problem := func(code, message string) string {
		return `{"error":{"code":` + quote(code) + `,"message":` + quote(message) + `}}`
	}
	for _, c := range []struct {
		name, dialect string
		answer        func(http.ResponseWriter, *http.Request)
		class         model.Class
		code          string
		begun         bool
	}{
		{"ends before its end", "openai", say(sse(text("a"))), model.Retry, "", true},
		{"[DONE] without a finish_reason", "openai", say(sse(text("a"), done)), model.Retry, "no_finish", true},
		{"nothing at all", "openai", say(""), model.Retry, "", false},
		{"empty", "openai", say(sse(stop, done)), model.Retry, "empty", false},
		{"dropped", "openai", endpointtest.Break(sse(text("a"))), model.Retry, "", true},
		{"HTML with 200", "generic", refuse(200, "<!DOCTYPE html><html>log in</html>", "Content-Type", "text/html"), model.Final,
			"not_a_stream", false},
		{"an error with 200", "zai", refuse(200, problem("1113", "arrears")), model.Money, "1113", false},
		{"a plain answer with 200", "generic", refuse(200, `{"choices":[{"message":{"content":"a"}}]}`), model.Final, "not_a_stream", false},
		{"an error in the stream", "openai", say(sse(text("a"), `{"error":{"message":"overloaded","type":"server_error"}}`)), model.Retry,
			"server_error", true},
		{"an error as a text", "llamacpp", say(sse(`{"error":"cannot parse the tool call"}`)), model.Retry, "", false},
		{"a flat error", "vllm", say(sse(`{"object":"error","message":"This model's maximum context length is 10","code":400}`)), model.Overflow,
			"400", false},
		{"a status in the stream", "vllm", say(sse(`{"error":{"message":"bad","code":400}}`)), model.Final, "400", false},
		{"event: error", "generic", say("event: error\ndata: {\"message\":\"x\",\"code\":\"slow_down\"}\n\n"), model.Busy, "slow_down", false},
		{"not JSON", "generic", say(sse("{{")), model.Retry, "not_json", false},
		{"an event over the cap", "generic", say("data: " + strings.Repeat("x", endpoint.MaxEventBytes+10)), model.Final, "event_too_large",
			false},
		{"many lines over the cap", "generic", say(strings.Repeat("data: "+strings.Repeat("x", 1<<16)+"\n", 65)), model.Final, "event_too_large",
			false},
		{"a call without a name", "generic", say(sse(call(0, "a", "", "{}"), tools, done)), model.Retry, "tool_call_unnamed", true},
		{"an unknown end", "generic", say(sse(text("a"), `{"choices":[{"delta":{},"finish_reason":"tired"}]}`, done)), model.Retry,
			"unknown_finish", true},
		{"no more room", "deepseek", say(sse(`{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}`, done)), model.Busy,
			"insufficient_system_resource", false},
		{"400", "openai", refuse(400, problem("unknown_parameter", "x")), model.Final, "unknown_parameter", false},
		{"401", "openai", refuse(401, problem("invalid_api_key", "x")), model.Final, "invalid_api_key", false},
		{"402", "deepseek", refuse(402, problem("", "Insufficient Balance")), model.Money, "", false},
		{"422", "deepseek", refuse(422, `not json`), model.Final, "", false},
		{"408", "openai", refuse(408, ``), model.Retry, "", false},
		{"409", "openai", refuse(409, ``), model.Retry, "", false},
		{"500", "openai", refuse(500, ``), model.Retry, "", false},
		{"502 HTML", "openai", refuse(502, `<html>bad gateway</html>`), model.Retry, "", false},
		{"503", "openai", refuse(503, problem("slow_down", "x")), model.Busy, "slow_down", false},
		{"429 load", "openai", refuse(429, problem("rate_limit_exceeded", "x")), model.Busy, "rate_limit_exceeded", false},
		{"429 money", "openai", refuse(429, problem("insufficient_quota", "x")), model.Money, "insufficient_quota", false},
		{"z.ai 1302", "zai", refuse(429, problem("1302", "concurrency")), model.Busy, "1302", false},
		{"z.ai 1113", "zai", refuse(429, problem("1113", "arrears")), model.Money, "1113", false},
		{"z.ai 1308", "zai", refuse(429, problem("1308", "quota")), model.Money, "1308", false},
		{"z.ai 1211", "zai", refuse(400, problem("1211", "no such model")), model.Final, "1211", false},
		{"z.ai 1261", "zai", refuse(400, problem("1261", "too long")), model.Overflow, "1261", false},
		{"z.ai 1301", "zai", refuse(400, problem("1301", "filtered")), model.Refused, "1301", false},
		{"1302 is no code elsewhere", "openai", refuse(400, problem("1302", "x")), model.Final, "1302", false},
		{"overflow by code", "openai", refuse(400, problem("context_length_exceeded", "x")), model.Overflow, "context_length_exceeded", false},
		{"overflow by words", "generic", refuse(400, `{"error":{"type":"invalid_request_error","message":"maximum context length is 8"}}`),
			model.Overflow, "invalid_request_error", false},
		{"a redirect", "generic", refuse(307, "", "Location", "https://example.com/"), model.Final, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := endpointtest.Serve(t, c.answer)
			a, _, err := ask(t, driver(t), entry(v, c.dialect), "", endpointtest.Hello())
			f, ok := model.FailureOf(err)
			if !ok || f.Class != c.class || f.Code != c.code || f.Begun != c.begun || len(a.Parts) > 0 {
				t.Errorf("got %+v, %v (class %v), want class %s, code %q, begun %t", f, err, f != nil && f.Class == c.class, c.class, c.code, c.begun)
			}
		})
	}
}

// TestTimes holds the idle timer and the total limit: a slow stream that lives is not cut, a silent one is.
func TestTimes(t *testing.T) {
	v := endpointtest.Serve(t, endpointtest.Stall(sse(text("a"))))
	e := entry(v, "openai")
	e.IdleMS = 50
	if _, _, err := ask(t, driver(t), e, "", endpointtest.Hello()); !timedOut(err) {
		t.Errorf("silence: got %v", err)
	}
	e.IdleMS, e.TotalMS = 10_000, 50
	if _, _, err := ask(t, driver(t), e, "", endpointtest.Hello()); !timedOut(err) {
		t.Errorf("too long: got %v", err)
	}
	slow := endpointtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		for range 20 {
			endpointtest.Say(sse(text("a")))(w, r)
			_ = http.NewResponseController(w).Flush()
			<-time.After(130 * time.Millisecond)
		}
		endpointtest.Say(sse(stop, done))(w, r)
	})
	e = entry(slow, "openai")
	e.IdleMS = 2_000 // the whole takes longer, and a busy machine adds to each pause
	if a, _, err := ask(t, driver(t), e, "", endpointtest.Hello()); err != nil || a.Text() != strings.Repeat("a", 20) {
		t.Errorf("slow and alive: got %v, %v", a, err)
	}
}

func timedOut(err error) bool {
	f, ok := model.FailureOf(err)
	return ok && f.Class == model.Retry && f.Code == "timeout"
}

// TestTheCallerEnds holds that a cancelled request is the caller's own error, and that emit ends one.
func TestTheCallerEnds(t *testing.T) {
	v := endpointtest.Serve(t, endpointtest.Stall(sse(text("a"))))
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	e, r := entry(v, "openai"), endpointtest.Hello()
	_, err := driver(t).Stream(ctx, permit(t, e, r), model.Target{Entry: e}, r, func(model.Delta) error {
		cancel(enough)
		return nil
	})
	if _, failed := model.FailureOf(err); failed || !errors.Is(err, enough) {
		t.Errorf("cancelled: got %v", err)
	}
	_, err = driver(t).Stream(t.Context(), permit(t, e, r), model.Target{Entry: e}, r, func(model.Delta) error { return enough })
	if !errors.Is(err, enough) {
		t.Errorf("emit ends it: got %v", err)
	}
}

// TestRetryAfter reads both forms, and a date by the endpoint's own clock.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		headers []string
		want    time.Duration
	}{
		{[]string{"Retry-After", "7"}, 7 * time.Second},
		{[]string{"Retry-After-Ms", "1500", "Retry-After", "9"}, 1500 * time.Millisecond},
		{[]string{"Date", "Wed, 21 Oct 2026 07:28:00 GMT", "Retry-After", "Wed, 21 Oct 2026 07:29:30 GMT"}, 90 * time.Second},
		{[]string{"Date", "Wed, 21 Oct 2026 07:28:00 GMT", "Retry-After", "Wed, 21 Oct 2026 07:00:00 GMT"}, 0},
		{[]string{"Retry-After", "soon"}, 0},
		{[]string{"Retry-After", "-5"}, 0},
		{[]string{"Retry-After", "NaN"}, 0},
	} {
		v := endpointtest.Serve(t, endpointtest.Refuse(429, "", c.headers...))
		_, _, err := ask(t, driver(t), entry(v, "openai"), "", endpointtest.Hello())
		if f, ok := model.FailureOf(err); !ok || f.After != c.want {
			t.Errorf("%v: got %v, want %s", c.headers, err, c.want)
		}
	}
}

// TestUsage adds up without counting the cache twice.
func TestUsage(t *testing.T) {
	for _, c := range []struct {
		event   string
		want    model.Usage
		unknown bool
	}{
		{used, model.Usage{Input: 6, CacheRead: 4, Output: 5, Reasoning: 2}, false},
		{`{"choices":[],"usage":{"prompt_tokens":10,"prompt_cache_hit_tokens":8,"completion_tokens":1}}`, model.Usage{Input: 2, CacheRead: 8,
			Output: 1}, false},
		{`{"choices":[],"usage":{"prompt_tokens":-1,"completion_tokens":-1}}`, model.Usage{}, true},
		{`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":-1}}`, model.Usage{}, true},
		{`{"choices":[],"usage":null}`, model.Usage{}, true},
	} {
		v := endpointtest.Serve(t, endpointtest.Say(sse(text("a"), stop, c.event, done)))
		a, _, err := ask(t, driver(t), entry(v, "openai"), "", endpointtest.Hello())
		if err != nil || a.Usage != c.want || a.Unknown != c.unknown {
			t.Errorf("%s: got %+v, %t, %v, want %+v", c.event, a.Usage, a.Unknown, err, c.want)
		}
	}
}

// TestNoSecretInAFailure sends a key that the endpoint repeats.
func TestNoSecretInAFailure(t *testing.T) {
	v := endpointtest.Serve(t, endpointtest.Refuse(401, `{"error":{"message":"wrong key sk-hidden\nline\u0007","code":"invalid_api_key"}}`))
	_, _, err := ask(t, driver(t), entry(v, "openai"), "sk-hidden", endpointtest.Hello())
	if err == nil || strings.Contains(err.Error(), "sk-hidden") || !strings.Contains(err.Error(), `"wrong key [secret] line"`) {
		t.Errorf("got %v", err)
	}
	if got := v.Header().Get("Authorization"); got != "Bearer sk-hidden" {
		t.Errorf("the header is %q", got)
	}
}

// TestNoEnvironment sets what SDKs read, and nothing of it is used.
func TestNoEnvironment(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS", "HTTP_PROXY", "HTTPS_PROXY",
		"OPENAI_BASE_URL"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	v := endpointtest.Serve(t, endpointtest.Say(sse(text("a"), stop, done)))
	if _, _, err := ask(t, driver(t), entry(v, "openai"), "", endpointtest.Hello()); err != nil {
		t.Fatal(err)
	}
	if got := v.Header().Get("Authorization"); got != "" || v.Path() != "/chat/completions" {
		t.Errorf("authorization %q, path %s", got, v.Path())
	}
}

// TestAConnectionIsUsedAgain asks twenty times, with bytes after the end, and counts the connections.
func TestAConnectionIsUsedAgain(t *testing.T) {
	var connections atomic.Int64
	v := endpointtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		endpointtest.Say(sse(text("a"), stop, done))(w, r)
		_ = http.NewResponseController(w).Flush()
		endpointtest.Say(": bye\n\n")(w, r)
	})
	v.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	d := driver(t)
	for range 20 {
		if _, _, err := ask(t, d, entry(v, "openai"), "", endpointtest.Hello()); err != nil {
			t.Fatal(err)
		}
	}
	if got := connections.Load(); got == 0 || got > 10 { // the next request may come before the rest is read
		t.Errorf("got %d connections for 20 requests", got)
	}
}

// TestPrivateAddresses holds that a loopback address needs the word of an admin, also behind a name.
func TestPrivateAddresses(t *testing.T) {
	v := endpointtest.Serve(t, endpointtest.Say(sse(text("a"), stop, done)))
	e := entry(v, "openai")
	e.AllowPrivate = false
	for _, url := range []string{v.URL, strings.Replace(v.URL, "127.0.0.1", "localhost", 1)} {
		e.BaseURL = url
		_, _, err := ask(t, driver(t), e, "", endpointtest.Hello())
		if f, ok := model.FailureOf(err); !ok || f.Class != model.Final || f.Code != "private_address" {
			t.Errorf("%s: got %v", url, err)
		}
	}
	e.AllowPrivate, e.BaseURL = true, "http://169.254.169.254"
	_, _, err := ask(t, driver(t), e, "", endpointtest.Hello())
	if f, ok := model.FailureOf(err); !ok || f.Code != "private_address" {
		t.Errorf("an address of the link: got %v", err)
	}
}

// TestNoPermitNoRequest changes each part that the permit names.
func TestNoPermitNoRequest(t *testing.T) {
	v := endpointtest.Serve(t, endpointtest.Say(sse(text("a"), stop, done)))
	e, r := entry(v, "openai"), endpointtest.Hello()
	other := endpointtest.Hello()
	other.MaxTokens = 1
	elsewhere, named, bigger := e, e, e
	elsewhere.BaseURL, named.Name, bigger.Model = "http://127.0.0.1:1", "n", "glm-huge"
	for name, try := range map[string]struct {
		permit policy.Permit
		entry  model.Entry
		r      model.Request
	}{
		"none": {policy.Permit{}, e, r}, "another request": {permit(t, e, r), e, other},
		"another address": {permit(t, e, r), elsewhere, r}, "another entry": {permit(t, e, r), named, r},
		"another model": {permit(t, e, r), bigger, r},
	} {
		_, err := driver(t).Stream(t.Context(), try.permit, model.Target{Entry: try.entry}, try.r, nil)
		if !errors.Is(err, policy.ErrNoPermit) && !errors.Is(err, policy.ErrPermitMismatch) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	twice := permit(t, e, r)
	if _, err := driver(t).Stream(t.Context(), twice, model.Target{Entry: e}, r, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := driver(t).Stream(t.Context(), twice, model.Target{Entry: e}, r, nil); !errors.Is(err, policy.ErrPermitSpent) {
		t.Errorf("twice: got %v", err)
	}
}
