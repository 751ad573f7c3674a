package python

import (
	"fmt"

	"agentbox/internal/driver/nano/contexts"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// runCell runs the code of a command as the next cell of its context and prints what it has shown, the value of its last expression at
// the end.
func (g *Guest) runCell(p *program.Process, c *command) int {
	source, err := code(p, c)
	if err != nil {
		return contexts.Failed(p, err)
	}
	in, err := contexts.Open(p, contexts.Python, *c.Context, g.Hash())
	if err != nil {
		return contexts.Failed(p, err)
	}
	defer in.Close()
	cell, after, err := g.Cell(p, fmt.Sprintf("<cell %d>", in.Cells+1), source, in.State)
	if err != nil {
		return finish(p, outcome{}, err)
	}
	if cell.Crash != "" {
		p.Errorf("the context is as it was before the cell, which has crashed the interpreter")
		return finish(p, outcome{crash: cell.Crash}, nil)
	}
	if cell.Left {
		p.Errorf("the context is as it was before the cell, which has ended the interpreter")
		return cell.Code
	}
	if err := in.Keep(after); err != nil {
		p.Errorf("the context is as it was before the cell: it cannot be kept")
		return contexts.Failed(p, err)
	}
	return cell.Code // what it lacks is not told: a heavier tier has no contexts
}

// code returns what a command is to run.
func code(p *program.Process, c *command) (string, error) {
	switch c.Kind {
	case kindFile:
		h, err := p.Open(c.Source, vfs.Read)
		if err != nil {
			return "", fmt.Errorf("can't open file %q: %w", c.Source, err)
		}
		return text(p, h)
	case kindStdin:
		if p.Stdin == nil {
			return "", nil
		}
		return text(p, p.Stdin)
	}
	return c.Source, nil
}

func text(p *program.Process, h *vfs.Handle) (string, error) {
	raw, err := h.ReadAll()
	if err != nil {
		return "", err
	}
	p.Account.Release(int64(len(raw)))
	p.Hold(len(raw))
	return string(raw), nil
}
