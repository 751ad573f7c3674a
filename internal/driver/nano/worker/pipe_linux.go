package worker

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// pipeBytes is the size of a pipe to a worker: a file of some megabytes, in frames of a quarter of one, goes through the system's 64 KiB
// in forty turns of both sides.
const pipeBytes = 1 << 20

// widen makes a pipe hold more, where it is one and the system allows it.
func widen(end any) {
	file, ok := end.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBytes) })
	}
}
