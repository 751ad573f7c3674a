package wires

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/model"
)

// oracle answers by the last word that a user said.
type oracle struct {
	mu    sync.Mutex
	asked []Question
}

func (o *oracle) ask(_ context.Context, q Question, emit func(model.Delta) error) (model.Reply, error) {
	o.mu.Lock()
	o.asked = append(o.asked, q)
	o.mu.Unlock()
	usage := model.Usage{Input: 10, CacheRead: 3, Output: 5}
	word, result := "", ""
	for _, m := range q.Request.Messages {
		for _, p := range m.Parts {
			switch {
			case p.Type == model.TextPart && m.Role == model.User:
				word = p.Text
			case p.Type == model.ResultPart:
				result += p.Result.Text
			}
		}
	}
	reply := func(stop model.Stop, parts ...model.Part) (model.Reply, error) {
		return model.Reply{Answer: model.Answer{Parts: parts, Stop: stop, Usage: usage}, Entry: "m1"}, nil
	}
	say := func(typ model.PartType, texts ...string) {
		for _, text := range texts {
			_ = emit(model.Delta{Type: typ, Text: text})
		}
	}
	call := func(id, arguments string) model.Part {
		return model.Part{Type: model.CallPart, Call: &model.Call{ID: id, Name: "add", Arguments: arguments}}
	}
	thought := model.Part{Type: model.ReasoningPart, Reasoning: &model.Reasoning{Dialect: "d", Text: "I add.", Opaque: "sealed"}}
	switch {
	case result != "":
		return reply(model.StopEnd, model.Text("the sum is "+result))
	case word == "call":
		return reply(model.StopTools, thought, call("c1", `{"a":1}`), call("c2", ""))
	case word == "say":
		say(model.TextPart, "hel", "lo")
		return reply(model.StopEnd, model.Text("hello"))
	case word == "think":
		say(model.ReasoningPart, "I ", "add.")
		say(model.TextPart, "done")
		return reply(model.StopEnd, thought, model.Text("done"))
	case word == "cut":
		say(model.TextPart, "hel")
		return model.Reply{}, emit(model.Delta{Type: model.TextPart, Again: true})
	case word == "long":
		return reply(model.StopLength, model.Text("hel"), call("c1", `{"a":`))
	case word == "budget":
		return model.Reply{}, fault.Wrap(model.ErrBudget, fault.Exhausted, model.ErrBudget.Code, "it would cost too much")
	case word == "denied":
		return model.Reply{}, fault.New(fault.Denied, "policy_forbids", "no models here")
	case word == "busy":
		return model.Reply{}, &model.Failure{Class: model.Busy, Status: 429, Message: "later", After: 7e9}
	case word == "overflow":
		return model.Reply{}, &model.Failure{Class: model.Overflow, Status: 400, Message: "200001 tokens"}
	case word == "broken":
		return model.Reply{}, &model.Failure{Class: model.Final, Status: 400, Message: "no such parameter"}
	}
	return model.Reply{}, fmt.Errorf("the test does not know %q", word)
}

func serve(t *testing.T) (*oracle, *httptest.Server) {
	t.Helper()
	o := &oracle{}
	s := httptest.NewServer(New(o.ask, []string{"m1", "m2"}))
	t.Cleanup(s.Close)
	return o, s
}

