package awk

import (
	"strings"

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

// startProgram runs a command beside with one end of a pipe as its input or output.
func startProgram(e *engine, text string, reads bool) (*vfs.Handle, *command) {
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

// startBoth runs a command beside that is written to and read from.
func startBoth(e *engine, text string) (to, from *vfs.Handle, c *command) {
	if strings.HasPrefix(text, "/inet") {
		e.p.Lack(program.LackFeature, "networks")
		e.fatal("cannot open two way pipe `%s' for input/output: there is no network here", text)
	}
	r1, to, err := e.p.FS.Pipe()
	if err != nil {
		e.fatal("cannot open two way pipe `%s' for input/output: %s", text, program.Message(err))
	}
	from, w2, err := e.p.FS.Pipe()
	if err != nil {
		e.fatal("cannot open two way pipe `%s' for input/output: %s", text, program.Message(err))
	}
	c = &command{over: e.p.FS.Group().NewQueue()}
	child := e.p.Child("sh", "-c", text)
	child.Stdin, child.Stdout, child.Eager = r1, w2, true
	e.p.Host.Go(func() {
		defer func() {
			_, _ = r1.Close(), w2.Close()
			c.done = true
			c.over.Wake()
		}()
		c.status, c.err = e.p.Host.Execute(child)
	})
	return to, from, c
}

// bothWays opens the streams of a command that is written to and read from.
func bothWays(e *engine, name string) {
	e.flush()
	to, from, c := startBoth(e, name)
	e.writers[name] = &writer{out: e.p.Writer(to), h: to, cmd: c, both: true}
	e.readers[name] = &reader{source: source{in: e.p.Reader(from)}, h: from, cmd: c, both: true}
	e.order = append(e.order, name)
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
	out  *program.Output
	h    *vfs.Handle // nil for one of the standard ones
	cmd  *command
	both bool // it is read from as well
}

// reader is where getline reads from.
type reader struct {
	source
	h    *vfs.Handle
	cmd  *command
	both bool // it is written to as well
}

// writer returns the stream of a redirection.
func (e *engine) writer(kind, name string) *program.Output {
	if w := e.writers[name]; w != nil {
		return w.out
	}
	if e.sandbox {
		e.fatal("redirection not allowed in sandbox mode")
	}
	if kind == "|&" {
		if e.readers[name] != nil {
			e.fatal("print: attempt to write to closed write end of two-way pipe")
		}
		bothWays(e, name)
		return e.writers[name].out
	}
	w := &writer{}
	switch {
	case kind == "|":
		e.flush()
		w.h, w.cmd = startProgram(e, name, true)
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
	if kind == '&' && e.readers[name] == nil {
		if e.writers[name] != nil {
			e.fatal("getline: attempt to read from closed read end of two-way pipe")
		}
		bothWays(e, name)
	}
	if r := e.readers[name]; r != nil {
		if w := e.writers[name]; r.both && w != nil {
			w.out.Flush()
		}
		return r
	}
	if e.sandbox {
		e.fatal("redirection not allowed in sandbox mode")
	}
	r := &reader{}
	switch {
	case kind == '|':
		e.flush()
		r.h, r.cmd = startProgram(e, name, false)
		r.in = e.p.Reader(r.h)
	case name == "-" || name == "/dev/stdin":
		if e.main.in != nil && e.handle == nil {
			r.in = e.main.in
		} else {
			r.in = e.p.Reader(e.p.Stdin)
		}
	default:
		h, err := e.p.Open(name, vfs.Read)
		if err == nil && h.Kind() == vfs.Directory {
			err = vfs.EISDIR
		}
		if err != nil {
			e.globals[vERRNO].v = str(program.Message(err))
			return nil
		}
		r.h, r.in = h, e.p.Reader(h)
	}
	e.readers[name] = r
	e.order = append(e.order, name)
	return r
}

// closeStream closes the streams of a name, or one end of those that go in both directions, and returns what close returns.
func closeStream(e *engine, name, which string) float64 {
	status := -1.0
	w, r := e.writers[name], e.readers[name]
	if w != nil && which != "from" {
		delete(e.writers, name)
		status = 0
		w.out.Flush()
		if w.cmd != nil {
			_ = w.h.Close()
			if !w.both {
				status = float64(w.cmd.wait())
			}
		} else if w.h != nil {
			_ = e.p.Close(w.h)
		}
	}
	if r != nil && which != "to" {
		delete(e.readers, name)
		status = 0
		if r.cmd != nil {
			_ = r.h.Close()
			if e.writers[name] == nil {
				status = float64(r.cmd.wait())
			}
		} else if r.h != nil {
			_ = e.p.Close(r.h)
		}
	}
	if status < 0 {
		e.globals[vERRNO].v = str("close of redirection that was never opened")
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
		closeStream(e, name, "")
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
		s, ok := readMainInput(e)
		if !ok {
			return num(0)
		}
		e.nr++
		e.fnr++
		storeRead(e, x.to, s)
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
	storeRead(e, x.to, s)
	return num(1)
}

func storeRead(e *engine, to expr, s string) {
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
		line = formatText(e, format, args)
		if s.kind != "" {
			out = e.writer(s.kind, e.str(e.eval(s.to)))
		}
		out.WriteString(line)
		e.tick(len(line) / 8)
		passOn(e, s.kind, out)
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
	passOn(e, s.kind, out)
}

// passOn shows at once what goes to the standard error.
func passOn(e *engine, kind string, out *program.Output) {
	if kind == ">" || kind == ">>" {
		if w := e.writers["/dev/stderr"]; w != nil && w.out == out {
			out.Flush()
		}
	}
}
