//go:build unix

package worker

import (
	"io"
	"os"
	"syscall"
)

// Polled returns the pipe of a worker as one whose reader waits among the goroutines. A reader that waits in a system call keeps a
// thread, and what it has read is executed by another, which is woken while an execution waits for it. Where it is no pipe that can be
// waited for so, it is what it was.
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
