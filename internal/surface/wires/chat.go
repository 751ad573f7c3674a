package wires

import (
	"encoding/json"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/model"
)

// chat is the wire of OpenAI's chat completions.
type chat struct{}

type chatBody struct {
	Model       string          `json:"model"`
	Messages    []chatMessage   `json:"messages"`
	Tools       []chatTool      `json:"tools"`
	Functions   json.RawMessage `json:"functions"`
	Choice      json.RawMessage `json:"tool_choice"`
	MaxTokens   int             `json:"max_tokens"`
	Completion  int             `json:"max_completion_tokens"`
	Temperature *float64        `json:"temperature"`
	Stream      bool            `json:"stream"`
	Options     struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
	Format *struct {
		Type   string `json:"type"`
		Schema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	Effort     string          `json:"reasoning_effort"`
	CacheKey   string          `json:"prompt_cache_key"`
	N          int             `json:"n"`
	Logprobs   bool            `json:"logprobs"`
	Stop       json.RawMessage `json:"stop"`
	Modalities []string        `json:"modalities"`
}

type chatMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Calls   []chatCall      `json:"tool_calls"`
	CallID  string          `json:"tool_call_id"`
}

type chatCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type chatPart struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
	Image   struct {
		URL string `json:"url"`
	} `json:"image_url"`
}

func (chat) name() string { return blueprint.WireChat }

func (chat) read(body []byte) (*asked, error) {
	var b chatBody
	if err := decode(body, &b); err != nil {
		return nil, err
	}
	switch {
	case b.N > 1:
		return nil, unsupported("n", "one answer at a time")
	case b.Logprobs:
		return nil, unsupported("logprobs", "they are not told")
	case len(b.Stop) > 0 && string(b.Stop) != "null" && string(b.Stop) != "[]":
		return nil, unsupported("stop", "stop sequences are not honoured")
	case len(b.Functions) > 0 && string(b.Functions) != "null":
		return nil, unsupported("functions", "send tools")
	}
	for _, m := range b.Modalities {
		if m != "text" {
			return nil, unsupported("modalities", "an answer is a text")
		}
	}
	a := &asked{Question: Question{Model: b.Model}, id: named("chatcmpl-", body), stream: b.Stream, usage: b.Options.Usage}
	r := &a.Request
	r.MaxTokens, r.Temperature, r.CacheKey = max(b.MaxTokens, b.Completion), b.Temperature, b.CacheKey
	var err error
	if r.Effort, err = effortOf(b.Effort); err != nil {
		return nil, err
	}
	if f := b.Format; f != nil {
		switch f.Type {
		case "text", "":
		case "json_object":
			r.Schema = json.RawMessage(`{"type":"object"}`)
		case "json_schema":
			r.Schema = f.Schema.Schema
		default:
			return nil, unsupported("response_format", "its type is text, json_object or json_schema")
		}
	}
	none, err := choiceOf(b.Choice)
	if err != nil {
		return nil, err
	}
	for i := 0; !none && i < len(b.Tools); i++ {
		t := b.Tools[i]
		if t.Type != "function" {
			return nil, unsupported("tools", "a tool is a function")
		}
		r.Tools = append(r.Tools, model.Tool{Name: t.Function.Name, Description: t.Function.Description, Schema: schemaOf(t.Function.Parameters)})
	}
	var t talk
	for i, m := range b.Messages {
		if err := m.tell(&t); err != nil {
			return nil, within("messages", i, err)
		}
	}
	r.Messages = t.list
	return a, r.Check()
}

