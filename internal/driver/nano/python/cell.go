package python

import (
	"errors"

	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/program"
)

// CellError is the exception that ended a cell; its traceback went to stderr.
type CellError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// Cell is the result of a piece of code in a context.
type Cell struct {
	Code  int        // the exit code of the cell
	Crash string     // why the interpreter died; the context is then as it was before
	Left  bool       // it has ended the interpreter, as os._exit does; the context is then as it was before
	Error *CellError // nil if the cell came to its end
	Lacks []Lack
}

// Cell runs a piece of code in the namespace of a context, with name for tracebacks. The cell prints and shows its displays and the value
// of its last expression. Before is the state of the context before, nil for a new one; after is the state afterwards. Only the
// interpreter's memory stays: files that the cell has left open are closed. If a cell ends the interpreter, the context does not change,
// and the error is nil. If the account stops a cell, the error is a *bound.Stopped.
func (g *Guest) Cell(p *program.Process, name, source string, before *wasm.Delta) (cell Cell, after *wasm.Delta, err error) {
	cwd, err := p.Cwd.Path()
	if err != nil {
		return cell, before, fault.Wrap(err, fault.NotFound, "folder_missing",
			"the working folder of the context is gone; make it anew or start another context")
	}
	image := g.image
	if before != nil {
		if image, err = g.image.With(*before); err != nil {
			return cell, before, err
		}
		defer func() { err = errors.Join(err, image.Close()) }()
	}
	c := &command{Kind: kindCell, Source: source, Name: name, Args: []string{""}, Cwd: cwd, Env: p.Env}
	var left *wasm.Delta
	o, err := g.execute(p, image, c, func(in *wasm.Instance) error {
		d, err := in.Freeze()
		left = &d
		return err
	})
	if s, ok := errors.AsType[*bound.Stopped](err); ok {
		return cell, before, s
	}
	if err != nil {
		return cell, before, err
	}
	cell = Cell{
		Code: o.code, Crash: o.crash, Error: o.report.Error, Lacks: o.report.Lacks,
	}
	if cell.Left = o.exited; o.exited || o.crash != "" {
		return cell, before, nil
	}
	return cell, left, nil
}
