package cmdline

import (
	"context"
	"errors"

	"agentbox/internal/domain/fault"
)

// The exit codes. Kinds says which fault ends a command with which.
const (
	ExitOK          = 0
	ExitInternal    = 1 // a defect, a broken host, or a run that ended with an error
	ExitInvalid     = 2 // wrong usage or a malformed request
	ExitConflict    = 3 // it clashes with the present state
	ExitDenied      = 4 // not authenticated, or not for this principal
	ExitNotFound    = 5
	ExitRefused     = 6  // policy refused it
	ExitWaiting     = 7  // a person has to decide first
	ExitUnavailable = 8  // the daemon cannot be reached, or not now
	ExitExhausted   = 9  // a limit, a quota or a rate is used up
	ExitUnchecked   = 10 // nothing wrong was found, but not everything could be checked
	ExitInterrupted = 130
	ExitTrapped     = 134 // a module did what no program may, as one that aborts ends
)

// kinds maps every kind of fault to its exit code.
var kinds = map[fault.Kind]int{
	fault.Internal:    ExitInternal,
	fault.Invalid:     ExitInvalid,
	fault.Denied:      ExitDenied,
	fault.Waiting:     ExitWaiting,
	fault.NotFound:    ExitNotFound,
	fault.Conflict:    ExitConflict,
	fault.Exhausted:   ExitExhausted,
	fault.Unavailable: ExitUnavailable,
}

// Refusals are the codes of faults by which the gate, not the door, said no.
var Refusals = map[string]bool{
	"policy_denied":      true,
	"policy_forbids":     true,
	"no_policy_allows":   true,
	"kill_switch_active": true,
	"limit_exceeded":     true,
	"unknown_action":     true,
	"approval_denied":    true,
}

// CodeInterrupted is the error code of a command that the person at the terminal interrupted.
const CodeInterrupted = "interrupted"

// codeTrapped is the code of a module that trapped.
const codeTrapped = "wasm_trapped"

// ExitCode returns the code for an error that ends a command.
func ExitCode(err error) int {
	if quiet, ok := errors.AsType[*Ended](err); ok {
		return quiet.Code
	}
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, context.Canceled), fault.CodeOf(err) == CodeInterrupted:
		return ExitInterrupted // as a shell says it
	case Refusals[fault.CodeOf(err)]:
		return ExitRefused
	case fault.CodeOf(err) == codeTrapped:
		return ExitTrapped
	}
	return kinds[fault.KindOf(err)]
}

// Ended is how a command ends that has said everything already and whose exit code still tells something.
type Ended struct{ Code int }

// Error is never shown.
func (e *Ended) Error() string { return "ended" }

// NoKeys makes the fault of a command that a terminal gives no single keys.
func NoKeys(err error) *fault.Error {
	return fault.Wrap(err, fault.Unavailable, "terminal_unusable", "this terminal cannot be read key by key")
}

// Usage makes the fault of a command that was called wrongly.
func Usage(format string, args ...any) *fault.Error {
	return fault.New(fault.Invalid, "usage", format, args...)
}
