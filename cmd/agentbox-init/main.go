//go:build linux

// Command agentbox-init is process 1 of a space: it builds the space around itself, gives up every privilege, and runs commands on request.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"agentbox/internal/spaceinit"
)

// The descriptors that the daemon hands over; the ones after them are detached mounts.
const (
	connection = 3 // on which the daemon talks
	started    = 4 // this program, as it was started; nobody needs it any more
)

func main() {
	// Commands are forked by this thread only: a thread's own bounding set cannot be changed from outside it.
	runtime.LockOSThread()
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "agentbox-init is process 1 of a space; the daemon starts it")
		os.Exit(2)
	}
	_ = unix.Close(started)
	conn := socket(connection)
	w := spaceinit.NewWriter(conn)
	if err := serve(conn, w); !errors.Is(err, io.EOF) {
		_ = w.Write(spaceinit.KindFailed, 0, []byte(err.Error()))
		os.Exit(1)
	}
	// The end of process 1 is the end of every process of the space.
}

// serve sets the space up and takes requests until the daemon closes the connection.
func serve(conn socket, w *spaceinit.Writer) error {
	frames := spaceinit.NewReader(bufio.NewReaderSize(conn, 16<<10), spaceinit.MaxRequest)
	f, err := frames.Next()
	if err != nil {
		return err
	}
	if f.Kind != spaceinit.KindSetup {
		return fmt.Errorf("frame %d before the setup", f.Kind)
	}
	setup, err := spaceinit.DecodeSetup(f.Body)
	if err != nil {
		return err
	}
	ready, err := build(setup)
	if err != nil {
		return err
	}
	// Without handlers a signal sent by a command would end this process. They are reset in every child.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals)
	signal.Reset(unix.SIGCHLD, unix.SIGURG, unix.SIGCONT, unix.SIGWINCH) // harmless, and the first comes with every command
	t, err := newTable(w)
	if err != nil {
		return err
	}
	go t.reap()
	if err := w.Write(spaceinit.KindReady, 0, ready.Encode()); err != nil {
		return err
	}
	for {
		f, err := frames.Next()
		if err != nil {
			return err
		}
		if err := t.handle(f); err != nil {
			return err
		}
	}
}

// socket is a descriptor that is read and written by blocking calls, without the runtime's poller between: one thread waits on it and
// nothing has to wake another.
type socket int

// Read reads what is there, waiting for the first byte.
func (s socket) Read(p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(s), p)
		if err == unix.EINTR {
			continue
		}
		if n == 0 && err == nil {
			return 0, io.EOF
		}
		return max(n, 0), err
	}
}

// Write writes all of p.
func (s socket) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := syscall.Write(int(s), p[done:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}
