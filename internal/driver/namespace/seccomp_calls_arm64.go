//go:build linux && arm64

package namespace

import "golang.org/x/sys/unix"

// auditArch is the kernel's number of this architecture.
const auditArch = unix.AUDIT_ARCH_AARCH64

// allowedHere are those that only this architecture has.
var allowedHere = []uint32{
	unix.SYS_FSTATAT,
}

// deniedHere are those that are refused.
var deniedHere = []uint32{
	unix.SYS_NFSSERVCTL,
}
