package errand

import (
	"bytes"
	"encoding/json"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Agent is the kind of work that the daemon's loop executes: the task of an agent that a blueprint defines.
const Agent = "agent"

// MaxTask is the largest text of an agent's task, in bytes.
const MaxTask = 256 << 10

// Mission is an input of the kind Agent. It names everything that the agent runs with.
type Mission struct {
	Version   int          `json:"agent_run"` // 1
	Blueprint string       `json:"blueprint"` // its name in the workspace
	Edition   int          `json:"blueprint_version"`
	Locked    event.Digest `json:"locked_sha256"` // of the blueprint with its pins
	Loop      event.Digest `json:"loop_sha256"`   // of the prompts and rules of the loop
	Tools     event.Digest `json:"tools_sha256"`  // of the tools that it is offered
	Space     id.Space     `json:"space_id"`

	// Pins are the content hashes of everything that the blueprint refers to, such as policy and models.main, when the run was begun. A run
	// without recorded pins has nil.
	Pins map[string]string `json:"pins,omitempty"`

	// After is a run that has ended, whose conversation this one goes on; "" for none.
	After id.Run `json:"after_run_id,omitempty"`
	// Model is the model that answers, if it is not the blueprint's.
	Model string `json:"model,omitempty"`

	// Artifacts are the patterns of the files of the space that the run keeps when it ends.
	Artifacts []string `json:"artifacts,omitempty"`

	// Protocol says how the model calls tools: ByText, or "" for the calls of its vendor.
	Protocol string `json:"protocol,omitempty"`

	// Lineage is that of a sub-agent; nil for an agent that a person has started.
	Lineage *Lineage `json:"lineage,omitempty"`

	Task string `json:"task"`

	// Pictures belong to the task. Their contents are artifacts of the run.
	Pictures []Picture `json:"pictures,omitempty"`
}

// Picture is a picture that a person gives an agent with a task.
type Picture struct {
	Name   string       `json:"name"`
	Media  string       `json:"mime_type"`
	Size   int64        `json:"size_bytes"`
	Digest event.Digest `json:"sha256"`
}

// ByText is the protocol of a model that calls tools in plain text.
const ByText = "text"

// Lineage says whose sub-agent the agent of a run is, and how much it may use of what those above it have.
type Lineage struct {
	Parent id.Run      `json:"parent_run_id"`
	Call   id.ToolCall `json:"parent_call_id"` // of the parent, which started it
	Root   id.Run      `json:"root_run_id"`    // which a person has started
	Depth  int         `json:"depth"`          // of a child of the root: 1
	Below  int         `json:"generations"`    // of sub-agents that may follow
	Tools  []string    `json:"tools"`          // those of its parent, and those of capsules; it is offered no others
	Left   int         `json:"seconds"`        // of the parent's time when it was started

	// Above are the limits of the runs above it, the parent first. Its use counts for each of them.
	Above []Bounded `json:"above,omitempty"`
}

// Bounded is a run and what it may use in all, with its sub-agents. An empty value bounds nothing.
type Bounded struct {
	Run    id.Run `json:"run_id"`
	Tokens int    `json:"tokens,omitempty"`
	Cost   string `json:"cost,omitempty"` // a decimal, as 2.50
}

// ReadMission reads an input; false where it is not a mission.
func ReadMission(input json.RawMessage) (Mission, bool) {
	var m Mission
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.DisallowUnknownFields()
	if dec.Decode(&m) != nil || m.Version != 1 || m.Blueprint == "" || m.Edition < 1 || m.Space == "" || m.Task == "" {
		return Mission{}, false
	}
	return m, true
}

// KindOf returns the kind of work of an input; "" for what only its requester and an engine of somebody else understand.
func KindOf(input json.RawMessage) string {
	if _, ok := ReadOrder(input); ok {
		return Operations
	}
	if _, ok := ReadMission(input); ok {
		return Agent
	}
	return ""
}

// SpaceOf returns the space in which a run of this input works; false where the input is none of Agentbox's.
func SpaceOf(input json.RawMessage) (id.Space, bool) {
	if o, ok := ReadOrder(input); ok {
		return o.Space, true
	}
	m, ok := ReadMission(input)
	return m.Space, ok
}

// TurnKind is the kind of the step of one turn of an agent, and Turn what its input says.
const TurnKind = "turn"

// Turn is the input of the step of a turn: its number from 0 on, and what led to its request to the model, as far as nothing else tells
// it.
type Turn struct {
	Number  int            `json:"turn"`
	Request event.Digest   `json:"request_sha256"`
	Heard   []string       `json:"heard,omitempty"`   // what people said before it
	Refused map[int]string `json:"refused,omitempty"` // why calls of the turn before it were refused or skipped, by their place

	// Worked is how many milliseconds models and tools have worked before it, over the whole run.
	Worked int64 `json:"worked_ms,omitempty"`
}

// TurnCall is the input of a tool call in a turn: its place among the calls of the answer, and the called tool.
type TurnCall struct {
	Index     int          `json:"index"`
	Call      string       `json:"call_id"` // the model's own name of the call
	Arguments event.Digest `json:"arguments_sha256"`
}

// MaxCalls is the most calls of one answer. The loop makes none of an answer with more.
const MaxCalls = 64

// Left is how long a call of a tool may work: Call is the limit of each call, and Run what is left of the run's own time.
type Left struct{ Call, Run time.Duration }

// Most returns the shorter of the two.
func (l Left) Most() time.Duration { return min(l.Call, l.Run) }

// ErrForgotten means that a part of the record of a run was redacted, so that nobody knows what it did.
var ErrForgotten = fault.New(fault.Conflict, "record_redacted", "a part of what was recorded of the run was redacted; begin another run")

// PastTurn is the record of a turn.
type PastTurn struct {
	Turn
	Step  id.Step
	Calls map[int]Progress // by the place of the call; Index and Step of each are not set
}
