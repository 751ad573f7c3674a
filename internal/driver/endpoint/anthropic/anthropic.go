package anthropic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/endpoint"
)

// version is the version of the wire.
const version = "2023-06-01"

// Endpoint asks models by messages.
type Endpoint struct{ client *endpoint.Client }

var _ model.Endpoint = (*Endpoint)(nil)

// New returns an endpoint over a client.
func New(client *endpoint.Client) *Endpoint { return &Endpoint{client} }

// Stream implements model.Endpoint.
func (a *Endpoint) Stream(ctx context.Context, permit policy.Permit, to model.Target, r model.Request,
	emit func(model.Delta) error) (model.Answer, error) {
	if err := endpoint.Redeem(permit, to, r); err != nil {
		return model.Answer{}, err
	}
	raw, err := encode(to.Entry, r)
	if err != nil {
		return model.Answer{}, err
	}
	if emit == nil {
		emit = func(model.Delta) error { return nil }
	}
	q := endpoint.Request{Target: to, URL: to.Entry.BaseURL + "/v1/messages", Body: raw,
		Header: map[string]string{"Anthropic-Version": version}}
	if key := to.Key.Reveal(); key != "" {
		q.Header["X-Api-Key"] = key
	}
	q.Refine = func(f *model.Failure, _ int, _ http.Header, body []byte) { refine(q, f, body) }
	s := &stream{dialect: to.Entry.Speaks(), emit: emit, q: q}
	return s.finish(a.client.Stream(ctx, q, s.event))
}

