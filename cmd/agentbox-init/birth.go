//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentbox/internal/spaceinit"
)

// isolation are the namespaces that every space has of its own.
const isolation = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// builders are the privileges, over its own namespaces only, that an init starts with.
const builders = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_SYS_RESOURCE

// birth is the start of one init. It is forked and not started by package os: the child is to be the daemon's own, which with a group of
// version 2 package syscall cannot say, and has to wait for its user in between.
type birth struct {
	argv, env []*byte
	files     []int // what the init gets from descriptor 3 on; above them all, as the others here
	gate      [2]int
	report    [2]int
	group     int // folder of a group of version 2, -1 for none
	inside    uintptr
	forget    bool // the groups of the launcher's user
	pid       int
}

// highest is above every descriptor of an init.
const highest = 100

// newBirth takes copies of the descriptors. The caller closes it, also when it fails.
func newBirth(request spaceinit.Launch, files []int) (b *birth, err error) {
	b = &birth{gate: [2]int{-1, -1}, report: [2]int{-1, -1}, group: -1, inside: uintptr(request.Inside), forget: request.Groups}
	if b.argv, err = syscall.SlicePtrFromStrings(request.Args); err != nil {
		return b, err
	}
	if b.env, err = syscall.SlicePtrFromStrings([]string{"GOMAXPROCS=2"}); err != nil {
		return b, err
	}
	high := func(fd int) int {
		copied, failed := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, highest)
		err = errors.Join(err, failed)
		return copied
	}
	for _, fd := range files {
		b.files = append(b.files, high(fd))
	}
	for _, pipe := range []*[2]int{&b.gate, &b.report} {
		var low [2]int
		if failed := unix.Pipe2(low[:], unix.O_CLOEXEC); failed != nil {
			return b, failed
		}
		for i, fd := range low {
			pipe[i] = high(fd)
			err = errors.Join(err, unix.Close(fd))
		}
	}
	return b, err
}

// close gives up what the launcher has of it.
func (b *birth) close() {
	for _, fd := range append(b.files, b.gate[0], b.gate[1], b.report[0], b.report[1]) {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// shut closes one end of a pipe.
func shut(end *int) error {
	err := unix.Close(*end)
	*end = -1
	return err
}

// fork forks the child, which waits at the gate.
func (b *birth) fork() error {
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	pid, errno := b.forkExec()
	afterFork()
	runtime.KeepAlive(b)
	if errno != 0 {
		return fmt.Errorf("make the namespaces of a space: %w", syscall.Errno(errno))
	}
	b.pid = int(pid)
	return errors.Join(shut(&b.gate[0]), shut(&b.report[1]))
}

// abandon lets a child that was forked end at the gate. The daemon, whose child it is, waits for it.
func (b *birth) abandon() {
	if b.gate[1] >= 0 {
		_ = shut(&b.gate[1])
	}
}

// proceed opens the gate and waits until the child has executed the program.
func (b *birth) proceed() error {
	if _, err := unix.Write(b.gate[1], []byte{1}); err != nil {
		return err
	}
	var report [8]byte
	n := 0
	if err := again(func() (err error) {
		n, err = unix.Read(b.report[0], report[:])
		return err
	}); n <= 0 || err != nil {
		return err
	}
	step, errno := binary.NativeEndian.Uint32(report[0:4]), binary.NativeEndian.Uint32(report[4:8])
	return fmt.Errorf("start the init, step %d: %w", step, syscall.Errno(errno))
}

// clone3 are the arguments of the system call of that name.
type clone3 struct{ flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64 }

// forkExec forks; the child never returns from it. The child has its own copy of this memory but none of the runtime's other threads, so it
// calls nothing but the kernel.
//
//go:noinline
//go:norace
//go:nocheckptr
func (b *birth) forkExec() (pid, errno uintptr) {
	var (
		e      syscall.Errno
		empty  byte
		report [2]uint32
		sets   [2]unix.CapUserData
		header = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		// With CLONE_PARENT a child gets the launcher's own exit signal.
		args = clone3{flags: isolation | unix.CLONE_PARENT | unix.CLONE_INTO_CGROUP, cgroup: uint64(b.group)}
		argv = &b.argv[0]
		env  = &b.env[0]
	)
	beforeFork()
	if b.group >= 0 {
		pid, _, e = syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
	} else {
		pid, _, e = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD)|isolation|unix.CLONE_PARENT, 0, 0, 0, 0, 0)
	}
	if e != 0 || pid != 0 {
		return pid, uintptr(e)
	}
	afterForkInChild()
	report[0] = 1
	if _, _, e = syscall.RawSyscall(unix.SYS_CLOSE, uintptr(b.gate[1]), 0, 0); e != 0 {
		goto fail
	}
	if n, _, _ := syscall.RawSyscall(unix.SYS_READ, uintptr(b.gate[0]), uintptr(unsafe.Pointer(&empty)), 1); n != 1 {
		goto end // the launcher has given it up, or is gone
	}
	empty = 0
	report[0] = 2
	if _, _, e = syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0); e != 0 {
		goto fail
	}
	report[0] = 3 // its user
	if b.forget {
		if _, _, e = syscall.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
			goto fail
		}
	}
	if _, _, e = syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_KEEPCAPS, 1, 0); e != 0 {
		goto fail
	}
	if _, _, e = syscall.RawSyscall(unix.SYS_SETRESGID, b.inside, b.inside, b.inside); e != 0 {
		goto fail
	}
	if _, _, e = syscall.RawSyscall(unix.SYS_SETRESUID, b.inside, b.inside, b.inside); e != 0 {
		goto fail
	}
	report[0] = 4 // death with the thread of the daemon, after the change of user, which clears it
	if _, _, e = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0); e != 0 {
		goto fail
	}
	report[0] = 5 // privileges that stay over the execution
	sets[0] = unix.CapUserData{Effective: builders, Permitted: builders, Inheritable: builders}
	if _, _, e = syscall.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets[0])), 0); e != 0 {
		goto fail
	}
	for c := uintptr(0); c < 32; c++ {
		if builders&(1<<c) != 0 {
			if _, _, e = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, c, 0, 0, 0); e != 0 {
				goto fail
			}
		}
	}
	report[0] = 6
	for i := range b.files {
		if _, _, e = syscall.RawSyscall(unix.SYS_DUP3, uintptr(b.files[i]), uintptr(i)+connection, 0); e != 0 {
			goto fail
		}
	}
	// The end of the report closes when the program is executed.
	if _, _, e = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, uintptr(len(b.files))+connection, uintptr(b.report[1])-1, 0); e != 0 {
		goto fail
	}
	if _, _, e = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, uintptr(b.report[1])+1, ^uintptr(0)>>32, 0); e != 0 {
		goto fail
	}
	report[0] = 7
	_, _, e = syscall.RawSyscall6(unix.SYS_EXECVEAT, started, uintptr(unsafe.Pointer(&empty)), uintptr(unsafe.Pointer(argv)),
		uintptr(unsafe.Pointer(env)), unix.AT_EMPTY_PATH, 0)
fail:
	report[1] = uint32(e)
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, uintptr(b.report[1]), uintptr(unsafe.Pointer(&report)), unsafe.Sizeof(report))
end:
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 253, 0, 0)
	}
}
