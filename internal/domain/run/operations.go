package run

import (
	"encoding/json"
	"slices"
	"time"

	"agentbox/internal/domain/policy"
)

// The operation types.
const (
	OpMessage    = "message"
	OpCreateFile = "createFile"
	OpReadFile   = "readFile"
	OpEditFile   = "editFile"
	OpDeleteFile = "deleteFile"
	OpShell      = "shell"
)

// Operation is one operation; Type says which of the other fields apply.
type Operation struct {
	Type string `json:"type"`
	ID   string `json:"id,omitempty" doc:"The agent's own name for it, at most 128 bytes; made up where it gave none"`

	Content   string            `json:"content,omitempty"`
	Path      string            `json:"path,omitempty" doc:"Relative to the space's files"`
	Encoding  string            `json:"encoding,omitempty" doc:"utf-8 or base64; utf-8 by default"`
	Overwrite bool              `json:"overwrite,omitempty" doc:"Replace a file that exists"`
	Edits     []Edit            `json:"edits,omitempty" nullable:"false" doc:"Each replaces the first occurrence of a text, one after the other"`
	Command   string            `json:"command,omitempty" doc:"At most 4,096 characters, for bash"`
	Cwd       string            `json:"cwd,omitempty" doc:"The working folder, relative to the space's files"`
	TimeoutMS *int64            `json:"timeout,omitempty" doc:"Milliseconds, 1,000 to 3,600,000; 30,000 by default, and never more than policy allows"`
	Env       map[string]string `json:"env,omitempty" doc:"Variables beside those of the space"`

	Stdin bool      `json:"stdin,omitempty" doc:"Of a background run: the command gets input while it runs"`
	PTY   *Terminal `json:"pty,omitempty" doc:"Of a background run: the command runs in a terminal of this size"`
	Tag   string    `json:"tag,omitempty" doc:"Of a background run: the caller's own name for it, at most 100 characters"`

	// Context marks an operation that no client sent: the reading of a context file at the start of a run. Its result has no id.
	Context bool `json:"context,omitempty"`

	// Malformed says why the operation is none; its type is OpMalformed then. Nobody can send it.
	Malformed string `json:"malformed,omitempty"`
}

// Edit replaces the first occurrence of one text by another.
type Edit struct {
	Old string `json:"oldContent"`
	New string `json:"newContent"`
}

// Result is a result event of the protocol; Type says which fields apply. Every operation has exactly one.
type Result struct {
	Type        string    `json:"type"`
	OperationID string    `json:"operationId,omitempty"`
	Timestamp   time.Time `json:"timestamp"`

	Success      *bool   `json:"success,omitempty" doc:"Whether the operation did what it was asked; absent where its result was redacted"`
	Path         string  `json:"path,omitempty"`
	BytesWritten *int64  `json:"bytesWritten,omitempty" doc:"Bytes of the file that was written"`
	Content      *string `json:"content,omitempty"`
	Encoding     string  `json:"encoding,omitempty"`
	Size         *int64  `json:"size,omitempty" doc:"Bytes of the file that was read"`
	EditsApplied *int    `json:"editsApplied,omitempty"`

	Command    string  `json:"command,omitempty"`
	ExitCode   *int    `json:"exitCode,omitempty"`
	Stdout     *string `json:"stdout,omitempty"`
	Stderr     *string `json:"stderr,omitempty"`
	DurationMS *int64  `json:"durationMs,omitempty" doc:"Milliseconds that the command took, to its end"`
	CommitMS   *int64  `json:"commitMs,omitempty" doc:"Milliseconds after its end in which the files that it changed were written; only in tiers that write them then"`
	TimedOut   *bool   `json:"timedOut,omitempty"`
	Limit      string  `json:"limit,omitempty" doc:"The bound that ended the command"`
	Error      string  `json:"error,omitempty"`

	Tier  string     `json:"tier,omitempty" doc:"In which the command ran"`
	Gas   int64      `json:"gas,omitempty" doc:"What it computed, in units that are the same on every host"`
	Seed  string     `json:"seed,omitempty" doc:"What decided its chance"`
	Clock *time.Time `json:"clock,omitempty" doc:"Where its clock began"`
	Lacks []Lack     `json:"lacks,omitempty" nullable:"false" doc:"What it wanted and the tier has not"`

	Displays []Display `json:"displays,omitempty" nullable:"false" doc:"What it has shown beside its output: artifacts"`

	Engine string `json:"engine,omitempty" doc:"What gas depends on: the versions of what counts it and of the guests"`

	OperationType string           `json:"operationType,omitempty"`
	ApprovalID    string           `json:"approvalId,omitempty"`
	Reason        string           `json:"reason,omitempty"`
	ReasonCode    string           `json:"reasonCode,omitempty"`
	Suggestion    string           `json:"suggestion,omitempty"`
	Category      string           `json:"category,omitempty"`
	Message       string           `json:"message,omitempty"`
	Omitted       []string         `json:"omitted,omitempty" nullable:"false" doc:"Fields left out of a live frame because they are long, or that could not be kept"`
	Details       *json.RawMessage `json:"details,omitempty"`
}