// tell adds a message to the conversation.
func (m chatMessage) tell(t *talk) error {
	text, list, err := textOr[chatPart](m.Content)
	if err != nil {
		return err
	}
	parts := []model.Part{model.Text(text)}
	for _, p := range list {
		switch p.Type {
		case "text", "input_text":
			parts = append(parts, model.Text(p.Text))
		case "refusal":
			parts = append(parts, model.Text(p.Refusal))
		case "image_url":
			image, err := imageOf(p.Image.URL)
			if err != nil {
				return err
			}
			parts = append(parts, image)
		default:
			return unsupported("content", "a part is a text or an image")
		}
	}
	switch m.Role {
	case "system", "developer":
		t.say(model.System, parts...)
	case "user":
		t.say(model.User, parts...)
	case "tool":
		t.say(model.User, resultOf(m.CallID, false, parts))
	case "assistant":
		for _, c := range m.Calls {
			parts = append(parts, model.Part{Type: model.CallPart, Call: &model.Call{ID: c.ID, Name: c.Function.Name,
				Arguments: c.Function.Arguments}})
		}
		t.say(model.Assistant, parts...)
	default:
		return unsupported("role", "it is system, developer, user, assistant or tool")
	}
	return nil
}

// chatStops has the vendor's word for each reason to stop.
var chatStops = map[model.Stop]string{model.StopEnd: "stop", model.StopLength: "length", model.StopTools: "tool_calls",
	model.StopRefusal: "stop", model.StopFilter: "content_filter", model.StopOverflow: "length"}

func chatUsage(u model.Usage) any {
	input := u.Input + u.CacheRead + u.CacheWrite
	return map[string]any{"prompt_tokens": input, "completion_tokens": u.Output, "total_tokens": input + u.Output,
		"prompt_tokens_details":     map[string]any{"cached_tokens": u.CacheRead},
		"completion_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning}}
}

func chatCalls(r model.Reply, streamed bool) []chatCall {
	var list []chatCall
	for i, c := range r.Calls() {
		out := chatCall{ID: c.ID, Type: "function"}
		if streamed {
			out.Index = &i
		}
		out.Function.Name, out.Function.Arguments = c.Name, c.Arguments
		if c.Arguments == "" {
			out.Function.Arguments = "{}"
		}
		list = append(list, out)
	}
	return list
}

func thoughtOf(r model.Reply) (text string) {
	for _, p := range r.Parts {
		if p.Type == model.ReasoningPart {
			text += p.Reasoning.Text
		}
	}
	return text
}

func (chat) whole(a *asked, r model.Reply) any {
	m := map[string]any{"role": "assistant", "content": nil, "refusal": nil}
	if text := r.Text(); text != "" {
		m["content"] = text
	}
	if r.Stop == model.StopRefusal {
		m["refusal"] = r.Text()
	}
	if thought := thoughtOf(r); thought != "" {
		m["reasoning_content"] = thought
	}
	if calls := chatCalls(r, false); len(calls) > 0 {
		m["tool_calls"] = calls
	}
	return map[string]any{"id": a.id, "object": "chat.completion", "created": 0, "model": r.Entry, "usage": chatUsage(r.Usage),
		"choices": []any{map[string]any{"index": 0, "message": m, "finish_reason": chatStops[r.Stop], "logprobs": nil}}}
}

func (chat) problem(p problem) any { return openAIError(p) }

// chatStream writes chunks.
type chatStream struct {
	e *events
	a *asked
}

func (chat) stream(e *events, a *asked) stream {
	s := &chatStream{e, a}
	s.chunk(map[string]any{"role": "assistant", "content": ""}, nil)
	return s
}

func (s *chatStream) chunk(delta, finish any) {
	s.e.send("", map[string]any{"id": s.a.id, "object": "chat.completion.chunk", "created": 0, "model": s.a.Model,
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
}

func (s *chatStream) piece(t model.PartType, text string) {
	field := "content"
	if t == model.ReasoningPart {
		field = "reasoning_content"
	}
	if text != "" {
		s.chunk(map[string]any{field: text}, nil)
	}
}

func (s *chatStream) end(r model.Reply) {
	if calls := chatCalls(r, true); len(calls) > 0 {
		s.chunk(map[string]any{"tool_calls": calls}, nil)
	}
	s.chunk(map[string]any{}, chatStops[r.Stop])
	if s.a.usage {
		s.e.send("", map[string]any{"id": s.a.id, "object": "chat.completion.chunk", "created": 0, "model": s.a.Model, "choices": []any{},
			"usage": chatUsage(r.Usage)})
	}
	s.e.text("", "[DONE]")
}

func (s *chatStream) fail(p problem) { s.e.send("", openAIError(p)) }
