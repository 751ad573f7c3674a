//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/spaceinit"
)

// table holds the commands under way.
type table struct {
	w    *spaceinit.Writer
	null uintptr // /dev/null, for commands without input

	manned chan struct{} // closed when the init has the threads that it may need: no command starts before, for one could take their room

	mu      sync.Mutex
	byID    map[uint32]*command
	byPID   map[int]*command
	conns   map[uint32]*conn
	servers map[uint32]*server
	orphan  chan struct{} // holds at most one token: a child that is not a command was reaped
	born    chan struct{} // holds at most one token: there is a child to reap
}

// command is one command: its own process, and everything below it.
type command struct {
	id     uint32
	pid    int
	in     *pump                   // nil without input
	out    [3]*pump                // stdout, stderr and, for a command that has them, messages
	tty    *terminal               // nil without a terminal
	ended  chan syscall.WaitStatus // its own process ended
	kill   chan time.Duration      // the daemon wants its end, after that grace
	killed bool
}

func newTable(w *spaceinit.Writer) (*table, error) {
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &table{
		w: w, null: uintptr(null), manned: make(chan struct{}), byID: map[uint32]*command{}, byPID: map[int]*command{}, conns: map[uint32]*conn{},
		servers: map[uint32]*server{},
		orphan:  make(chan struct{}, 1), born: make(chan struct{}, 1),
	}, nil
}

// handle does what one frame asks. It runs on the thread that forks and never waits for a command.
func (t *table) handle(f spaceinit.Frame) error {
	switch f.Kind {
	case spaceinit.KindPing:
		return t.w.Write(spaceinit.KindPong, 0)
	case spaceinit.KindExec:
		x, err := spaceinit.DecodeExec(f.Body)
		if err != nil {
			return err
		}
		if err := t.start(f.ID, x); err != nil {
			return t.w.Write(spaceinit.KindRefused, f.ID, []byte(err.Error()))
		}
		return nil
	case spaceinit.KindDial:
		port, err := spaceinit.DecodePort(f.Body)
		if err != nil {
			return err
		}
		return t.dial(f.ID, port)
	case spaceinit.KindServe:
		return t.serve(f.ID)
	case spaceinit.KindAccept:
		of, err := spaceinit.DecodeAccept(f.Body)
		if err != nil {
			return err
		}
		return t.accept(f.ID, of)
	case spaceinit.KindPorts:
		id := f.ID
		go func() { _ = t.w.Write(spaceinit.KindListening, id, spaceinit.EncodeListening(t.others(listening()))) }()
		return nil
	}
	t.mu.Lock()
	c, on, s := t.byID[f.ID], t.conns[f.ID], t.servers[f.ID]
	t.mu.Unlock()
	if on != nil {
		return on.handle(t, f)
	}
	if s != nil {
		if f.Kind != spaceinit.KindClose {
			return errNotForConns
		}
		for _, c := range s.close() {
			t.over(c)
		}
		return nil
	}
	if c == nil {
		return nil // it has ended meanwhile
	}
	switch f.Kind {
	case spaceinit.KindKill:
		grace, err := spaceinit.DecodeKill(f.Body)
		if err != nil {
			return err
		}
		select {
		case c.kill <- grace:
		default: // two are waiting already
		}
		return nil
	case spaceinit.KindData:
		_, data, err := spaceinit.DecodeData(f.Body)
		if err != nil {
			return err
		}
		c.in.give(data)
		return nil
	case spaceinit.KindSignal:
		number, err := spaceinit.DecodeSignal(f.Body)
		if err != nil {
			return err
		}
		t.signal(c, unix.Signal(number))
		return nil
	case spaceinit.KindResize:
		size, err := spaceinit.DecodeResize(f.Body)
		if err != nil {
			return err
		}
		c.tty.resize(size)
		return nil
	case spaceinit.KindCredit:
		channel, n, err := spaceinit.DecodeCredit(f.Body)
		if err != nil {
			return err
		}
		if channel != spaceinit.Stdin {
			c.out[channel-1].allow(n)
		}
		return nil
	default:
		return fmt.Errorf("frame %d is not for the init", f.Kind)
	}
}

// start forks a command. It closes every descriptor that it opens, on every path.
func (t *table) start(id uint32, x spaceinit.Exec) (err error) {
	p, err := prepare(x)
	if err != nil {
		return err
	}
	c := &command{id: id, ended: make(chan syscall.WaitStatus, 1), kill: make(chan time.Duration, 2)}
	var theirs []int
	defer func() {
		for _, fd := range theirs {
			_ = unix.Close(fd)
		}
		if err != nil {
			for _, p := range []*pump{c.in, c.out[0], c.out[1], c.out[2]} {
				p.close()
			}
			c.tty.close()
		}
	}()
	if x.Terminal != nil {
		if c.tty, err = newTerminal(*x.Terminal); err != nil {
			return err
		}
		if c.in, c.out[0], err = c.tty.pumps(); err != nil {
			return err
		}
		slave := uintptr(c.tty.slave)
		p.files, p.count, p.tty = [5]uintptr{slave, slave, slave}, 3, true
		return t.begin(c, p, x)
	}
	p.files[0], p.count = t.null, 3
	if x.Frames {
		p.count = 5
	}
	if x.Stdin {
		var r int
		if r, c.in, err = newPump(true); err != nil {
			return err
		}
		if r, err = above(r); err != nil {
			return err
		}
		theirs = append(theirs, r)
		if x.Frames {
			p.files[4] = uintptr(r)
		} else {
			p.files[0] = uintptr(r)
		}
	}
	for i := range c.out {
		if i == 2 && !x.Frames {
			continue
		}
		var w int
		if w, c.out[i], err = newPump(false); err != nil {
			return err
		}
		if w, err = above(w); err != nil {
			return err
		}
		theirs, p.files[i+1] = append(theirs, w), uintptr(w)
	}
	return t.begin(c, p, x)
}

