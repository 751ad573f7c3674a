//go:build unix

package worker

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns how long this process has used a processor.
func (p *pace) processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return p.wall.elapsed()
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
