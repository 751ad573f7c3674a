//go:build unix

package wall

import (
	"syscall"
	"time"
)

// Processor returns the processor time that this process has used. A bound in this time does not depend on the load of the machine.
func Processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // no kernel refuses it
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
