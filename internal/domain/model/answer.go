package model

import (
	"context"
	"strings"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// Stop says why a model ended its turn.
type Stop string

// The reasons to stop.
const (
	StopEnd      Stop = "end"      // it has said everything
	StopLength   Stop = "length"   // max_tokens was reached; the last part is cut
	StopTools    Stop = "tools"    // it waits for the results of its tool calls
	StopRefusal  Stop = "refusal"  // it will not do this
	StopFilter   Stop = "filter"   // a filter of the endpoint cut the answer
	StopOverflow Stop = "overflow" // the context window is full
)

// Usage counts the tokens of a request. The input is the sum of the first three; Reasoning is a part of Output.
type Usage struct {
	Input      int `json:"input_tokens"` // neither read from the cache nor written to it
	CacheRead  int `json:"cache_read_tokens,omitempty"`
	CacheWrite int `json:"cache_write_tokens,omitempty"`
	Output     int `json:"output_tokens"`
	Reasoning  int `json:"reasoning_tokens,omitempty"`
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite, u.Output + v.Output, u.Reasoning + v.Reasoning}
}

// Answer is a whole answer of a model.
type Answer struct {
	Parts   []Part `json:"parts"` // text, reasoning and tool calls, in the order in which they came
	Stop    Stop   `json:"stop"`
	Usage   Usage  `json:"usage"`
	Unknown bool   `json:"usage_unknown,omitempty"` // the endpoint did not say what was used
	Model   string `json:"model,omitempty"`         // as the endpoint calls what answered
	ID      string `json:"id,omitempty"`            // the endpoint's name of the answer
}

// Text returns the text of the answer.
func (a Answer) Text() string {
	var text strings.Builder
	for _, p := range a.Parts {
		if p.Type == TextPart {
			text.WriteString(p.Text)
		}
	}
	return text.String()
}

// Calls returns the tool calls that may be run. An answer that was cut has none, because its last call may be incomplete.
func (a Answer) Calls() []Call {
	if a.Stop != StopTools {
		return nil
	}
	var list []Call
	for _, p := range a.Parts {
		if p.Type == CallPart {
			list = append(list, *p.Call)
		}
	}
	return list
}

// Message returns the answer as the next message of the conversation. Calls that may not be run are left out, because no result follows.
func (a Answer) Message() Message {
	m := Message{Role: Assistant}
	for _, p := range a.Parts {
		if p.Type != CallPart || a.Stop == StopTools {
			m.Parts = append(m.Parts, p)
		}
	}
	return m
}

// Delta is a piece of an answer while it comes, for those who watch. Only the Answer counts.
type Delta struct {
	Type PartType `json:"type"`           // text, reasoning or tool_call
	Text string   `json:"text,omitempty"` // the new text, or the new piece of the arguments
	ID   string   `json:"id,omitempty"`   // of the tool call
	Name string   `json:"name,omitempty"` // of the tool; in the first piece of a call

	Again bool `json:"again,omitempty"` // another try begins: the pieces before do not count; it has no text
}

// Endpoint is the contract of a driver: it sends one request to one endpoint, once. It redeems the permit, an action of type model.call
// for exactly this request and this entry. An error of a vendor is a *Failure. An answer is whole or there is none. It neither retries nor
// chooses. Package endpointtest stands in for a vendor.
type Endpoint interface {
	Stream(ctx context.Context, permit policy.Permit, to Target, r Request, emit func(Delta) error) (Answer, error)
}

// Target is where a request goes: an entry, and the secret that its key names.
type Target struct {
	Entry Entry
	Key   Secret
}

// Secret is a key of an endpoint. It prints and marshals as nothing but a mark, so that no log and no event can hold it by mistake.
type Secret struct{ value string }

// NewSecret keeps a key.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal returns the key, for the header that carries it.
func (s Secret) Reveal() string { return s.value }

// String returns a mark.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return "[secret]"
}

// GoString returns a mark.
func (s Secret) GoString() string { return s.String() }

// MarshalText returns a mark.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Keys keeps the keys of endpoints, by workspace and name. It hands a key to nobody but the one who asks an endpoint.
type Keys interface {
	// Key returns a key, or ErrNoKey.
	Key(ctx context.Context, ws id.Workspace, name string) (Secret, error)
	// Set keeps a key, in the place of an earlier one. It redeems a permit of type model.key.
	Set(ctx context.Context, permit policy.Permit, ws id.Workspace, name string, key Secret) error
	// Remove destroys a key; one that is not there is no error. It redeems a permit of type model.key.
	Remove(ctx context.Context, permit policy.Permit, ws id.Workspace, name string) error
}
