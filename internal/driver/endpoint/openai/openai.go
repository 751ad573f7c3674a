package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/endpoint"
)

// maxJudged bounds the work on the pieces of calls without an id.
const maxJudged = 256 << 20

// Endpoint asks models by chat completions.
type Endpoint struct{ client *endpoint.Client }

var _ model.Endpoint = (*Endpoint)(nil)

// New returns an endpoint over a client.
func New(client *endpoint.Client) *Endpoint { return &Endpoint{client} }

// Stream implements model.Endpoint.
func (o *Endpoint) Stream(ctx context.Context, permit policy.Permit, to model.Target, r model.Request,
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
	q := endpoint.Request{Target: to, URL: to.Entry.BaseURL + "/chat/completions", Body: raw}
	if key := to.Key.Reveal(); key != "" {
		q.Header = map[string]string{"Authorization": "Bearer " + key}
	}
	q.Refine = func(f *model.Failure, _ int, _ http.Header, body []byte) { refine(q, f, body) }
	s := &stream{dialect: to.Entry.Dialect, emit: emit, q: q}
	return s.finish(o.client.Stream(ctx, q, s.event))
}

// chunk is an event of the stream.
type chunk struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Object  string          `json:"object"`
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Content          string  `json:"content"`
			Refusal          string  `json:"refusal"`
			ReasoningContent string  `json:"reasoning_content"`
			Reasoning        string  `json:"reasoning"`
			Calls            []piece `json:"tool_calls"`
		} `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage `json:"usage"`
}

type piece struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Hit        int `json:"prompt_cache_hit_tokens"` // DeepSeek's word
	Details    struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Output struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// counted returns the usage, and false if a number of it is below 0: that tells nothing.
func (u usage) counted() (model.Usage, bool) {
	if min(u.Prompt, u.Completion, u.Hit, u.Details.Cached, u.Details.Written, u.Output.Reasoning) < 0 {
		return model.Usage{}, false
	}
	read, written := max(u.Details.Cached, u.Hit), u.Details.Written
	return model.Usage{Input: max(u.Prompt-read-written, 0), CacheRead: read, CacheWrite: written, Output: u.Completion,
		Reasoning: u.Output.Reasoning}, true
}

// stream is an answer while it comes.
type stream struct {
	dialect string
	emit    func(model.Delta) error
	q       endpoint.Request

	answer  model.Answer
	calls   []*pending
	judged  int // bytes that were read to know whether a call is whole
	text    strings.Builder
	thought strings.Builder
	refused bool
	field   string // in which the reasoning came
	reason  string // finish_reason
	used    bool
	begun   bool
}

// pending is a tool call while it comes.
type pending struct {
	model.Call
	arguments strings.Builder
	index     int
	named     bool // it came with an id of the endpoint
}

func (s *stream) event(e endpoint.Event) (bool, error) {
	data := bytes.TrimSpace(e.Data)
	if string(data) == "[DONE]" {
		return true, nil
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return false, &model.Failure{Class: model.Retry, Code: "not_json", Message: "an event of the answer is not what the wire says", Err: err}
	}
	if failed := len(c.Error) > 0 && string(c.Error) != "null"; failed || c.Object == "error" || e.Name == "error" {
		f := &model.Failure{Class: model.Retry, Message: "the endpoint failed within its answer"}
		refine(s.q, f, data)
		return false, f
	}
	if c.ID != "" {
		s.answer.ID = c.ID
	}
	if c.Model != "" {
		s.answer.Model = c.Model
	}
	if c.Usage != nil {
		s.answer.Usage, s.used = c.Usage.counted()
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		d := choice.Delta
		if thought := d.ReasoningContent; thought != "" || d.Reasoning != "" {
			s.field = reasoningContent
			if thought == "" {
				thought, s.field = d.Reasoning, reasoningField
			}
			s.thought.WriteString(thought)
			if err := s.tell(model.Delta{Type: model.ReasoningPart, Text: thought}); err != nil {
				return false, err
			}
		}
		s.refused = s.refused || d.Refusal != ""
		if text := d.Content + d.Refusal; text != "" {
			s.text.WriteString(text)
			if err := s.tell(model.Delta{Type: model.TextPart, Text: text}); err != nil {
				return false, err
			}
		}
		for _, p := range d.Calls {
			if err := s.call(p); err != nil {
				return false, err
			}
		}
		if choice.Finish != "" {
			s.reason = choice.Finish
		}
	}
	return false, nil
}

func (s *stream) tell(d model.Delta) error {
	s.begun = true
	return s.emit(d)
}

// call adds a piece of a tool call. A piece belongs to the call of its index and its id; without an id to the last one of its index. An
// index alone says nothing: some servers give all calls the index 0.
func (s *stream) call(p piece) error {
	var into *pending
	for _, c := range s.calls {
		if c.index == p.Index && (p.ID == "" || c.ID == p.ID) {
			into = c
		}
	}
	// Without an id, a name begins another call only where the one before is whole.
	if into != nil && p.ID == "" && p.Function.Name != "" && !into.named {
		sofar := into.arguments.String()
		if end := sofar[max(len(sofar)-64, 0):]; strings.HasSuffix(strings.TrimSpace(end), "}") {
			if s.judged += len(sofar); s.judged > maxJudged {
				return s.failed(model.Final, "too_many_calls", "the answer names its calls too often")
			}
			if json.Valid([]byte(sofar)) {
				into = nil
			}
		}
	}
	if into == nil {
		if len(s.calls) == endpoint.MaxCalls {
			return s.failed(model.Final, "too_many_calls", fmt.Sprintf("the answer has more than %d tool calls", endpoint.MaxCalls))
		}
		into = &pending{Call: model.Call{ID: p.ID}, index: p.Index, named: p.ID != ""}
		for into.ID == "" || s.taken(into.ID) {
			into.ID = fmt.Sprintf("%scall_%d", into.ID, len(s.calls))
		}
		s.calls = append(s.calls, into)
	}
	if into.Name == "" {
		into.Name = p.Function.Name
	}
	arguments := ""
	if raw := p.Function.Arguments; len(raw) > 0 && string(raw) != "null" {
		if json.Unmarshal(raw, &arguments) != nil {
			arguments = string(raw) // an object where the wire has its text
		}
	}
	into.arguments.WriteString(arguments)
	return s.tell(model.Delta{Type: model.CallPart, Text: arguments, ID: into.ID, Name: p.Function.Name})
}

func (s *stream) taken(name string) bool {
	for _, c := range s.calls {
		if c.ID == name {
			return true
		}
	}
	return false
}

// finish makes an answer of the received chunks, or a failure. A stream that told its finish_reason and then broke off is whole.
func (s *stream) finish(err error) (model.Answer, error) {
	if f, ok := model.FailureOf(err); ok {
		if s.reason == "" || !errors.Is(f, io.ErrUnexpectedEOF) {
			f.Begun, f.Usage = s.begun, s.answer.Usage
			return model.Answer{}, f
		}
		err = nil
	}
	if err != nil {
		return model.Answer{}, err
	}
	a := s.answer
	a.Unknown = !s.used
	if s.thought.Len() > 0 {
		a.Parts = append(a.Parts, model.Part{Type: model.ReasoningPart,
			Reasoning: &model.Reasoning{Dialect: s.dialect, Text: s.thought.String(), Opaque: s.field}})
	}
	if s.text.Len() > 0 {
		a.Parts = append(a.Parts, model.Text(s.text.String()))
	}
	for _, c := range s.calls {
		if c.Name == "" {
			return model.Answer{}, s.failed(model.Retry, "tool_call_unnamed", "the answer has a tool call without a name")
		}
		c.Arguments = c.arguments.String()
		a.Parts = append(a.Parts, model.Part{Type: model.CallPart, Call: &c.Call})
	}
	switch s.reason {
	case "stop", "tool_calls", "function_call":
		switch { // some servers say stop although there are calls
		case len(s.calls) > 0:
			a.Stop = model.StopTools
		case s.refused:
			a.Stop = model.StopRefusal
		default:
			a.Stop = model.StopEnd
		}
	case "length":
		a.Stop = model.StopLength
	case "content_filter", "sensitive":
		a.Stop = model.StopFilter
	case "model_context_window_exceeded":
		a.Stop = model.StopOverflow
	case "insufficient_system_resource":
		return model.Answer{}, s.failed(model.Busy, s.reason, "the endpoint had too little room to go on")
	case "":
		return model.Answer{}, s.failed(model.Retry, "no_finish", "the answer ended without a finish_reason")
	default:
		return model.Answer{}, s.failed(model.Retry, "unknown_finish", "the answer ended with a finish_reason that is not known")
	}
	if len(a.Parts) == 0 && a.Stop == model.StopEnd {
		return model.Answer{}, s.failed(model.Retry, "empty", "the answer is empty")
	}
	return a, nil
}

func (s *stream) failed(class model.Class, code, message string) *model.Failure {
	return &model.Failure{Class: class, Code: code, Message: message, Begun: s.begun, Usage: s.answer.Usage}
}
