// Package errand is the contract between a daemon and the engines that execute its runs, inside of it or over the API.
package errand

import (
	"context"
	"encoding/json"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Operations is the kind of work that an engine of Agentbox executes: an operations message of protocol 1.0 that names its space.
const Operations = "operations"

// Work is a run that an engine has claimed.
type Work struct {
	Workspace id.Workspace // "" for that of the engine's key
	Run       id.Run
	Token     string        // of the claim
	Permit    string        // to work on it, signed; "" for none
	Lasts     time.Duration // how long the claim lasts without a heartbeat; 0 for thirty seconds
	Fence     uint64
	Input     json.RawMessage
}

// Order is an input of the kind Operations.
type Order struct {
	Version    string            `json:"protocolVersion"`
	Space      id.Space          `json:"space_id"`
	Operations []json.RawMessage `json:"operations"`
	Continue   bool              `json:"continue_on_error,omitempty"` // an operation that does not succeed does not fail the run
}

// ReadOrder reads an input; false where it is not an order of operations.
func ReadOrder(input json.RawMessage) (Order, bool) {
	var o Order
	if json.Unmarshal(input, &o) != nil || o.Version != "1.0" || o.Space == "" || len(o.Operations) == 0 {
		return Order{}, false
	}
	return o, true
}

// Progress is the record of one operation, by this claim or an earlier one. An empty field has not happened yet.
type Progress struct {
	Index int
	Step  id.Step
	Call  id.ToolCall
	Ended bool // the tool call has ended
	OK    bool // and succeeded

	Outcome Outcome // of a call that has ended
}

// Call is the last tool call of an operation, as it was recorded.
type Call struct {
	ID            id.ToolCall
	Status        string // running, or how it ended
	OK            bool   // it succeeded
	Child         id.Run // that was executed for it
	Output, Error json.RawMessage
}

// Recorded returns the progress of an operation from its step, the step's input and its last tool call; the zero Call is none.
func Recorded(s id.Step, input json.RawMessage, c Call) Progress {
	p := Progress{Index: Indexed(input), Step: s, Call: c.ID, Ended: c.ID != "" && c.Status != "running", OK: c.OK}
	if !p.Ended {
		return p
	}
	said := c.Output
	if !p.OK {
		said = c.Error
	}
	_ = json.Unmarshal(said, &p.Outcome) // where it was redacted, or is something else, the call says as much
	if p.Outcome.OK = p.OK; p.Outcome.Child == "" {
		p.Outcome.Child = c.Child
	}
	if p.Outcome.Status == "" {
		p.Outcome.Status = c.Status
	}
	return p
}

// Verdict is the gate's answer to a tool call.
type Verdict struct {
	Call   id.ToolCall // "" where it may not be made
	Permit string      // to make it, signed; "" for none
	Asks   bool        // a person has to answer first
	Code   string
	Reason string
}

// Outcome is the outcome of an operation.
type Outcome struct {
	Child  id.Run `json:"run_id,omitempty"` // in the space, with its result; "" for an operation that was refused
	Status string `json:"status"`           // of that run, or Refused
	OK     bool   `json:"success"`
	Code   string `json:"reason_code,omitempty"` // why it was refused
	Reason string `json:"reason,omitempty"`      // the same for people

	// Only for a call that the daemon has made itself: the text for the model, here or, if it is long, in an artifact; and the suggestion
	// after a refusal.
	Text     string      `json:"text,omitempty"`
	Artifact id.Artifact `json:"artifact_id,omitempty"`
	Instead  string      `json:"instead,omitempty"`

	// Worked is how many milliseconds the tool has worked. The time in which the call waited for a person does not count.
	Worked int64 `json:"worked_ms,omitempty"`
}

// Refused is the status of an operation that the gate has refused.
const Refused = "refused"

// Failed is how a run ends of whose operations some did not succeed, unless its order says to continue on errors.
const Failed = "operations_failed"

// Result is how a run ends.
type Result struct {
	Failure string // a stable word; "" for a run that ends well
	Message string // of a failure
	Summary string // of a run that ends well
	Output  json.RawMessage
}

// ErrNothing says that no run waits for an engine.
var ErrNothing = fault.New(fault.NotFound, "nothing_to_claim", "no run waits for an engine")

// Claims is the contract by which an engine claims runs. A lost claim is a Conflict or a NotFound. After Unavailable the engine may
// retry.
type Claims interface {
	// Claim returns the next run of the kind Operations. It waits up to so long for one, and then returns ErrNothing; it may do so earlier.
	Claim(ctx context.Context, wait time.Duration) (Work, error)
	// Renew goes on owning a run for as long as a claim lasts.
	Renew(ctx context.Context, w Work) error
	// Release gives a run back, not done.
	Release(ctx context.Context, w Work) error
	// End ends a run.
	End(ctx context.Context, w Work, r Result) error
}

// Records is the interface by which an engine reports its work and asks for permission. An engine may call each method again for the same
// operation after Unavailable. Nothing is recorded or done twice.
type Records interface {
	// Past returns the records of the run's operations, in no order.
	Past(ctx context.Context, w Work) ([]Progress, error)
	// Step records the step of an operation.
	Step(ctx context.Context, w Work, index int) (id.Step, error)
	// Invoke asks the gate about an operation, and records its call if it may be made.
	Invoke(ctx context.Context, w Work, s id.Step, index int, operation json.RawMessage) (Verdict, error)
	// Operate executes an operation in the space, under its call, and returns when it has ended. For a call that was executed before it
	// returns the recorded outcome.
	Operate(ctx context.Context, w Work, call id.ToolCall, in id.Space, operation json.RawMessage) (Outcome, error)
	// Conclude records the outcome of a call. The permit is that of its verdict, "" for a call that was judged under an earlier claim.
	Conclude(ctx context.Context, w Work, call id.ToolCall, permit string, o Outcome) error
}

// StepKind is the kind of the step of an operation, and At what its input says.
const StepKind = "operation"

// At is the input of a step and of its call: the number of the operation in the order, and the hash of its bytes.
type At struct {
	Index  int          `json:"index"`
	Type   string       `json:"type,omitempty"`
	Digest event.Digest `json:"operation_sha256,omitzero"`
}

// AtOperation returns the input of the call for an operation of a type.
func AtOperation(index int, typ string, operation json.RawMessage) At {
	return At{index, typ, event.DigestOf(operation)}
}

// Indexed reads the index out of the input of a step or a call; -1 where it says none.
func Indexed(input json.RawMessage) int {
	at := At{Index: -1}
	if json.Unmarshal(input, &at) != nil {
		return -1
	}
	return at.Index
}
