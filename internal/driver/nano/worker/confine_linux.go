//go:build amd64 || arm64

package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Confinement bounds the use of the host by a worker's process.
type Confinement struct {
	DataBytes uint64 // of private writable memory
}

// maxFiles is how many descriptors a worker may have.
const maxFiles = 64

// calls are the system calls that a worker makes once it has everything that it needs: memory, time, threads, its pipe, and its end. All
// others fail; it opens, connects, starts and signals nothing.
var calls = []uint32{
	unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_FUTEX, unix.SYS_NANOSLEEP,
	unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME,
	unix.SYS_GETTIMEOFDAY, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_CTL, unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE,
	unix.SYS_MREMAP, unix.SYS_MINCORE, unix.SYS_BRK, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN,
	unix.SYS_SIGALTSTACK, unix.SYS_GETTID,
	unix.SYS_GETPID, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_GETRANDOM, unix.SYS_RSEQ,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_RESTART_SYSCALL, unix.SYS_CLOSE, unix.SYS_MEMBARRIER, unix.SYS_PPOLL, unix.SYS_GETRUSAGE,
	unix.SYS_TIMER_SETTIME,
	unix.SYS_TIMER_DELETE,
}

// Confine takes from this process everything that a worker does not need, for good and for every thread of it.
func Confine(c Confinement) error {
	time.AfterFunc(time.Hour, func() {}).Stop() // the runtime makes its poller with the first timer; later it could not
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for what, value := range map[int]uint64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_NOFILE: maxFiles, unix.RLIMIT_DATA: c.DataBytes, unix.RLIMIT_MEMLOCK: 0,
		unix.RLIMIT_MSGQUEUE: 0,
	} {
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("bound the worker (%d): %w", what, err)
		}
	}
	if os.Geteuid() == 0 { // the program itself may lie where only root reaches it, so it is the worker who changes its user
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(nobody, nobody, nobody), syscall.Setresuid(nobody, nobody,
			nobody)); err != nil {
			return fmt.Errorf("give up the user: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("close the worker to others: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up privileges: %w", err)
	}
	program := filter()
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if r, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&prog))); errno != 0 || r != 0 {
		return fmt.Errorf("filter the worker's system calls: %w", errors.Join(errno, fmt.Errorf("thread %d", r)))
	}
	return nil
}

// filter returns the filter of the system calls. A thread may be started, a process not; a thread may be signalled that is the worker's
// own.
func filter() []unix.SockFilter {
	const (
		ok     = unix.SECCOMP_RET_ALLOW
		eperm  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		enosys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	)
	word := func(off uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: off}
	}
	is := func(v uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: yes, Jf: no, K: v}
	}
	ret := func(v uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: v} }
	low := func(argument uint32) uint32 { // of an argument, as this machine orders its bytes
		at := 16 + 8*argument
		if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
			at += 4
		}
		return at
	}
	code := []unix.SockFilter{word(4), is(arch, 1, 0), ret(unix.SECCOMP_RET_KILL_PROCESS), word(0)}
	for _, nr := range calls {
		code = append(code, is(nr, 0, 1), ret(ok))
	}
	code = append(code,
		is(unix.SYS_CLONE, 0, 4), word(low(0)), unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jt: 0, Jf: 1,
			K: unix.CLONE_THREAD}, ret(ok), ret(eperm),
		is(unix.SYS_CLONE3, 0, 1), ret(enosys),
		is(unix.SYS_TGKILL, 0, 4), word(low(0)), is(uint32(os.Getpid()), 0, 1), ret(ok), ret(eperm),
		is(unix.SYS_FCNTL, 0, 4), word(low(1)), is(unix.F_GETFL, 0, 1), ret(ok), ret(eperm),
		ret(eperm),
	)
	return code
}

// Prepare bounds a worker's process before it starts: where the daemon is root it gets no network.
func Prepare(c *exec.Cmd) {
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		c.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC
	}
}

// nobody is the user without rights of every Linux system.
const nobody = 65534