// item is an event of the stream.
type item struct {
	Type    string `json:"type"`
	Message struct {
		ID    string `json:"id"`
		Model string `json:"model"`
		Usage usage  `json:"usage"`
	} `json:"message"`
	Index int             `json:"index"`
	Block json.RawMessage `json:"content_block"`
	Delta struct {
		Type      string `json:"type"`
		Text      string `json:"text"`
		JSON      string `json:"partial_json"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
		Stop      string `json:"stop_reason"`
	} `json:"delta"`
	Usage usage `json:"usage"`
}

// usage is cumulative. Fields that an event leaves out stay as they were.
type usage struct {
	Input      *int `json:"input_tokens"`
	CacheRead  *int `json:"cache_read_input_tokens"`
	CacheWrite *int `json:"cache_creation_input_tokens"`
	Output     *int `json:"output_tokens"`
	Details    struct {
		Thinking *int `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

func (u usage) into(to *model.Usage) bool {
	known := false
	for _, c := range []struct {
		from *int
		to   *int
	}{{u.Input, &to.Input}, {u.CacheRead, &to.CacheRead}, {u.CacheWrite, &to.CacheWrite}, {u.Output, &to.Output},
		{u.Details.Thinking, &to.Reasoning}} {
		if c.from != nil && *c.from >= 0 { // a number below 0 tells nothing
			*c.to, known = *c.from, true
		}
	}
	return known
}

// open is a block of the answer while it comes.
type open struct {
	kind      string
	raw       json.RawMessage // of a block that goes back as it came
	text      strings.Builder // of text, of thinking, or the arguments of a call
	call      model.Call
	signature strings.Builder
	closed    bool
}

type stream struct {
	dialect string
	emit    func(model.Delta) error
	q       endpoint.Request

	answer model.Answer
	blocks map[int]*open
	order  []int
	reason string
	done   bool
	used   bool
	begun  bool
}

func (s *stream) event(e endpoint.Event) (bool, error) {
	var i item
	if err := json.Unmarshal(e.Data, &i); err != nil {
		return false, s.failed(model.Retry, "not_json", "an event of the answer is not what the wire says", err)
	}
	if i.Type == "" { // a proxy of theirs may leave it to the line `event:`
		i.Type = e.Name
	}
	switch i.Type {
	case "error":
		f := &model.Failure{Class: model.Retry, Message: "the endpoint failed within its answer"}
		refine(s.q, f, e.Data)
		return false, f
	case "message_start":
		s.answer.ID, s.answer.Model = i.Message.ID, i.Message.Model
		s.used = i.Message.Usage.into(&s.answer.Usage) || s.used
	case "content_block_start":
		return false, s.start(i)
	case "content_block_delta":
		return false, s.add(i)
	case "content_block_stop":
		if b := s.blocks[i.Index]; b != nil {
			b.closed = true
		}
	case "message_delta":
		if i.Delta.Stop != "" {
			s.reason = i.Delta.Stop
		}
		s.used = i.Usage.into(&s.answer.Usage) || s.used
	case "message_stop":
		s.done = true
		return true, nil
	}
	return false, nil // a ping, or an event of a later day
}

func (s *stream) start(i item) error {
	var b struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(i.Block, &b); err != nil {
		return s.failed(model.Retry, "not_json", "a block of the answer is not what the wire says", err)
	}
	if s.blocks[i.Index] != nil {
		return s.failed(model.Retry, "block_twice", "a block of the answer begins twice", nil)
	}
	if len(s.order) == endpoint.MaxParts {
		return s.failed(model.Final, "too_many_parts", fmt.Sprintf("the answer has more than %d blocks", endpoint.MaxParts), nil)
	}
	if s.blocks == nil {
		s.blocks = map[int]*open{}
	}
	s.blocks[i.Index] = &open{kind: b.Type, raw: i.Block, call: model.Call{ID: b.ID, Name: b.Name}}
	s.order = append(s.order, i.Index)
	switch b.Type {
	case "tool_use":
		return s.tell(model.Delta{Type: model.CallPart, ID: b.ID, Name: b.Name})
	case "text":
		s.blocks[i.Index].text.WriteString(b.Text)
		if b.Text != "" {
			return s.tell(model.Delta{Type: model.TextPart, Text: b.Text})
		}
	}
	return nil
}

func (s *stream) add(i item) error {
	b := s.blocks[i.Index]
	if b == nil {
		return s.failed(model.Retry, "block_missing", "a piece of the answer belongs to no block", nil)
	}
	switch i.Delta.Type {
	case "text_delta":
		b.text.WriteString(i.Delta.Text)
		return s.tell(model.Delta{Type: model.TextPart, Text: i.Delta.Text})
	case "input_json_delta":
		b.text.WriteString(i.Delta.JSON)
		return s.tell(model.Delta{Type: model.CallPart, ID: b.call.ID, Text: i.Delta.JSON})
	case "thinking_delta":
		b.text.WriteString(i.Delta.Thinking)
		return s.tell(model.Delta{Type: model.ReasoningPart, Text: i.Delta.Thinking})
	case "signature_delta":
		b.signature.WriteString(i.Delta.Signature)
	}
	return nil
}

func (s *stream) tell(d model.Delta) error {
	s.begun = true
	return s.emit(d)
}

func (s *stream) failed(class model.Class, code, message string, err error) *model.Failure {
	return &model.Failure{Class: class, Code: code, Message: message, Begun: s.begun, Usage: s.answer.Usage, Err: err}
}

// finish makes an answer of the received events, or a failure.
func (s *stream) finish(err error) (model.Answer, error) {
	if f, ok := model.FailureOf(err); ok {
		f.Begun, f.Usage = s.begun, s.answer.Usage
		return model.Answer{}, f
	}
	if err != nil {
		return model.Answer{}, err
	}
	a := s.answer
	a.Unknown = !s.used
	calls := map[string]bool{} // by id
	for _, n := range s.order {
		b := s.blocks[n]
		switch b.kind {
		case "text":
			if b.text.Len() > 0 {
				a.Parts = append(a.Parts, model.Text(b.text.String()))
			}
		case "thinking":
			raw, err := json.Marshal(map[string]string{"type": "thinking", "thinking": b.text.String(), "signature": b.signature.String()})
			if err != nil {
				return model.Answer{}, err
			}
			a.Parts = append(a.Parts, reasoning(s.dialect, b.text.String(), string(raw)))
		case "redacted_thinking":
			a.Parts = append(a.Parts, reasoning(s.dialect, "", string(b.raw)))
		case "tool_use":
			if b.call.ID == "" || b.call.Name == "" {
				return model.Answer{}, s.failed(model.Retry, "tool_call_unnamed", "the answer has a tool call without an id or a name", nil)
			}
			for calls[b.call.ID] { // a proxy gave two calls one id; each needs its own, which also goes back
				b.call.ID = fmt.Sprintf("%s_call_%d", b.call.ID, len(calls))
			}
			calls[b.call.ID] = true
			b.call.Arguments = b.text.String()
			a.Parts = append(a.Parts, model.Part{Type: model.CallPart, Call: &b.call})
		}
		if !b.closed && (s.reason == "tool_use" || s.reason == "end_turn") {
			return model.Answer{}, s.failed(model.Retry, "block_open", "a block of the answer does not end", nil)
		}
	}
	switch s.reason {
	case "end_turn", "stop_sequence", "pause_turn":
		a.Stop = model.StopEnd
	case "tool_use":
		a.Stop = model.StopTools
		if len(calls) == 0 {
			a.Stop = model.StopEnd
		}
	case "max_tokens":
		a.Stop = model.StopLength
	case "refusal":
		a.Stop = model.StopRefusal
	case "model_context_window_exceeded":
		a.Stop = model.StopOverflow
	case "":
		return model.Answer{}, s.failed(model.Retry, "no_finish", "the answer ended without a stop_reason", nil)
	default:
		return model.Answer{}, s.failed(model.Retry, "unknown_finish", "the answer ended with a stop_reason that is not known", nil)
	}
	if len(a.Parts) == 0 && a.Stop == model.StopEnd {
		return model.Answer{}, s.failed(model.Retry, "empty", "the answer is empty", nil)
	}
	return a, nil
}

func reasoning(dialect, text, opaque string) model.Part {
	return model.Part{Type: model.ReasoningPart, Reasoning: &model.Reasoning{Dialect: dialect, Text: text, Opaque: opaque}}
}

// refine reads a failure's class off the type of the error.
func refine(q endpoint.Request, f *model.Failure, body []byte) {
	var outer struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
			Details struct {
				Code string `json:"error_code"`
			} `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &outer) != nil || outer.Error.Type == "" {
		return
	}
	e := outer.Error
	q.Name(f, e.Type)
	switch e.Type {
	case "invalid_request_error", "authentication_error", "permission_error", "not_found_error", "request_too_large":
		f.Class = model.Final
	case "billing_error":
		f.Class = model.Money
	case "rate_limit_error", "overloaded_error":
		f.Class = model.Busy
	case "api_error", "timeout_error":
		f.Class = model.Retry
	}
	switch {
	case e.Details.Code == "enforced_spend_limit_reached": // HTTP 429, like load
		f.Class = model.Money
	case f.Class == model.Final && endpoint.Overflows(e.Message):
		f.Class = model.Overflow
	}
	q.Quote(f, e.Message)
}
