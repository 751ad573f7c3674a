//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Each command's own process is a subreaper, so while it lives all that it started is below it, however often it forked and made new
// sessions. When it ends, the orphans become children of this process. Hence the rule: a child of process 1 that is not a command's own
// process is a stray, and strays are killed with everything below them.

// patience is how long the strays of one command may take to die.
const patience = 5 * time.Second

// reap waits for children as long as the space lives.
func (t *table) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err == unix.ECHILD:
			<-t.born // no child at all; only a start makes one
		case err == nil:
			t.mu.Lock()
			c := t.byPID[pid]
			delete(t.byPID, pid)
			t.mu.Unlock()
			if c != nil {
				c.ended <- status
			} else {
				t.wake(t.orphan)
			}
		}
	}
}

// sweep ends all processes that a command has left behind. The command's own process has ended.
func (t *table) sweep() error {
	deadline := time.Now().Add(patience)
	for {
		if t.killAll() {
			return nil
		}
		left, settled, err := t.strays()
		if err != nil {
			return err
		}
		if len(left) == 0 && settled {
			return nil
		}
		// Stopped first, so that none of them forks while another is killed.
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGSTOP)
		}
		if left, _, err = t.strays(); err != nil {
			return err
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if time.Now().After(deadline) {
			return errors.New("the processes of a command could not be ended")
		}
		select {
		case <-t.orphan:
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// killAll kills every process of the space, in one go by the kernel, if no command is under way. It reports whether it found that there
// are none.
func (t *table) killAll() bool {
	t.mu.Lock() // keeps new commands from starting
	defer t.mu.Unlock()
	return len(t.byPID) == 0 && unix.Kill(-1, unix.SIGKILL) == unix.ESRCH
}

// strays returns the processes that are below no command's own process. It is not settled when a process ended during the count, so
// that its children could not be placed; those are left alone.
func (t *table) strays() (list []int, settled bool, err error) {
	parents, err := processes()
	if err != nil {
		return nil, false, err
	}
	// The commands are read after the processes: one that started in between is in neither list.
	t.mu.Lock()
	defer t.mu.Unlock()
	settled = true
	for pid := range parents {
		at, parent := pid, parents[pid]
		for at > 1 && parent > 1 && t.byPID[at] == nil {
			at, parent = parent, parents[parent]
		}
		switch {
		case pid == 1 || t.byPID[at] != nil:
		case parent == 1:
			list = append(list, pid)
		default:
			settled = false
		}
	}
	return list, settled, nil
}

// signalTree signals a process, and then all below it: a shell that hears of the end of a child before it hears of its own time does not
// tidy up but goes on or ends.
func (t *table) signalTree(root int, sig unix.Signal) {
	parents, err := processes()
	if err != nil {
		parents = map[int]int{root: 1}
	}
	send := func(pid int) {
		_ = unix.Kill(pid, sig)
		_ = unix.Kill(pid, unix.SIGCONT) // a stopped one would not see it
	}
	send(root)
	for pid := range parents {
		at := pid
		for at > 1 && at != root {
			at = parents[at]
		}
		if at == root && pid != root {
			send(pid)
		}
	}
}

// processes returns the parent of every process of the space. Zombies count: some wait for reap only, but one whose first thread has ended
// may have others that run.
func processes() (map[int]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	parents := map[int]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		// After the name, which may hold anything and ends at the last parenthesis: state, parent.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(string(fields[1])); err == nil {
			parents[pid] = parent
		}
	}
	return parents, nil
}
