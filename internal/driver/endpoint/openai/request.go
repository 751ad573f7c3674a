// Package openai asks models by the wire of OpenAI's chat completions, in the dialects of those who speak it too.
package openai

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"agentbox/internal/domain/model"
)

// body is the request as the wire has it.
type body struct {
	Model       string       `json:"model"`
	Messages    []message    `json:"messages"`
	Stream      bool         `json:"stream"`
	Options     options      `json:"stream_options"`
	MaxTokens   int          `json:"max_tokens,omitempty"`
	Completion  int          `json:"max_completion_tokens,omitempty"`
	Temperature *float64     `json:"temperature,omitempty"`
	Tools       []tool       `json:"tools,omitempty"`
	Format      *format      `json:"response_format,omitempty"`
	Effort      model.Effort `json:"reasoning_effort,omitempty"`
	Thinking    *thinking    `json:"thinking,omitempty"`
	Enable      *bool        `json:"enable_thinking,omitempty"`
	CacheKey    string       `json:"prompt_cache_key,omitempty"`
}

type options struct {
	Usage bool `json:"include_usage"`
}

type thinking struct {
	Type  string `json:"type"`
	Clear *bool  `json:"clear_thinking,omitempty"`
}

type format struct {
	Type   string  `json:"type"`
	Schema *schema `json:"json_schema,omitempty"`
}

type schema struct {
	Name   string          `json:"name"`
	Strict bool            `json:"strict"`
	Schema json.RawMessage `json:"schema"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

type message struct {
	Role             string  `json:"role"`
	Content          any     `json:"content"` // a text, parts, or null beside calls
	Calls            []call  `json:"tool_calls,omitempty"`
	CallID           string  `json:"tool_call_id,omitempty"`
	ReasoningContent *string `json:"reasoning_content,omitempty"`
	Reasoning        *string `json:"reasoning,omitempty"`
}

type call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type part struct {
	Type  string    `json:"type"`
	Text  string    `json:"text,omitempty"`
	Image *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

// encode writes a request in the dialect of the entry.
func encode(e model.Entry, r model.Request) ([]byte, error) {
	b := body{Model: e.Model, Stream: true, Options: options{true}, Temperature: r.Temperature}
	if e.Dialect == model.DialectOpenAI {
		b.Completion, b.CacheKey = e.Output(r), r.CacheKey
	} else {
		b.MaxTokens = e.Output(r)
	}
	b.think(e.Dialect, r.Effort)
	for _, t := range r.Tools {
		b.Tools = append(b.Tools, tool{"function", function{t.Name, t.Description, t.Schema}})
	}
	if len(r.Schema) > 0 {
		switch e.Dialect {
		case model.DialectZAI, model.DialectDeepSeek, model.DialectQwen: // they promise JSON, and read the schema as a text
			b.Format = &format{Type: "json_object"}
			b.Messages = append(b.Messages, message{Role: "system",
				Content: "Answer with one JSON object, and nothing else, that fits this JSON Schema: " + string(r.Schema)})
		default:
			b.Format = &format{"json_schema", &schema{"answer", true, r.Schema}}
		}
	}
	for _, m := range r.Messages {
		b.Messages = append(b.Messages, messages(e.Dialect, m)...)
	}
	return json.Marshal(b)
}

// think says in the dialect's own words how much the model shall think.
func (b *body) think(dialect string, effort model.Effort) {
	off := effort == model.EffortNone
	switch dialect {
	case model.DialectZAI:
		keep := false // the model keeps seeing its earlier reasoning
		b.Thinking = &thinking{"enabled", &keep}
		if off {
			b.Thinking = &thinking{Type: "disabled"}
		}
	case model.DialectDeepSeek:
		switch {
		case off:
			b.Thinking = &thinking{Type: "disabled"}
		case effort != "":
			b.Thinking, b.Effort = &thinking{Type: "enabled"}, effort
			if effort == model.EffortMedium {
				b.Effort = model.EffortHigh // it has low, high and max
			}
		}
	case model.DialectQwen:
		if effort != "" {
			on := !off
			b.Enable = &on
		}
	case model.DialectOpenAI, model.DialectOllama, model.DialectVLLM:
		b.Effort = effort
	}
}

// messages writes one message. Results of tools are messages of their own here, and their images a message behind them.
func messages(dialect string, m model.Message) []message {
	if m.Role == model.Assistant {
		return []message{assistant(dialect, m)}
	}
	var list []message
	var rest []part
	for _, p := range m.Parts {
		switch p.Type {
		case model.ResultPart:
			text := p.Result.Text
			if p.Result.Failed {
				text = "Error: " + text
			}
			list = append(list, message{Role: "tool", Content: text, CallID: p.Result.ID})
			if len(p.Result.Images) > 0 {
				rest = append(rest, part{Type: "text", Text: "The images of the tool result " + p.Result.ID + ":"})
			}
			for _, image := range p.Result.Images {
				rest = append(rest, picture(image))
			}
		case model.ImagePart:
			rest = append(rest, picture(*p.Image))
		case model.TextPart:
			rest = append(rest, part{Type: "text", Text: p.Text})
		}
	}
	if len(rest) == 0 {
		return list
	}
	texts := make([]string, 0, len(rest))
	for _, p := range rest {
		if p.Type != "text" {
			return append(list, message{Role: string(m.Role), Content: rest})
		}
		texts = append(texts, p.Text)
	}
	return append(list, message{Role: string(m.Role), Content: strings.Join(texts, "\n\n")})
}

func picture(image model.Image) part {
	return part{Type: "image_url", Image: &imageURL{"data:" + image.MediaType + ";base64," + base64.StdEncoding.EncodeToString(image.Data)}}
}

// The fields in which reasoning comes, and goes back.
const (
	reasoningContent = "reasoning_content"
	reasoningField   = "reasoning"
)

// assistant writes a message of the model. Reasoning goes back unchanged, in the field in which it came, and only to its own dialect.
func assistant(dialect string, m model.Message) message {
	out := message{Role: "assistant"}
	text, said, thought, field := "", false, "", ""
	for _, p := range m.Parts {
		switch p.Type {
		case model.TextPart:
			text, said = text+p.Text, true
		case model.CallPart:
			c := call{ID: p.Call.ID, Type: "function"}
			c.Function.Name, c.Function.Arguments = p.Call.Name, p.Call.Arguments
			if c.Function.Arguments == "" {
				c.Function.Arguments = "{}"
			}
			out.Calls = append(out.Calls, c)
		case model.ReasoningPart:
			if p.Reasoning.Dialect == dialect {
				thought, field = thought+p.Reasoning.Text, p.Reasoning.Opaque
			}
		}
	}
	if said || len(out.Calls) == 0 {
		out.Content = text
	}
	switch {
	case dialect == model.DialectDeepSeek:
		if len(out.Calls) > 0 { // it wants the field of every turn with calls, even empty, and of no other
			out.ReasoningContent = &thought
		}
	case field == reasoningContent:
		out.ReasoningContent = &thought
	case field == reasoningField:
		out.Reasoning = &thought
	}
	return out
}
