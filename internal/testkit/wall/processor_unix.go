//go:build unix

package wall

import (
	"syscall"
	"time"
)

// Processor returns the processor time that this process has used. What a test bounds by it does not depend on what else the machine does.
func Processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // no kernel refuses it
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
