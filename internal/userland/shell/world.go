package shell

import (
	"errors"
	"slices"
	"strings"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/fiber"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// Find implements program.Host.
func (w *world) Find(p *program.Process, name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, w.executable(p.At(), name)
	}
	path, ok := p.LookupEnv("PATH")
	if !ok {
		path = defaultPath
	}
	return w.search(p.At(), path, name)
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// search looks for a name in the folders of a path.
func (w *world) search(at vfs.At, path, name string) (string, error) {
	found := error(vfs.ENOENT)
	denied := ""
	if name == "" {
		return "", found
	}
	for dir := range strings.SplitSeq(path, ":") {
		full := "./" + name
		if dir != "" {
			full = strings.TrimSuffix(dir, "/") + "/" + name
		}
		switch err := w.executable(at, full); {
		case err == nil:
			return full, nil
		case errors.Is(err, vfs.EACCES) && denied == "":
			found, denied = err, full
		}
	}
	return denied, found
}

// executable says why a path cannot be run.
func (w *world) executable(at vfs.At, path string) error {
	n, err := w.fs.Lookup(at, path, true)
	switch {
	case err != nil:
		w.stop(err)
		return err
	case n.Kind() != vfs.Regular:
		return vfs.EACCES
	case n.Info().Mode&0o111 == 0:
		return vfs.EACCES
	}
	return nil
}

// Execute implements program.Host.
func (w *world) Execute(p *program.Process) (program.Status, error) {
	if len(p.Args) == 0 {
		return program.Status{}, vfs.ENOENT
	}
	path, err := w.Find(p, p.Args[0])
	if err != nil {
		if errors.Is(err, vfs.ENOENT) && !strings.Contains(p.Args[0], "/") {
			w.Report(program.Lack{Kind: program.LackCommand, Name: p.Args[0]})
		}
		return program.Status{}, err
	}
	return w.execute(p, path)
}

// stub is the beginning of the programs' files. The program's name and a newline follow.
const stub = "\x7fAGENTBOX "

// errFormat refuses a file that is not a program.
var errFormat = errors.New("cannot execute binary file: Exec format error")

// execute runs the file at a path, which was found to be executable.
func (w *world) execute(p *program.Process, path string) (program.Status, error) {
	head, err := w.head(p.At(), path)
	if err != nil {
		return program.Status{}, err
	}
	if err := w.account.Charge(gasPerProgram); err != nil {
		panic(err)
	}
	if err := w.account.Enter(); err != nil {
		w.refuse(bound.Depth)
		return program.Status{}, err
	}
	defer w.account.Leave()
	p.PID = w.pid()
	switch {
	case strings.HasPrefix(head, stub):
		name, _, _ := strings.Cut(head[len(stub):], "\n")
		switch name {
		case "bash", "sh", "dash":
			return program.Run(program.Func(w.main), p), nil
		}
		prog := w.programs[name]
		if prog == nil {
			return program.Status{}, vfs.ENOENT
		}
		return program.Run(prog, p), nil
	case strings.HasPrefix(head, "\x00asm"):
		if w.module == nil {
			w.Report(program.Lack{Kind: program.LackFeature, Name: path, Detail: "wasm module"})
			return program.Status{}, errFormat
		}
		p.Args = append([]string{path}, p.Args[1:]...)
		return program.Run(w.module, p), nil
	case strings.HasPrefix(head, "#!"):
		line, _, _ := strings.Cut(head[2:], "\n")
		interpreter, arg, _ := strings.Cut(strings.Trim(line, " \t"), " ")
		args := []string{interpreter}
		if arg = strings.TrimSpace(arg); arg != "" {
			args = append(args, arg)
		}
		p.Args = slices.Concat(args, []string{path}, p.Args[1:])
		if err := w.executable(p.At(), interpreter); err != nil {
			if errors.Is(err, vfs.ENOENT) {
				w.Report(program.Lack{Kind: program.LackCommand, Name: interpreter[strings.LastIndexByte(interpreter, '/')+1:]})
				return program.Status{}, badInterpreter{interpreter}
			}
			return program.Status{}, err
		}
		return w.execute(p, interpreter)
	case strings.HasPrefix(head, "\x7fELF"):
		w.Report(program.Lack{Kind: program.LackFeature, Name: path, Detail: "native program"})
		return program.Status{}, errFormat
	case strings.IndexByte(head, 0) >= 0:
		return program.Status{}, errFormat
	}
	p.Args = append([]string{"bash", path}, p.Args[1:]...)
	return program.Run(program.Func(w.main), p), nil
}

type badInterpreter struct{ name string }

func (badInterpreter) Error() string { return "cannot execute: required file not found" }

// head returns the beginning of a file.
func (w *world) head(at vfs.At, path string) (string, error) {
	n, err := w.fs.Lookup(at, path, true)
	if err != nil {
		w.stop(err)
		return "", err
	}
	h, err := w.fs.OpenNode(n, vfs.Read)
	if err != nil {
		w.stop(err)
		return "", err
	}
	defer func() { _ = h.Close() }()
	buf := make([]byte, 256)
	got, err := h.ReadAt(buf, 0)
	w.stop(err)
	return string(buf[:got]), nil
}

// stop throws an error that ends the execution.
func (w *world) stop(err error) {
	if s, ok := errors.AsType[*bound.Stopped](err); ok {
		panic(s)
	}
}

// Report implements program.Host.
func (w *world) Report(l program.Lack) {
	if w.report != nil {
		w.report(l)
	}
}

// Show implements program.Host.
func (w *world) Show(d program.Display) bool { return w.show != nil && w.show(d) }

// Go implements program.Host. All fibers already see what stops the execution.
func (w *world) Go(f func()) {
	w.group.Go(func() {
		defer func() {
			x := recover()
			if _, stopped := x.(*bound.Stopped); x != nil && !stopped {
				if _, killed := x.(program.Killed); !killed {
					panic(x)
				}
			}
		}()
		f()
	})
}

// host is the program.Host of what one process starts.
type host struct {
	*world
	proc *proc
}

// Sleep implements program.Host. Processes wake in the order of time, and time moves only when all of them sleep or wait. A signal
// wakes a process.
func (h host) Sleep(d time.Duration) error {
	w := h.world
	wake := w.fs.Now().Add(d)
	var signals []*fiber.Queue
	for p := h.proc; p != nil; p = p.parent {
		signals = append(signals, p.signal)
	}
	for h.proc.dying() == 0 {
		if err := w.account.Charge(1); err != nil {
			return err
		}
		left := wake.Sub(w.fs.Now())
		if left <= 0 {
			return nil
		}
		if errors.Is(w.group.WaitUntil(wake, signals...), fiber.ErrTimeout) {
			if left = wake.Sub(w.fs.Now()); left > 0 {
				return w.account.Sleep(left)
			}
		}
	}
	return nil
}

// main is the program bash.
func (w *world) main(p *program.Process) int {
	parent := (*proc)(nil)
	if h, ok := p.Host.(host); ok {
		parent = h.proc
	}
	sh := w.shell(p, nil)
	sh.proc = w.start(p.PID, "bash", sh, parent)
	sh.p.Host = host{w, sh.proc}
	status := sh.process(func() { readArguments(sh, p.Args) })
	w.end(sh.proc, status.Exit())
	if status.Signal != 0 {
		panic(program.Killed{Signal: status.Signal})
	}
	return status.Code
}

// wait waits for the end of a process.
func (w *world) wait(p *proc) {
	for !p.done {
		w.deadlock(p.queue.Wait())
	}
}

// deadlock ends an execution that waits for what nobody will do: its time runs out.
func (w *world) deadlock(err error) {
	if errors.Is(err, fiber.ErrDeadlock) {
		w.account.Stop(&bound.Stopped{TimedOut: true})
	}
	if stopped := w.account.Check(); stopped != nil {
		panic(stopped)
	}
}
