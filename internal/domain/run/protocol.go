package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"agentbox/internal/domain/fault"
)

// Protocol is the version of the operations and events protocol that is spoken here.
const Protocol = "1.0"

// Limits of one operations message.
const (
	MaxInputBytes    = 64 << 20 // of the whole message
	MaxOperations    = 1_000
	MaxMessageRunes  = 100_000  // characters of a message operation
	MaxContentBytes  = 10 << 20 // of a created file, after decoding
	MaxCommandRunes  = 4_096    // characters of a shell command
	MaxEdits         = 1_000    // of one editFile
	MinTimeoutMS     = 1        // of a shell command
	MaxTimeoutMS     = 3_600_000
	DefaultTimeoutMS = 30_000
	MaxOperationID   = 128      // bytes
	MaxEnv           = 100      // variables of one command
	MaxEnvBytes      = 32 << 10 // names and values of one command together
	MaxContextFiles  = 100
)

// OpMalformed is the type of an invalid operation: of an unknown type, or with a field missing or too many. It is skipped with an error
// event of its own.
const OpMalformed = "malformed"

// maxMalformed is how many bytes of why an operation is malformed are kept.
const maxMalformed = 500

// Message is an operations message.
type Message struct {
	ProtocolVersion string      `json:"protocolVersion"`
	Operations      []Operation `json:"operations"`
}

func invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, "operation_invalid", format, args...)
}

// ParseMessage reads an operations message. It refuses an invalid message as a whole: no JSON, another version, no operations or too many,
// a repeated id. A malformed operation, or one whose values break a limit, gets its own error event when its turn comes; see
// Operation.Check.
func ParseMessage(raw []byte) (Message, error) {
	var outer struct {
		Version    json.RawMessage   `json:"protocolVersion"`
		Operations []json.RawMessage `json:"operations"`
	}
	if err := strict(raw, &outer); err != nil {
		return Message{}, noMessage(err)
	}
	return ParseParts(outer.Version, outer.Operations)
}

// ParseParts is ParseMessage for a message that is already split into version and operations. A nil version is missing.
func ParseParts(version json.RawMessage, operations []json.RawMessage) (Message, error) {
	var spoken *string
	if version != nil {
		if err := json.Unmarshal(version, &spoken); err != nil {
			return Message{}, noMessage(named(err, "", "protocolVersion"))
		}
	}
	switch {
	case spoken == nil:
		return Message{}, invalid("protocolVersion is missing; send %q", Protocol)
	case *spoken != Protocol:
		return Message{}, fault.New(fault.Invalid, "unsupported_version", "protocolVersion %.32q is not spoken here; send %q", *spoken, Protocol)
	}
	return ParseOperations(operations)
}

func noMessage(err error) error {
	return invalid("the message is not an operations message: %s", plain(err))
}

// ParseOperations is ParseMessage for the operations of a message in the current version.
func ParseOperations(operations []json.RawMessage) (Message, error) {
	switch {
	case len(operations) == 0:
		return Message{}, invalid("operations is empty; send at least one")
	case len(operations) > MaxOperations:
		return Message{}, invalid("%d operations are more than the %d that one run may hold; send several runs", len(operations), MaxOperations)
	}
	m := Message{ProtocolVersion: Protocol, Operations: make([]Operation, len(operations))}
	seen := map[string]int{}
	for i, raw := range operations {
		op, err := parseOperation(raw)
		if err != nil {
			op = malformed(raw, fmt.Sprintf("operations[%d]: %s", i, plain(err)))
		}
		if first, twice := seen[op.ID]; twice && op.ID != "" {
			return Message{}, invalid("operations[%d]: id %.64q was used by operations[%d]; ids are unique within a run", i, op.ID, first)
		}
		seen[op.ID] = i
		m.Operations[i] = op
	}
	m.nameAll()
	return m, nil
}

// malformed returns a placeholder for an invalid operation. It keeps the id if there is one.
func malformed(raw json.RawMessage, why string) Operation {
	op := Operation{Type: OpMalformed, Malformed: strings.ToValidUTF8(why[:min(len(why), maxMalformed)], "")}
	var sent map[string]json.RawMessage
	if json.Unmarshal(raw, &sent) == nil && json.Unmarshal(sent["id"], &op.ID) != nil || len(op.ID) > MaxOperationID {
		op.ID = ""
	}
	return op
}

