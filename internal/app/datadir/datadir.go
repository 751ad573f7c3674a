// Package datadir locks data directories and checks their files.
package datadir

import (
	"errors"
	"os"
	"path/filepath"

	"agentbox/internal/domain/fault"
	"agentbox/internal/host"
)

// LockFile is the name of the locked file in a data directory.
const LockFile = "lock"

// Lock is a lock on a data directory, until it is closed or the process ends. The lock is on the directory itself, where nobody can remove
// it, and on a file in it, which earlier versions check.
type Lock struct {
	folder, file *os.File
	also         *Lock // nil for none
}

// AcquireAll locks a data directory, and the folder that it shares with others ("" for none), for this process alone. It returns
// data_in_use while a daemon has one of them.
func AcquireAll(dir, shared string) (*Lock, error) {
	own, err := Acquire(dir)
	if err != nil || shared == "" {
		return own, err
	}
	other, err := Acquire(shared) // this fails while a daemon holds it, alone or with others
	if err != nil {
		return nil, errors.Join(err, own.Close())
	}
	own.also = other
	return own, nil
}

// Acquire locks a data directory for this process alone, and makes it if it is not there. It returns data_in_use while a daemon has it.
func Acquire(dir string) (*Lock, error) { return acquire(dir, host.Exclusive) }

// AcquireShared locks a folder together with other daemons. It returns data_in_use while a program has it alone.
func AcquireShared(dir string) (*Lock, error) { return acquire(dir, host.Shared) }

func acquire(dir string, how host.How) (*Lock, error) {
	if err := Create(dir); err != nil {
		return nil, Unwritable(err, dir)
	}
	folder, err := os.Open(dir)
	if err != nil {
		return nil, Unwritable(err, dir)
	}
	l := &Lock{folder: folder}
	if err := l.lock(dir, how); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lock) lock(dir string, how host.How) (err error) {
	if err := lockAs(l.folder, dir, how); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := l.folder.Chmod(0o700); err != nil {
		return Unwritable(err, dir)
	}
	path := filepath.Join(dir, LockFile)
	if _, err := Regular(path); err != nil {
		return err
	}
	if l.file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR|host.NoFollow|host.Prompt, 0o600); err != nil {
		return Unwritable(err, dir)
	}
	return lockAs(l.file, dir, how)
}

func lockAs(f *os.File, dir string, how host.How) error {
	err := host.Lock(f, how|host.NoWait)
	switch {
	case errors.Is(err, host.ErrLocked):
		return fault.New(fault.Conflict, "data_in_use", "another daemon runs on %s",
			dir).With("use it, stop it, or name another directory with --data")
	case host.Unlockable(err): // a file system that locks no directories
		return errors.ErrUnsupported
	case err != nil:
		return fault.Wrap(err, fault.Unavailable, "data_not_lockable", "%s cannot be locked, so that two daemons might write to it", dir).
			With("name a directory on a local disk with --data")
	}
	return nil
}

// Close releases the lock.
func (l *Lock) Close() error {
	err := l.folder.Close()
	if l.also != nil {
		err = errors.Join(err, l.also.Close())
	}
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	return err
}

// Unwritable returns the error data_unwritable of a data directory that cannot be used.
func Unwritable(err error, dir string) error {
	e := fault.Wrap(err, fault.Unavailable, "data_unwritable", "the data directory %s cannot be written", dir)
	switch {
	case host.Full(err):
		return e.With("its disk is full: make room, or name another directory with --data")
	case host.ReadOnly(err):
		return e.With("its disk is mounted read-only: mend that, or name another directory with --data")
	case host.NoFolder(err):
		return e.With("there is a file in its way; name another directory with --data")
	}
	return e.With("make it yours (chown, chmod 700), or name another directory with --data")
}

// Regular returns the file at a path, nil if there is none. It returns data_invalid for anything but an ordinary file: opening a pipe would
// wait forever, and a link may lead to somebody else's file.
func Regular(path string) (os.FileInfo, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, Unwritable(err, filepath.Dir(path))
	case !info.Mode().IsRegular():
		return nil, fault.New(fault.Invalid, "data_invalid", "%s has to be an ordinary file, and is %s", path, kindOf(info.Mode())).
			With("move it away; what it should hold is put back from a backup")
	}
	return info, nil
}

func kindOf(mode os.FileMode) string {
	switch mode.Type() {
	case os.ModeDir:
		return "a folder"
	case os.ModeSymlink:
		return "a symbolic link"
	case os.ModeNamedPipe:
		return "a pipe"
	case os.ModeSocket:
		return "a socket"
	}
	return "a device"
}

// Create makes a folder and the folders above it, so that they survive a power cut.
func Create(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if above := filepath.Dir(dir); errors.Is(err, os.ErrNotExist) && above != dir {
		if _, there := os.Stat(above); there == nil {
			return err // as in /proc, where nothing can be made although the folder above exists
		}
		if err := Create(above); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o700) // once: what goes away again and again is not made
	}
	switch {
	case errors.Is(err, os.ErrExist):
		return os.MkdirAll(dir, 0o700) // which complains where it is not a folder
	case err != nil:
		return err
	}
	above, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return errors.Join(host.SyncNames(above), above.Close())
}
