package shell

import (
	"strconv"

	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/userland/vfs"
)

// runCoproc runs a command beside the shell with a pipe to its input and one from its output, whose descriptors are the elements of an
// array. Its programs write out what they hold before they read on, so that the shell can ask and be answered.
func runCoproc(sh *shell, s *syntax.Stmt, c *syntax.CoprocClause) {
	lineOf(sh, s)
	sh.tick()
	name := "COPROC"
	if c.Name != nil {
		name = sh.one(c.Name, modeLiteral, true)
	}
	if !validName(name) {
		sh.complain("", "`%s': not a valid identifier", name)
		sh.status = 1
		return
	}
	if isCrowded(sh) {
		return
	}
	theirIn, to, err := sh.w.fs.Pipe()
	if err == nil {
		var from, theirOut *vfs.Handle
		if from, theirOut, err = sh.w.fs.Pipe(); err == nil {
			startCoproc(sh, s, c, name, [2]*vfs.Handle{theirIn, theirOut}, [2]*vfs.Handle{from, to})
			return
		}
		_, _ = theirIn.Close(), to.Close()
	}
	sh.w.stop(err)
	sh.complain("", "cannot make pipe for coproc: %s", err)
	sh.status = 1
}

func startCoproc(sh *shell, s *syntax.Stmt, c *syntax.CoprocClause, name string, theirs, mine [2]*vfs.Handle) {
	child := sh.fork(nil)
	child.p.Eager = true
	replace0(child, 0, theirs[0])
	replace0(child, 1, theirs[1])
	p := spawnShell(sh, child, codeOf(sh, s), func() {
		child.loops = 0
		child.stmt(c.Stmt)
	})
	sh.lastJob = p.pid
	sh.jobs = append(sh.jobs, p)
	_ = sh.unset(name)
	for i, h := range mine {
		n := 63
		for n > 9 && n < len(sh.fds) && sh.fds[n] != nil {
			n--
		}
		for len(sh.fds) <= n {
			sh.fds = append(sh.fds, nil)
		}
		sh.fds[n] = h
		if err := assignIndex(sh, name, i, strconv.Itoa(n), false); err != nil {
			sh.complain("", "%s", err)
		}
	}
	sh.set(name+"_PID", strconv.Itoa(p.pid))
	sh.status = 0
}
