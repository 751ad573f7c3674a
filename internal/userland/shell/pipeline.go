package shell

import (
	"cmp"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// runSubshell runs ( ... ) on the same fiber.
func runSubshell(sh *shell, s *syntax.Stmt, c *syntax.Subshell) {
	if !enterLevel(sh) {
		return
	}
	defer sh.w.account.Leave()
	own, procs := sh.own, len(sh.w.procs)
	child := sh.fork(nil)
	status := child.process(func() {
		if len(s.Redirs) > 0 {
			done, ok := child.redirect(s.Redirs)
			done.release()
			if !ok {
				child.status = 1
				return
			}
		}
		child.loops = 0
		child.stmts(c.Stmts)
	})
	if len(sh.w.procs) == procs {
		sh.own = own
	}
	sh.status = status.Exit()
}

func enterLevel(sh *shell) bool {
	if err := sh.w.account.Enter(); err != nil {
		return refuseFork(sh, bound.Depth)
	}
	return true
}

// maxFibers is how many processes and stages of pipelines live at once, whether they wait or not: each has a stack, and is looked at
// where another ends.
const maxFibers = 4096

// isCrowded reports that no more processes fit beside those that live, and says so.
func isCrowded(sh *shell) bool {
	return sh.w.group.Living() >= maxFibers && !refuseFork(sh, bound.Processes)
}

// refuse remembers which bound kept something from starting. The script decides how it reacts.
func (w *world) refuse(by string) {
	w.account.Hit(by)
	w.refused = cmp.Or(w.refused, by)
}

func refuseFork(sh *shell, by string) bool {
	sh.w.refuse(by)
	sh.complain("", "fork: Resource temporarily unavailable")
	sh.status = 254
	return false
}

// stages returns the commands of a pipeline, and for each whether its errors go into the pipe too.
func stages(s *syntax.Stmt, list []*syntax.Stmt, all []bool) ([]*syntax.Stmt, []bool) {
	if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && (b.Op == syntax.Pipe || b.Op == syntax.PipeAll) && !s.Negated && !s.Background &&
		len(s.Redirs) == 0 {
		list, all = stages(b.X, list, all)
		all[len(all)-1] = b.Op == syntax.PipeAll
		return stages(b.Y, list, all)
	}
	return append(list, s), append(all, false)
}

// runPipeline runs the stages of a pipeline, each on a fiber of its own, and waits for all.
func runPipeline(sh *shell, s *syntax.Stmt) {
	plain := *s
	plain.Negated, plain.Redirs = false, nil
	list, all := stages(&plain, nil, nil)
	if isCrowded(sh) || !enterLevel(sh) {
		return
	}
	defer sh.w.account.Leave()
	own, before := sh.own, len(sh.w.procs)
	procs := make([]*proc, len(list))
	var in *vfs.Handle
	here := sh.shopts["lastpipe"] && !sh.on[optMonitor]
	if here {
		procs = procs[:len(list)-1]
	}
	for i, stage := range list {
		if here && i == len(procs) {
			break
		}
		var r, w *vfs.Handle
		if i+1 < len(list) {
			var err error
			if r, w, err = sh.w.fs.Pipe(); err != nil {
				sh.w.stop(err)
				if in != nil {
					_ = in.Close()
				}
				sh.complain("", "pipe error: %s", err)
				procs = procs[:i]
				break
			}
		}
		child := sh.fork(nil)
		if in != nil {
			replace0(child, 0, in)
			child.piped = true
		}
		if w != nil {
			if all[i] {
				replace0(child, 2, w.Dup())
			}
			replace0(child, 1, w)
		}
		in = r
		procs[i] = spawnShell(sh, child, "", func() {
			child.loops = 0
			child.stmt(stage)
		})
	}
	failed := len(procs) < len(list)-int(truth(here))
	codes := make([]int, len(procs), len(list))
	if here && !failed {
		lastStage(sh, list[len(list)-1], in)
		codes = append(codes, sh.status)
	}
	for i, p := range procs {
		sh.w.wait(p)
		codes[i] = p.status
	}
	if len(sh.w.procs) == before && !here {
		sh.own = own
	}
	if failed {
		sh.status = 1
		return
	}
	sh.pipes = codes
	sh.status = codes[len(codes)-1]
	if sh.on[optPipefail] {
		sh.status = 0
		for _, c := range codes {
			if c != 0 {
				sh.status = c
			}
		}
	}
}

// lastStage runs the last stage of a pipeline in the shell itself, as the option lastpipe wants it.
func lastStage(sh *shell, s *syntax.Stmt, in *vfs.Handle) {
	var undo redirections
	undo.put(sh, 0, in)
	defer undo.restore(sh)
	piped := sh.piped
	sh.piped = true
	defer func() { sh.piped = piped }()
	sh.quiet++
	sh.stmt(s)
	sh.quiet--
}

// replace0 puts a handle in the place of a descriptor. It belongs to the shell then.
func replace0(sh *shell, fd int, h *vfs.Handle) {
	if old := sh.fds[fd]; old != nil {
		_ = old.Close()
	}
	sh.fds[fd] = h
}

// spawnShell runs a shell's process on a fiber of its own.
func spawnShell(sh *shell, child *shell, text string, body func()) *proc {
	p := sh.w.start(child.pid, text, child, nil)
	sh.lastProc = p
	p.reader = child.proc != nil && child.proc.reader
	child.proc = p
	if len(child.fds) > 1 {
		p.stdout = child.fds[1]
	}
	sh.w.group.Go(func() {
		status := program.Status{Signal: program.SIGKILL}
		defer func() {
			x := recover()
			sh.w.end(p, status.Exit())
			if _, stopped := x.(*bound.Stopped); x != nil && !stopped {
				panic(x)
			}
		}()
		status = child.process(body)
	})
	return p
}

// runBackground runs a statement beside the shell.
func runBackground(sh *shell, s *syntax.Stmt) {
	lineOf(sh, s)
	sh.tick()
	if isCrowded(sh) {
		return
	}
	plain := *s
	plain.Background = false
	child := sh.fork(nil)
	if !sh.piped {
		replace0(child, 0, sh.w.fs.Stream(empty{}, vfs.Read))
	}
	p := spawnShell(sh, child, strings.TrimSuffix(strings.TrimSpace(codeOf(sh, s)), "&"), func() {
		child.loops = 0
		child.stmt(&plain)
	})
	sh.lastJob = p.pid
	sh.jobs = append(sh.jobs, p)
	sh.status = 0
}