// Change is the part of a space that an operation can change. The zero value makes no statement; readers treat it as ChangesSpace.
type Change string

// The changes.
const (
	ChangesNothing Change = "nothing"
	ChangesFile    Change = "file"  // the one file that its path names
	ChangesSpace   Change = "space" // any file of the space
)

// Field is a field of an operation besides its type and id.
type Field struct {
	Name     string // in JSON
	Kind     string // its JSON type: string, boolean, integer, array or object
	Required bool
	Schema   string // the JSON Schema that a model is given for it; empty for a field that no model is offered
}

// Spec describes an operation type. Parsing, the gate's tools, metrics, the API document and the docs are derived from it.
type Spec struct {
	Type    string   // the name on the wire, and the name of the tool in a room's list of allowed tools
	Doc     string   // its effect, a few words that begin with a verb
	Title   string   // the name of its tool for people
	Tool    string   // the description of its tool for a model
	Fields  []Field  // the required ones come first
	Action  string   // the action type that the gate judges
	Also    []string // other action types that count as the same tool
	Changes Change

	ResultDoc string   // the content of its result
	Result    []string // the fields of its result beside those of every result

	check func(Operation) error // reports the first limit that the values break; nil for none
}

// operations are the operation types of the protocol, a row for each. To add one, see "Add an operation" in CONTRIBUTING.md.
var operations = []Spec{
	{
		Type: OpMessage, Doc: "Says something", Action: policy.MessageSend, Changes: ChangesNothing,
		Title: "Say something",
		Tool: "Says something to the people in the room. It has no other effect. Say what you are about to do, or ask with ask_person if you " +
			"need an answer.",
		Fields: []Field{
			{"content", "string", true, `{"type": "string", "maxLength": 100000, "description": "what is said, in Markdown"}`},
		},
		ResultDoc: "The message is in the log",
		check:     Operation.checkMessage,
	},
	{
		Type: OpCreateFile, Doc: "Writes a file", Action: policy.FileCreate, Changes: ChangesFile,
		Title: "Write a file",
		Tool:  "Writes a file of the space, with the folders above it. It fails if the file is there, unless overwrite is true.",
		Fields: []Field{
			{"path", "string", true, pathSchema},
			{"content", "string", true, `{"type": "string", "description": "at most 10 MiB"}`},
			{"encoding", "string", false, encodingSchema},
			{"overwrite", "boolean", false, `{"type": "boolean", "description": "replace a file that is there"}`},
		},
		ResultDoc: "What became of a createFile", Result: []string{"path", "bytesWritten"},
		check: Operation.checkEncoding,
	},
	{
		Type: OpReadFile, Doc: "Reads a file", Action: policy.FileRead, Also: []string{policy.FileArchive}, Changes: ChangesNothing,
		Title: "Read a file", Tool: "Reads a file of the space.",
		Fields:    []Field{{"path", "string", true, pathSchema}, {"encoding", "string", false, encodingSchema}},
		ResultDoc: "What became of a readFile", Result: []string{"path", "content", "encoding", "size"},
		check: Operation.checkEncoding,
	},
	{
		Type: OpEditFile, Doc: "Replaces texts in a file", Action: policy.FileEdit, Changes: ChangesFile,
		Title: "Edit a file",
		Tool:  "Replaces texts in a file of the space. Each edit replaces the first place where oldContent stands. All edits are made or none.",
		Fields: []Field{
			{"path", "string", true, pathSchema},
			{"edits", "array", true, `{"type": "array", "minItems": 1, "items": {"type": "object", "additionalProperties": false, "required": ` +
				`["oldContent", "newContent"], "properties": {"oldContent": {"type": "string", "minLength": 1, "description": ` +
				`"as it stands in the file"}, "newContent": {"type": "string"}}}}`},
		},
		ResultDoc: "What became of an editFile", Result: []string{"path", "editsApplied"},
		check: Operation.checkEdits,
	},
	{
		Type: OpDeleteFile, Doc: "Deletes a file", Action: policy.FileDelete, Changes: ChangesFile,
		Title: "Delete a file", Tool: "Deletes a file of the space. It deletes no folders.",
		Fields:    []Field{{"path", "string", true, pathSchema}},
		ResultDoc: "What became of a deleteFile", Result: []string{"path"},
	},
	{
		Type: OpShell, Doc: "Runs a command", Action: policy.ShellExec, Changes: ChangesSpace,
		Title: "Run a command",
		Tool: "Runs a command line in the space and answers with its output and exit code. Policy decides each command in it; what it cannot " +
			"read ahead, such as eval, asks a person.",
		Fields: []Field{
			{"command", "string", true, `{"type": "string", "minLength": 1, "maxLength": 4096}`},
			{"cwd", "string", false, `{"type": "string", "description": "a folder of the space; its top if absent"}`},
			{"timeout", "integer", false, `{"type": "integer", "minimum": 1000, "maximum": 3600000, "description": ` +
				`"milliseconds; policy may shorten it"}`},
			{"env", "object", false, `{"type": "object", "additionalProperties": {"type": "string"}}`},
			{"stdin", "boolean", false, ""}, {"pty", "object", false, ""}, {"tag", "string", false, ""},
		},
		ResultDoc: "What became of a command",
		Result: []string{
			"path", "command", "exitCode", "stdout", "stderr", "encoding", "durationMs", "commitMs", "timedOut", "limit", "tier", "gas", "seed",
			"clock", "lacks", "displays", "engine",
		},
		check: Operation.checkShell,
	},
}

