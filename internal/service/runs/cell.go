package runs

import (
	"strings"
	"unicode/utf8"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
)

// MaxCellBytes bounds the code of one cell, so that the code leaves room in a command's environment. Longer code is written to a file of
// the space, and that file is run.
const MaxCellBytes = 30_000

// Cell is a piece of code that runs in an interpreter context of a space. Its definitions stay in the context.
type Cell struct {
	Context  string
	Language string // python or javascript
	Code     string
	File     string // of the space, instead of code
	Cwd      string
	Env      map[string]string
	Timeout  *int64 // milliseconds
}

// Operation returns the operation that runs the cell: a command like any other, so that it is judged, recorded and executed as that.
func (c Cell) Operation() (run.Operation, error) {
	op := run.Operation{Type: run.OpShell, ID: "cell", Cwd: c.Cwd, Env: map[string]string{}, TimeoutMS: c.Timeout}
	if _, err := space.ContextPath(c.Context, c.Language); err != nil {
		return op, err
	}
	for name, value := range c.Env {
		op.Env[name] = value
	}
	begin, option := "python3 --context="+c.Context, " -c "
	if c.Language == space.JavaScript {
		begin, option = "node --context="+c.Context, " -e "
	}
	switch {
	case (strings.TrimSpace(c.Code) == "") == (c.File == ""):
		return op, invalid("a cell is code, or a file of the space that holds it: send one of them")
	case c.File != "":
		file, err := space.CleanFilePath(c.File)
		if err != nil {
			return op, err
		}
		op.Command = begin + " " + quoted("/workspace/"+file)
		return op, op.Check()
	case len(c.Code) > MaxCellBytes:
		return op, invalid("the code has %d bytes; a cell may have %d: write it to a file of the space and run that", len(c.Code), MaxCellBytes)
	case !utf8.ValidString(c.Code) || strings.ContainsRune(c.Code, 0):
		return op, invalid("the code is not a text: it holds bytes that are not UTF-8, or a NUL character")
	}
	if _, taken := op.Env[space.CellVariable]; taken {
		return op, invalid("the variable %s is Agentbox's own", space.CellVariable)
	}
	op.Command = begin + option + quoted(c.Code)
	if utf8.RuneCountInString(op.Command) > run.MaxCommandRunes {
		op.Command, op.Env[space.CellVariable] = begin+option+`"$`+space.CellVariable+`"`, c.Code
	}
	return op, op.Check()
}

// Message returns the operations of a run that runs the cell.
func (c Cell) Message() (run.Message, error) {
	op, err := c.Operation()
	return run.Message{ProtocolVersion: run.Protocol, Operations: []run.Operation{op}}, err
}

func invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, "cell_invalid", format, args...)
}

// quoted is a text as one word of the shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