// above moves a descriptor above those that a command gets, so that none of these takes its place.
func above(fd int) (int, error) {
	const inherited = 5
	if fd >= inherited {
		return fd, nil
	}
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, inherited)
	return high, errors.Join(err, unix.Close(fd))
}

// begin forks a command whose streams are made.
func (t *table) begin(c *command, p *program, x spaceinit.Exec) error {
	<-t.manned
	t.mu.Lock()
	defer t.mu.Unlock()
	pid, err := spawn(p)
	if pid > 0 {
		t.wake(t.born)
	}
	if err != nil {
		return refusal(x, err)
	}
	c.pid = pid
	t.byID[c.id], t.byPID[pid] = c, c
	go t.follow(c)
	return nil
}

// refusal says why the kernel did not run a program.
func refusal(x spaceinit.Exec, err error) error {
	switch {
	case errors.Is(err, unix.EAGAIN):
		return errors.New("the space has as many processes as it may")
	case errors.Is(err, unix.E2BIG):
		return errors.New("its arguments and environment are larger than the kernel takes")
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("the folder %s or the program's interpreter does not exist", x.Cwd)
	case errors.Is(err, unix.ENOEXEC):
		return fmt.Errorf("%s is neither a program nor a script that names its interpreter", x.Argv[0])
	default:
		return fmt.Errorf("%s: %w", x.Argv[0], err)
	}
}

// prepare turns a request into what the kernel takes.
func prepare(x spaceinit.Exec) (*program, error) {
	file, err := find(x)
	if err != nil {
		return nil, err
	}
	p := &program{}
	if p.path, err = syscall.BytePtrFromString(file); err != nil {
		return nil, errors.New("the program's name holds a NUL byte")
	}
	if p.argv, err = syscall.SlicePtrFromStrings(x.Argv); err != nil {
		return nil, errors.New("an argument holds a NUL byte")
	}
	if p.env, err = syscall.SlicePtrFromStrings(x.Env); err != nil {
		return nil, errors.New("the environment holds a NUL byte")
	}
	if p.cwd, err = syscall.BytePtrFromString(x.Cwd); err != nil {
		return nil, errors.New("the folder's name holds a NUL byte")
	}
	return p, nil
}

// find looks a program up as a shell does.
func find(x spaceinit.Exec) (string, error) {
	name := x.Argv[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	search := ""
	for _, v := range x.Env {
		if rest, ok := strings.CutPrefix(v, "PATH="); ok {
			search = rest
		}
	}
	for dir := range strings.SplitSeq(search, ":") {
		file := path.Join(dir, name)
		if !path.IsAbs(file) {
			file = path.Join(x.Cwd, file)
		}
		if st, err := os.Stat(file); err == nil && st.Mode().IsRegular() && unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("there is no program %s in %s", name, search)
}

// wake puts a token into a channel that holds at most one.
func (*table) wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// follow sees one command to its end and reports it.
func (t *table) follow(c *command) {
	_ = t.w.Write(spaceinit.KindStarted, c.id)
	var done sync.WaitGroup
	for i, p := range c.out {
		done.Go(func() { p.drain(t.w, c.id, spaceinit.Channel(i+1)) })
	}
	if c.in != nil {
		done.Go(func() { c.in.pour(t.w, c.id) })
	}
	status := t.await(c)
	if err := t.sweep(); err != nil {
		// A process that cannot be killed alone ends with the space.
		_ = t.w.Write(spaceinit.KindFailed, 0, []byte(err.Error()))
		os.Exit(1)
	}
	// A process that still holds an end of these belongs to another command. It must not keep this one open.
	c.in.close()
	c.tty.close()
	for _, p := range c.out {
		p.finish()
	}
	done.Wait()
	t.mu.Lock()
	delete(t.byID, c.id)
	t.mu.Unlock()
	exit := spaceinit.Exit{Code: uint8(status.ExitStatus()), Killed: c.killed}
	if status.Signaled() {
		exit.Signal = uint8(status.Signal())
		exit.Code = 128 + exit.Signal
	}
	_ = t.w.Write(spaceinit.KindExit, c.id, exit.Encode())
}

// await waits for the end of the command's own process and hastens it when asked.
func (t *table) await(c *command) syscall.WaitStatus {
	var grace <-chan time.Time
	for {
		select {
		case status := <-c.ended:
			return status
		case d := <-c.kill:
			c.killed = true
			if d > 0 {
				t.signalTree(c.pid, unix.SIGTERM)
				grace = time.After(d)
				continue
			}
			_ = unix.Kill(c.pid, unix.SIGKILL)
		case <-grace:
			_ = unix.Kill(c.pid, unix.SIGKILL)
		}
	}
}
