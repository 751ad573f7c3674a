package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentbox/internal/domain/model"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
)

// saidProtocol tells a model that knows no tool calls how it calls tools.
const saidProtocol = "You call tools in plain text. To call some, write one block like this:\n\n```operations\n" +
	`{"protocolVersion": "1.0", "operations": [{"type": "readFile", "id": "1", "path": "notes.md"}]}` + "\n```\n\n" +
	"type is the name of a tool, and id is your own name for the call. The other fields are the tool's parameters; you may also put them " +
	"into one field arguments, and those of read_result must stand there. The next message has the results, in the same order. " +
	"An answer without such a block is your report.\n\nThe tools, each with the JSON Schema of its parameters:"

// toolsInText describes the tools for a model that knows no tool calls.
func toolsInText(tools []tool.Tool) string {
	var b strings.Builder
	b.WriteString(saidProtocol)
	for _, t := range tools {
		var schema bytes.Buffer
		if json.Compact(&schema, t.Input) != nil {
			continue // Check has refused it
		}
		fmt.Fprintf(&b, "\n- %s: %s\n  %s", t.Name, t.Description, schema.String())
	}
	return b.String()
}

// block is a fenced block of an answer.
type block struct {
	info   string // the first word after the fence
	text   string
	closed bool
}

// blocks returns the fenced blocks of a text, in order.
func blocks(text string) []block {
	var found []block
	var inside strings.Builder // the text of the last one; a model can write millions of lines
	fence := ""
	ends := func() {
		if n := len(found); n > 0 && inside.Len() > 0 {
			found[n-1].text = inside.String()
			inside.Reset()
		}
	}
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		if fence == "" {
			for _, mark := range []string{"`", "~"} {
				if n := len(bare) - len(strings.TrimLeft(bare, mark)); n >= 3 && !strings.Contains(bare[n:], "`") {
					info, _, _ := strings.Cut(strings.TrimSpace(bare[n:]), " ")
					fence, found = bare[:n], append(found, block{info: info})
				}
			}
			continue
		}
		if len(bare) >= len(fence) && strings.Trim(bare, fence[:1]) == "" {
			found[len(found)-1].closed, fence = true, ""
			ends()
			continue
		}
		inside.WriteString(line)
	}
	ends()
	return found
}

// operationsIn returns the operations that an answer in plain text contains, as calls of tools. A malformed operation becomes a call of
// run.OpMalformed whose arguments contain the reason. The loop tells the model, and makes the other calls.
func operationsIn(text string) []model.Call {
	var calls []model.Call
	for _, b := range blocks(text) {
		var sent struct {
			Version    *string           `json:"protocolVersion"`
			Operations []json.RawMessage `json:"operations"`
		}
		dec := json.NewDecoder(strings.NewReader(b.text))
		dec.DisallowUnknownFields()
		err := dec.Decode(&sent)
		if b.info != "operations" && (b.info != "json" && b.info != "" || err != nil || sent.Version == nil || sent.Operations == nil) {
			continue // a block of something else
		}
		wrong := ""
		switch {
		case !b.closed:
			wrong = "the block of operations is not closed"
		case err != nil:
			wrong = fmt.Sprintf("the block is not an operations message: %v", err)
		case dec.More():
			wrong = "something follows the operations message in its block"
		case sent.Version == nil || *sent.Version != run.Protocol:
			wrong = fmt.Sprintf("protocolVersion of the block must be %q", run.Protocol)
		case len(sent.Operations) == 0:
			wrong = "operations of the block is empty"
		}
		if wrong != "" {
			calls = append(calls, model.Call{Name: run.OpMalformed, Arguments: wrong})
			continue
		}
		for _, raw := range sent.Operations {
			calls = append(calls, operationOf(raw))
		}
	}
	named(calls)
	return calls
}

// operationOf reads one operation.
func operationOf(raw json.RawMessage) model.Call {
	fields := map[string]json.RawMessage{}
	wrong := func(format string, args ...any) model.Call {
		c := model.Call{Name: run.OpMalformed, Arguments: fmt.Sprintf(format, args...)}
		if json.Unmarshal(fields["id"], &c.ID) != nil || len(c.ID) > run.MaxOperationID {
			c.ID = ""
		}
		return c
	}
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return wrong("an operation is a JSON object")
	}
	var c model.Call
	if err := json.Unmarshal(fields["type"], &c.Name); err != nil || c.Name == "" || c.Name == run.OpMalformed {
		return wrong("type of an operation is the name of a tool")
	}
	if id, ok := fields["id"]; ok && (json.Unmarshal(id, &c.ID) != nil || len(c.ID) > run.MaxOperationID) {
		return wrong("id of the operation %.64q is a text of at most %d bytes", c.Name, run.MaxOperationID)
	}
	delete(fields, "type")
	delete(fields, "id")
	if inside, ok := fields["arguments"]; ok {
		if len(fields) > 1 {
			return wrong("the parameters of %.64q stand in arguments or beside it, not in both: %s", c.Name,
				strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
		c.Arguments = string(inside)
		return c
	}
	arguments, err := json.Marshal(fields)
	if err != nil {
		return wrong("the parameters of %.64q cannot be read", c.Name)
	}
	c.Arguments = string(arguments)
	return c
}

// named gives every call without a name of its own, or with that of another one, a name that no other has.
func named(calls []model.Call) {
	taken, twice := map[string]bool{}, make([]bool, len(calls))
	for i := range calls {
		twice[i] = calls[i].ID == "" || taken[calls[i].ID]
		taken[calls[i].ID] = true
	}
	for i := range calls {
		if !twice[i] {
			continue
		}
		name := fmt.Sprintf("op-%d", i+1)
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("op-%d.%d", i+1, n)
		}
		taken[name], calls[i].ID = true, name
	}
}

// writtenOut returns an answer as a message without tool calls: those that were made otherwise are written as a block of operations.
func writtenOut(t turn) model.Message {
	m := model.Message{Role: model.Assistant}
	var made []map[string]json.RawMessage
	for _, p := range t.answer.Parts {
		if p.Type != model.CallPart {
			m.Parts = append(m.Parts, p)
			continue
		}
		if t.answer.Stop != model.StopTools {
			continue
		}
		arguments, err := p.Call.Input()
		if err != nil {
			arguments, _ = json.Marshal(p.Call.Arguments) // a text always is JSON
		}
		typ, _ := json.Marshal(p.Call.Name)
		id, _ := json.Marshal(p.Call.ID)
		made = append(made, map[string]json.RawMessage{"type": typ, "id": id, "arguments": arguments})
	}
	if len(made) > 0 {
		raw, err := json.Marshal(map[string]any{"protocolVersion": run.Protocol, "operations": made})
		if err == nil {
			m.Parts = append(m.Parts, model.Text("```operations\n"+string(raw)+"\n```"))
		}
	}
	return m
}

// resultInText returns a result as a model reads it that knows no tool calls.
func resultInText(call model.Call, r model.Result) string {
	state := ""
	if r.Failed {
		state = ", failed"
	}
	return fmt.Sprintf("result of %s (%s)%s:\n%s", call.ID, call.Name, state, r.Text)
}
