// Package tool defines the tools that a model may call: name, schema and side effect, and the text of a result.
package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
)

// Bounds of a tool.
const (
	MaxName        = 128 // characters; the vendors of models take 64 of them, so longer names are shortened for them
	MaxDescription = 8 << 10
	MaxSchema      = 64 << 10
	MaxArguments   = 1 << 20 // bytes of the arguments of one call
)

// Builtin is the source of the tools that come with the program. The source of others is the name of their server.
const Builtin = "builtin"

// Spawn is the name of the tool that starts a sub-agent. A blueprint that permits sub-agents offers it.
const Spawn = "spawn"

// AskPerson is the name of the tool that asks the people of a thread. Its call is open until one of them has answered.
const AskPerson = "ask_person"

// Tool is what a model may call.
type Tool struct {
	Name        string            `json:"name"`
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description"`
	Input       json.RawMessage   `json:"input_schema"`
	Output      json.RawMessage   `json:"output_schema,omitempty"`
	Effect      policy.SideEffect `json:"side_effect"`
	Source      string            `json:"source"`

	// Named says that the tool is offered only by its name, and not by its class.
	Named bool `json:"-"`
}

// The refusals of tools.
var (
	// ErrName refuses a name that is none.
	ErrName = fault.New(fault.Invalid, "invalid_tool_name",
		"a tool's name has 1 to %d letters, digits, hyphens, dots and underscores", MaxName)
	// ErrNotFound means that there is no such tool, or that the caller is not offered it.
	ErrNotFound = fault.New(fault.NotFound, "tool_not_found", "there is no such tool")
	// ErrShadows refuses a tool that has the name of another one.
	ErrShadows = fault.New(fault.Conflict, "tool_name_taken", "another tool has this name")
)

// Check refuses a tool that cannot be offered.
func (t Tool) Check() error {
	valid := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.'
	}
	switch {
	case t.Name == "" || len(t.Name) > MaxName || strings.ContainsFunc(t.Name, func(r rune) bool { return !valid(r) }):
		return ErrName
	case len(t.Description) > MaxDescription:
		return fault.New(fault.Invalid, "tool_too_large", "the description of %s has %d bytes; the limit is %d", t.Name, len(t.Description),
			MaxDescription)
	case len(t.Input)+len(t.Output) > MaxSchema:
		return fault.New(fault.Invalid, "tool_too_large", "the schemas of %s have %d bytes; the limit is %d", t.Name,
			len(t.Input)+len(t.Output), MaxSchema)
	}
	var schema struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(t.Input, &schema) != nil || schema.Type != "object" {
		return fault.New(fault.Invalid, "invalid_tool_schema", "the input schema of %s must be an object with type: object", t.Name)
	}
	return nil
}

// Hash returns the content hash of everything that the tool says of itself. A tool that changes a word has another one.
func (t Tool) Hash() (event.Digest, error) {
	raw, err := json.Marshal(t)
	if err != nil {
		return event.Digest{}, err
	}
	canonical, err := policy.Canonicalize(raw)
	if err != nil {
		return event.Digest{}, err
	}
	return event.DigestOf(canonical), nil
}

// HashOf returns the content hash of a set of tools, whatever their order.
func HashOf(tools []Tool) (event.Digest, error) {
	lines := make([]string, 0, len(tools))
	for _, t := range tools {
		h, err := t.Hash()
		if err != nil {
			return event.Digest{}, err
		}
		lines = append(lines, t.Name+" "+h.String())
	}
	slices.Sort(lines)
	return event.DigestOf([]byte(strings.Join(lines, "\n"))), nil
}

// Offer says which tools an agent is offered.
type Offer struct {
	Classes []string // side effects of tools that come with the program
	Names   []string // of tools, besides
	Sources []string // all tools of these sources, besides
	Deny    []string // names that are never offered
}

// From returns the offered tools of a set, by name.
func (o Offer) From(tools []Tool) []Tool {
	var out []Tool
	for _, t := range tools {
		offered := t.Source == Builtin && !t.Named && slices.Contains(o.Classes, string(t.Effect)) || slices.Contains(o.Names, t.Name) ||
			slices.Contains(o.Sources, t.Source)
		if offered && !slices.Contains(o.Deny, t.Name) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Refusal is why a call was not made, in the one form in which a model learns it.
type Refusal struct {
	Tool    string `json:"tool"`
	Rule    string `json:"rule"` // the stable code of the decision
	Reason  string `json:"reason"`
	Instead string `json:"instead,omitempty"`
}

// Text returns the refusal as the model reads it: four lines, always in this order.
func (r Refusal) Text() string {
	instead := r.Instead
	if instead == "" {
		instead = "Go on without it, or ask a person with ask_person."
	}
	return fmt.Sprintf("refused: %s\nrule: %s\nreason: %s\ninstead: %s", line(r.Tool), line(r.Rule), line(r.Reason), line(instead))
}

// line keeps a text in its line, so that no text makes lines of its own.
func line(text string) string {
	breaks := func(r rune) bool { return r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' || r == '\u0085' }
	return strings.Join(strings.FieldsFunc(text, breaks), " ")
}

// Result is the result of a call.
type Result struct {
	OK      bool     `json:"ok"`
	Text    string   `json:"text"`              // for the model
	Refusal *Refusal `json:"refusal,omitempty"` // of a call that was not made
}

// Excerpt shortens a text to about a number of characters: its beginning, its end, and between them a line that says how much is missing
// and how to read it. It returns a short text unchanged, and false.
func Excerpt(text string, limit int, read string) (string, bool) {
	if len(text) <= limit { // a character is at least one byte
		return text, false
	}
	runes := []rune(text)
	if len(runes) <= limit {
		return text, false
	}
	head := limit * 2 / 3
	tail := limit - head
	left := len(runes) - head - tail
	return fmt.Sprintf("%s\n[%d of %d characters are left out here. %s]\n%s", string(runes[:head]), left, len(runes), read,
		string(runes[len(runes)-tail:])), true
}

// pieceHead is how many characters the first line of a piece may have.
const pieceHead = 100

// Piece returns characters of a text from an offset on, behind a line that says which ones they are. It has at most `most` characters in
// all, which must be more than 100. A length of 0 stands for as many characters as that permits.
func Piece(text string, offset, length, most int) string {
	runes := []rune(text)
	from, fit := min(offset, len(runes)), most-pieceHead
	if length > 0 {
		fit = min(fit, length)
	}
	to := min(from+fit, len(runes))
	return fmt.Sprintf("characters %d to %d of %d:\n%s", from, to, len(runes), string(runes[from:to]))
}
