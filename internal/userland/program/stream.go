package program

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/vfs"
)

const bufferBytes = 8 << 10

// Output is a buffered writer of a program. It never fails: a pipe without a reader ends the program by SIGPIPE, a bound ends the
// execution, and what else does not succeed is told, and ends the program with 1.
type Output struct {
	p   *Process
	h   *vfs.Handle
	buf []byte
}

// Writer returns a buffered writer to a handle. The caller calls Flush.
func (p *Process) Writer(h *vfs.Handle) *Output { return &Output{p: p, h: h} }

// Write appends to the output. The error is nil always.
func (o *Output) Write(b []byte) (int, error) {
	if len(o.buf)+len(b) > bufferBytes {
		o.Flush()
		if len(b) >= bufferBytes {
			o.put(b)
			return len(b), nil
		}
	}
	if o.buf == nil {
		o.buf = make([]byte, 0, bufferBytes)
	}
	o.buf = append(o.buf, b...)
	return len(b), nil
}

// WriteString appends to the output. The error is nil always.
func (o *Output) WriteString(s string) (int, error) {
	if len(o.buf)+len(s) > bufferBytes {
		return o.Write([]byte(s))
	}
	if o.buf == nil {
		o.buf = make([]byte, 0, bufferBytes)
	}
	o.buf = append(o.buf, s...)
	return len(s), nil
}

// WriteByte appends to the output. The error is nil always.
func (o *Output) WriteByte(c byte) error {
	if len(o.buf) == bufferBytes {
		o.Flush()
	}
	if o.buf == nil {
		o.buf = make([]byte, 0, bufferBytes)
	}
	o.buf = append(o.buf, c)
	return nil
}

// Fill appends a byte n times. It charges for them, and makes no text of that length.
func (o *Output) Fill(c byte, n int) {
	for n > 0 {
		some := min(n, bufferBytes/2)
		o.p.Charge(some / 4)
		if len(o.buf)+some > bufferBytes {
			o.Flush()
		}
		if o.buf == nil {
			o.buf = make([]byte, 0, bufferBytes)
		}
		for range some {
			o.buf = append(o.buf, c)
		}
		n -= some
	}
}

// Printf appends to the output.
func (o *Output) Printf(format string, args ...any) { _, _ = fmt.Fprintf(o, format, args...) }

// Flush writes what is buffered.
func (o *Output) Flush() {
	if len(o.buf) > 0 {
		b := o.buf
		o.buf = o.buf[:0]
		o.put(b)
	}
}

func (o *Output) put(b []byte) {
	err := error(vfs.EBADF)
	if o.h != nil {
		_, err = o.h.Write(b)
	}
	if err == nil {
		return
	}
	o.buf = nil
	o.p.stop(err)
	if errors.Is(err, vfs.EPIPE) {
		panic(Killed{SIGPIPE})
	}
	o.p.message("write error: " + Message(err))
	panic(exit{1})
}

// Message returns the words of POSIX systems for an error.
func Message(err error) string {
	if errors.Is(err, bound.ErrMemory) {
		return vfs.ENOMEM.Error()
	}
	return err.Error()
}

// Input is a buffered reader of a program.
type Input struct {
	p    *Process
	h    *vfs.Handle
	buf  []byte
	rest []byte // of buf
	long []byte // a line that does not fit into buf
	held int
	err  error
}

// Reader returns a buffered reader of a handle; nil is one that is closed.
func (p *Process) Reader(h *vfs.Handle) *Input { return &Input{p: p, h: h} }

// Handle returns what is read.
func (in *Input) Handle() *vfs.Handle { return in.h }

// fill reads more and reports whether there is any.
func (in *Input) fill() bool {
	if in.err != nil {
		return false
	}
	if in.h == nil {
		in.err = vfs.EBADF
		return false
	}
	if in.buf == nil {
		in.buf = make([]byte, 32<<10)
	}
	if in.p.Eager && in.p.out != nil {
		in.p.out.Flush()
	}
	n, err := in.h.Read(in.buf)
	in.p.stop(err)
	in.rest = in.buf[:n]
	if in.err = err; n == 0 && err == nil {
		in.err = io.EOF
	}
	return n > 0
}

// Read reads on, as an io.Reader.
func (in *Input) Read(b []byte) (int, error) {
	if len(in.rest) == 0 && !in.fill() {
		return 0, in.err
	}
	n := copy(b, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}

// Chunk returns what is buffered, or reads some; nil at the end or after an error. It is valid until the next call.
func (in *Input) Chunk() []byte {
	if len(in.rest) == 0 && !in.fill() {
		return nil
	}
	b := in.rest
	in.rest = nil
	return b
}

// Line returns the next line without its delimiter. ended says that the delimiter was there, ok that there is a line at all. It is valid
// until the next call. A line in memory counts as held by the program.
func (in *Input) Line(delim byte) (line []byte, ended, ok bool) {
	in.p.Charge(20)
	in.p.Drop(in.held)
	in.held, in.long = 0, in.long[:0]
	for {
		if len(in.rest) == 0 && !in.fill() {
			return in.long, false, len(in.long) > 0
		}
		i := bytes.IndexByte(in.rest, delim)
		if i >= 0 && len(in.long) == 0 {
			line, in.rest = in.rest[:i], in.rest[i+1:]
			return line, true, true
		}
		part := in.rest
		if i >= 0 {
			part = part[:i]
		}
		if len(in.long)+len(part) > cap(in.buf) {
			in.p.Hold(len(part))
			in.held += len(part)
		}
		in.long = in.p.Append(in.long, part)
		if in.rest = in.rest[len(part):]; i >= 0 {
			in.rest = in.rest[1:]
			return in.long, true, true
		}
	}
}

// Err returns what ended the input, nil for its end.
func (in *Input) Err() error {
	if in.err == nil || errors.Is(in.err, io.EOF) {
		return nil
	}
	return in.err
}

// Unread gives back what was read ahead, where the file has a position: the next program that reads it goes on there.
func (in *Input) Unread() {
	if len(in.rest) > 0 {
		if _, err := in.h.Seek(-int64(len(in.rest)), io.SeekCurrent); err == nil {
			in.rest = nil
		}
	}
}

// All reads what is left and holds it.
func (in *Input) All() []byte {
	var all []byte
	for b := in.Chunk(); b != nil; b = in.Chunk() {
		in.p.Hold(len(b))
		all = in.p.Append(all, b)
	}
	return all
}
