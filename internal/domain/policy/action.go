// Package policy is the language of permission: actions, decisions, approvals and permits.
//
// It decides nothing by itself; the gate does.
package policy

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/gowebpki/jcs"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Action is everything that decides the effect. Its canonical bytes are hashed, shown, approved, stored and finally executed. A driver
// takes its instructions from the action inside its permit and from nowhere else. The hash covers every field; empty fields mean "does not
// apply". Integers stay within ±(2^53-1), because canonical JSON rounds larger ones.
type Action struct {
	Type      string       `json:"type"` // a name of the Registry, for example shell.exec, or one that the workspace declared
	Workspace id.Workspace `json:"workspace_id"`
	Room      id.Room      `json:"room_id,omitempty"`
	Principal id.Principal `json:"principal_id"` // the acting principal
	Token     id.Token     `json:"capability_token_id,omitempty"`

	Space     id.Space `json:"space_id,omitempty"`
	Run       id.Run   `json:"run_id,omitempty"`
	Step      id.Step  `json:"step_id,omitempty"`
	Operation string   `json:"operation_id,omitempty"` // of the protocol; unique in its run
	Subject   string   `json:"subject_id,omitempty"`   // the id of the action's subject, if no field above names it
	Fence     uint64   `json:"fence,omitempty"`        // of the claim under which the run is executed

	Path      string       `json:"path,omitempty"`          // relative to the space's files, cleaned, with slashes
	Content   event.Digest `json:"content_sha256,omitzero"` // of what is written, sent or edited in
	Size      int64        `json:"size_bytes,omitempty"`    // of that content, in bytes after decoding
	Overwrite bool         `json:"overwrite,omitempty"`
	MaxBytes  int64        `json:"max_bytes,omitempty"` // the most that may be read or written
	Mode      string       `json:"mode,omitempty"`      // of a file that is made, in octal: 0644 or 0755

	Command   string            `json:"command,omitempty"` // as the agent wrote it; Argv is what runs
	Argv      []string          `json:"argv,omitempty"`
	Cwd       string            `json:"cwd,omitempty"` // relative to the space's files
	Env       map[string]string `json:"env,omitempty"`
	Stdin     event.Digest      `json:"stdin_sha256,omitzero"`
	TimeoutMS int64             `json:"timeout_ms,omitempty"`

	// Background says that the command runs beside the space's other operations. Without TimeoutMS, it has no time limit.
	Background bool   `json:"background,omitempty"`
	Attach     string `json:"attach,omitempty"` // how a background command gets input while it runs: AttachX; "" for none

	Tool     string          `json:"tool,omitempty"`
	ToolHash event.Digest    `json:"tool_sha256,omitzero"`
	Method   string          `json:"method,omitempty"`
	Target   string          `json:"target,omitempty"`       // host, recipient or channel
	Limits   json.RawMessage `json:"limits,omitempty"`       // bounds of a space, as an object
	Bundle   event.Digest    `json:"policy_bundle,omitzero"` // the bundle under which it was decided
	Zone     event.Zone      `json:"zone,omitempty"`         // the posture of who acts outside
	Request  json.RawMessage `json:"request,omitempty"`      // the action that is done outside, as an object of the principal who does it
	Declared Declaration     `json:"declaration,omitzero"`   // for a declared type: the workspace's declaration; the gate fills it in
}

// The ways in which a background command gets input while it runs.
const (
	AttachStdin    = "stdin"    // a pipe
	AttachTerminal = "terminal" // a terminal, which is its output too
)

// maxExact is the largest integer that canonical JSON, whose numbers are float64, keeps apart from its neighbours.
const maxExact = 1<<53 - 1

// ErrInexact refuses an integer that canonical JSON would fold into a neighbour.
var ErrInexact = fault.New(fault.Invalid, "number_not_exact", "an integer lies beyond ±(2^53-1); send it as a string")

// inexact is ErrInexact for a number that is known.
func inexact(number string) error {
	return fault.New(ErrInexact.Kind, ErrInexact.Code, "the number %s lies beyond ±(2^53-1); send it as a string", Brief(number))
}

// ErrNotText refuses bytes that are not UTF-8: JSON would fold every such byte into the same replacement character.
var ErrNotText = fault.New(fault.Invalid, "text_not_utf8", "a text of the action is not UTF-8; send it base64 encoded in a file instead")

// isText reports whether every text of the action is UTF-8.
func (a Action) isText() bool {
	for _, text := range []string{
		a.Type, string(a.Workspace), string(a.Room), string(a.Principal), string(a.Token), string(a.Space), string(a.Run), string(a.Step),
		a.Operation, a.Subject, a.Path, a.Mode, a.Command, a.Cwd, a.Tool, a.Method, a.Target, string(a.Limits), string(a.Zone), string(a.Request),
		a.Declared.Description, a.Attach,
	} {
		if !utf8.ValidString(text) {
			return false
		}
	}
	for _, arg := range a.Argv {
		if !utf8.ValidString(arg) {
			return false
		}
	}
	for name, value := range a.Env {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return false
		}
	}
	return true
}

// Canonicalize rewrites JSON by RFC 8785 and refuses integers that it would fold.
func Canonicalize(raw []byte) ([]byte, error) {
	if err := exact(raw); err != nil {
		return nil, err
	}
	canonical, err := jcs.Transform(raw)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "not_canonical", "the value has no canonical JSON form")
	}
	return canonical, nil
}

// ParseAction reads canonical bytes back and refuses bytes that are not in canonical form.
func ParseAction(canonical []byte) (Action, error) {
	var a Action
	if err := json.Unmarshal(canonical, &a); err != nil {
		return Action{}, fault.Wrap(err, fault.Invalid, "action_invalid", "the stored action cannot be read")
	}
	again, err := a.Canonical()
	if err != nil {
		return Action{}, err
	}
	if string(again) != string(canonical) {
		return Action{}, fmt.Errorf("stored action is not in canonical form")
	}
	return a, nil
}
