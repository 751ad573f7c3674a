//go:build linux

// The runtime gets its thread count as a setting. Otherwise it would read the control groups and keep their files open.
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command agentbox-init is process 1 of a space: it builds the space around itself, gives up every privilege, and runs commands on request.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentbox/internal/spaceinit"
)

// The descriptors that the daemon hands over; the ones after them are detached mounts.
const (
	connection = 3 // on which the daemon talks
	started    = 4 // this program, as it was started; nobody needs it any more
)

func main() {
	// The first thread does nothing but wait. The kernel drops signals to process 1 while the first thread takes signals; a
	// thread that forks blocks them for that moment, and a signal that comes then to a process whose first thread blocks it ends it.
	runtime.LockOSThread()
	if len(os.Args) == 4 && os.Args[0] == spaceinit.LauncherName {
		homes, err := strconv.Atoi(os.Args[2])
		if err == nil {
			err = launch(homes, os.Args[3] == spaceinit.Apart)
		}
		if err != nil {
			os.Exit(1)
		}
		return
	}
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "agentbox-init is process 1 of a space; the daemon starts it")
		os.Exit(2)
	}
	_ = unix.Close(started)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run()
	}()
	<-ended
	// The end of process 1 is the end of every process of the space.
}

// run serves the daemon on a thread of its own. Commands are forked by this thread only: a thread's own bounding set cannot be changed
// from outside it.
func run() {
	runtime.LockOSThread()
	conn := socket(connection)
	w := spaceinit.NewWriter(conn)
	if err := serve(conn, w); !errors.Is(err, io.EOF) {
		_ = w.Write(spaceinit.KindFailed, 0, []byte(err.Error()))
		os.Exit(1)
	}
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
	unhandle()
	t, err := newTable(w)
	if err != nil {
		return err
	}
	go t.reap()
	if err := w.Write(spaceinit.KindReady, 0, ready.Encode()); err != nil {
		return err
	}
	go func() {
		makeThreads()
		close(t.manned)
	}()
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

// makeThreads makes the threads that this program may need while there is room for them. The runtime keeps them; it ends the program when
// it needs one more than a space full of commands' processes leaves.
func makeThreads() {
	const enough = 8 // the waiting ones, those that run, and one for each folder of /proc that is read at once
	var made sync.WaitGroup
	made.Add(enough)
	free := make(chan struct{})
	for range enough {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread() // a goroutine that ends locked takes its thread with it
			made.Done()
			<-free
		}()
	}
	made.Wait()
	close(free)
}

// unhandle takes the runtime's handlers away from every signal that would end this process. The kernel drops what is sent to process 1
// from inside its namespace and has no handler; with the handlers a command could end the space. (The runtime's own way to ignore signals
// takes a thread switch for each, two milliseconds in all, and would be inherited by commands.)
func unhandle() {
	var none [4]uint64 // handler SIG_DFL, no flags, no restorer, no mask
	for sig := uintptr(1); sig <= lastSignal; sig++ {
		switch unix.Signal(sig) {
		case unix.SIGURG, unix.SIGPROF, unix.SIGKILL, unix.SIGSTOP, perThread, perThread + 1: // the runtime's, and those that have none
		default:
			_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&none)), 0, 8, 0, 0)
		}
	}
}

const (
	lastSignal = 64
	perThread  = 32 // libraries and the runtime use this signal and the next to reach every thread
)

// socket is a descriptor that is read and written by blocking calls, without the runtime's poller between: one thread waits on it and
// nothing has to wake another.
type socket int

// Read waits for the first byte and reads the bytes that are there.
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
