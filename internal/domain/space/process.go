package space

import (
	"context"
	"slices"
	"strings"

	"agentbox/internal/domain/fault"
)

// Process is a command that runs while its caller does other things. Its caller calls Wait, once. The other methods may be called from
// any goroutine, also after the end of the command.
type Process interface {
	// Wait passes the output of the command on as it comes and returns how it ended. It is the rest of Exec: when it returns, no process of
	// the command is left.
	Wait(out Output) (Exit, error)
	// Send gives the command input, all or nothing; an empty input is the end of it. It waits until there is room for all of it. If ctx
	// ends before, it returns ErrInputFull. Before, unless it is nil, is called when there is room, and its error is returned. Inputs
	// keep the order of the calls. At the end of its input, a terminal gets a Ctrl-D.
	Send(ctx context.Context, input []byte, before func() error) error
	// Signal sends a signal by its name, one of Signals, to the process group of the command and to the one in the foreground of its
	// terminal. SIGKILL ends the command with all its processes.
	Signal(name string) error
	// Resize gives the terminal of the command another size.
	Resize(size TerminalSize) error
}

// MaxInputBytes is the most that one call of Process.Send takes, in every tier.
const MaxInputBytes = 64 << 10

// TerminalSize is the size of a terminal in characters.
type TerminalSize struct {
	Cols int `json:"cols" minimum:"1" maximum:"1000"`
	Rows int `json:"rows" minimum:"1" maximum:"1000"`
}

// MaxTerminalSide is the most columns, and the most rows, of a terminal.
const MaxTerminalSide = 1000

// Check refuses a size that no terminal has.
func (s TerminalSize) Check() error {
	if s.Cols < 1 || s.Rows < 1 || s.Cols > MaxTerminalSide || s.Rows > MaxTerminalSide {
		return fault.New(fault.Invalid, "invalid_terminal_size", "a terminal has 1 to %d columns and rows, not %d by %d", MaxTerminalSide,
			s.Cols, s.Rows)
	}
	return nil
}

// signals are the signals that a command may be sent from outside, in order.
var signals = []string{
	"SIGALRM", "SIGCONT", "SIGHUP", "SIGINT", "SIGKILL", "SIGQUIT", "SIGSTOP", "SIGTERM", "SIGTSTP", "SIGUSR1", "SIGUSR2", "SIGWINCH",
}

// CheckSignal refuses a signal that a command may not be sent from outside.
func CheckSignal(name string) error {
	if slices.Contains(signals, name) {
		return nil
	}
	return fault.New(fault.Invalid, "invalid_signal", "%.32q is not a signal that a command can be sent; use one of %s", name,
		strings.Join(signals, ", "))
}

// The refusals of a Process.
var (
	// ErrInputFull means that the command has not read its earlier input yet. Nothing of the new input was sent.
	ErrInputFull = fault.New(fault.Exhausted, "input_full", "the command does not read its input fast enough; nothing was sent").
			With("send it again when the command has read what it has")
	// ErrInputClosed means that the command takes no more input.
	ErrInputClosed = fault.New(fault.Conflict, "input_closed",
		"the command takes no more input: the command or an earlier request has closed it")
	// ErrCommandEnded means that the command has ended.
	ErrCommandEnded = fault.New(fault.Conflict, "command_ended", "the command has ended")
)

// LacksProcesses is the error of a tier without processes for what only a process can do.
func LacksProcesses(what string) error {
	return &Lacking{Lacks: []Lack{{Kind: LackFeature, Name: Processes, Detail: what}}}
}
