//go:build unix && (!linux || portable)

package beneath

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// NoFollow keeps the opening of a path from following a symbolic link at its end.
const NoFollow = unix.O_NOFOLLOW

// ForSync are the flags with which a file is opened to be made durable.
const ForSync = os.O_RDONLY

// noWait keeps the opening of a file from waiting for another end.
const noWait = unix.O_NONBLOCK | unix.O_NOCTTY

// plain returns the number in a system's error.
func plain(err error) error {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number
	}
	return err
}

func described(_ *Folder, _ string, info os.FileInfo) Stat { return statOf(info) }

func opened(_ Handle, info os.FileInfo) Stat { return statOf(info) }

func link(from *Folder, old string, to *Folder, name string) error {
	return unix.Linkat(int(from.Fd()), old, int(to.Fd()), name, 0)
}

func unlink(dir *Folder, name string) error {
	err := unix.Unlinkat(int(dir.Fd()), name, 0)
	if err != unix.EPERM {
		return err
	}
	if _, st, failed := dir.look(name); failed == nil && st.Mode&TypeBits == TypeFolder {
		return unix.EISDIR
	}
	return err
}

func rename(from *Folder, old string, to *Folder, name string) error {
	return unix.Renameat(int(from.Fd()), old, int(to.Fd()), name)
}

func fchmod(f Handle, mode uint32) error { return unix.Fchmod(int(f.Fd()), mode) }

func chmod(dir *Folder, name string, mode uint32) error {
	return unix.Fchmodat(int(dir.Fd()), name, mode, 0)
}

func fchown(f Handle, uid int) error { return unix.Fchown(int(f.Fd()), uid, uid) }

func lchown(dir *Folder, name string, uid, gid int) error {
	return unix.Fchownat(int(dir.Fd()), name, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
}

func syncNames(dir *os.File) error { return dir.Sync() }

// SyncPath makes the names in a folder durable.
func SyncPath(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return syncNames(dir)
}

// Tick returns the time of the file system's clock, which the times of changes use. It changes the times of a folder for that.
func Tick(path string) (Time, error) {
	if err := unix.Utimes(path, nil); err != nil {
		return Time{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return Time{}, err
	}
	return statOf(info).Ctim, nil
}
