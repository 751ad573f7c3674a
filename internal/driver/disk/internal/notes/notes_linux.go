//go:build linux && !portable

package notes

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/driver/disk/internal/beneath"
)

// Notes are the notes of some folders. One goroutine uses them; only Wake may be called from others.
type Notes struct {
	fd    int
	file  *os.File // the same descriptor, for waiting and for its end
	conn  syscall.RawConn
	buf   []byte
	woken atomic.Bool
}

// Open returns empty notes. It returns an error where the host has none left.
func Open() (*Notes, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "inotify")
	conn, err := file.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Notes{fd: fd, file: file, conn: conn, buf: make([]byte, 64<<10)}, nil
}

// Add begins to note the events of a mask in a folder, and returns the folder's number.
func (n *Notes) Add(dir *beneath.Folder, mask uint32) (int32, error) {
	number, err := unix.InotifyAddWatch(n.fd, fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), mask|unix.IN_ONLYDIR)
	return int32(number), err
}

// Remove ends the notes of a folder.
func (n *Notes) Remove(folder int32) {
	_, _ = unix.InotifyRmWatch(n.fd, uint32(folder)) // a folder that is gone has no notes any more
}

// Take calls see for at most 64 KiB of the notes that are there, and returns whether there were any. It does not wait.
func (n *Notes) Take(see func(Note)) (some bool, err error) {
	got, err := unix.Read(n.fd, n.buf)
	for err == unix.EINTR {
		got, err = unix.Read(n.fd, n.buf)
	}
	switch {
	case err == unix.EAGAIN:
		return false, nil
	case err != nil:
		return false, err
	}
	for rest := n.buf[:got]; len(rest) >= unix.SizeofInotifyEvent; {
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
		name, _, _ := bytes.Cut(rest[unix.SizeofInotifyEvent:end], []byte{0})
		see(Note{
			Folder: int32(binary.NativeEndian.Uint32(rest)), Mask: binary.NativeEndian.Uint32(rest[4:]),
			Cookie: binary.NativeEndian.Uint32(rest[8:]), Name: string(name),
		})
		rest = rest[end:]
	}
	return true, nil
}

// Wait returns when there are notes, after Wake, or with the error of ctx.
func (n *Notes) Wait(ctx context.Context) error {
	if err := n.file.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, n.interrupt)()
	if n.woken.Swap(false) || ctx.Err() != nil {
		return ctx.Err()
	}
	err := n.conn.Read(func(fd uintptr) bool {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		some, err := unix.Poll(ready, 0)
		return some > 0 || err != nil && err != unix.EINTR
	})
	n.woken.Store(false)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ctx.Err()
	}
	return err
}

// Wake ends a Wait that is under way, or the next one.
func (n *Notes) Wake() {
	n.woken.Store(true)
	n.interrupt()
}

// interrupt ends a read of the descriptor, by a deadline in the past.
func (n *Notes) interrupt() { _ = n.file.SetReadDeadline(time.Unix(1, 0)) } // a closed descriptor is not waited for

// Close ends all notes.
func (n *Notes) Close() error { return n.file.Close() }
