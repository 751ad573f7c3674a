package models

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
)

// The capabilities that Test tries.
const (
	Streaming  = "streaming"
	Tools      = "tools"
	Images     = "images"
	Structured = "structured_output"
	Reasoning  = "reasoning"
	Caching    = "caching"
)

// Capability is the result of Test for one capability.
type Capability struct {
	Name   string `json:"capability" enum:"streaming,tools,images,structured_output,reasoning,caching"`
	Works  bool   `json:"works"`
	Detail string `json:"detail" doc:"What was seen"`
}

// Tested is the result of Test.
type Tested struct {
	Model        string       `json:"model"`
	Reachable    bool         `json:"reachable" doc:"Whether it answered the first question"`
	Failure      string       `json:"failure,omitempty" doc:"Why it did not: it cannot be reached, its key was refused, or something else"`
	Class        model.Class  `json:"failure_class,omitempty"`
	First        int64        `json:"first_piece_ms" doc:"Until the first piece of the first answer"`
	Capabilities []Capability `json:"capabilities" nullable:"false"`
	Usage        model.Usage  `json:"usage" doc:"Of all requests of the test"`
	Cost         model.Amount `json:"cost"`
	Priced       bool         `json:"priced"`
}

// testTokens bounds each answer of a test.
const testTokens = 512

// Test sends a few short questions to a model and reports its capabilities. The gate judges each question, and the service charges and
// records it as any other request.
func (s *Service) Test(ctx context.Context, origin event.Origin, ws id.Workspace, name string) (Tested, error) {
	if _, err := s.Get(ctx, ws, name); err != nil {
		return Tested{}, err
	}
	out := Tested{Model: name, Priced: true, Capabilities: []Capability{}}
	began := s.Clock.Now()
	ask := func(r model.Request) (model.Reply, int, error) {
		r.MaxTokens = testTokens
		pieces := 0
		reply, err := s.seek(ctx, model.Ask{Origin: origin, Workspace: ws, Entry: name, Request: r, Emit: func(d model.Delta) error {
			if d.Again {
				pieces = 0
				return nil
			}
			if pieces++; out.First == 0 {
				out.First = max(s.Clock.Now().Sub(began).Milliseconds(), 1)
			}
			return nil
		}}, true)
		if err == nil {
			out.Usage, out.Cost, out.Priced = out.Usage.Add(reply.Usage), out.Cost.Plus(reply.Cost), out.Priced && reply.Priced
		}
		return reply, pieces, err
	}
	_, pieces, err := ask(said("Count from 1 to 20 in words, separated by spaces. Write nothing else."))
	if f, ok := model.FailureOf(err); ok {
		out.Failure, out.Class = f.Error(), f.Class
		return out, nil
	}
	if err != nil {
		return Tested{}, err
	}
	out.Reachable = true
	add := func(name string, works bool, format string, args ...any) {
		out.Capabilities = append(out.Capabilities, Capability{name, works, fmt.Sprintf(format, args...)})
	}
	add(Streaming, pieces > 1, "the answer came in %d pieces", pieces)
	for _, probe := range probes() {
		reply, _, err := ask(probe.request)
		if f, ok := model.FailureOf(err); ok {
			add(probe.name, false, "%s", f.Error())
			continue
		}
		if err != nil {
			return out, err
		}
		if probe.twice {
			if reply, _, err = ask(probe.request); err != nil {
				add(probe.name, false, "%s", sentence(err))
				continue
			}
		}
		works, detail := probe.judge(reply)
		add(probe.name, works, "%s", detail)
	}
	return out, nil
}

func said(text string) model.Request {
	return model.Request{Messages: []model.Message{{Role: model.User, Parts: []model.Part{model.Text(text)}}}}
}

// probe is a question that tests one capability.
type probe struct {
	name    string
	request model.Request
	twice   bool // the second answer counts
	judge   func(model.Reply) (bool, string)
}

func probes() []probe {
	tools := said("Use the tool to add 2 and 3.")
	tools.Tools = []model.Tool{{Name: "add", Description: "Adds two numbers.", Schema: json.RawMessage(
		`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"],"additionalProperties":false}`)}}
	picture := said("Which colour is this picture? Answer with one word.")
	picture.Messages[0].Parts = append(picture.Messages[0].Parts, model.Part{Type: model.ImagePart,
		Image: &model.Image{MediaType: "image/png", Data: red()}})
	structured := said("How many legs has a spider? Answer as JSON.")
	structured.Schema = json.RawMessage(
		`{"type":"object","properties":{"legs":{"type":"integer"}},"required":["legs"],"additionalProperties":false}`)
	thinking := said("Is 97 a prime number? Think first. Answer with yes or no.")
	thinking.Effort = model.EffortLow
	long := said(strings.Repeat("The quick brown fox jumps over the lazy dog. ", 500) + "\nAnswer with the word fox.")
	long.Messages[0].Parts[0].Cache, long.CacheKey = true, "agentbox-model-test"
	return []probe{
		{Tools, tools, false, func(r model.Reply) (bool, string) {
			for _, c := range r.Calls() {
				if _, err := c.Input(); err == nil && c.Name == "add" {
					return true, "it called the tool with " + clip(c.Arguments)
				}
			}
			return false, "it called no tool; it said " + clip(r.Text())
		}},
		{Images, picture, false, func(r model.Reply) (bool, string) {
			return strings.Contains(strings.ToLower(r.Text()), "red"), "of a red picture it said " + clip(r.Text())
		}},
		{Structured, structured, false, func(r model.Reply) (bool, string) {
			var legs struct {
				Legs *int `json:"legs"`
			}
			return json.Unmarshal([]byte(r.Text()), &legs) == nil && legs.Legs != nil, "it said " + clip(r.Text())
		}},
		{Reasoning, thinking, false, func(r model.Reply) (bool, string) {
			shown := false
			for _, p := range r.Parts {
				shown = shown || p.Type == model.ReasoningPart
			}
			return shown || r.Answer.Usage.Reasoning > 0, fmt.Sprintf("%d tokens of reasoning were counted; shown: %t",
				r.Answer.Usage.Reasoning, shown)
		}},
		{Caching, long, true, func(r model.Reply) (bool, string) {
			return r.Answer.Usage.CacheRead > 0, fmt.Sprintf("of the same request again, %d tokens came from the cache", r.Answer.Usage.CacheRead)
		}},
	}
}

func clip(text string) string {
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "..."
	}
	return fmt.Sprintf("%q", text)
}

// red returns a red picture.
func red() []byte {
	picture := image.NewRGBA(image.Rect(0, 0, 32, 32))
	for i := range 32 * 32 {
		picture.Set(i%32, i/32, color.RGBA{R: 255, A: 255})
	}
	var raw bytes.Buffer
	if err := png.Encode(&raw, picture); err != nil {
		panic("models: a picture in memory cannot be encoded: " + err.Error()) // every test meets it
	}
	return raw.Bytes()
}
