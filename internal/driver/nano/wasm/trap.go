package wasm

import (
	"errors"
	"fmt"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/userland/bound"
)

// Kind says why a guest trapped.
type Kind string

// The kinds of traps.
const (
	Unreachable   Kind = "unreachable"    // it executed unreachable, as abort does
	OutOfBounds   Kind = "out_of_bounds"  // of its memory
	Integer       Kind = "integer"        // a division by zero, an overflow, a float that is not an integer
	Indirect      Kind = "indirect_call"  // a call of no function, of one of another type, or beyond the end of a table
	StackOverflow Kind = "stack_overflow" // its calls are too deep
)

// Trap is a mistake of the guest that ended a call. The instance can be called again.
type Trap struct {
	Kind   Kind
	Detail string
}

func (t *Trap) Error() string {
	if t.Detail == "" {
		return "the WebAssembly guest trapped: " + string(t.Kind)
	}
	return "the WebAssembly guest trapped: " + t.Detail
}

// Is reports whether target is a trap of the same kind.
func (t *Trap) Is(target error) bool {
	o, ok := target.(*Trap)
	return ok && o.Kind == t.Kind
}

// Exit is how a host function ends the guest with an exit code.
type Exit struct{ Code uint32 }

func (e *Exit) Error() string {
	return fmt.Sprintf("the WebAssembly guest exited with code %d", e.Code)
}

// traps are the engine's texts. They are all that it exports of its errors.
var traps = map[string]Kind{
	"unreachable":                   Unreachable,
	"out of bounds memory access":   OutOfBounds,
	"integer divide by zero":        Integer,
	"integer overflow":              Integer,
	"invalid conversion to integer": Integer,
	"invalid table access":          Indirect,
	"indirect call type mismatch":   Indirect,
	"stack overflow":                StackOverflow,
}

// typed turns an error of the engine into one of this package.
func typed(err error) error {
	if stopped, ok := errors.AsType[*bound.Stopped](err); ok {
		return stopped
	}
	if exit, ok := errors.AsType[*Exit](err); ok {
		return exit
	}
	if trap, ok := errors.AsType[*Trap](err); ok {
		return trap
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	detail := strings.TrimPrefix(line, "wasm error: ")
	if kind, ok := traps[detail]; ok {
		return &Trap{Kind: kind, Detail: detail}
	}
	return fault.Wrap(err, fault.Internal, "wasm_internal", "a WebAssembly guest ended for no reason of its own")
}
