//go:build linux

package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// gate32 makes the 32-bit system call 20, getpid, through the old gate.
func gate32() uint32

var otherInterfaces = []try{
	// The x32 interface, and the largest number, which no kernel knows.
	refusedWith(unix.ENOSYS, func() error { return call(0x40000000 | unix.SYS_GETPID) }),
	refusedWith(unix.ENOSYS, func() error { return call(0x3fffffff) }),
	// The filter ends a process that tries the 32-bit gate, so this one is not survived.
	func(string) error {
		if pid := gate32(); int32(pid) > 0 {
			return nil
		}
		return syscall.ENOSYS
	},
}