const (
	pathSchema     = `{"type": "string", "minLength": 1, "maxLength": 255, "description": "relative to the top of the space"}`
	encodingSchema = `{"type": "string", "enum": ["utf-8", "base64"], "description": "utf-8 unless named"}`
)

// Specs returns the operation types of the protocol, in the order of the table.
func Specs() []Spec { return slices.Clone(operations) }

// SpecOf returns the row of an operation type; false where there is no such type.
func SpecOf(typ string) (Spec, bool) {
	for i := range operations {
		if operations[i].Type == typ {
			return operations[i], true
		}
	}
	return Spec{}, false
}

// SpecOfAction returns the row of the operation type that an action type belongs to; false where it belongs to none.
func SpecOfAction(action string) (Spec, bool) {
	for i := range operations {
		if operations[i].Action == action || slices.Contains(operations[i].Also, action) {
			return operations[i], true
		}
	}
	return Spec{}, false
}

// OpTypes returns the operation types of the protocol, sorted.
func OpTypes() []string {
	types := make([]string, len(operations))
	for i := range operations {
		types[i] = operations[i].Type
	}
	slices.Sort(types)
	return types
}

// Effect returns the side effect class of an operation of the type, from the registry of actions. It is "" for an action that is not in the
// registry.
func (s Spec) Effect() policy.SideEffect {
	kind, _ := policy.KindOf(s.Action)
	return kind.SideEffect
}

// InSpace reports whether an operation of the type is done in a space, by a driver that redeems a permit for it.
func (s Spec) InSpace() bool { return s.Effect() != policy.Pure }

// Whole reports whether an operation of the type needs exclusive use of the space's files.
func (s Spec) Whole() bool { return s.Changes != ChangesNothing && s.Changes != ChangesFile }

// Needed returns the names of the fields that an operation of the type must have.
func (s Spec) Needed() []string { return s.names(true) }

// Optional returns the names of the fields that an operation of the type may have.
func (s Spec) Optional() []string { return s.names(false) }

func (s Spec) names(required bool) []string {
	var names []string
	for _, f := range s.Fields {
		if f.Required == required {
			names = append(names, f.Name)
		}
	}
	return names
}

func (s Spec) has(field string) bool {
	return slices.ContainsFunc(s.Fields, func(f Field) bool { return f.Name == field })
}

// ToolPrefix precedes the type of an operation if an engine calls it as a tool.
const ToolPrefix = "space."

// TypeOf returns the type of an operation as it was sent; "unknown" where it is not one of the protocol.
func TypeOf(operation json.RawMessage) string {
	var sent struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(operation, &sent) // invalid JSON has no type
	if _, ok := SpecOf(sent.Type); !ok {
		return "unknown"
	}
	return sent.Type
}

// ToolName returns the name of the tool that an operation is for an engine.
func ToolName(operation json.RawMessage) string { return ToolPrefix + TypeOf(operation) }
