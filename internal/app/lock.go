package app

import (
	"errors"
	"os"
	"path/filepath"

	"agentbox/internal/domain/fault"
	"agentbox/internal/host"
)

// lockName is the name of the locked file.
const lockName = "lock"

// claimed is a data directory that this process holds alone, until it closes it or ends. The lock is on the directory itself, where nobody
// can remove it, and on a file in it, which earlier versions check.
type claimed struct {
	folder, file *os.File
	also         *claimed // nil for nothing
}

// claimAll takes the data directory, and the folder that it shares with others, for this process alone.
func claimAll(c Config) (*claimed, error) {
	own, err := claim(c.DataDir)
	if err != nil || c.Shared == "" {
		return own, err
	}
	shared, err := claim(c.Shared) // this fails while a daemon holds it, alone or with others
	if err != nil {
		return nil, errors.Join(err, own.Close())
	}
	own.also = shared
	return own, nil
}

// claim takes the data directory for this process alone, and makes it if it is not there.
func claim(dir string) (*claimed, error) { return claimAs(dir, host.Exclusive) }

// claimTogether takes a folder shared with others, and excludes programs that want it exclusively.
func claimTogether(dir string) (*claimed, error) { return claimAs(dir, host.Shared) }

func claimAs(dir string, how host.How) (*claimed, error) {
	if err := makeDurably(dir); err != nil {
		return nil, unwritable(err, dir)
	}
	folder, err := os.Open(dir)
	if err != nil {
		return nil, unwritable(err, dir)
	}
	c := &claimed{folder: folder}
	if err := c.take(dir, how); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *claimed) take(dir string, how host.How) (err error) {
	if err := lockAs(c.folder, dir, how); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := c.folder.Chmod(0o700); err != nil {
		return unwritable(err, dir)
	}
	path := filepath.Join(dir, lockName)
	if _, err := regular(path); err != nil {
		return err
	}
	if c.file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR|host.NoFollow|host.Prompt, 0o600); err != nil {
		return unwritable(err, dir)
	}
	return lockAs(c.file, dir, how)
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

// Close gives the data directory free.
func (c *claimed) Close() error {
	err := c.folder.Close()
	if c.also != nil {
		err = errors.Join(err, c.also.Close())
	}
	if c.file != nil {
		err = errors.Join(err, c.file.Close())
	}
	return err
}

// unwritable returns the error of a data directory that cannot be used.
func unwritable(err error, dir string) error {
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

// regular returns the file at a path, nil if there is none. It refuses anything but an ordinary file: opening a pipe would wait forever,
// and a link may lead to somebody else's file.
func regular(path string) (os.FileInfo, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, unwritable(err, filepath.Dir(path))
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

// makeDurably makes a folder and the folders above it, so that they survive a power cut.
func makeDurably(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if above := filepath.Dir(dir); errors.Is(err, os.ErrNotExist) && above != dir {
		if _, there := os.Stat(above); there == nil {
			return err // as in /proc, where nothing can be made although the folder above exists
		}
		if err := makeDurably(above); err != nil {
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
