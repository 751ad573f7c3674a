package worker_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// escapes tries what a worker must not be able to do, and prints what worked.
func escapes(out func(int, []byte) error) (worked int) {
	for _, try := range []struct {
		name string
		do   func() error
	}{
		{"open", func() error { _, err := os.Open("/etc/passwd"); return err }},
		{"create", func() error { return os.WriteFile("/tmp/agentbox-worker-was-here", nil, 0o644) }},
		{"stat", func() error { _, err := os.Stat("/"); return err }},
		{"list", func() error { _, err := os.ReadDir("/proc"); return err }},
		{"socket", func() error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); return err }},
		{"unix socket", func() error { _, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err }},
		{"socketpair", func() error { _, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err }},
		{"exec", func() error { return unix.Exec("/bin/true", []string{"true"}, nil) }},
		{"start", func() error { _, err := syscall.ForkExec("/bin/true", []string{"true"}, nil); return err }},
		{"fork", func() error {
			_, _, errno := unix.RawSyscall(unix.SYS_CLONE, 0, 0, 0)
			if errno != 0 {
				return errno
			}
			return nil
		}},
		{"signal", func() error { return unix.Kill(os.Getppid(), 0) }},
		{"signal a thread of another", func() error { return unix.Tgkill(os.Getppid(), os.Getppid(), 0) }},
		{"trace", func() error { return unix.PtraceAttach(os.Getppid()) }},
		{"memory of another", func() error {
			_, err := unix.ProcessVMReadv(os.Getppid(), nil, nil, 0)
			return err
		}},
		{"memfd", func() error { _, err := unix.MemfdCreate("x", 0); return err }},
		{"pipe", func() error { var p [2]int; return unix.Pipe2(p[:], 0) }},
		{"mount", func() error { return unix.Mount("none", "/", "tmpfs", 0, "") }},
		{"unshare", func() error { return unix.Unshare(unix.CLONE_NEWUSER) }},
		{"bpf", func() error { _, _, errno := unix.Syscall(unix.SYS_BPF, 0, 0, 0); return errno }},
		{"io_uring", func() error { _, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0); return errno }},
		{"rlimit", func() error { return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: 1 << 40, Max: 1 << 40}) }},
		{"prctl", func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) }},
		{"execute what is in memory", func() error {
			fd, err := unix.MemfdCreate("x", unix.MFD_CLOEXEC)
			if err != nil {
				return err
			}
			_, _, errno := unix.Syscall6(unix.SYS_EXECVEAT, uintptr(fd), 0, 0, 0, unix.AT_EMPTY_PATH, 0)
			return errno
		}},
		{"trace a sibling", func() error { return unix.PtraceSeize(os.Getpid() + 1) }},
		{"be traced", func() error { _, _, errno := unix.RawSyscall(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0); return errno }},
		{"memory of its own, as a file", func() error { _, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0); return err }},
		{"descriptors", func() error { _, err := os.ReadDir("/proc/self/fd"); return err }},
		{"open beneath", func() error { _, err := unix.Openat2(0, ".", &unix.OpenHow{}); return err }},
		{"handle", func() error { _, _, err := unix.NameToHandleAt(unix.AT_FDCWD, "/", 0); return err }},
		{"link", func() error {
			return unix.Linkat(unix.AT_FDCWD, "/etc/passwd", unix.AT_FDCWD, "/tmp/agentbox-worker-link", 0)
		}},
		{"rename", func() error { return unix.Rename("/tmp/agentbox-worker-a", "/tmp/agentbox-worker-b") }},
		{"folder", func() error { return unix.Chdir("/tmp") }},
		{"root", func() error { return unix.Chroot("/") }},
		{"user", func() error { return unix.Setresuid(0, 0, 0) }},
		{"a filter of its own", func() error { return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_STRICT, 0, 0, 0) }},
		{"keys", func() error {
			_, err := unix.KeyctlInt(unix.KEYCTL_GET_KEYRING_ID, unix.KEY_SPEC_SESSION_KEYRING, 1, 0, 0)
			return err
		}},
		{"page faults", func() error { _, _, errno := unix.RawSyscall(unix.SYS_USERFAULTFD, 0, 0, 0); return errno }},
		{"performance", func() error { _, err := unix.PerfEventOpen(&unix.PerfEventAttr{}, 0, -1, -1, 0); return err }},
		{"a descriptor of another", func() error { _, err := unix.PidfdOpen(os.Getppid(), 0); return err }},
		{"messages", func() error { _, _, errno := unix.RawSyscall(unix.SYS_MQ_OPEN, 0, 0, 0); return errno }},
		{"shared memory", func() error { _, err := unix.SysvShmGet(1, 4096, 0o1600); return err }},
		{"ioctl", func() error { _, err := unix.IoctlGetInt(0, unix.TIOCOUTQ); return err }},
		{"splice", func() error { _, err := unix.Splice(0, nil, 1, nil, 1, unix.SPLICE_F_NONBLOCK); return err }},
		{"the clock", func() error { return unix.ClockSettime(unix.CLOCK_REALTIME, &unix.Timespec{}) }},
		{"the host's name", func() error { return unix.Sethostname([]byte("x")) }},
		{"a larger priority", func() error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -5) }},
		{"a session", func() error { _, err := unix.Setsid(); return err }},
		{"duplicate", func() error { _, err := unix.FcntlInt(0, unix.F_DUPFD, 10); return err }},
	} {
		if err := try.do(); err == nil || err == unix.Errno(0) {
			worked++
			_ = out(1, fmt.Appendf(nil, "%s ", try.name))
		}
	}
	return worked
}

func TestAWorkerReachesNothing(t *testing.T) {
	r, err := run(t, newPool(t, 1), order("escape"), &folder{})
	if err != nil || r.Code != 0 || r.out != "" {
		t.Errorf("got %+v, %v: %s worked", r.Outcome, err, r.out)
	}
}
