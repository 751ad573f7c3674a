package shell

import (
	"errors"
	"strings"

	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// process returns what a program that the shell starts gets.
func processFor(sh *shell, args []string, assigns []assigned) *program.Process {
	p := *sh.p
	c := p.Child(args...)
	c.Cwd, c.Umask = sh.cwd, sh.umask
	if len(assigns) > 0 {
		saved := assignTemporarily(sh, assigns)
		c.Env = environOf(sh)
		sh.restore(saved)
	} else {
		c.Env = environOf(sh)
	}
	c.PPID = sh.pid
	c.Stdin, c.Stdout, c.Stderr = sh.fd(0), sh.fd(1), sh.fd(2)
	c.Files = nil
	for n := 3; n < len(sh.fds); n++ {
		if sh.fds[n] != nil {
			if c.Files == nil {
				c.Files = map[int]*vfs.Handle{}
			}
			c.Files[n] = sh.fds[n]
		}
	}
	c.Signal, c.Host = sh.proc.dying, host{sh.w, sh.proc}
	return c
}

func (sh *shell) fd(n int) *vfs.Handle {
	if n >= 0 && n < len(sh.fds) {
		return sh.fds[n]
	}
	return nil
}

// runProgram runs a program and waits for it.
func runProgram(sh *shell, args []string, assigns []assigned, standard bool) int {
	name := args[0]
	p := processFor(sh, args, assigns)
	path, err := findProgram(sh, p, name, standard)
	if err != nil {
		return notFound(sh, name, err)
	}
	status, err := sh.w.execute(p, path)
	if err != nil {
		return notStarted(sh, name, path, err)
	}
	if signal := sh.proc.dying(); signal != 0 {
		panic(program.Killed{Signal: signal})
	}
	if d := sh.p.Deadline; !d.IsZero() && !sh.p.Now().Before(d) {
		panic(program.Killed{Signal: program.SIGTERM})
	}
	switch status.Signal {
	case 0, program.SIGINT, program.SIGPIPE:
	default:
		sh.complain("", "%5d %-23s %s", p.PID, signalText(status.Signal), strings.Join(args, " "))
	}
	return status.Exit()
}

// findProgram looks for a program as the shell does: it remembers where it was.
func findProgram(sh *shell, p *program.Process, name string, standard bool) (string, error) {
	if strings.Contains(name, "/") {
		return name, sh.w.executable(p.At(), name)
	}
	if standard {
		return sh.w.search(p.At(), defaultPath, name)
	}
	for _, kv := range p.Env {
		if strings.HasPrefix(kv, "PATH=") && kv[5:] != sh.str("PATH") {
			return sh.w.search(p.At(), kv[5:], name)
		}
	}
	if path, ok := sh.hash[name]; ok {
		if sh.w.executable(p.At(), path) == nil {
			return path, nil
		}
		delete(sh.hash, name)
	}
	path, ok := sh.get("PATH")
	if !ok {
		path = defaultPath
	}
	full, err := sh.w.search(p.At(), path, name)
	if err == nil && sh.on[optHashall] {
		sh.hash[name] = full
	}
	return full, err
}

// notFound tells that there is no such program and returns the status that this is.
func notFound(sh *shell, name string, err error) int {
	if strings.Contains(name, "/") {
		n, lookErr := sh.w.fs.Lookup(sh.at(), name, true)
		sh.w.stop(lookErr)
		if lookErr == nil && n.Kind() == vfs.Directory {
			sh.complain("", "%s: Is a directory", name)
			return 126
		}
		sh.complain("", "%s: %s", name, err)
		if errors.Is(err, vfs.ENOENT) {
			return 127
		}
		return 126
	}
	if errors.Is(err, vfs.EACCES) {
		sh.complain("", "%s: Permission denied", name)
		return 126
	}
	if f := sh.funcs["command_not_found_handle"]; f != nil {
		return sh.call(f, []string{f.name, name}, nil)
	}
	if path := sh.str("PATH"); path == "" {
		sh.complain("", "%s: %s", name, err)
		return 127
	}
	if name != "" {
		sh.w.Report(program.Lack{Kind: program.LackCommand, Name: name})
	}
	sh.complain("", "%s: command not found", name)
	return 127
}

func notStarted(sh *shell, name, path string, err error) int {
	if _, ok := errors.AsType[badInterpreter](err); ok {
		sh.complain("", "%s: %s", path, err)
		return 127
	}
	if strings.Contains(name, "/") {
		path = name
	}
	sh.complain("", "%s: %s", path, program.Message(err))
	if errors.Is(err, vfs.ENOENT) {
		return 127
	}
	return 126
}
