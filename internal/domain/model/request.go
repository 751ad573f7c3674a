// Package model has the types of calls to language models: requests, answers, costs and failures.
package model

import (
	"bytes"
	"encoding/json"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
)

// Role says who speaks in a message.
type Role string

// The roles. A tool's result stands in a message of the user.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
)

// PartType is the kind of a part of a message.
type PartType string

// The types of parts.
const (
	TextPart      PartType = "text"
	ImagePart     PartType = "image"
	ReasoningPart PartType = "reasoning"
	CallPart      PartType = "tool_call"
	ResultPart    PartType = "tool_result"
)

// Part is one piece of a message. Type says which of the other fields count.
type Part struct {
	Type      PartType   `json:"type"`
	Text      string     `json:"text,omitempty"`
	Image     *Image     `json:"image,omitempty"`
	Reasoning *Reasoning `json:"reasoning,omitempty"`
	Call      *Call      `json:"tool_call,omitempty"`
	Result    *Result    `json:"tool_result,omitempty"`
	Cache     bool       `json:"cache,omitempty"` // a good end of a prefix for the endpoint's prompt cache
}

// Text returns a part of text.
func Text(text string) Part { return Part{Type: TextPart, Text: text} }

// Image is a picture: its bytes, never an address that somebody would have to fetch.
type Image struct {
	MediaType string `json:"media_type"` // image/png, image/jpeg, image/gif or image/webp
	Data      []byte `json:"data"`
}

// The bounds of the pictures of a message: what every vendor takes.
const (
	MaxImage  = 3 << 20 // bytes of one
	MaxImages = 8       // of a message
)

// MediaOf returns the media type of a picture by its first bytes; "" for what is not one of the types that models take.
func MediaOf(data []byte) string {
	for _, known := range []struct{ begins, media string }{
		{"\x89PNG\r\n\x1a\n", "image/png"}, {"\xff\xd8\xff", "image/jpeg"}, {"GIF87a", "image/gif"}, {"GIF89a", "image/gif"},
	} {
		if bytes.HasPrefix(data, []byte(known.begins)) {
			return known.media
		}
	}
	if len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP" {
		return "image/webp"
	}
	return ""
}

// Reasoning is a model's reasoning. Only the dialect that made it can read Opaque. It gets that back
// unchanged, and no other dialect gets it.
type Reasoning struct {
	Dialect string `json:"dialect"`
	Text    string `json:"text,omitempty"`   // for people; may be a summary, or empty
	Opaque  string `json:"opaque,omitempty"` // the dialect's own form of it
}

// Call is a tool call that a model proposes. It is a request and no more: the gate decides on it.
type Call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // as the model wrote them, which need not be JSON; Input checks
}

// ErrArguments refuses arguments of a tool call that are no JSON object.
var ErrArguments = fault.New(fault.Invalid, "tool_arguments_invalid", "the arguments of the tool call are not one JSON object")

// Input returns the arguments as a JSON object. No arguments are an empty object.
func (c Call) Input() (json.RawMessage, error) {
	if c.Arguments == "" {
		return json.RawMessage("{}"), nil
	}
	if raw := json.RawMessage(c.Arguments); isObject(raw) {
		return raw, nil
	}
	return nil, ErrArguments
}

// Result is the result of a tool call.
type Result struct {
	ID     string  `json:"id"` // of the call
	Text   string  `json:"text,omitempty"`
	Images []Image `json:"images,omitempty"`
	Failed bool    `json:"failed,omitempty"` // the text says why
}

// Message is the message of one side in one turn.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// Tool is a tool that the model may call.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema of an object

	prepared prepared
}

// Effort is how much a model shall think. Each dialect maps it to what its endpoint takes.
type Effort string

// The efforts. The zero value leaves it to the endpoint.
const (
	EffortNone   Effort = "none"
	EffortLow    Effort = "low"
	EffortMedium Effort = "medium"
	EffortHigh   Effort = "high"
)

// Request is a request to a model. It names no model and no endpoint; an entry does.
type Request struct {
	Messages    []Message       `json:"messages"`
	Tools       []Tool          `json:"tools,omitempty"`
	MaxTokens   int             `json:"max_tokens,omitempty"` // of the answer; 0 means what the entry allows
	Temperature *float64        `json:"temperature,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"` // JSON Schema of the answer's text
	Effort      Effort          `json:"effort,omitempty"`
	CacheKey    string          `json:"cache_key,omitempty"` // requests of one conversation share it, for the endpoint's prompt cache
}

