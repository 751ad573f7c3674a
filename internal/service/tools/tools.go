// Package tools is the registry of the tools that models may call.
package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
)

// Builtin returns the tools that come with the program, in the order of their tables: the operations of the protocol, then the daemon's
// own tools. A tool of the daemon replaces the operation of the same name.
func Builtin() []tool.Tool {
	var out []tool.Tool
	for _, spec := range run.Specs() {
		if Own(spec.Type) {
			continue
		}
		out = append(out, tool.Tool{
			Name: spec.Type, Title: spec.Title, Description: spec.Tool, Input: schema(spec), Output: told, Effect: spec.Effect(),
			Source: tool.Builtin,
		})
	}
	for _, o := range owned {
		out = append(out, tool.Tool{
			Name: o.name, Title: o.title, Description: o.description, Input: json.RawMessage(o.schema), Output: told, Effect: o.effect,
			Source: tool.Builtin, Named: o.named,
		})
	}
	return out
}

// told is the output schema of every built-in tool: a text.
var told = json.RawMessage(`{"type": "string", "description": "what came of the call, in plain text"}`)

// schema returns the JSON Schema of the operation's parameters.
func schema(spec run.Spec) json.RawMessage {
	properties, required := map[string]json.RawMessage{}, []string{}
	for _, f := range spec.Fields {
		if f.Schema == "" {
			continue
		}
		properties[f.Name] = json.RawMessage(f.Schema)
		if f.Required {
			required = append(required, f.Name)
		}
	}
	raw, err := json.Marshal(map[string]any{
		"type": "object", "additionalProperties": false, "properties": properties, "required": required,
	})
	if err != nil {
		panic("tools: a schema of the table is no JSON: " + err.Error()) // every test of the package finds that
	}
	return raw
}

// Offered returns the built-in tools that an offer selects, and the content hash of their set.
func Offered(o tool.Offer) ([]tool.Tool, event.Digest, error) {
	tools := o.From(Builtin())
	hash, err := tool.HashOf(tools)
	return tools, hash, err
}

// OfferOf returns what a blueprint says about the tools that its agent is offered. An agent that may start sub-agents is offered the tool
// for it, and one that writes or is shown capsules the tools for that.
func OfferOf(b blueprint.Blueprint) tool.Offer {
	e := b.Effective()
	o := tool.Offer{Classes: e.Tools.Classes, Names: e.Tools.Allow, Deny: e.Tools.Deny}
	if e.Limits.Children > 0 {
		o.Names = append(slices.Clone(o.Names), SpawnTool)
	} else {
		o.Deny = append(slices.Clone(o.Deny), SpawnTool)
	}
	for _, name := range Among() {
		if among(name, e) {
			o.Names = append(slices.Clone(o.Names), name)
		} else {
			o.Deny = append(slices.Clone(o.Deny), name)
		}
	}
	return o
}

// Prepare checks the arguments of a call, and returns its task: an operation of the protocol, or an object of that form whose type is the
// name of a tool of the daemon. An error is Invalid and names the fault.
func Prepare(name string, arguments json.RawMessage) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(arguments, &fields); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "invalid_arguments", "the arguments are no JSON object")
	}
	if i := slices.IndexFunc(owned, func(o own) bool { return o.name == name }); i >= 0 {
		if err := owned[i].check(arguments); err != nil {
			return nil, err
		}
	}
	fields["type"], fields["id"] = json.RawMessage(fmt.Sprintf("%q", name)), json.RawMessage(`"call"`)
	task, err := json.Marshal(fields)
	if err != nil || Own(name) {
		return task, err
	}
	if err := fits(name, fields); err != nil {
		return nil, err
	}
	_, err = run.ParseOperations([]json.RawMessage{task})
	return task, err
}

// fits refuses fields that models may not send, and a missing required field.
func fits(name string, fields map[string]json.RawMessage) error {
	spec, _ := run.SpecOf(name)
	offered := []string{"type", "id"}
	for _, f := range spec.Fields {
		if f.Schema == "" {
			continue
		}
		offered = append(offered, f.Name)
		if _, sent := fields[f.Name]; f.Required && !sent {
			return wrong("%s is missing", f.Name)
		}
	}
	for _, sent := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(offered, sent) {
			return wrong("there is no parameter %.100q; those of %s are %s", sent, name, strings.Join(offered[2:], ", "))
		}
	}
	return nil
}

// Own reports whether the daemon itself executes the tool of a name. The other tools are operations of the protocol.
func Own(name string) bool {
	return slices.ContainsFunc(owned, func(o own) bool { return o.name == name })
}

// summaries are the arguments that say most about a call, the best first.
var summaries = []string{"path", "command", "url", "question", "content", "words", "task", "code", "html", "text", "artifact",
	"from"}

// Summary returns a line about the task of a call of a tool of the daemon.
func Summary(prepared json.RawMessage) string {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(prepared, &fields) != nil {
		return ""
	}
	for _, name := range summaries {
		var text string
		if json.Unmarshal(fields[name], &text) != nil || text == "" {
			continue
		}
		line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
		if runes := []rune(line); len(runes) > maxSummary {
			line = string(runes[:maxSummary]) + "…"
		}
		return line
	}
	return ""
}

// maxSummary is the most characters of a summary.
const maxSummary = 120

// strictly reads arguments and refuses unknown ones.
func strictly(arguments json.RawMessage, into any) error {
	dec := json.NewDecoder(strings.NewReader(string(arguments)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fault.New(fault.Invalid, "invalid_arguments", "%v", err)
	}
	return nil
}

func wrong(format string, args ...any) error {
	return fault.New(fault.Invalid, "invalid_arguments", format, args...)
}
