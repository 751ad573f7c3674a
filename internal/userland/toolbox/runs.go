package toolbox

import (
	"errors"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// runs starts the program that its operands name, which is all that nice, nohup, setsid, stdbuf and ionice have to do here.
func runs(p *program.Process) int {
	name := gnu.LastName(p.Name())
	short := map[string]string{"nice": "+n:", "nohup": "+", "setsid": "+cfw", "stdbuf": "+i:o:e:", "ionice": "+c:n:p:t"}[name]
	_, operands := p.Options(125, short, "adjustment= n", "input= i", "output= o", "error= e", "wait w", "fork f")
	if len(operands) == 0 {
		if name == "nice" {
			p.Out().WriteString("0\n")
			return 0
		}
		p.Errorf("missing operand")
		p.Stderrf("Try '%s --help' for more information.\n", p.Name())
		return 125
	}
	s, err := p.Execute(p.Child(operands...))
	if err != nil {
		p.Errorf("failed to run command '%s': %s", operands[0], program.Message(err))
		if errors.Is(err, vfs.ENOENT) {
			return 127
		}
		return 126
	}
	return s.Exit()
}

// refuses is for what makes no sense in an execution of its own.
func refuses(why string) program.Func {
	return func(p *program.Process) int {
		p.Lack(program.LackFeature, why)
		p.Errorf("%s", why)
		return 1
	}
}

// tty tells that there is no terminal.
func tty(p *program.Process) int {
	opts, _ := p.Options(2, "s", "silent s", "quiet s")
	if len(opts) == 0 {
		p.Out().WriteString("not a tty\n")
	}
	return 1
}