// Hash returns the SHA-256 of the request's canonical JSON (RFC 8785). Equal requests, and only these, have equal hashes: cassettes,
// replays and permits name a request by it.
func (r Request) Hash() (event.Digest, error) {
	canonical, err := r.Canonical()
	if err != nil {
		return event.Digest{}, err
	}
	return event.DigestOf(canonical), nil
}

func (r Request) texts() []string {
	list := []string{string(r.Schema), r.CacheKey}
	for _, t := range r.Tools {
		list = append(list, t.Name, t.Description, string(t.Schema))
	}
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			list = append(list, p.Text)
			if p.Reasoning != nil {
				list = append(list, p.Reasoning.Text, p.Reasoning.Opaque)
			}
			if p.Call != nil {
				list = append(list, p.Call.ID, p.Call.Name, p.Call.Arguments)
			}
			if p.Result != nil {
				list = append(list, p.Result.ID, p.Result.Text)
			}
		}
	}
	return list
}

// HasImages reports whether the request has a picture.
func (r Request) HasImages() bool {
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if p.Image != nil || p.Result != nil && len(p.Result.Images) > 0 {
				return true
			}
		}
	}
	return false
}

// imageTokens is more than any documented endpoint counts for one image.
const imageTokens = 16_384

// MostTokens returns a number of tokens that the request's input does not exceed. A token is at least one byte of text.
func (r Request) MostTokens() int {
	n := 64
	for _, text := range r.texts() {
		n += len(text)
	}
	for _, m := range r.Messages {
		n += 16
		for _, p := range m.Parts {
			n += 16
			if p.Image != nil {
				n += imageTokens
			}
			if p.Result != nil {
				n += imageTokens * len(p.Result.Images)
			}
		}
	}
	return n + 32*len(r.Tools)
}

// invalid is the refusal of a request that makes no sense.
func invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, "model_request_invalid", format, args...)
}

// Check refuses a request that no endpoint can answer: before it is paid for.
func (r Request) Check() error {
	if len(r.Messages) == 0 {
		return invalid("a request to a model has at least one message")
	}
	if r.MaxTokens < 0 {
		return invalid("max_tokens must not be negative")
	}
	switch r.Effort {
	case "", EffortNone, EffortLow, EffortMedium, EffortHigh:
	default:
		return invalid("effort must be none, low, medium or high")
	}
	for _, t := range r.Tools {
		if t.Name == "" || !isObject(t.Schema) {
			return invalid("a tool has a name and a JSON Schema, which is an object")
		}
	}
	if len(r.Schema) > 0 && !isObject(r.Schema) {
		return invalid("the schema of the answer must be a JSON object")
	}
	open := map[string]bool{}
	for i, m := range r.Messages {
		if len(m.Parts) == 0 {
			return invalid("message %d has no parts", i)
		}
		for _, p := range m.Parts {
			if err := p.check(m.Role); err != nil {
				return err
			}
			switch p.Type {
			case CallPart:
				if open[p.Call.ID] {
					return invalid("two open tool calls have the id %q", p.Call.ID)
				}
				open[p.Call.ID] = true
			case ResultPart:
				if !open[p.Result.ID] {
					return invalid("the tool result %q has no open call before it", p.Result.ID)
				}
				delete(open, p.Result.ID)
			}
		}
	}
	if len(open) > 0 {
		return invalid("a tool call has no result: every call needs one before the next request")
	}
	return nil
}

// isObject reports whether a text is one JSON object. It makes nothing of it: a short text can have millions of members.
func isObject(raw json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) && json.Valid(raw)
}

// check refuses a part without its content, and one that the role cannot say.
func (p Part) check(by Role) error {
	held, who := false, false
	switch p.Type {
	case TextPart:
		held, who = true, by == System || by == User || by == Assistant
	case ImagePart:
		held, who = p.Image != nil && len(p.Image.Data) > 0 && p.Image.MediaType != "", by == User
	case ReasoningPart:
		held, who = p.Reasoning != nil && p.Reasoning.Dialect != "", by == Assistant
	case CallPart:
		held, who = p.Call != nil && p.Call.ID != "" && p.Call.Name != "", by == Assistant
	case ResultPart:
		held, who = p.Result != nil && p.Result.ID != "", by == User
	}
	if !held || !who {
		return invalid("a part of type %q is incomplete, or cannot stand in a message of role %q", p.Type, by)
	}
	return nil
}
