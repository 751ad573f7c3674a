package shell

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/vfs"
)

// commandSubst runs $( ... ) and returns what it has printed.
func commandSubst(sh *shell, c *syntax.CmdSubst) string {
	if c.TempFile || c.ReplyVar {
		unsupported(sh, "${ command; }")
		return ""
	}
	sh.substs++
	sh.substCode = 0
	if len(c.Stmts) == 0 {
		return ""
	}
	if s := c.Stmts[0]; len(c.Stmts) == 1 && s.Cmd == nil && len(s.Redirs) == 1 && s.Redirs[0].Op == syntax.RdrIn && s.Redirs[0].N == nil {
		return fileSubst(sh, s)
	}
	if !enterLevel(sh) {
		panic(discard{1})
	}
	defer sh.w.account.Leave()
	own, procs := sh.own, len(sh.w.procs)
	out := &capture{account: sh.w.account}
	child := sh.fork(nil)
	h := sh.w.fs.Stream(out, vfs.Write)
	replace0(child, 1, h)
	child.evals++
	if !sh.shopts["inherit_errexit"] {
		child.on[optErrexit] = false
	}
	status := child.process(func() {
		child.loops = 0
		child.stmts(c.Stmts)
	})
	for _, p := range slices.Clone(sh.w.procs) {
		if p.stdout == h {
			sh.w.wait(p)
		}
	}
	if len(sh.w.procs) == procs {
		sh.own = own
	}
	sh.substCode = status.Exit()
	sh.w.account.Release(out.held)
	return capturedText(sh, out.buf)
}

func fileSubst(sh *shell, s *syntax.Stmt) string {
	undo, ok := sh.redirect(s.Redirs)
	defer undo.restore(sh)
	if !ok {
		sh.substCode = 1
		return ""
	}
	all, err := sh.fds[0].ReadAll()
	if err != nil {
		sh.w.stop(err)
		sh.complain("", "%s", err)
		sh.substCode = 1
		return ""
	}
	sh.w.account.Release(int64(len(all)))
	return capturedText(sh, all)
}

// capturedText is what a command substitution stands for.
func capturedText(sh *shell, out []byte) string {
	if bytes.IndexByte(out, 0) >= 0 {
		sh.complain("", "warning: command substitution: ignored null byte in input")
		var kept []byte
		for part := range slices.Chunk(out, bound.Piece) {
			sh.charge(len(part))
			for _, c := range part {
				if c != 0 {
					kept = append(kept, c)
				}
			}
		}
		out = kept
	}
	return strings.TrimRight(countedText(sh, out), "\n")
}

// capture keeps what is written to it.
type capture struct {
	account *bound.Account
	buf     []byte
	held    int64
}

func (c *capture) Read([]byte) (int, error) { return 0, vfs.EBADF }

func (c *capture) Write(p []byte) (int, error) {
	if err := c.account.Allocate(int64(len(p))); err != nil {
		return 0, vfs.ENOMEM
	}
	c.held += int64(len(p))
	var err error
	if c.buf, err = bound.Append(c.account, c.buf, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// processSubst starts <( ... ) or >( ... ) and returns the path of its pipe.
func processSubst(sh *shell, c *syntax.ProcSubst) string {
	r, w, err := sh.w.fs.Pipe()
	if err != nil {
		sh.w.stop(err)
		sh.complain("", "cannot make pipe for process substitution: %s", err)
		panic(discard{1})
	}
	child := sh.fork(nil)
	mine, theirs, fd := r, w, 1
	if c.Op == syntax.CmdOut {
		mine, theirs, fd = w, r, 0
	}
	replace0(child, fd, theirs)
	p := spawnShell(sh, child, "", func() {
		child.loops = 0
		child.stmts(c.Stmts)
	})
	sh.lastJob = p.pid
	n := 63
	for n < len(sh.fds) && sh.fds[n] != nil {
		n--
	}
	for len(sh.fds) <= n {
		sh.fds = append(sh.fds, nil)
	}
	sh.fds[n] = mine
	sh.hidden = append(sh.hidden, mine.Dup())
	var wait *proc
	if fd == 0 {
		wait, p.reader = p, true
	}
	sh.producers = append(sh.producers, wait)
	return "/dev/fd/" + strconv.Itoa(n)
}

// closeSubsts closes the pipes of process substitutions when their command has ended, and waits for those that read.
func closeSubsts(sh *shell, mark int) {
	wait := sh.producers[mark:]
	for i, h := range sh.hidden[mark:] {
		for fd := 63; fd > 9; fd-- {
			if fd < len(sh.fds) && sh.fds[fd] == h {
				_ = h.Close()
				sh.fds[fd] = nil
			}
		}
		if _ = h.Close(); h.Open() {
			wait[i] = nil // who has it besides goes on writing
		}
	}
	sh.hidden, sh.producers = sh.hidden[:mark], sh.producers[:mark]
	sh.w.group.Yield() // so that those that write see it, and end
	for _, p := range wait {
		if p != nil {
			sh.w.wait(p)
		}
	}
}
