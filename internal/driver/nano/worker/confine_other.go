//go:build !linux || !(amd64 || arm64)

package worker

import "os/exec"

// Confinement bounds the use of the host by a worker's process.
type Confinement struct {
	DataBytes uint64 // of private writable memory
}

// Confine does nothing where the host has no filter of system calls: there, only WASM and its file system confine the code in a worker
// in memory.
func Confine(Confinement) error { return nil }

// Prepare starts a worker as it is.
func Prepare(c *exec.Cmd) {}
