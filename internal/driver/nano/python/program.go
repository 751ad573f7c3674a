package python

import (
	"errors"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/program"
)

// Programs returns the commands that run Python.
func (g *Guest) Programs() program.Table {
	run := program.Func(g.run)
	return program.Table{"python": run, "python3": run, "python3.13": run}
}

// run is the command python3.
func (g *Guest) run(p *program.Process) int {
	c, a := parse(p.Args, p.Env)
	if a != nil {
		if a.option != "" {
			p.Lack(program.LackOption, a.option)
		}
		_, _ = p.Out().WriteString(a.stdout) // what it cannot write ends the program
		if a.stderr != "" {
			p.Stderrf("%s", a.stderr)
		}
		return a.code
	}
	cwd, err := p.Cwd.Path()
	if err != nil {
		p.Errorf("the working folder is gone: %s", err)
		return 1
	}
	c.Cwd = cwd
	if c.Context != nil {
		return g.runCell(p, c)
	}
	o, err := g.execute(p, g.image, c, nil)
	return finish(p, o, err)
}

// finish turns an outcome into the end of the program.
func finish(p *program.Process, o outcome, err error) int {
	if s, ok := errors.AsType[*bound.Stopped](err); ok {
		panic(s)
	}
	switch {
	case errors.Is(err, bound.ErrMemory):
		p.Errorf("not enough memory for the interpreter")
		p.Kill(program.SIGKILL)
	case err != nil:
		p.Errorf("the interpreter cannot run: %s", err)
		return 1
	case o.crash != "":
		p.Stderrf("Fatal Python error: the interpreter crashed: %s\n", o.crash)
		p.Kill(program.SIGABRT)
	}
	if o.code != 0 {
		for _, l := range o.report.Lacks {
			p.Lack(program.LackFeature, l.Kind+" "+l.Name)
		}
	}
	return o.code
}