// Refused returns the error of the first invalid operation; nil if all are valid. It is for callers that accept a message only as a whole.
func (m Message) Refused() error {
	for _, op := range m.Operations {
		if op.Malformed != "" {
			return invalid("%s", op.Malformed)
		}
	}
	return nil
}

// nameAll gives every operation that came without an id one that no other has.
func (m Message) nameAll() {
	taken := map[string]bool{}
	for _, op := range m.Operations {
		taken[op.ID] = true
	}
	for i := range m.Operations {
		if m.Operations[i].ID != "" {
			continue
		}
		name := fmt.Sprintf("op-%d", i+1)
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("op-%d.%d", i+1, n)
		}
		taken[name], m.Operations[i].ID = true, name
	}
}

func parseOperation(raw json.RawMessage) (Operation, error) {
	var present map[string]json.RawMessage
	if err := json.Unmarshal(raw, &present); err != nil || present == nil {
		return Operation{}, fmt.Errorf("an operation is a JSON object")
	}
	var typ string
	if err := json.Unmarshal(present["type"], &typ); err != nil {
		return Operation{}, fmt.Errorf("type is missing or not a string; it is one of %s", strings.Join(OpTypes(), ", "))
	}
	spec, ok := SpecOf(typ)
	if !ok {
		return Operation{}, fmt.Errorf("type %.64q is unknown; it is one of %s", typ, strings.Join(OpTypes(), ", "))
	}
	for name := range present {
		if name != "type" && name != "id" && !spec.has(name) {
			known := strings.Join(slices.Concat(spec.Needed(), spec.Optional()), ", ")
			return Operation{}, fmt.Errorf("%s has no field %.64q; its fields are id, %s", typ, name, known)
		}
	}
	for _, name := range spec.Needed() {
		if _, ok := present[name]; !ok {
			return Operation{}, fmt.Errorf("%s needs the field %q", typ, name)
		}
	}
	op := Operation{Type: typ}
	for _, name := range slices.Concat([]string{"id"}, spec.Needed(), spec.Optional()) {
		raw, sent := present[name]
		if !sent {
			continue
		}
		into := op.field(name)
		if into == nil {
			return Operation{}, fmt.Errorf("the field %.64q of %s cannot be read", name, typ)
		}
		if err := strict(raw, into); err != nil {
			return Operation{}, named(err, "Operation", name)
		}
	}
	if len(op.ID) > MaxOperationID {
		return Operation{}, fmt.Errorf("id has %d bytes; at most %d are allowed", len(op.ID), MaxOperationID)
	}
	return op, nil
}

// field returns where the value of a field that an operation may have is kept; nil for no field.
func (op *Operation) field(name string) any {
	switch name {
	case "id":
		return &op.ID
	case "content":
		return &op.Content
	case "path":
		return &op.Path
	case "encoding":
		return &op.Encoding
	case "overwrite":
		return &op.Overwrite
	case "edits":
		return &op.Edits
	case "command":
		return &op.Command
	case "cwd":
		return &op.Cwd
	case "timeout":
		return &op.TimeoutMS
	case "env":
		return &op.Env
	case "stdin":
		return &op.Stdin
	case "pty":
		return &op.PTY
	case "tag":
		return &op.Tag
	}
	return nil
}

// named completes the error of a value with the field in which it stands.
func named(err error, within, field string) error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	if wrong.Struct == "" {
		wrong.Struct = within
	}
	if wrong.Field != "" {
		field += "." + wrong.Field
	}
	wrong.Field = field
	return wrong
}

// strict decodes one JSON value without unknown fields and without anything behind it.
func strict(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if dec.More() {
		return fmt.Errorf("there is more behind the JSON value")
	}
	return nil
}

// plain returns an error's text in words of JSON: without the decoder's own prefix, and without the types of this program.
func plain(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return fmt.Sprintf("the field %q has a JSON %s where a JSON %s is expected", wrong.Field, jsonWord(wrong.Value), jsonType(wrong.Type))
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// jsonWord returns the decoder's word for a value in full.
func jsonWord(value string) string {
	if value == "bool" {
		return "boolean"
	}
	return value
}

// jsonType returns the type of the JSON values that fit a type of Go.
func jsonType(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Struct, reflect.Map:
		return "object"
	}
	return "number"
}
