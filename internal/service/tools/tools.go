// Package tools is the registry of what models may call.
package tools

import (
	"encoding/json"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
)

// parameter is a parameter of a tool that is an operation.
type parameter struct {
	name   string
	schema string // JSON Schema of its value
}

// operation is how an operation of the protocol is offered as a tool. The operation's own row says the rest.
type operation struct {
	title, description string
	parameters         []parameter
}

// operations are the operations of the protocol, by type. What only a background run takes is no parameter here.
var operations = map[string]operation{
	run.OpMessage: {"Say something", "Says something to the people in the room. It has no other effect. Say what you are about to do, or " +
		"ask " +
		"with ask_person if you need an answer.", []parameter{
		{"content", `{"type": "string", "maxLength": 100000, "description": "what is said, in Markdown"}`},
	}},
	run.OpCreateFile: {"Write a file", "Writes a file of the space, with the folders above it. It fails if the file is there, unless " +
		"overwrite is true.",
		[]parameter{
			{"path", pathSchema},
			{"content", `{"type": "string", "description": "at most 10 MiB"}`},
			{"encoding", encodingSchema},
			{"overwrite", `{"type": "boolean", "description": "replace a file that is there"}`},
		}},
	run.OpReadFile: {"Read a file", "Reads a file of the space.", []parameter{{"path", pathSchema}, {"encoding", encodingSchema}}},
	run.OpEditFile: {"Edit a file", "Replaces texts in a file of the space. Each edit replaces the first place where oldContent stands. All " +
		"edits " +
		"are made or none.", []parameter{
		{"path", pathSchema},
		{"edits", `{"type": "array", "minItems": 1, "items": {"type": "object", "additionalProperties": false, "required": ["oldContent", ` +
			`"newContent"], "properties": {"oldContent": {"type": "string", "minLength": 1, "description": "as it stands in the file"}, ` +
			`"newContent": {"type": "string"}}}}`},
	}},
	run.OpDeleteFile: {"Delete a file", "Deletes a file of the space. It deletes no folders.", []parameter{{"path", pathSchema}}},
	run.OpShell: {"Run a command", "Runs a command line in the space and answers with its output and exit code. Policy decides each command " +
		"in it; " +
		"what it cannot read ahead, such as eval, asks a person.", []parameter{
		{"command", `{"type": "string", "minLength": 1, "maxLength": 4096}`},
		{"cwd", `{"type": "string", "description": "a folder of the space; its top if absent"}`},
		{"timeout", `{"type": "integer", "minimum": 1000, "maximum": 3600000, "description": "milliseconds; policy may shorten it"}`},
		{"env", `{"type": "object", "additionalProperties": {"type": "string"}}`},
	}},
}

const (
	pathSchema     = `{"type": "string", "minLength": 1, "maxLength": 255, "description": "relative to the top of the space"}`
	encodingSchema = `{"type": "string", "enum": ["utf-8", "base64"], "description": "utf-8 unless named"}`
)

// Builtin returns the tools that come with the program, in the order of their table.
func Builtin() []tool.Tool {
	var out []tool.Tool
	for _, spec := range run.Specs() {
		of, ok := operations[spec.Type]
		if !ok {
			continue // a test names an operation that is missing here
		}
		out = append(out, tool.Tool{
			Name: spec.Type, Title: of.title, Description: of.description, Input: of.schema(spec), Effect: spec.Effect(), Source: tool.Builtin,
		})
	}
	return out
}

// schema returns the JSON Schema of the operation's parameters.
func (o operation) schema(spec run.Spec) json.RawMessage {
	properties, required := map[string]json.RawMessage{}, []string{}
	for _, p := range o.parameters {
		properties[p.name] = json.RawMessage(p.schema)
	}
	for _, f := range spec.Fields {
		if _, ok := properties[f.Name]; ok && f.Required {
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
