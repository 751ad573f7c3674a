package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agentbox/internal/domain/model"
	"agentbox/internal/driver/endpoint/endpointtest"
)

// turn returns a conversation of a dialect with a call, its result with an image, and a schema of the answer.
func turn(dialect, field string) model.Request {
	return model.Request{
		Messages: []model.Message{
			{Role: model.System, Parts: []model.Part{model.Text("Be brief.")}},
			{Role: model.User, Parts: []model.Part{model.Text("Look."), {Type: model.ImagePart, Image: &model.Image{MediaType: "image/png",
				Data: []byte("png")}}}},
			{Role: model.Assistant, Parts: []model.Part{
				{Type: model.ReasoningPart, Reasoning: &model.Reasoning{Dialect: dialect, Text: " hm\n", Opaque: field}},
				{Type: model.CallPart, Call: &model.Call{ID: "a", Name: "f"}}}},
			{Role: model.User, Parts: []model.Part{{Type: model.ResultPart, Result: &model.Result{ID: "a", Text: "gone", Failed: true,
				Images: []model.Image{{MediaType: "image/png", Data: []byte("png")}}}}, model.Text("Go on.")}},
		},
		Tools: []model.Tool{{Name: "f", Schema: json.RawMessage(`{"type":"object"}`)}}, Schema: json.RawMessage(`{"type":"object"}`),
		Effort: model.EffortHigh, CacheKey: "k",
	}
}

// sent asks a vendor and returns what it got.
func sent(t *testing.T, dialect string, r model.Request) map[string]any {
	t.Helper()
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	v := endpointtest.Serve(t, endpointtest.Say(sse(text("a"), stop, done)))
	if _, _, err := ask(t, driver(t), entry(v, dialect), "", r); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(v.Body(), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// TestReasoningGoesBack holds who gets what was thought: its own dialect, in its own field, unchanged, and nobody else.
func TestReasoningGoesBack(t *testing.T) {
	for _, c := range []struct{ from, to, field, want string }{
		{"zai", "zai", "reasoning_content", `reasoning_content:" hm\n"`},
		{"vllm", "vllm", "reasoning", `reasoning:" hm\n"`},
		{"llamacpp", "llamacpp", "reasoning_content", `reasoning_content:" hm\n"`},
		{"deepseek", "deepseek", "reasoning_content", `reasoning_content:" hm\n"`},
		{"zai", "deepseek", "reasoning_content", `reasoning_content:""`}, // it wants the field of every turn with calls
		{"zai", "openai", "reasoning_content", ""},
		{"anthropic", "zai", `{"type":"thinking"}`, ""},
	} {
		got := sent(t, c.to, turn(c.from, c.field))
		said, shown := "", ""
		for _, m := range got["messages"].([]any) {
			one := m.(map[string]any)
			for _, field := range []string{"reasoning_content", "reasoning"} {
				if v, ok := one[field]; ok {
					said += fmt.Sprintf("%s:%q", field, v)
				}
			}
			shown += one["role"].(string) + " "
		}
		if said != c.want || !strings.HasSuffix(shown, "system user assistant tool user ") {
			t.Errorf("from %s to %s: got %s in %s, want %s", c.from, c.to, said, shown, c.want)
		}
	}
	plain := model.Request{Messages: []model.Message{{Role: model.User, Parts: []model.Part{model.Text("a")}},
		{Role: model.Assistant, Parts: []model.Part{{Type: model.ReasoningPart, Reasoning: &model.Reasoning{Dialect: "deepseek", Text: "hm",
			Opaque: "reasoning_content"}}, model.Text("b")}}, {Role: model.User, Parts: []model.Part{model.Text("c")}}}}
	raw, err := json.Marshal(sent(t, "deepseek", plain))
	if err != nil || strings.Contains(string(raw), "reasoning") {
		t.Errorf("a turn without calls: got %s, %v", raw, err)
	}
}

// TestTheDialects holds what each dialect is asked in its own words.
func TestTheDialects(t *testing.T) {
	for dialect, want := range map[string]string{
		"openai":   `max_completion_tokens:8192 prompt_cache_key:"k" reasoning_effort:"high" response_format:json_schema `,
		"zai":      `max_tokens:8192 response_format:json_object thinking:{"clear_thinking":false,"type":"enabled"} `,
		"deepseek": `max_tokens:8192 reasoning_effort:"high" response_format:json_object thinking:{"type":"enabled"} `,
		"qwen":     `enable_thinking:true max_tokens:8192 response_format:json_object `,
		"ollama":   `max_tokens:8192 reasoning_effort:"high" response_format:json_schema `,
		"vllm":     `max_tokens:8192 reasoning_effort:"high" response_format:json_schema `,
		"llamacpp": `max_tokens:8192 response_format:json_schema `,
		"generic":  `max_tokens:8192 response_format:json_schema `,
	} {
		got, line := sent(t, dialect, turn(dialect, "reasoning_content")), ""
		for _, name := range []string{"enable_thinking", "max_completion_tokens", "max_tokens", "prompt_cache_key", "reasoning_effort",
			"response_format", "thinking"} {
			v, ok := got[name]
			if !ok {
				continue
			}
			raw, _ := json.Marshal(v)
			if name == "response_format" {
				raw = []byte(v.(map[string]any)["type"].(string))
			}
			line += fmt.Sprintf("%s:%s ", name, raw)
		}
		if line != want {
			t.Errorf("%s: got %s, want %s", dialect, line, want)
		}
		if got["stream"] != true || fmt.Sprint(got["stream_options"]) != "map[include_usage:true]" {
			t.Errorf("%s: stream %v, %v", dialect, got["stream"], got["stream_options"])
		}
	}
}

// TestResultsAndImages holds the messages word by word.
func TestResultsAndImages(t *testing.T) {
	got, err := json.Marshal(sent(t, "openai", turn("zai", ""))["messages"])
	want := `[{"content":"Be brief.","role":"system"},` +
		`{"content":[{"text":"Look.","type":"text"},{"image_url":{"url":"data:image/png;base64,cG5n"},"type":"image_url"}],"role":"user"},` +
		`{"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"f"},"id":"a","type":"function"}]},` +
		`{"content":"Error: gone","role":"tool","tool_call_id":"a"},` +
		`{"content":[{"text":"The images of the tool result a:","type":"text"},` +
		`{"image_url":{"url":"data:image/png;base64,cG5n"},"type":"image_url"},{"text":"Go on.","type":"text"}],"role":"user"}]`
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}
