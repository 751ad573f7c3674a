package vfs

import (
	"errors"
	"io"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/fiber"
)

// pipeBytes is how much a pipe holds before its writer waits.
const pipeBytes = 64 << 10

// pipe is what two handles share.
type pipe struct {
	fs       *FS
	buf      []byte
	readers  int
	writers  int
	readable *fiber.Queue
	writable *fiber.Queue
}

// Pipe returns the two ends of a pipe. A reader waits while it is empty, a writer while it is full; meanwhile other fibers run.
func (f *FS) Pipe() (r, w *Handle, err error) {
	if f.handles+2 > f.account.Limits().OpenFiles {
		f.account.Hit("open_files")
		return nil, nil, EMFILE
	}
	if err := f.charge(0); err != nil {
		return nil, nil, err
	}
	p := &pipe{fs: f, readers: 1, writers: 1, readable: f.group.NewQueue(), writable: f.group.NewQueue()}
	f.handles += 2
	return &Handle{fs: f, flags: Read, refs: 1, pipe: p}, &Handle{fs: f, flags: Write, refs: 1, pipe: p}, nil
}

func (p *pipe) read(b []byte, nonBlock bool) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for len(p.buf) == 0 {
		if p.writers == 0 {
			return 0, io.EOF
		}
		if p.readers == 0 {
			return 0, EBADF // closed by somebody else meanwhile
		}
		if nonBlock {
			return 0, EAGAIN
		}
		if err := p.fs.wait(time.Time{}, p.readable); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.buf)
	if err := p.fs.charge(n); err != nil {
		return 0, err
	}
	if p.buf = p.buf[n:]; len(p.buf) == 0 {
		p.buf = nil
	}
	p.writable.Wake()
	return n, nil
}

func (p *pipe) write(b []byte, nonBlock bool) (int, error) {
	done := 0
	for {
		if p.readers == 0 {
			return done, EPIPE
		}
		n := min(len(b), pipeBytes-len(p.buf))
		if err := p.fs.charge(n); err != nil {
			return done, err
		}
		if n > 0 {
			p.buf = append(p.buf, b[:n]...)
			b, done = b[n:], done+n
			p.readable.Wake()
		}
		if len(b) == 0 {
			return done, nil
		}
		if nonBlock {
			if done == 0 {
				return 0, EAGAIN
			}
			return done, nil
		}
		if err := p.fs.wait(time.Time{}, p.writable); err != nil {
			return done, err
		}
	}
}

func (p *pipe) close(flags Flags) {
	if flags&Read != 0 {
		p.readers--
	} else {
		p.writers--
	}
	p.readable.Wake()
	p.writable.Wake()
	if p.readers+p.writers == 0 {
		p.readable.Close()
		p.writable.Close()
		p.buf = nil
	}
}

// Wait is something to wait for: that a handle can be read from or written to.
type Wait struct {
	Handle *Handle
	Write  bool
}

// Poll returns when one of waits would not wait, or when the deadline has come; one that is zero never comes. Meanwhile other fibers run.
func (f *FS) Poll(waits []Wait, deadline time.Time) error {
	for {
		var queues []*fiber.Queue
		for _, w := range waits {
			_, read, write := w.Handle.Ready()
			switch {
			case w.Write && write || !w.Write && read:
				return nil
			case w.Write:
				queues = append(queues, w.Handle.pipe.writable)
			default:
				queues = append(queues, w.Handle.pipe.readable)
			}
		}
		if !deadline.IsZero() && !f.Now().Before(deadline) {
			return nil
		}
		switch err := f.wait(deadline, queues...); {
		case errors.Is(err, fiber.ErrTimeout):
			return f.account.Sleep(deadline.Sub(f.Now()))
		case err != nil:
			return err
		}
	}
}

// Sleep lets the clock go on by d, and other fibers run in that time.
func (f *FS) Sleep(d time.Duration) error {
	if err := f.account.Check(); err != nil || d <= 0 {
		return err
	}
	if d > f.account.Limits().Time { // the process would never wake
		return f.account.Sleep(d)
	}
	return f.Poll(nil, f.Now().Add(d))
}

// wait waits in queues, until a deadline that is not zero. Where nobody can end that, time passes until the execution's has run out.
func (f *FS) wait(deadline time.Time, queues ...*fiber.Queue) error {
	var err error
	switch {
	case deadline.IsZero() && f.group == nil:
		err = fiber.ErrDeadlock
	case f.group == nil:
		err = fiber.ErrTimeout
	case deadline.IsZero():
		err = f.group.Wait(queues...)
	default:
		err = f.group.WaitUntil(deadline, queues...)
	}
	if errors.Is(err, fiber.ErrDeadlock) {
		f.account.Stop(&bound.Stopped{TimedOut: true})
	}
	if stopped := f.account.Check(); stopped != nil {
		return stopped
	}
	return err
}

// Ended reports whether it is a pipe that nobody holds open at its other end.
func (h *Handle) Ended() bool {
	return h.pipe != nil && (h.flags&Read != 0 && h.pipe.writers == 0 || h.flags&Write != 0 && h.pipe.readers == 0)
}

// Ready reports how many bytes can be read without waiting, and whether a read or a write would not wait at all.
func (h *Handle) Ready() (bytes int64, read, write bool) {
	if h.pipe == nil {
		if h.node != nil && h.node.kind == Regular {
			return max(h.node.content.size-h.off, 0), true, true
		}
		return 0, true, true
	}
	return int64(len(h.pipe.buf)), len(h.pipe.buf) > 0 || h.pipe.writers == 0, len(h.pipe.buf) < pipeBytes || h.pipe.readers == 0
}
