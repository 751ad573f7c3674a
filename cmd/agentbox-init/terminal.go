//go:build linux

package main

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"agentbox/internal/spaceinit"
)

// terminal is the terminal of a command: the init has the side of the screen and the keyboard. A nil terminal does nothing.
type terminal struct {
	slave int // kept open until the command has ended, so that a command which closes it for a while does not end its output

	mu     sync.Mutex // guards master against being closed
	master int        // a descriptor besides those of the pumps; -1 when it is closed
}

// endOfInput is the byte that ends the input of a terminal, at the beginning of a line.
const endOfInput = 0x04 // Ctrl-D

// newTerminal makes a terminal.
func newTerminal(size spaceinit.Size) (*terminal, error) {
	master, err := unix.Open("/"+spaceinit.Terminals+"/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	switch {
	case err == unix.EMFILE || err == unix.ENOSPC:
		return nil, errors.New("the space has as many open files or terminals as it may")
	case err != nil:
		return nil, fmt.Errorf("the space has no terminals: %w", err)
	}
	t := &terminal{slave: -1, master: master}
	if err = unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err == nil {
		t.slave, err = peer(master)
	}
	if err != nil {
		t.close()
		return nil, fmt.Errorf("make a terminal: %w", err)
	}
	t.resize(size)
	return t, nil
}

// peer opens the side of the programs of a terminal, through its other side and not by its name.
func peer(master int) (int, error) {
	fd, _, errno := syscall.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// pumps returns the pumps of the keyboard and of the screen.
func (t *terminal) pumps() (in, out *pump, err error) {
	for _, p := range []**pump{&in, &out} {
		fd, err := unix.FcntlInt(uintptr(t.master), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return in, nil, errors.New("the space has as many open files as it may")
		}
		*p = pumpOf(fd)
	}
	in.last = []byte{endOfInput}
	return in, out, nil
}

// resize tells the terminal its size; the kernel tells the programs.
func (t *terminal) resize(size spaceinit.Size) {
	t.do(func(fd int) {
		_ = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: size.Cols, Row: size.Rows})
	})
}

// foreground returns the process group in the foreground; 0 for none.
func (t *terminal) foreground() (group int) {
	t.do(func(fd int) { group, _ = unix.IoctlGetInt(fd, unix.TIOCGPGRP) })
	return max(group, 0)
}

func (t *terminal) do(what func(fd int)) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.master >= 0 {
		what(t.master)
	}
}

// close gives up what the init holds besides its pumps.
func (t *terminal) close() {
	if t == nil {
		return
	}
	t.do(func(fd int) {
		_ = unix.Close(fd)
		if t.slave >= 0 {
			_ = unix.Close(t.slave)
		}
		t.master, t.slave = -1, -1
	})
}

// signal sends a signal to the process group of a command, and to the one in the foreground of its terminal. SIGKILL reaches its own
// process only, whose end is the end of everything below it.
func (t *table) signal(c *command, sig unix.Signal) {
	group := c.tty.foreground()
	t.mu.Lock() // the command is not reaped meanwhile, so that its number is its own
	defer t.mu.Unlock()
	if t.byPID[c.pid] != c {
		return
	}
	if sig == unix.SIGKILL {
		_ = unix.Kill(c.pid, sig)
		return
	}
	_ = unix.Kill(-c.pid, sig)
	if group > 1 && group != c.pid {
		_ = unix.Kill(-group, sig)
	}
}