func post(t *testing.T, s *httptest.Server, path, body string) (*http.Response, string) {
	t.Helper()
	resp, err := http.Post(s.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(raw)
}

// TestOfficialClients asks by the vendors' own clients. scripts/agents brings them and starts this test.
func TestOfficialClients(t *testing.T) {
	folder := os.Getenv("AGENTBOX_VENDOR_CLIENTS")
	if folder == "" {
		t.Skip("the clients are not here: run scripts/agents test")
	}
	o, s := serve(t)
	program, err := os.ReadFile("testdata/clients.mjs")
	if err != nil {
		t.Fatal(err)
	}
	// A module is looked up from the place of the program that imports it.
	at := filepath.Join(t.TempDir(), "clients.mjs")
	if err := os.WriteFile(at, program, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(folder, "node_modules"), filepath.Join(filepath.Dir(at), "node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", at, s.URL)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"chatCall": `{"calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}},` +
			`{"id":"c2","type":"function","function":{"name":"add","arguments":"{}"}}],"finish":"tool_calls","usage":18}`,
		"chatStream":     `{"pieces":["hel","lo"],"text":"hello","finish":"stop","usage":18}`,
		"chatStreamCall": `{"calls":[["c1","add","{\"a\":1}"],["c2","add","{}"]],"finish":"tool_calls"}`,
		"chatBack":       `"the sum is 77"`, "models": `["m1","m2"]`,
		"response": `{"output":[["reasoning",null,null,null],["function_call","c1","add","{\"a\":1}"],["function_call","c2","add","{}"]],` +
			`"status":"completed","usage":18}`,
		"responseStream": `{"events":["response.created","response.in_progress","response.output_item.added",` +
			`"response.reasoning_summary_part.added","response.reasoning_summary_text.delta","response.reasoning_summary_text.done",` +
			`"response.reasoning_summary_part.done","response.output_item.done","response.content_part.added","response.output_text.delta",` +
			`"response.output_text.done","response.content_part.done","response.completed"],"text":"done","types":["reasoning","message"],` +
			`"usage":13}`,
		"responseBack": `"the sum is 77"`,
		"message": `{"content":[{"type":"thinking","thinking":"I add.","signature":"agentbox"},` +
			`{"type":"tool_use","id":"c1","name":"add","input":{"a":1}},{"type":"tool_use","id":"c2","name":"add","input":{}}],` +
			`"stop":"tool_use","usage":10}`,
		"messageStream": `{"content":[["thinking","I add."],["text","done"]],"stop":"end_turn","usage":5}`,
		"messageStreamCall": `{"content":[{"type":"thinking","thinking":"I add.","signature":"agentbox"},` +
			`{"type":"tool_use","id":"c1","name":"add","input":{"a":1}},{"type":"tool_use","id":"c2","name":"add","input":{}}],"stop":"tool_use"}`,
		"messageBack":        `"the sum is 77"`,
		"chat budget":        `{"status":429,"type":"insufficient_quota","code":"insufficient_quota"}`,
		"responses budget":   `{"status":429,"type":"insufficient_quota","code":"insufficient_quota"}`,
		"messages budget":    `{"status":402,"type":"billing_error","code":null}`,
		"chat denied":        `{"status":403,"type":"permission_error","code":"policy_forbids"}`,
		"responses denied":   `{"status":403,"type":"permission_error","code":"policy_forbids"}`,
		"messages denied":    `{"status":403,"type":"permission_error","code":null}`,
		"chat busy":          `{"status":429,"type":"rate_limit_error","code":""}`,
		"responses busy":     `{"status":429,"type":"rate_limit_error","code":""}`,
		"messages busy":      `{"status":429,"type":"rate_limit_error","code":null}`,
		"chat overflow":      `{"status":400,"type":"invalid_request_error","code":"context_length_exceeded"}`,
		"responses overflow": `{"status":400,"type":"invalid_request_error","code":"context_length_exceeded"}`,
		"messages overflow":  `{"status":400,"type":"invalid_request_error","code":null}`,
		"chat broken":        `{"status":400,"type":"invalid_request_error","code":""}`,
		"responses broken":   `{"status":400,"type":"invalid_request_error","code":""}`,
		"messages broken":    `{"status":400,"type":"invalid_request_error","code":null}`,
		"chat stop":          `{"status":400,"type":"invalid_request_error","code":"unsupported_parameter"}`,
		"responses cut":      `"response.failed"`,
	} {
		var a, b any
		if json.Unmarshal(got[name], &a) != nil || json.Unmarshal([]byte(want), &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s:\n got %s\nwant %s", name, got[name], want)
		}
	}
	for _, name := range []string{"chat cut", "messages cut"} {
		if string(got[name]) == `"answered"` || len(got[name]) == 0 {
			t.Errorf("%s: a broken answer counts: %s", name, got[name])
		}
	}
	asked := map[string]int{}
	for _, q := range o.asked {
		last := q.Request.Messages[len(q.Request.Messages)-1]
		asked[q.Wire+" "+last.Parts[0].Text]++
	}
	for _, wire := range []string{blueprint.WireChat, blueprint.WireMessages, blueprint.WireResponses} {
		for _, word := range []string{"budget", "denied", "overflow", "broken"} {
			if n := asked[wire+" "+word]; n != 1 {
				t.Errorf("a final refusal was asked about %d times: %s %s", n, wire, word)
			}
		}
	}
}

// TestReasoningComesBack holds that what a model thought before its calls is there again with their results, on each wire.
func TestReasoningComesBack(t *testing.T) {
	for path, bodies := range map[string][2]string{
		"/v1/chat/completions": {`{"messages":[{"role":"user","content":"call"}]}`,
			`{"messages":[{"role":"user","content":"call"},{"role":"assistant","content":null,"tool_calls":[` +
				`{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}},` +
				`{"id":"c2","type":"function","function":{"name":"add","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"c1","content":"3"},{"role":"tool","tool_call_id":"c2","content":"4"}]}`},
		"/v1/messages": {`{"max_tokens":9,"messages":[{"role":"user","content":"call"}]}`,
			`{"max_tokens":9,"messages":[{"role":"user","content":"call"},{"role":"assistant","content":[` +
				`{"type":"thinking","thinking":"forged","signature":"x"},{"type":"tool_use","id":"c1","name":"add","input":{"a":1}},` +
				`{"type":"tool_use","id":"c2","name":"add","input":{}}]},{"role":"user","content":[` +
				`{"type":"tool_result","tool_use_id":"c1","content":"3"},{"type":"tool_result","tool_use_id":"c2","content":"4"}]}]}`},
		"/v1/responses": {`{"input":"call"}`, `{"input":[{"role":"user","content":"call"},{"type":"reasoning","summary":[]},` +
			`{"type":"function_call","call_id":"c1","name":"add","arguments":"{\"a\":1}"},` +
			`{"type":"function_call","call_id":"c2","name":"add","arguments":"{}"},` +
			`{"type":"function_call_output","call_id":"c1","output":"3"},{"type":"function_call_output","call_id":"c2","output":"4"}]}`},
	} {
		o, s := serve(t)
		for _, body := range bodies {
			if resp, raw := post(t, s, path, body); resp.StatusCode != 200 {
				t.Fatalf("%s: %d %s", path, resp.StatusCode, raw)
			}
		}
		m := o.asked[1].Request.Messages
		if len(m) != 3 || m[1].Parts[0].Reasoning == nil || m[1].Parts[0].Reasoning.Opaque != "sealed" || len(m[1].Parts) != 3 ||
			len(m[2].Parts) != 2 || m[2].Parts[1].Result.Text != "4" {
			raw, _ := json.Marshal(m)
			t.Errorf("%s: %s", path, raw)
		}
	}
}

// TestWhatIsRefused refuses what the daemon cannot honour, and what is no request, in the form of the wire.
func TestWhatIsRefused(t *testing.T) {
	o, s := serve(t)
	chat := func(more string) string { return `{"messages":[{"role":"user","content":"say"}],` + more + `}` }
	for _, c := range []struct{ path, body, want string }{
		{"/v1/chat/completions", `{`, "the body is not the JSON"},
		{"/v1/chat/completions", `{}`, "at least one message"},
		{"/v1/chat/completions", chat(`"n":2`), "one answer at a time"},
		{"/v1/chat/completions", chat(`"logprobs":true`), "logprobs"},
		{"/v1/chat/completions", chat(`"modalities":["audio"]`), "modalities"},
		{"/v1/chat/completions", chat(`"functions":[{}]`), "send tools"},
		{"/v1/chat/completions", chat(`"tool_choice":"required"`), "forces no call"},
		{"/v1/chat/completions", chat(`"tool_choice":{"type":"function","function":{"name":"x"}}`), "forces no call"},
		{"/v1/chat/completions", chat(`"response_format":{"type":"xml"}`), "response_format"},
		{"/v1/chat/completions", chat(`"reasoning_effort":"odd"`), "effort"},
		{"/v1/chat/completions", chat(`"tools":[{"type":"custom"}]`), "a tool is a function"},
		{"/v1/chat/completions", `{"messages":[{"role":"robot","content":"x"}]}`, "messages[0]: role"},
		{"/v1/chat/completions",
			`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/x.png"}}]}]}`,
			"fetches none"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`, "a text or an image"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"c9","content":"1"}]}`,
			"no open call"},
		{"/v1/messages", `{"messages":[{"role":"user","content":"say"}],"stop_sequences":["x"]}`, "stop_sequences"},
		{"/v1/messages", `{"messages":[{"role":"robot","content":"x"}]}`, "messages[0]: role"},
		{"/v1/messages", `{"messages":[{"role":"user","content":[{"type":"document"}]}]}`, "a block of the type document"},
		{"/v1/messages", `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url"}}]}]}`, "fetches none"},
		{"/v1/messages", `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[{"type":"tool_result"}]}]}]}`,
			"holds a tool_result"},
		{"/v1/messages", `{"messages":[{"role":"user","content":"say"}],"tool_choice":{"type":"any"}}`, "forces no call"},
		{"/v1/responses", `{"input":"say","previous_response_id":"resp_1"}`, "keeps no responses"},
		{"/v1/responses", `{"input":"say","conversation":"c"}`, "keeps no conversations"},
		{"/v1/responses", `{"input":"say","background":true}`, "awaited"},
		{"/v1/responses", `{"input":[{"type":"computer_call"}]}`, "input[0]: input: an item of the type computer_call"},
		{"/v1/responses", `{"input":[{"role":"user","content":[{"type":"input_file"}]}]}`, "a text or an image"},
	} {
		resp, raw := post(t, s, c.path, c.body)
		var told struct {
			Type  string `json:"type"`
			Error struct {
				Message, Type string
			} `json:"error"`
		}
		err := json.Unmarshal([]byte(raw), &told)
		if err != nil || resp.StatusCode != 400 || !strings.Contains(told.Error.Message, c.want) || told.Error.Type != "invalid_request_error" ||
			(told.Type == "error") != (c.path == "/v1/messages") || resp.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s %s: %d %s, want %q", c.path, c.body, resp.StatusCode, raw, c.want)
		}
	}
	if len(o.asked) > 0 {
		t.Errorf("%d of them were asked about", len(o.asked))
	}
	for _, path := range []string{"/v1/embeddings", "/v1/messages/count_tokens", "/v1/files", "/"} {
		if resp, raw := post(t, s, path, `{}`); resp.StatusCode != 404 || !strings.Contains(raw, "this daemon answers") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, raw)
		}
	}
	if resp, err := http.Head(s.URL + "/api/hello"); err != nil || resp.StatusCode != 200 {
		t.Errorf("the greeting of claude: %v %v", resp, err)
	}
}

