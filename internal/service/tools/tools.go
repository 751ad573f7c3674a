// Package tools is the registry of what models may call.
package tools

import (
	"encoding/json"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
)

// Builtin returns the tools that come with the program, in the order of their table.
func Builtin() []tool.Tool {
	var out []tool.Tool
	for _, spec := range run.Specs() {
		out = append(out, tool.Tool{
			Name: spec.Type, Title: spec.Title, Description: spec.Tool, Input: schema(spec), Effect: spec.Effect(), Source: tool.Builtin,
		})
	}
	return out
}

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
		panic("tools: a schema of the table is no JSON: " + err.Error()) // every test meets it
	}
	return raw
}

// Offered returns the tools that an offer selects, and the content hash of their set.
func Offered(o tool.Offer) ([]tool.Tool, event.Digest, error) {
	tools := o.From(Builtin())
	hash, err := tool.HashOf(tools)
	return tools, hash, err
}
