package wires

import (
	"encoding/json"
	"errors"
	"strings"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/model"
)

// messages is the wire of Anthropic's messages.
type messages struct{}

type messagesBody struct {
	Model    string          `json:"model"`
	Max      int             `json:"max_tokens"`
	System   json.RawMessage `json:"system"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools       []messagesTool  `json:"tools"`
	Choice      json.RawMessage `json:"tool_choice"`
	Temperature *float64        `json:"temperature"`
	Stream      bool            `json:"stream"`
	Stops       []string        `json:"stop_sequences"`
	Thinking    struct {
		Type string `json:"type"`
	} `json:"thinking"`
	Output struct {
		Effort string `json:"effort"`
		Format *struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
}

type messagesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
}

type messagesBlock struct {
	Type   string          `json:"type"`
	Text   string          `json:"text"`
	ID     string          `json:"id"`
	Name   string          `json:"name"`
	Input  json.RawMessage `json:"input"`
	CallID string          `json:"tool_use_id"`
	Failed bool            `json:"is_error"`
	Tool   string          `json:"tool_name"`
	Source struct {
		Type  string `json:"type"`
		Media string `json:"media_type"`
		Data  string `json:"data"`
	} `json:"source"`
	Content json.RawMessage `json:"content"`
	Cache   json.RawMessage `json:"cache_control"`
}

func (messages) name() string { return blueprint.WireMessages }

func (messages) read(body []byte) (*asked, error) {
	var b messagesBody
	if err := decode(body, &b); err != nil {
		return nil, err
	}
	if len(b.Stops) > 0 {
		return nil, unsupported("stop_sequences", "stop sequences are not honoured")
	}
	a := &asked{Question: Question{Model: b.Model}, id: named("msg_", body), stream: b.Stream}
	r := &a.Request
	r.MaxTokens, r.Temperature = b.Max, b.Temperature
	var err error
	if r.Effort, err = effortOf(b.Output.Effort); err != nil {
		return nil, err
	}
	if b.Thinking.Type == "disabled" {
		r.Effort = model.EffortNone
	}
	if f := b.Output.Format; f != nil {
		if f.Type != "json_schema" {
			return nil, unsupported("output_config.format", "its type is json_schema")
		}
		r.Schema = f.Schema
	}
	none, err := choiceOf(b.Choice)
	if err != nil {
		return nil, err
	}
	for i := 0; !none && i < len(b.Tools); i++ {
		// Tools that the vendor runs itself have a type of their own. The model does not get them, because nobody here runs them.
		if t := b.Tools[i]; t.Type == "" || t.Type == "custom" {
			r.Tools = append(r.Tools, model.Tool{Name: t.Name, Description: t.Description, Schema: schemaOf(t.Schema)})
		}
	}
	var t talk
	text, blocks, err := textOr[messagesBlock](b.System)
	if err == nil {
		err = tellBlocks(&t, model.System, text, blocks)
	}
	if err != nil {
		return nil, err
	}
	for i, m := range b.Messages {
		text, blocks, err := textOr[messagesBlock](m.Content)
		role := model.Role(m.Role)
		if err == nil && role != model.System && role != model.User && role != model.Assistant {
			err = unsupported("role", "it is user or assistant")
		}
		if err == nil {
			err = tellBlocks(&t, role, text, blocks)
		}
		if err != nil {
			return nil, within("messages", i, err)
		}
	}
	r.Messages = t.list
	return a, r.Check()
}

// within adds the place in a list to an error.
func within(list string, i int, err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return fault.New(f.Kind, f.Code, "%s[%d]: %s", list, i, f.Msg)
	}
	return err
}

// tellBlocks adds the blocks of a message to the conversation.
func tellBlocks(t *talk, role model.Role, text string, blocks []messagesBlock) error {
	parts := []model.Part{model.Text(text)}
	for _, b := range blocks {
		list, err := b.parts()
		if err != nil {
			return err
		}
		if n := len(list); n > 0 {
			list[n-1].Cache = len(b.Cache) > 0 && string(b.Cache) != "null"
		}
		parts = append(parts, list...)
	}
	t.say(role, parts...)
	return nil
}

// parts returns the parts of one block. It ignores thinking, because the server itself remembers it.
func (b messagesBlock) parts() ([]model.Part, error) {
	switch b.Type {
	case "text":
		return []model.Part{model.Text(b.Text)}, nil
	case "thinking", "redacted_thinking":
		return nil, nil
	case "image":
		if b.Source.Type != "base64" {
			return nil, unsupported("image", "an image is sent in base64; this daemon fetches none")
		}
		image, err := imageIn(b.Source.Media, b.Source.Data)
		return []model.Part{image}, err
	case "tool_use":
		arguments := string(b.Input)
		if arguments == "null" {
			arguments = ""
		}
		return []model.Part{{Type: model.CallPart, Call: &model.Call{ID: b.ID, Name: b.Name, Arguments: arguments}}}, nil
	case "tool_reference":
		return []model.Part{model.Text("The tool " + b.Tool + " can be called.")}, nil
	case "tool_result":
		text, inner, err := textOr[messagesBlock](b.Content)
		if err != nil {
			return nil, err
		}
		said := []model.Part{model.Text(text)}
		for _, one := range inner {
			if one.Type == "tool_result" || one.Type == "tool_use" {
				return nil, malformed("a tool_result holds a %s", one.Type)
			}
			more, err := one.parts()
			if err != nil {
				return nil, err
			}
			said = append(said, more...)
		}
		return []model.Part{resultOf(b.CallID, b.Failed, said)}, nil
	}
	return nil, unsupported("content", "a block of the type "+strings.ToValidUTF8(b.Type[:min(len(b.Type), 64)], "?")+" is not read here")
}

var messagesStops = map[model.Stop]string{model.StopEnd: "end_turn", model.StopLength: "max_tokens", model.StopTools: "tool_use",
	model.StopRefusal: "refusal", model.StopFilter: "refusal", model.StopOverflow: "model_context_window_exceeded"}

func messagesUsage(u model.Usage) any {
	return map[string]any{"input_tokens": u.Input, "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite,
		"output_tokens": u.Output}
}

// signature stands in place of the vendor's signature of the reasoning. The server ignores it in requests.
const signature = "agentbox"

func (messages) whole(a *asked, r model.Reply) any {
	content := []any{}
	for _, p := range r.Parts {
		switch p.Type {
		case model.TextPart:
			if p.Text != "" {
				content = append(content, map[string]any{"type": "text", "text": p.Text})
			}
		case model.ReasoningPart:
			if p.Reasoning.Text != "" {
				content = append(content, map[string]any{"type": "thinking", "thinking": p.Reasoning.Text, "signature": signature})
			}
		}
	}
	for _, c := range r.Calls() {
		content = append(content, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": inputOf(c)})
	}
	return map[string]any{"id": a.id, "type": "message", "role": "assistant", "model": r.Entry, "content": content,
		"stop_reason": messagesStops[r.Stop], "stop_sequence": nil, "usage": messagesUsage(r.Usage)}
}

func (messages) problem(p problem) any {
	return map[string]any{"type": "error", "error": map[string]any{"type": p.kind, "message": p.message}, "request_id": nil}
}

// messagesStream writes blocks, one after the other.
type messagesStream struct {
	e     *events
	index int
	open  model.PartType // of the present block; "" for none
}

func (messages) stream(e *events, a *asked) stream {
	e.send("message_start", map[string]any{"type": "message_start", "message": map[string]any{"id": a.id, "type": "message",
		"role": "assistant", "model": a.Model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": messagesUsage(model.Usage{})}})
	return &messagesStream{e: e}
}

func (s *messagesStream) block(content any) {
	s.e.send("content_block_start", map[string]any{"type": "content_block_start", "index": s.index, "content_block": content})
}

func (s *messagesStream) delta(delta any) {
	s.e.send("content_block_delta", map[string]any{"type": "content_block_delta", "index": s.index, "delta": delta})
}

func (s *messagesStream) close() {
	if s.open == "" {
		return
	}
	if s.open == model.ReasoningPart {
		s.delta(map[string]any{"type": "signature_delta", "signature": signature})
	}
	s.e.send("content_block_stop", map[string]any{"type": "content_block_stop", "index": s.index})
	s.index, s.open = s.index+1, ""
}

func (s *messagesStream) piece(t model.PartType, text string) {
	if text == "" {
		return
	}
	if s.open != t {
		s.close()
		s.open = t
		if t == model.ReasoningPart {
			s.block(map[string]any{"type": "thinking", "thinking": "", "signature": ""})
		} else {
			s.block(map[string]any{"type": "text", "text": ""})
		}
	}
	if t == model.ReasoningPart {
		s.delta(map[string]any{"type": "thinking_delta", "thinking": text})
	} else {
		s.delta(map[string]any{"type": "text_delta", "text": text})
	}
}

func (s *messagesStream) end(r model.Reply) {
	s.close()
	for _, c := range r.Calls() {
		s.open = model.CallPart
		s.block(map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": map[string]any{}})
		s.delta(map[string]any{"type": "input_json_delta", "partial_json": string(inputOf(c))})
		s.close()
	}
	s.e.send("message_delta", map[string]any{"type": "message_delta", "usage": messagesUsage(r.Usage),
		"delta": map[string]any{"stop_reason": messagesStops[r.Stop], "stop_sequence": nil}})
	s.e.send("message_stop", map[string]any{"type": "message_stop"})
}

func (s *messagesStream) fail(p problem) { s.e.send("error", messages{}.problem(p)) }
