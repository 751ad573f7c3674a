//go:build linux

package main

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// vfork clones the calling thread with the given flags; the caller waits until the child has executed a program or ended.
func vfork(flags uintptr) (pid, errno uintptr)

// The runtime's own preparations around a fork, which package syscall uses in the same way. Its fork cannot be used: it has no way to make
// the child a subreaper, and that flag is what keeps all that a command starts below it.

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

// program is a child's program, in the kernel's form.
type program struct {
	path  *byte
	argv  []*byte
	env   []*byte
	cwd   *byte
	files [5]uintptr // descriptors, all above 4, for stdin, stdout and stderr, and for messages to and from the daemon
	count uintptr    // how many of them the program gets
	tty   bool       // they are the terminal of the session
}

// spawn starts a program as a child that is the leader of a new session and the subreaper of all its descendants, with no descriptors but
// those given. It returns the child's process id once the program runs.
func spawn(p *program) (int, error) {
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	var failed uintptr
	pid, errno := forkExec(p, &failed)
	afterFork()
	runtime.KeepAlive(p)
	if errno != 0 {
		return 0, syscall.Errno(errno)
	}
	if failed != 0 {
		// The child has ended and is reaped like every other.
		return int(pid), syscall.Errno(failed)
	}
	return int(pid), nil
}

// forkExec forks; the child never returns from it. The child shares this memory, so it may call nothing but the kernel, and it says
// through failed why it could not go on.
//
//go:noinline
//go:norace
//go:nocheckptr
func forkExec(p *program, failed *uintptr) (pid, errno uintptr) {
	path, argv, env, cwd, files, count, tty := p.path, &p.argv[0], &p.env[0], p.cwd, p.files, p.count, p.tty
	beforeFork()
	pid, errno = vfork(uintptr(unix.SIGCHLD) | unix.CLONE_VFORK | unix.CLONE_VM)
	if errno != 0 || pid != 0 {
		return pid, errno // at once: the child has used this frame
	}
	afterForkInChild()
	var e syscall.Errno
	if _, _, e = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0); e != 0 {
		goto fail
	}
	if _, _, e = syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0); e != 0 {
		goto fail
	}
	for i := uintptr(0); i < count; i++ {
		if _, _, e = syscall.RawSyscall(unix.SYS_DUP3, files[i%uintptr(len(files))], i, 0); e != 0 {
			goto fail
		}
	}
	if tty {
		if _, _, e = syscall.RawSyscall(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0); e != 0 {
			goto fail
		}
	}
	if _, _, e = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, count, ^uintptr(0)>>32, 0); e != 0 {
		goto fail
	}
	if _, _, e = syscall.RawSyscall(unix.SYS_CHDIR, uintptr(unsafe.Pointer(cwd)), 0, 0); e != 0 {
		goto fail
	}
	_, _, e = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(argv)), uintptr(unsafe.Pointer(env)))
fail:
	*failed = uintptr(e)
	for {
		syscall.RawSyscall(unix.SYS_EXIT, 253, 0, 0)
	}
}
