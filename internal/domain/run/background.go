package run

import (
	"unicode/utf8"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// MaxBackground is how many background runs of one space may be under way or wait for a person.
const MaxBackground = 100

// MaxRunTag is the most characters of a tag.
const MaxRunTag = 100

// Side says that a run does not wait in the queue of its space, and how its command gets input. The zero Side is that of every other run.
type Side struct {
	Background bool      `json:"background,omitempty" doc:"It runs beside the other runs of its space"`
	Stdin      bool      `json:"stdin,omitempty" doc:"Its command gets input while it runs"`
	PTY        *Terminal `json:"pty,omitempty" doc:"The size with which the terminal of its command began"`
	Tag        string    `json:"tag,omitempty" doc:"The caller's own name for it"`
}

// Terminal is the size of a terminal in characters.
type Terminal struct {
	Cols int `json:"cols" minimum:"1" maximum:"1000"`
	Rows int `json:"rows" minimum:"1" maximum:"1000"`
}

// MaxTerminalSide is the most columns, and the most rows, of a terminal.
const MaxTerminalSide = 1000

// Attached reports whether the command of the operation gets input while it runs.
func (op Operation) Attached() bool { return op.Stdin || op.PTY != nil }

// ErrNotAttached refuses input while the command runs to an operation that waits in the queue of its space.
var ErrNotAttached = invalid("stdin and pty are for background runs; send background: true with this one operation")

// SideOf returns the side of a background run. It refuses operations that cannot be one: a background run is one shell operation.
func SideOf(m Message) (Side, error) {
	if len(m.Operations) != 1 || m.Operations[0].Type != OpShell {
		return Side{}, fault.New(fault.Invalid, "background_invalid", "a background run is exactly one shell operation, and no context files").
			With("send the other operations in a run of their own")
	}
	op := m.Operations[0]
	if err := op.Check(); err != nil {
		return Side{}, err
	}
	return Side{Background: true, Stdin: op.Stdin, PTY: op.PTY, Tag: op.Tag}, nil
}

// checkSide reports the first limit that the fields of a background run break.
func (op Operation) checkSide() error {
	if n := utf8.RuneCountInString(op.Tag); n > MaxRunTag {
		return invalid("tag has %d characters; at most %d are allowed", n, MaxRunTag)
	}
	if t := op.PTY; t != nil && (t.Cols < 1 || t.Rows < 1 || t.Cols > MaxTerminalSide || t.Rows > MaxTerminalSide) {
		return invalid("pty is %d by %d; a terminal has 1 to %d columns and rows", t.Cols, t.Rows, MaxTerminalSide)
	}
	if op.Stdin && op.PTY != nil {
		return invalid("stdin and pty are two ways of input; send one of them")
	}
	return nil
}

// EventInput says that somebody gave the command of a background run input, a signal or another size of its terminal. It is recorded before
// that is done.
const EventInput = "run.input_given"

// The kinds of an input.
const (
	InputStdin  = "stdin"  // bytes for its standard input
	InputPTY    = "pty"    // bytes for its terminal
	InputClose  = "close"  // the end of its input
	InputSignal = "signal" // a signal
	InputResize = "resize" // another size of its terminal
)

// HashedInput is the least number of bytes of an input whose hash is recorded. A shorter input could be guessed from its hash.
const HashedInput = 16

// Given is the data of run.input_given.
type Given struct {
	Run    id.Run        `json:"run_id"`
	Kind   string        `json:"kind"`
	Size   int64         `json:"size_bytes,omitempty"`
	Digest *event.Digest `json:"sha256,omitempty"` // of inputs of at least HashedInput bytes
	Signal string        `json:"signal,omitempty"`
	PTY    *Terminal     `json:"pty,omitempty"`
}