// TestWhatAgentsSend reads what the agents of npm send and a strict reader would refuse.
func TestWhatAgentsSend(t *testing.T) {
	o, s := serve(t)
	for path, body := range map[string]string{
		"/v1/messages?beta=true": `{"model":"m1","max_tokens":32000,"stream":true,"system":[{"type":"text","text":"a"},{"type":"text","text":""}],
			"metadata":{"user_id":"{}"},"thinking":{"type":"adaptive","display":"omitted"},"context_management":{"edits":[{}]},
			"output_config":{"effort":"xhigh"},"tools":[{"name":"Bash","input_schema":{"type":"object"}},{"name":"Later","defer_loading":true},
			{"type":"web_search_20250305","name":"web_search"}],"messages":[{"role":"user","content":"x"},
			{"role":"system","content":[{"type":"text","text":"the environment"}],"output_config":{}},{"role":"user","content":"say"}]}`,
		"/v1/responses": `{"model":"m1","stream":true,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"k",
			"client_metadata":{},"reasoning":{"summary":"auto"},"tool_choice":"auto","parallel_tool_calls":true,"tools":[
			{"type":"function","name":"exec_command","parameters":{"type":"object"},"strict":false},
			{"type":"namespace","name":"team","tools":[{"type":"function","name":"spawn","parameters":{"type":"object"}}]},
			{"type":"custom","name":"patch","format":{"type":"grammar"}},{"type":"web_search","external_web_access":false}],
			"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"a"}]},
			{"type":"function_call","id":"fc_1","call_id":"c1","name":"spawn","namespace":"team","arguments":"{}"},
			{"type":"custom_tool_call","call_id":"c2","name":"patch","input":"*** Begin"},
			{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"ok"}]},
			{"type":"custom_tool_call_output","call_id":"c2","output":"ok"},{"type":"message","role":"user","content":"say"}]}`,
	} {
		resp, raw := post(t, s, path, body)
		if resp.StatusCode != 200 {
			t.Fatalf("%s: %d %s", path, resp.StatusCode, raw)
		}
		q := o.asked[len(o.asked)-1]
		var tools, roles []string
		for _, one := range q.Request.Tools {
			tools = append(tools, one.Name)
		}
		for _, m := range q.Request.Messages {
			roles = append(roles, string(m.Role))
		}
		got := fmt.Sprint(q.Model, tools, roles, q.Request.Effort, q.Request.CacheKey)
		want := "m1[Bash Later] [system user system user]high"
		if path == "/v1/responses" {
			want = "m1[exec_command team__spawn patch] [system assistant user]k"
			if c := q.Request.Messages[1].Parts; len(c) != 2 || c[0].Call.Name != "team__spawn" || c[1].Call.Arguments != `{"input":"*** Begin"}` {
				t.Errorf("the calls: %+v", c)
			}
		}
		if strings.ReplaceAll(got, "] high", "]high") != want && strings.ReplaceAll(got, "]  k", "]k") != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// TestCallsOfNamespaces tells a call of a tool in a namespace, and one whose input is a text, as the client knows them.
func TestCallsOfNamespaces(t *testing.T) {
	a := &asked{id: "resp_x", tools: map[string]tool{}}
	a.offer("", []responsesTool{{Type: "custom", Name: "patch"}, {Type: "namespace", Name: "team", Tools: []responsesTool{{Type: "function",
		Name: "spawn"}}}})
	one, two := a.called(model.Call{ID: "c1", Name: "team__spawn", Arguments: "{}"}, 0), a.called(model.Call{ID: "c2", Name: "patch",
		Arguments: `{"input":"text"}`}, 1)
	if one["name"] != "spawn" || one["namespace"] != "team" || one["type"] != "function_call" {
		t.Errorf("got %v", one)
	}
	if two["name"] != "patch" || two["input"] != "text" || two["type"] != "custom_tool_call" {
		t.Errorf("got %v", two)
	}
}

// TestCallsOfACutAnswer tells no call of an answer that was cut: its last one may be incomplete.
func TestCallsOfACutAnswer(t *testing.T) {
	_, s := serve(t)
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"messages":[{"role":"user","content":"long"}],"stream":%t}`,
		"/v1/messages":         `{"messages":[{"role":"user","content":"long"}],"stream":%t}`,
		"/v1/responses":        `{"input":"long","stream":%t}`,
	} {
		for _, streamed := range []bool{false, true} {
			resp, raw := post(t, s, path, fmt.Sprintf(body, streamed))
			if resp.StatusCode != 200 || strings.Contains(raw, `"c1"`) || !strings.Contains(raw, "hel") ||
				!strings.Contains(raw, "length") && !strings.Contains(raw, "max_tokens") && !strings.Contains(raw, "incomplete") {
				t.Errorf("%s %t: %d %s", path, streamed, resp.StatusCode, raw)
			}
		}
	}
}

// TestBoundsOfAServer holds the bounds at their edges: of a body, and of what is answered at one time.
func TestBoundsOfAServer(t *testing.T) {
	begun, on := make(chan bool, MaxAtOne+1), make(chan bool)
	s := httptest.NewServer(New(func(ctx context.Context, _ Question, _ func(model.Delta) error) (model.Reply, error) {
		begun <- true
		select {
		case <-on:
		case <-ctx.Done():
		}
		return model.Reply{Answer: model.Answer{Stop: model.StopEnd, Parts: []model.Part{model.Text("ok")}}}, nil
	}, nil))
	defer s.Close()
	const ask = `{"messages":[{"role":"user","content":"x"}]}`
	var all sync.WaitGroup
	for range MaxAtOne {
		all.Go(func() {
			if resp, raw := post(t, s, "/v1/chat/completions", ask); resp.StatusCode != 200 {
				t.Errorf("%d %s", resp.StatusCode, raw)
			}
		})
	}
	for range MaxAtOne {
		<-begun
	}
	if resp, raw := post(t, s, "/v1/chat/completions", ask); resp.StatusCode != 429 || resp.Header.Get("X-Should-Retry") != "true" ||
		!strings.Contains(raw, `"rate_limit_exceeded"`) {
		t.Errorf("one more: %d %s", resp.StatusCode, raw)
	}
	close(on)
	all.Wait()
	fill := func(n int) string {
		head, tail := `{"messages":[{"role":"user","content":"`, `"}]}`
		return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
	}
	if resp, raw := post(t, s, "/v1/chat/completions", fill(MaxBody)); resp.StatusCode != 200 {
		t.Errorf("the largest body: %d %s", resp.StatusCode, raw)
	}
	for _, path := range []string{"/v1/chat/completions", "/v1/messages"} {
		if resp, raw := post(t, s, path, fill(MaxBody+1)); resp.StatusCode != 413 || !strings.Contains(raw, "more than 16777216 bytes") {
			t.Errorf("%s, a larger one: %d %s", path, resp.StatusCode, raw)
		}
	}
}

// TestMemoryIsBounded forgets the oldest reasoning first.
func TestMemoryIsBounded(t *testing.T) {
	s := New(nil, nil)
	half := strings.Repeat("x", maxThought/2-2*len("a\x00t\x00")) // and the name of the answer, twice
	for _, name := range []string{"a", "b", "c"} {
		s.keep(model.Reply{Answer: model.Answer{Parts: []model.Part{
			{Type: model.ReasoningPart, Reasoning: &model.Reasoning{Dialect: "d", Text: half}},
			{Type: model.CallPart, Call: &model.Call{ID: name, Name: "t"}},
		}}})
	}
	oldest, newest := s.thought.held["a\x00t\x00"], s.thought.held["c\x00t\x00"]
	if s.thought.size != maxThought || len(s.thought.order) != 2 || oldest != nil || newest == nil {
		t.Errorf("%d bytes of %d answers", s.thought.size, len(s.thought.order))
	}
}
