// Package anthropic asks models by the wire of Anthropic's messages.
package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"agentbox/internal/domain/model"
)

type body struct {
	Model       string    `json:"model"`
	MaxTokens   int       `json:"max_tokens"`
	Stream      bool      `json:"stream"`
	System      []block   `json:"system,omitempty"`
	Messages    []message `json:"messages"`
	Temperature *float64  `json:"temperature,omitempty"`
	Tools       []tool    `json:"tools,omitempty"`
	Thinking    *thinking `json:"thinking,omitempty"`
	Output      *output   `json:"output_config,omitempty"`
}

type thinking struct {
	Type string `json:"type"`
}

type output struct {
	Effort model.Effort `json:"effort,omitempty"`
	Format *format      `json:"format,omitempty"`
}

type format struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
}

type message struct {
	Role    string `json:"role"`
	Content []any  `json:"content"` // blocks, and reasoning as it came
}

type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text,omitempty"`
	Source  *source         `json:"source,omitempty"`
	ID      string          `json:"id,omitempty"`
	Name    string          `json:"name,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	CallID  string          `json:"tool_use_id,omitempty"`
	Content []block         `json:"content,omitempty"`
	IsError bool            `json:"is_error,omitempty"`
	Cache   *cache          `json:"cache_control,omitempty"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

type cache struct {
	Type string `json:"type"`
}

// maxMarks is how many ends of a cached prefix one request may have; a fifth is an error there.
const maxMarks = 4

// encode writes a request.
func encode(e model.Entry, r model.Request) ([]byte, error) {
	b := body{Model: e.Model, MaxTokens: e.Output(r), Stream: true, Temperature: r.Temperature}
	switch r.Effort {
	case "":
	case model.EffortNone:
		b.Thinking = &thinking{"disabled"}
	default:
		b.Thinking, b.Output = &thinking{"adaptive"}, &output{Effort: r.Effort}
		b.Temperature = nil // thinking takes none
	}
	if len(r.Schema) > 0 {
		if b.Output == nil {
			b.Output = &output{}
		}
		b.Output.Format = &format{"json_schema", r.Schema}
	}
	for _, t := range r.Tools {
		b.Tools = append(b.Tools, tool{t.Name, t.Description, t.Schema})
	}
	skip := marks(r) - maxMarks // the last ends are worth most
	mark := func(p model.Part) *cache {
		if !p.Cache {
			return nil
		}
		if skip > 0 {
			skip--
			return nil
		}
		return &cache{"ephemeral"}
	}
	var turns []model.Message // neighbours of one role are one message, so that all results of a turn stand in one, first
	for _, m := range r.Messages {
		n := len(turns)
		switch {
		case m.Role == model.System:
			for _, p := range m.Parts {
				if p.Text != "" {
					b.System = append(b.System, block{Type: "text", Text: p.Text, Cache: mark(p)})
				}
			}
		case n > 0 && turns[n-1].Role == m.Role:
			turns[n-1].Parts = slices.Concat(turns[n-1].Parts, m.Parts)
		default:
			turns = append(turns, m)
		}
	}
	for _, m := range turns {
		content, err := blocks(e.Speaks(), m, mark)
		if err != nil {
			return nil, err
		}
		if len(content) > 0 {
			b.Messages = append(b.Messages, message{string(m.Role), content})
		}
	}
	return json.Marshal(b)
}

func marks(r model.Request) int {
	n := 0
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if p.Cache {
				n++
			}
		}
	}
	return n
}

// blocks writes the parts of a message, the results of tools first.
func blocks(dialect string, m model.Message, mark func(model.Part) *cache) ([]any, error) {
	var first, rest []any
	for _, p := range m.Parts {
		at := mark(p)
		switch p.Type {
		case model.TextPart:
			if strings.TrimSpace(p.Text) != "" { // a blank text is refused there
				rest = append(rest, block{Type: "text", Text: p.Text, Cache: at})
			}
		case model.ImagePart:
			rest = append(rest, picture(*p.Image, at))
		case model.ReasoningPart:
			if p.Reasoning.Dialect == dialect && p.Reasoning.Opaque != "" {
				rest = append(rest, json.RawMessage(p.Reasoning.Opaque))
			}
		case model.CallPart:
			input, err := p.Call.Input()
			if err != nil { // the model wrote no object; there has to be one
				if input, err = json.Marshal(map[string]string{"malformed_arguments": p.Call.Arguments}); err != nil {
					return nil, err
				}
			}
			rest = append(rest, block{Type: "tool_use", ID: p.Call.ID, Name: p.Call.Name, Input: input, Cache: at})
		case model.ResultPart:
			b := block{Type: "tool_result", CallID: p.Result.ID, IsError: p.Result.Failed, Cache: at}
			if p.Result.Text != "" {
				b.Content = append(b.Content, block{Type: "text", Text: p.Result.Text})
			}
			for _, image := range p.Result.Images {
				b.Content = append(b.Content, picture(image, nil))
			}
			first = append(first, b)
		}
	}
	return append(first, rest...), nil
}

func picture(image model.Image, at *cache) block {
	return block{Type: "image", Source: &source{"base64", image.MediaType, image.Data}, Cache: at}
}
