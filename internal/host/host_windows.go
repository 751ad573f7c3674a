package host

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// NoFollow and Prompt are 0 here: files that are opened with them lie in folders that only the user can write to.
const (
	NoFollow = 0
	Prompt   = 0
)

// ErrLocked says that somebody else has a lock.
const ErrLocked = windows.ERROR_LOCK_VIOLATION

// errDirectory is what a folder is answered with that is to be locked.
const errDirectory = windows.ERROR_INVALID_PARAMETER

// Lock locks a file. A folder cannot be locked here: Unlockable tells.
func Lock(f *os.File, how How) error {
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return errors.Join(err, errDirectory)
	}
	var flags uint32
	if how&Exclusive != 0 {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	if how&NoWait != 0 {
		flags |= windows.LOCKFILE_FAIL_IMMEDIATELY
	}
	// One byte far behind what a file holds, for a locked one could not be read by others.
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
}

// Interrupted reports whether a call ended because of a signal, which does not happen here.
func Interrupted(error) bool { return false }

// Unlockable reports whether a file system does not lock what it was asked to lock.
func Unlockable(err error) bool { return errors.Is(err, errDirectory) }

// Lives reports whether there is a process.
func Lives(pid int) bool {
	const running = 259 // STILL_ACTIVE
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return errors.Is(err, windows.ERROR_ACCESS_DENIED)
	}
	defer func() { _ = windows.CloseHandle(h) }()
	var code uint32
	return windows.GetExitCodeProcess(h, &code) != nil || code == running
}

// InUse reports whether an address is another program's.
func InUse(err error) bool {
	return errors.Is(err, windows.WSAEADDRINUSE) || errors.Is(err, windows.WSAEACCES)
}

// Full reports whether a disk has no room.
func Full(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) || errors.Is(err, syscall.ENOSPC)
}

// ReadOnly reports whether a file system takes no changes.
func ReadOnly(err error) bool { return errors.Is(err, windows.ERROR_WRITE_PROTECT) }

// NoFolder reports whether there is something that is not a folder where one is needed.
func NoFolder(err error) bool {
	return errors.Is(err, windows.ERROR_DIRECTORY) || errors.Is(err, windows.ERROR_ALREADY_EXISTS) || errors.Is(err, syscall.ENOTDIR)
}

// SyncNames does nothing: the names in a folder are made durable by the file system's own journal.
func SyncNames(*os.File) error { return nil }

// Size returns how wide and high a terminal is; false where the file is none.
func Size(f *os.File) (width, height int, ok bool) {
	var b windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(windows.Handle(f.Fd()), &b); err != nil {
		return 0, 0, false
	}
	return int(b.Window.Right-b.Window.Left) + 1, int(b.Window.Bottom-b.Window.Top) + 1, true
}

// Unseen keeps a terminal from showing what is typed, until restore is called.
func Unseen(f *os.File) (restore func(), err error) {
	h := windows.Handle(f.Fd())
	var was uint32
	if err := windows.GetConsoleMode(h, &was); err != nil {
		return nil, err
	}
	return func() { _ = windows.SetConsoleMode(h, was) }, windows.SetConsoleMode(h, was&^windows.ENABLE_ECHO_INPUT)
}

// KeyByKey is not to be had here: a read of a console ends with a key and with nothing else.
func KeyByKey(*os.File) (restore func(), err error) { return nil, errors.ErrUnsupported }

// ByteByByte is not to be had here either.
func ByteByByte(*os.File) (restore func(), err error) { return nil, errors.ErrUnsupported }

// Forget drops what was typed into a console and not read yet.
func Forget(f *os.File) error { return windows.FlushConsoleInputBuffer(windows.Handle(f.Fd())) }

// StepBack has this process give way to others.
func StepBack(int) error {
	return windows.SetPriorityClass(windows.CurrentProcess(), windows.BELOW_NORMAL_PRIORITY_CLASS)
}
