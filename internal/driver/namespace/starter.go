//go:build linux

package namespace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/fault"
	"agentbox/internal/spaceinit"
)

// answerTime is how long a launcher may take for one start.
const answerTime = 20 * time.Second

// starter starts every init, through a launcher, which is started from one thread that lives as long as the tier does. The launcher and the
// inits are children of that thread: a process that asks for a signal when its parent dies gets it when the parent's thread dies.
type starter struct {
	program *os.File
	null    *os.File
	owner   string
	apart   bool          // the launcher may have mounts of its own
	homes   []*home       // the groups in which the launcher belongs
	answer  time.Duration // the time limit of a launcher for one start

	hire    chan chan<- error // asks the thread for a launcher
	quit    chan struct{}     // closed by stop
	stopped chan struct{}     // closed when the thread has ended

	busy     sync.Mutex  // held by the caller that talks to the launcher
	launcher *os.Process // nil for none
	socket   int         // to it
	thread   int         // the thread's number
	ended    bool        // there will be no launcher any more

	mu    sync.Mutex
	known map[int]bool // the children that were handed out and not waited for
}

// home is a group of version 1 of the daemon's own.
type home struct {
	dir   string
	tasks *os.File
}

func (s *starter) open() {
	s.hire, s.quit, s.stopped, s.known = make(chan chan<- error), make(chan struct{}), make(chan struct{}), map[int]bool{}
	go s.run()
}

// run starts launchers until stop. The thread ends with it, for it is never unlocked, and so does every process that it is the parent of.
func (s *starter) run() {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		// The first thread of a process does not end before the process does. Another one is got while this one is held.
		locked := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(locked)
			s.serve()
		}()
		<-locked
		runtime.UnlockOSThread()
		return
	}
	s.serve()
}

func (s *starter) serve() {
	defer close(s.stopped)
	for {
		select {
		case reply := <-s.hire:
			reply <- s.startLauncher()
		case <-s.quit:
			return
		}
	}
}

// launch has the launcher start an init. A launcher that is found dead is replaced; one that dies of the start makes it fail.
func (s *starter) launch(launch spaceinit.Launch, files []*os.File) (*os.Process, error) {
	s.busy.Lock()
	defer s.busy.Unlock()
	if s.ended {
		return nil, fault.New(fault.Unavailable, "tier_closed", "the daemon is shutting down; no space can be started")
	}
	message := launch.Encode()
	var answer spaceinit.Launched
	var err error
	for fresh := false; ; fresh = true {
		if s.launcher == nil {
			reply := make(chan error)
			s.hire <- reply
			if err := <-reply; err != nil {
				return nil, fmt.Errorf("start the launcher: %w", err)
			}
		}
		if err = s.send(message, files); err == nil {
			answer, err = s.receive()
		}
		// One that was dead before has read nothing: it takes no message any more, or the kernel says that one was left unread.
		if fresh || err != unix.EPIPE && err != unix.ECONNRESET {
			break
		}
		s.dismiss()
	}
	if err != nil || answer.Lost {
		s.dismiss()
	}
	if err == nil && answer.Failed == "" {
		var process *os.Process
		// The process id cannot belong to another process: a child keeps it until its parent has waited for it.
		if process, err = os.FindProcess(int(answer.PID)); err == nil {
			s.mu.Lock()
			s.known[process.Pid] = true
			s.mu.Unlock()
			return process, nil
		}
	}
	if err == nil {
		err = errors.New(answer.Failed)
	}
	return nil, errors.Join(err, s.clear())
}

