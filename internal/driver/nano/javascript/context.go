package javascript

import (
	"fmt"

	"agentbox/internal/driver/nano/contexts"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// runCell runs the code of a command as the next cell of its context and prints the value of its last expression.
func (r *Runtime) runCell(p *program.Process, c *command) int {
	code, err := text(p, c)
	if err != nil {
		return contexts.Failed(p, err)
	}
	in, err := contexts.Open(p, contexts.JavaScript, *c.context, r.Hash())
	if err != nil {
		return contexts.Failed(p, err)
	}
	defer in.Close()
	cell, err := r.Cell(p, in.State, code)
	if err != nil {
		return contexts.Failed(p, err)
	}
	if cell.State == nil {
		p.Errorf("the context is as it was before the cell, which has ended the interpreter")
		return cell.Code
	}
	if err := in.Keep(cell.State); err != nil {
		p.Errorf("the context is as it was before the cell: it cannot be kept")
		return contexts.Failed(p, err)
	}
	return cell.Code
}

// text returns the program text of a command.
func text(p *program.Process, c *command) (string, error) {
	h := p.Stdin
	switch {
	case c.code != nil:
		return *c.code, nil
	case c.file != "-":
		var err error
		if h, err = p.Open(c.file, vfs.Read); err != nil {
			return "", fmt.Errorf("%s: %w", c.file, err)
		}
	case h == nil:
		return "", nil
	}
	raw, err := h.ReadAll()
	if err != nil {
		return "", err
	}
	p.Account.Release(int64(len(raw)))
	p.Hold(len(raw))
	return string(raw), nil
}
