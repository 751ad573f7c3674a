package wires

import (
	"encoding/json"
	"strconv"
	"strings"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/model"
)

// responses is the wire of OpenAI's responses. It stores nothing: a client sends the whole conversation with each request.
type responses struct{}

type responsesBody struct {
	Model        string          `json:"model"`
	Instructions string          `json:"instructions"`
	Input        json.RawMessage `json:"input"`
	Tools        []responsesTool `json:"tools"`
	Choice       json.RawMessage `json:"tool_choice"`
	Max          int             `json:"max_output_tokens"`
	Temperature  *float64        `json:"temperature"`
	Stream       bool            `json:"stream"`
	CacheKey     string          `json:"prompt_cache_key"`
	Previous     string          `json:"previous_response_id"`
	Conversation json.RawMessage `json:"conversation"`
	Background   bool            `json:"background"`
	Reasoning    struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	Text struct {
		Format struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"text"`
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Tools       []responsesTool `json:"tools"` // of a namespace
}

type responsesItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	Output    json.RawMessage `json:"output"`
}

type responsesPart struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
	Image   string `json:"image_url"`
}

func (responses) name() string { return blueprint.WireResponses }

func (responses) read(body []byte) (*asked, error) {
	var b responsesBody
	if err := decode(body, &b); err != nil {
		return nil, err
	}
	switch {
	case b.Previous != "":
		return nil, unsupported("previous_response_id", "this daemon keeps no responses; send the whole conversation as input")
	case len(b.Conversation) > 0 && string(b.Conversation) != "null":
		return nil, unsupported("conversation", "this daemon keeps no conversations; send the whole conversation as input")
	case b.Background:
		return nil, unsupported("background", "a response is awaited")
	}
	a := &asked{Question: Question{Model: b.Model}, id: named("resp_", body), stream: b.Stream, tools: map[string]tool{}}
	r := &a.Request
	r.MaxTokens, r.Temperature, r.CacheKey = b.Max, b.Temperature, b.CacheKey
	var err error
	if r.Effort, err = effortOf(b.Reasoning.Effort); err != nil {
		return nil, err
	}
	switch f := b.Text.Format; f.Type {
	case "", "text":
	case "json_object":
		r.Schema = json.RawMessage(`{"type":"object"}`)
	case "json_schema":
		r.Schema = f.Schema
	default:
		return nil, unsupported("text.format", "its type is text, json_object or json_schema")
	}
	none, err := choiceOf(b.Choice)
	if err != nil {
		return nil, err
	}
	if !none {
		a.offer("", b.Tools)
	}
	var t talk
	t.say(model.System, model.Text(b.Instructions))
	text, items, err := textOr[responsesItem](b.Input)
	if err != nil {
		return nil, err
	}
	t.say(model.User, model.Text(text))
	for i, item := range items {
		if err := item.tell(&t); err != nil {
			return nil, within("input", i, err)
		}
	}
	r.Messages = t.list
	return a, r.Check()
}

// joint separates a namespace and the name of a tool in the name for the model.
const joint = "__"

// customSchema is the schema for the model of a tool whose input is a text.
const customSchema = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`

// offer adds tools to the request. It ignores tools that the vendor runs itself, such as web_search, because nobody here runs them.
func (a *asked) offer(namespace string, list []responsesTool) {
	for _, t := range list {
		told := model.Tool{Name: t.Name, Description: t.Description, Schema: schemaOf(t.Parameters)}
		if namespace != "" {
			told.Name = namespace + joint + t.Name
		}
		switch t.Type {
		case "function":
		case "custom":
			told.Schema = json.RawMessage(customSchema)
		case "namespace":
			a.offer(t.Name, t.Tools)
			continue
		default:
			continue
		}
		a.Request.Tools = append(a.Request.Tools, told)
		a.tools[told.Name] = tool{t.Name, namespace, t.Type == "custom"}
	}
}

// tell adds an item to the conversation. It ignores reasoning, because the server itself remembers it.
func (i responsesItem) tell(t *talk) error {
	name := i.Name
	if i.Namespace != "" {
		name = i.Namespace + joint + name
	}
	call := func(arguments string) {
		t.say(model.Assistant, model.Part{Type: model.CallPart, Call: &model.Call{ID: i.CallID, Name: name, Arguments: arguments}})
	}
	switch i.Type {
	case "", "message":
		parts, err := partsOf(i.Content)
		if err != nil {
			return err
		}
		switch i.Role {
		case "system", "developer":
			t.say(model.System, parts...)
		case "user":
			t.say(model.User, parts...)
		case "assistant":
			t.say(model.Assistant, parts...)
		default:
			return unsupported("role", "it is system, developer, user or assistant")
		}
	case "function_call":
		call(i.Arguments)
	case "custom_tool_call":
		raw, err := json.Marshal(map[string]string{"input": i.Input})
		if err != nil {
			return err
		}
		call(string(raw))
	case "function_call_output", "custom_tool_call_output":
		parts, err := partsOf(i.Output)
		if err != nil {
			return err
		}
		t.say(model.User, resultOf(i.CallID, false, parts))
	case "reasoning":
	default:
		return unsupported("input", "an item of the type "+strings.ToValidUTF8(i.Type[:min(len(i.Type), 64)], "?")+" is not read here")
	}
	return nil
}

func partsOf(raw json.RawMessage) ([]model.Part, error) {
	text, list, err := textOr[responsesPart](raw)
	if err != nil {
		return nil, err
	}
	parts := []model.Part{model.Text(text)}
	for _, p := range list {
		switch p.Type {
		case "input_text", "output_text", "text":
			parts = append(parts, model.Text(p.Text))
		case "refusal":
			parts = append(parts, model.Text(p.Refusal))
		case "input_image":
			image, err := imageOf(p.Image)
			if err != nil {
				return nil, err
			}
			parts = append(parts, image)
		default:
			return nil, unsupported("content", "a part is a text or an image")
		}
	}
	return parts, nil
}

// response returns the object of a response.
func response(a *asked, status string, output []any, r *model.Reply) map[string]any {
	if output == nil {
		output = []any{}
	}
	out := map[string]any{"id": a.id, "object": "response", "created_at": 0, "status": status, "model": a.Model, "output": output,
		"error": nil, "incomplete_details": nil, "parallel_tool_calls": true, "tool_choice": "auto", "tools": []any{}, "store": false,
		"instructions": nil, "metadata": map[string]any{}, "temperature": nil, "top_p": nil, "usage": nil}
	if r == nil {
		return out
	}
	u := r.Usage
	input := u.Input + u.CacheRead + u.CacheWrite
	out["usage"] = map[string]any{"input_tokens": input, "input_tokens_details": map[string]any{"cached_tokens": u.CacheRead},
		"output_tokens": u.Output, "output_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning}, "total_tokens": input + u.Output}
	switch r.Stop {
	case model.StopLength, model.StopOverflow:
		out["status"], out["incomplete_details"] = "incomplete", map[string]any{"reason": "max_output_tokens"}
	case model.StopFilter:
		out["status"], out["incomplete_details"] = "incomplete", map[string]any{"reason": "content_filter"}
	}
	return out
}

// called returns the item of the n-th call.
func (a *asked) called(c model.Call, n int) map[string]any {
	at := strings.TrimPrefix(a.id, "resp_") + "_" + strconv.Itoa(n)
	t, known := a.tools[c.Name]
	if !known {
		t = tool{name: c.Name}
	}
	if t.custom {
		var object struct {
			Input string `json:"input"`
		}
		if json.Unmarshal([]byte(c.Arguments), &object) != nil {
			object.Input = c.Arguments
		}
		return map[string]any{"type": "custom_tool_call", "id": "ctc_" + at, "call_id": c.ID, "name": t.name, "input": object.Input,
			"status": "completed"}
	}
	arguments := c.Arguments
	if arguments == "" {
		arguments = "{}"
	}
	item := map[string]any{"type": "function_call", "id": "fc_" + at, "call_id": c.ID, "name": t.name, "arguments": arguments,
		"status": "completed"}
	if t.namespace != "" {
		item["namespace"] = t.namespace
	}
	return item
}

func (responses) whole(a *asked, r model.Reply) any {
	s := &responsesStream{a: a}
	for _, p := range r.Parts {
		switch p.Type {
		case model.TextPart:
			s.piece(p.Type, p.Text)
		case model.ReasoningPart:
			s.piece(p.Type, p.Reasoning.Text)
		}
	}
	s.finish(r)
	return response(a, "completed", s.output, &r)
}

func (responses) problem(p problem) any { return openAIError(p) }

// responsesStream writes items, one after the other.
type responsesStream struct {
	e      *events // nil if only the output is wanted
	a      *asked
	number int
	output []any
	open   model.PartType // of the present item; "" for none
	id     string         // of that item
	text   string         // of that item so far
}

func (responses) stream(e *events, a *asked) stream {
	s := &responsesStream{e: e, a: a}
	s.send("response.created", map[string]any{"response": response(a, "in_progress", nil, nil)})
	s.send("response.in_progress", map[string]any{"response": response(a, "in_progress", nil, nil)})
	return s
}

func (s *responsesStream) send(typ string, data map[string]any) {
	if s.e == nil {
		return
	}
	data["type"], data["sequence_number"] = typ, s.number
	s.number++
	s.e.send(typ, data)
}

func (s *responsesStream) piece(t model.PartType, text string) {
	if text == "" {
		return
	}
	if s.open != t {
		s.close()
		s.open, s.text = t, ""
		at := strings.TrimPrefix(s.a.id, "resp_") + "_" + strconv.Itoa(len(s.output))
		if t == model.ReasoningPart {
			s.id = "rs_" + at
			s.send("response.output_item.added", s.at(map[string]any{"item": map[string]any{"type": "reasoning", "id": s.id, "summary": []any{}}}))
			s.send("response.reasoning_summary_part.added", s.in("summary_index", map[string]any{"part": summary("")}))
		} else {
			s.id = "msg_" + at
			s.send("response.output_item.added", s.at(map[string]any{"item": message(s.id, "in_progress", []any{})}))
			s.send("response.content_part.added", s.in("content_index", map[string]any{"part": outputText("")}))
		}
	}
	s.text += text
	if t == model.ReasoningPart {
		s.send("response.reasoning_summary_text.delta", s.in("summary_index", map[string]any{"delta": text}))
	} else {
		s.send("response.output_text.delta", s.in("content_index", map[string]any{"delta": text, "logprobs": []any{}}))
	}
}

func message(id, status string, content []any) map[string]any {
	return map[string]any{"type": "message", "id": id, "role": "assistant", "status": status, "content": content}
}

func outputText(text string) map[string]any {
	return map[string]any{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

func summary(text string) map[string]any { return map[string]any{"type": "summary_text", "text": text} }

// at adds the place of the item to an event.
func (s *responsesStream) at(data map[string]any) map[string]any {
	data["output_index"] = len(s.output)
	return data
}

// in adds the place of the first part of the item.
func (s *responsesStream) in(index string, data map[string]any) map[string]any {
	data["item_id"], data[index] = s.id, 0
	return s.at(data)
}

// close ends the present item.
func (s *responsesStream) close() {
	var item map[string]any
	switch s.open {
	case "":
		return
	case model.ReasoningPart:
		s.send("response.reasoning_summary_text.done", s.in("summary_index", map[string]any{"text": s.text}))
		s.send("response.reasoning_summary_part.done", s.in("summary_index", map[string]any{"part": summary(s.text)}))
		item = map[string]any{"type": "reasoning", "id": s.id, "summary": []any{summary(s.text)}}
	default:
		s.send("response.output_text.done", s.in("content_index", map[string]any{"text": s.text, "logprobs": []any{}}))
		s.send("response.content_part.done", s.in("content_index", map[string]any{"part": outputText(s.text)}))
		item = message(s.id, "completed", []any{outputText(s.text)})
	}
	s.send("response.output_item.done", s.at(map[string]any{"item": item}))
	s.output, s.open = append(s.output, item), ""
}

// finish writes the calls.
func (s *responsesStream) finish(r model.Reply) {
	s.close()
	for _, c := range r.Calls() {
		item := s.a.called(c, len(s.output))
		begun, field := map[string]any{}, "arguments"
		for name, value := range item {
			begun[name] = value
		}
		event := "response.function_call_arguments"
		if item["type"] == "custom_tool_call" {
			event, field = "response.custom_tool_call_input", "input"
		}
		begun[field], begun["status"] = "", "in_progress"
		s.send("response.output_item.added", s.at(map[string]any{"item": begun}))
		s.send(event+".delta", s.at(map[string]any{"item_id": item["id"], "delta": item[field]}))
		s.send(event+".done", s.at(map[string]any{"item_id": item["id"], field: item[field], "name": item["name"]}))
		s.send("response.output_item.done", s.at(map[string]any{"item": item}))
		s.output = append(s.output, item)
	}
}

func (s *responsesStream) end(r model.Reply) {
	s.finish(r)
	whole := response(s.a, "completed", s.output, &r)
	if whole["status"] == "incomplete" {
		s.send("response.incomplete", map[string]any{"response": whole})
		return
	}
	s.send("response.completed", map[string]any{"response": whole})
}

func (s *responsesStream) fail(p problem) {
	failed := response(s.a, "failed", s.output, nil)
	failed["error"] = map[string]any{"code": p.code, "message": p.message}
	s.send("response.failed", map[string]any{"response": failed})
}
