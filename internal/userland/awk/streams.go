package awk

import (
	"agentbox/internal/userland/fiber"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// command is a program of the shell that runs beside.
type command struct {
	status program.Status
	err    error
	done   bool
	over   *fiber.Queue
}

// start runs a command beside with one end of a pipe as its input or output.
func (e *engine) start(text string, reads bool) (*vfs.Handle, *command) {
	r, w, err := e.p.FS.Pipe()
	if err != nil {
		e.fatal("cannot open pipe `%s': %s", text, program.Message(err))
	}
	c := &command{over: e.p.FS.Group().NewQueue()}
	child := e.p.Child("sh", "-c", text)
	mine, its := r, w
	if reads {
		child.Stdin = r
		mine, its = w, r
	} else {
		child.Stdout = w
	}
	e.p.Host.Go(func() {
		defer func() {
			_ = its.Close()
			c.done = true
			c.over.Wake()
		}()
		c.status, c.err = e.p.Host.Execute(child)
	})
	return mine, c
}

// wait waits for a command's end.
func (c *command) wait() int {
	for !c.done {
		if c.over.Wait() != nil {
			break
		}
	}
	c.over.Close()
	if c.err != nil {
		return 127
	}
	return c.status.Exit()
}

// writer is where print writes to.
type writer struct {
	out *program.Output
	h   *vfs.Handle // nil for one of the standard ones
	cmd *command
}

// reader is where getline reads from.
type reader struct {
	source
	h   *vfs.Handle
	cmd *command
}

// writer returns the stream of a redirection.
func (e *engine) writer(kind, name string) *program.Output {
	if w := e.writers[name]; w != nil {
		return w.out
	}
	w := &writer{}
	switch {
	case kind == "|":
		e.flush()
		w.h, w.cmd = e.start(name, true)
	case name == "/dev/stdout" || name == "-":
		return e.out
	case name == "/dev/stderr":
		e.out.Flush()
		w.out = e.p.Writer(e.p.Stderr)
		e.writers[name] = w
		e.order = append(e.order, name)
		return w.out
	default:
		flags := vfs.Write | vfs.Create | vfs.Truncate
		if kind == ">>" {
			flags = vfs.Write | vfs.Create | vfs.Append
		}
		h, err := e.p.Open(name, flags)
		if err != nil {
			e.fatal("cannot redirect to `%s': %s", name, program.Message(err))
		}
		w.h = h
	}
	w.out = e.p.Writer(w.h)
	e.writers[name] = w
	e.order = append(e.order, name)
	return w.out
}

// reader returns the stream of a getline, nil where it cannot be opened.
func (e *engine) reader(kind byte, name string) *reader {
	if r := e.readers[name]; r != nil {
		return r
	}
	r := &reader{}
	switch {
	case kind == '|':
		e.flush()
		r.h, r.cmd = e.start(name, false)
		r.in = e.p.Reader(r.h)
	case name == "-" || name == "/dev/stdin":
		if e.main.in != nil && e.handle == nil {
			r.in = e.main.in
		} else {
			r.in = e.p.Reader(e.p.Stdin)
		}
	default:
		h, err := e.p.Open(name, vfs.Read)
		if err != nil || h.Kind() == vfs.Directory {
			return nil
		}
		r.h, r.in = h, e.p.Reader(h)
	}
	e.readers[name] = r
	e.order = append(e.order, name)
	return r
}

// closeStream closes the streams of a name and returns what close returns.
func (e *engine) closeStream(name string) float64 {
	status := -1.0
	if w := e.writers[name]; w != nil {
		delete(e.writers, name)
		status = 0
		w.out.Flush()
		if w.cmd != nil {
			_ = w.h.Close()
			status = float64(w.cmd.wait())
		} else if w.h != nil {
			_ = e.p.Close(w.h)
		}
	}
	if r := e.readers[name]; r != nil {
		delete(e.readers, name)
		status = 0
		if r.cmd != nil {
			_ = r.h.Close()
			status = float64(r.cmd.wait())
		} else if r.h != nil {
			_ = e.p.Close(r.h)
		}
	}
	return status
}

// flush writes everything that is buffered.
func (e *engine) flush() {
	e.out.Flush()
	for _, name := range e.order {
		if w := e.writers[name]; w != nil {
			w.out.Flush()
		}
	}
}

// finish closes every stream in the order in which they were opened.
func (e *engine) finish() {
	e.out.Flush()
	for _, name := range e.order {
		e.closeStream(name)
	}
	e.order = nil
}

// abandon closes the pipes of a program that ends by a signal.
func (e *engine) abandon() {
	for _, name := range e.order {
		if w := e.writers[name]; w != nil && w.cmd != nil {
			_ = w.h.Close()
		}
		if r := e.readers[name]; r != nil && r.cmd != nil {
			_ = r.h.Close()
		}
	}
	if e.p.Account.Stopped() == nil {
		for _, name := range e.order {
			if w := e.writers[name]; w != nil && w.cmd != nil {
				w.cmd.wait()
			}
			if r := e.readers[name]; r != nil && r.cmd != nil {
				r.cmd.wait()
			}
		}
	}
	for ; e.depth > 0; e.depth-- {
		e.p.Account.Leave()
	}
}

// getline reads a record in one of its forms: 1 for one, 0 at the end, -1 for an error.
func (e *engine) getline(x *getline) value {
	if x.kind == 0 {
		s, ok := e.readMain()
		if !ok {
			return num(0)
		}
		e.nr++
		e.fnr++
		e.got(x.to, s)
		return num(1)
	}
	name := e.str(e.eval(x.from))
	r := e.reader(x.kind, name)
	if r == nil {
		return num(-1)
	}
	s, ok := e.read(&r.source)
	if !ok {
		if r.in.Err() != nil {
			return num(-1)
		}
		return num(0)
	}
	if x.kind == '|' {
		e.nr++
	}
	e.got(x.to, s)
	return num(1)
}

func (e *engine) got(to expr, s string) {
	if to == nil {
		e.setRecord(s)
		return
	}
	e.store(to, in(s))
}

func (e *engine) print(s *output) {
	var line string
	out := e.out
	if s.format {
		args := make([]value, len(s.args)-1)
		format := e.str(e.eval(s.args[0]))
		for i, a := range s.args[1:] {
			args[i] = e.eval(a)
		}
		line = e.sprintf(format, args)
		if s.kind != "" {
			out = e.writer(s.kind, e.str(e.eval(s.to)))
		}
		out.WriteString(line)
		e.tick(len(line) / 8)
		e.pass(s.kind, out)
		return
	}
	if len(s.args) == 0 {
		e.refresh()
		line = e.record
	} else {
		line = e.write(e.eval(s.args[0]), e.ofmt)
		if len(s.args) > 1 {
			b := []byte(line)
			for _, a := range s.args[1:] {
				b = append(append(b, e.ofs...), e.write(e.eval(a), e.ofmt)...)
			}
			line = string(b)
		}
	}
	if s.kind != "" {
		out = e.writer(s.kind, e.str(e.eval(s.to)))
	}
	out.WriteString(line)
	out.WriteString(e.ors)
	e.tick(10 + len(line)/8)
	e.pass(s.kind, out)
}

// pass shows at once what goes to the standard error.
func (e *engine) pass(kind string, out *program.Output) {
	if kind == ">" || kind == ">>" {
		if w := e.writers["/dev/stderr"]; w != nil && w.out == out {
			out.Flush()
		}
	}
}
