package wires

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/model"
)

// talk collects the messages of a conversation. It merges neighbouring messages of one role, except system messages.
type talk struct{ list []model.Message }

// say adds parts. It ignores parts without content.
func (t *talk) say(role model.Role, parts ...model.Part) {
	var said []model.Part
	for _, p := range parts {
		if p.Type != model.TextPart || p.Text != "" {
			said = append(said, p)
		}
	}
	if len(said) == 0 {
		return
	}
	if n := len(t.list); n > 0 && t.list[n-1].Role == role && role != model.System {
		t.list[n-1].Parts = append(t.list[n-1].Parts, said...)
		return
	}
	t.list = append(t.list, model.Message{Role: role, Parts: said})
}

// imageOf decodes an image from a data: address. The daemon fetches nothing for a client.
func imageOf(address string) (model.Part, error) {
	head, data, ok := strings.Cut(strings.TrimPrefix(address, "data:"), ",")
	media, encoded := strings.CutSuffix(head, ";base64")
	if !strings.HasPrefix(address, "data:") || !ok || !encoded {
		return model.Part{}, unsupported("image_url", "an image is sent as a data: address in base64; this daemon fetches none")
	}
	return imageIn(media, data)
}

func imageIn(media, data string) (model.Part, error) {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(raw) == 0 {
		return model.Part{}, malformed("an image is not in base64")
	}
	switch media {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return model.Part{}, unsupported("image", "an image is image/png, image/jpeg, image/gif or image/webp")
	}
	return model.Part{Type: model.ImagePart, Image: &model.Image{MediaType: media, Data: raw}}, nil
}

// resultOf returns the result of a call from the parts of its content.
func resultOf(call string, failed bool, parts []model.Part) model.Part {
	r := &model.Result{ID: call, Failed: failed}
	for _, p := range parts {
		switch p.Type {
		case model.TextPart:
			if r.Text != "" && p.Text != "" {
				r.Text += "\n"
			}
			r.Text += p.Text
		case model.ImagePart:
			r.Images = append(r.Images, *p.Image)
		}
	}
	return model.Part{Type: model.ResultPart, Result: r}
}

// effortOf reads the reasoning effort.
func effortOf(word string) (model.Effort, error) {
	switch word {
	case "":
		return "", nil
	case "none":
		return model.EffortNone, nil
	case "minimal", "low":
		return model.EffortLow, nil
	case "medium":
		return model.EffortMedium, nil
	case "high", "xhigh", "max":
		return model.EffortHigh, nil
	}
	return "", malformed("effort %.32q is none of none, minimal, low, medium, high, xhigh and max", word)
}

// choiceOf reads tool_choice. none is true if the model may call no tools. It refuses a forced call, because not every model supports one.
func choiceOf(raw json.RawMessage) (none bool, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return false, nil
	}
	var word string
	if json.Unmarshal(raw, &word) != nil {
		var object struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(raw, &object); err != nil {
			return false, malformed("tool_choice: %v", err)
		}
		word = object.Type
	}
	switch word {
	case "auto":
		return false, nil
	case "none":
		return true, nil
	}
	return false, unsupported("tool_choice", "it may be auto or none; this daemon forces no call")
}

// schemaOf returns the schema of a tool. A tool without arguments may have none.
func schemaOf(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return raw
}

// named returns an id for the answer to a request. The same bytes have the same id.
func named(prefix string, body []byte) string { return prefix + event.DigestOf(body).Hex()[:24] }

// decode reads a body. It ignores unknown fields, because vendors' clients send new ones with every release.
func decode(body []byte, to any) error {
	if err := few(body); err != nil {
		return err
	}
	if err := json.Unmarshal(body, to); err != nil {
		return malformed("the body is not the JSON of this request: %v", err)
	}
	return nil
}

// few refuses JSON of more than MaxValues, before anything is made of it.
func few(body []byte) error {
	values, text := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case !text && (c == ',' || c == '[' || c == '{'):
			values++
		}
	}
	if values > MaxValues {
		return fault.New(fault.Invalid, codeTooLarge, "the JSON of the request has more than %d values", MaxValues)
	}
	return nil
}

// textOr reads a member that is a text or a list.
func textOr[T any](raw json.RawMessage) (text string, list []T, err error) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", nil, nil
	case raw[0] == '"':
		err = json.Unmarshal(raw, &text)
	default:
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		err = malformed("content: %v", err)
	}
	return text, list, err
}

// inputOf returns the input of a call as an object.
func inputOf(c model.Call) json.RawMessage {
	raw, err := c.Input()
	if err != nil { // the client will report it to the model
		raw, _ = json.Marshal(map[string]string{"malformed_arguments": c.Arguments})
	}
	return raw
}
