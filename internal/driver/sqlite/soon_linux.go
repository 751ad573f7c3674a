package sqlite

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// syncSlice is for how long the thread that waits for the disk asks to run at a time.
const syncSlice = 100 * time.Microsecond

// soon gives the calling goroutine a thread of its own, which the kernel lets run as soon as it can: it asks for short slices, which Linux
// honours since 6.12, and needs no privilege. Waiting for the disk is waking up two or three times; each time, behind two threads that
// compute on two cores, cost half a millisecond. Where the kernel knows nothing of this it stays as it was, and so does how nice the
// process is.
func soon() {
	runtime.LockOSThread() // and with the goroutine the thread ends
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL {
		return
	}
	attr.Runtime = uint64(syncSlice)
	_ = unix.SchedSetAttr(0, attr, 0)
}
