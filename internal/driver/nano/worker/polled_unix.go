//go:build unix

package worker

import (
	"io"
	"os"
	"syscall"
)

// Polled returns the pipe of a worker so that its reader waits as a goroutine. A reader in a system call holds a thread. Another thread
// would then execute the order, and would have to be woken while an execution waits for it. Polled returns a source that cannot be polled
// unchanged.
func Polled(in io.Reader) io.Reader {
	f, ok := in.(*os.File)
	if !ok {
		return in
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 || syscall.SetNonblock(int(f.Fd()), true) != nil {
		return in
	}
	return os.NewFile(f.Fd(), f.Name())
}
