//go:build unix

package host

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// NoFollow keeps the opening of a path from following a symbolic link at its end, and Prompt from waiting for the other end of a pipe.
const (
	NoFollow = unix.O_NOFOLLOW
	Prompt   = unix.O_NONBLOCK
)

// ErrLocked says that somebody else has a lock.
const ErrLocked = unix.EWOULDBLOCK

// Lock locks a file or a folder. It may be interrupted by a signal: Interrupted tells.
func Lock(f *os.File, how How) error {
	flags := unix.LOCK_SH
	if how&Exclusive != 0 {
		flags = unix.LOCK_EX
	}
	if how&NoWait != 0 {
		flags |= unix.LOCK_NB
	}
	return unix.Flock(int(f.Fd()), flags)
}

// Interrupted reports whether a call ended because of a signal, and may be made again.
func Interrupted(err error) bool { return errors.Is(err, unix.EINTR) }

// Unlockable reports whether a file system does not lock what it was asked to lock.
func Unlockable(err error) bool {
	return errors.Is(err, unix.EBADF) || errors.Is(err, unix.EINVAL)
}

// Lives reports whether there is a process.
func Lives(pid int) bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

// InUse reports whether an address is another program's.
func InUse(err error) bool { return errors.Is(err, unix.EADDRINUSE) }

// Full reports whether a disk or a quota of it has no room.
func Full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// ReadOnly reports whether a file system takes no changes.
func ReadOnly(err error) bool { return errors.Is(err, unix.EROFS) }

// NoFolder reports whether there is something that is not a folder where one is needed.
func NoFolder(err error) bool { return errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EEXIST) }

// SyncNames makes the names in a folder durable.
func SyncNames(folder *os.File) error { return folder.Sync() }

// Size returns how wide and high a terminal is; false where the file is none.
func Size(f *os.File) (width, height int, ok bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return int(size.Col), int(size.Row), true
}

// Unseen keeps a terminal from showing what is typed, until restore is called.
func Unseen(f *os.File) (restore func(), err error) {
	return change(f, func(t *unix.Termios) { t.Lflag &^= unix.ECHO })
}

// KeyByKey makes a terminal give each key as it is pressed, unseen, and answer a read after a tenth of a second in any case. It suspends
// nobody, for a screen would be left behind.
func KeyByKey(f *os.File) (restore func(), err error) {
	return change(f, func(t *unix.Termios) {
		t.Lflag &^= unix.ICANON | unix.ECHO
		t.Cc[unix.VMIN], t.Cc[unix.VTIME], t.Cc[unix.VSUSP] = 0, 1, 0
	})
}

// ByteByByte is as KeyByKey, and no key makes a signal or is changed on its way.
func ByteByByte(f *os.File) (restore func(), err error) {
	return change(f, func(t *unix.Termios) {
		t.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG | unix.IEXTEN
		t.Iflag &^= unix.ICRNL | unix.INLCR | unix.IXON
		t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 0, 1
	})
}

// Forget drops what was typed into a terminal and not read yet, also a line that has no end.
func Forget(f *os.File) error {
	fd := int(f.Fd())
	now, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return err
	}
	return unix.IoctlSetTermios(fd, forgetTermios, now)
}

func change(f *os.File, how func(*unix.Termios)) (restore func(), err error) {
	fd := int(f.Fd())
	was, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	now := *was
	how(&now)
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, was) }, unix.IoctlSetTermios(fd, setTermios, &now)
}

// StepBack has this process give way to others: n is added to its niceness, that of all its threads. It becomes the leader of a process
// group of its own, if it is not one, since the system changes the threads of a process together only as those of a group.
func StepBack(n int) error {
	if unix.Getpgrp() != unix.Getpid() {
		if err := unix.Setpgid(0, 0); err != nil {
			return err
		}
	}
	return unix.Setpriority(unix.PRIO_PGRP, 0, n)
}