// startLauncher starts a launcher on the thread. The caller holds busy.
func (s *starter) startLauncher() error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	patience := unix.NsecToTimeval(s.answer.Nanoseconds())
	if err := unix.SetsockoptTimeval(fds[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience); err != nil {
		return errors.Join(err, unix.Close(fds[0]), unix.Close(fds[1]))
	}
	theirs := os.NewFile(uintptr(fds[1]), "launcher")
	files := []*os.File{s.null, s.null, s.null, theirs, s.program}
	for _, h := range s.homes {
		files = append(files, h.tasks)
	}
	argv := []string{spaceinit.LauncherName, s.owner, strconv.Itoa(len(s.homes)), spaceinit.Along}
	attr := &os.ProcAttr{Dir: "/", Env: []string{"GOMAXPROCS=1"}, Files: files, Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL,
		Setsid: true}}
	if s.apart {
		argv[3] = spaceinit.Apart
		attr.Sys.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	}
	process, err := os.StartProcess("/proc/self/fd/"+strconv.Itoa(programFile), argv, attr)
	if err = errors.Join(err, theirs.Close()); err != nil {
		return errors.Join(err, unix.Close(fds[0]))
	}
	s.launcher, s.socket, s.thread = process, fds[0], unix.Gettid()
	return nil
}

// dismiss ends the launcher, if there is one. The inits that it started live on.
func (s *starter) dismiss() {
	if s.launcher == nil {
		return
	}
	_ = unix.Close(s.socket)
	_ = s.launcher.Kill()
	_, _ = s.launcher.Wait()
	s.launcher = nil
}

func (s *starter) send(message []byte, files []*os.File) error {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	for {
		err := unix.Sendmsg(s.socket, message, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
		if err != unix.EINTR {
			runtime.KeepAlive(files)
			return err
		}
	}
}

func (s *starter) receive() (spaceinit.Launched, error) {
	message := make([]byte, spaceinit.MaxLaunch)
	for {
		n, err := unix.Read(s.socket, message)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return spaceinit.Launched{}, fmt.Errorf("the launcher does not answer within %v", s.answer)
		case err != nil:
			return spaceinit.Launched{}, err
		case n == 0:
			return spaceinit.Launched{}, errors.New("the launcher has ended")
		default:
			return spaceinit.DecodeLaunched(message[:n])
		}
	}
}

// clear waits for the children that were not reported: those of a start that failed in the middle.
func (s *starter) clear() error {
	list, err := os.ReadFile(filepath.Join("/proc/self/task", strconv.Itoa(s.thread), "children"))
	if err != nil {
		return nil //nolint:nilerr // a kernel that does not tell; they have ended, or do when they find their connection closed
	}
	for _, text := range strings.Fields(string(list)) {
		pid, err := strconv.Atoi(text)
		s.mu.Lock()
		known := s.known[pid]
		s.mu.Unlock()
		if err != nil || known || s.launcher != nil && pid == s.launcher.Pid {
			continue
		}
		child, err := os.FindProcess(pid)
		if err != nil {
			return err
		}
		_ = child.Kill()
		if _, err := child.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for a process that start returned.
func (s *starter) wait(p *os.Process) error {
	_, err := p.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, p.Pid)
	return err
}

// start starts an init with these descriptors: its connection and its mounts.
func (s *starter) start(launch spaceinit.Launch, files []*os.File, g *group) (*os.Process, error) {
	var opened []*os.File
	defer func() { _ = closeAll(opened) }()
	add := func(path string, flag int) error {
		f, err := os.OpenFile(path, flag, 0)
		if err == nil {
			opened = append(opened, f)
		}
		return err
	}
	for _, entry := range g.entries() {
		at := -1
		for i, h := range s.homes {
			if h.dir == entry.home {
				at = i
			}
		}
		if at < 0 {
			return nil, fmt.Errorf("the launcher could not return from %s", entry.dir)
		}
		if err := add(filepath.Join(entry.dir, "tasks"), os.O_WRONLY); err != nil {
			return nil, err
		}
		launch.Enter = append(launch.Enter, uint32(at))
	}
	if g.v2 != "" {
		if err := add(g.v2, os.O_RDONLY); err != nil {
			return nil, err
		}
		launch.Unified = true
	}
	return s.launch(launch, append(files, opened...))
}

// stop ends the thread, and with it every process that it started. Call it once.
func (s *starter) stop() error {
	s.busy.Lock()
	s.ended = true
	s.dismiss()
	s.busy.Unlock()
	close(s.quit)
	<-s.stopped
	var all error
	for _, h := range s.homes {
		all = errors.Join(all, h.tasks.Close())
	}
	return all
}
