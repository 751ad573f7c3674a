//go:build linux

package namespace

import (
	"errors"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/fault"
)

// starter starts every init from one thread that lives as long as the tier does: a process that asks for a signal when its parent dies gets
// it when the parent's thread dies.
type starter struct {
	orders  chan order
	quit    chan struct{} // closed by stop
	stopped chan struct{} // closed when the thread has no more to do
}

type order struct {
	path  string
	argv  []string
	attr  *os.ProcAttr
	group *group
	reply chan<- started
}

type started struct {
	process *os.Process
	err     error
}

func newStarter() *starter {
	s := &starter{orders: make(chan order), quit: make(chan struct{}), stopped: make(chan struct{})}
	go s.run()
	return s
}

// run starts processes until stop. The thread ends with it, for it is never unlocked, and so does every
// process that it started.
func (s *starter) run() {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The first thread stands for the whole process: where it is, the kernel charges the daemon's memory, and /proc says that the
		// daemon is there. It may never enter the group of a space; while it is held here, the next try gets another one.
		defer runtime.UnlockOSThread()
		go s.run()
		<-s.stopped
		return
	}
	defer close(s.stopped)
	for {
		select {
		case o := <-s.orders:
			process, err := startIn(o)
			o.reply <- started{process, err}
		case <-s.quit:
			return
		}
	}
}

func startIn(o order) (*os.Process, error) {
	if err := o.group.enter(); err != nil {
		return nil, errors.Join(err, o.group.leave())
	}
	if o.group.v2 != "" {
		dir, err := os.Open(o.group.v2)
		if err != nil {
			return nil, errors.Join(err, o.group.leave())
		}
		defer func() { _ = dir.Close() }()
		o.attr.Sys.UseCgroupFD, o.attr.Sys.CgroupFD = true, int(dir.Fd())
	}
	process, err := os.StartProcess(o.path, o.argv, o.attr)
	if left := o.group.leave(); left != nil && err == nil {
		err = errors.Join(left, process.Kill())
		_, _ = process.Wait()
	}
	return process, err
}

// start starts a process.
func (s *starter) start(path string, argv []string, attr *os.ProcAttr, g *group) (*os.Process, error) {
	reply := make(chan started, 1)
	select {
	case s.orders <- order{path, argv, attr, g, reply}:
	case <-s.stopped:
		return nil, fault.New(fault.Unavailable, "tier_closed", "the daemon is shutting down; no space can be started")
	}
	r := <-reply
	return r.process, r.err
}

// stop ends the thread, and with it every process that it started. It is called once.
func (s *starter) stop() {
	close(s.quit)
	<-s.stopped
}

// isolation are the namespaces that every space has of its own.
const isolation = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC |
	syscall.CLONE_NEWUTS | syscall.CLONE_NEWCGROUP
