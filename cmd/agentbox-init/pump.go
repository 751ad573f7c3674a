//go:build linux

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/spaceinit"
)

// pump moves bytes between a command's pipe and frames, never more at once than the other side has room for. A nil pump does nothing.
type pump struct {
	file *os.File // this process's end of the pipe

	mu        sync.Mutex
	changed   *sync.Cond
	credit    int      // output: bytes that may be sent
	queue     [][]byte // input: received and not written yet
	eof       bool     // input: nothing will follow
	last      []byte   // input: bytes to write at its end
	socket    bool     // input: at its end the socket is shut for writing
	dropped   bool     // output: nobody takes it any more
	finishing bool     // output: no writer is left that counts; input: the reader is gone
}

// newPump makes a pipe and returns the command's end and the pump on the other.
func newPump(input bool) (theirs int, p *pump, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return -1, nil, errors.New("the space has as many open files as it may")
	}
	theirs, ours := ends[1], ends[0]
	if input {
		theirs, ours = ours, theirs
	}
	if err := unix.SetNonblock(ours, true); err != nil {
		return -1, nil, err
	}
	return theirs, pumpOf(ours), nil
}

// pumpOf returns the pump on a descriptor that does not block. It owns the descriptor.
func pumpOf(fd int) *pump {
	p := &pump{file: os.NewFile(uintptr(fd), "pipe"), credit: spaceinit.Window}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// allow adds credit for output.
func (p *pump) allow(n int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.credit += n
	p.changed.Signal()
}

// room waits for credit and returns how much there is, at most MaxData; 0 for output that nobody takes any more.
func (p *pump) room() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.credit <= 0 && !p.dropped {
		p.changed.Wait()
	}
	if p.dropped {
		return 0
	}
	return min(p.credit, spaceinit.MaxData)
}

// drain sends what the command writes until nobody can write any more. It reports whether it came to the end.
func (p *pump) drain(w *spaceinit.Writer, id uint32, channel spaceinit.Channel) (ended bool) {
	if p == nil {
		return true
	}
	defer p.close()
	var buf []byte
	for {
		room := p.room()
		if room == 0 {
			return false
		}
		if buf == nil {
			buf = make([]byte, spaceinit.MaxData)
		}
		n, err := p.read(buf[:room])
		if n > 0 {
			p.allow(-n)
			if w.Write(spaceinit.KindData, id, []byte{byte(channel)}, buf[:n]) != nil {
				return false
			}
		}
		if err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// read reads what is there; once the pump is finishing it does not wait for more.
func (p *pump) read(buf []byte) (int, error) {
	p.mu.Lock()
	finishing := p.finishing
	p.mu.Unlock()
	if !finishing {
		n, err := p.file.Read(buf)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
	raw, err := p.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	n := 0
	var failed error
	err = raw.Control(func(fd uintptr) {
		if n, failed = unix.Read(int(fd), buf); n == 0 && failed == nil {
			failed = os.ErrClosed
		}
	})
	return max(n, 0), errors.Join(err, failed)
}

// finish says that all output of the command is in the pipe by now.
func (p *pump) finish() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.finishing = true
	p.mu.Unlock()
	_ = p.file.SetReadDeadline(time.Unix(1, 0)) // long past: it wakes the reader
}

// give queues a piece of input; an empty one is its end.
func (p *pump) give(data []byte) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.finishing:
	case len(data) == 0:
		p.eof = true
	default:
		p.queue = append(p.queue, bytes.Clone(data))
	}
	p.changed.Signal()
}

// pour writes the queue to the command until its end, or until the command is gone or reads no more.
func (p *pump) pour(w *spaceinit.Writer, id uint32) {
	defer p.close()
	for {
		p.mu.Lock()
		for len(p.queue) == 0 && !p.eof && !p.finishing {
			p.changed.Wait()
		}
		if p.finishing || len(p.queue) == 0 {
			finishing := p.finishing
			p.mu.Unlock()
			if !finishing && len(p.last) > 0 {
				_, _ = p.file.Write(p.last)
			}
			if !finishing && p.socket {
				_, _ = control(p.file, func(fd int) (int, error) { return 0, unix.Shutdown(fd, unix.SHUT_WR) })
			}
			return
		}
		data := p.queue[0]
		p.queue = p.queue[1:]
		p.mu.Unlock()
		if _, err := p.file.Write(data); err != nil {
			_ = w.Write(spaceinit.KindShut, id) // queued bytes, and bytes still under way, are dropped
			return
		}
		if w.Write(spaceinit.KindCredit, id, spaceinit.EncodeCredit(spaceinit.Stdin, len(data))) != nil {
			return
		}
	}
}

// drop is close for output that nobody takes any more, too.
func (p *pump) drop() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.dropped = true
	p.mu.Unlock()
	p.close()
}

// close gives the pipe up and wakes its waiting reader or writer.
func (p *pump) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.finishing = true
	p.changed.Broadcast()
	p.mu.Unlock()
	_ = p.file.Close()
}
