// Package beneath reaches below a folder whose contents hostile code may change at any moment, and nowhere else.
package beneath

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

// The permission bits of what is made below such a folder.
const (
	FileMode   = 0o644
	FolderMode = 0o755
	ExecBits   = 0o111 // kept where a file had any
)

// resolve is how every path of a space is resolved: below the folder that is held open, without following a symbolic link (code inside
// made it, for reasons of its own), a kernel link such as those of /proc, or a mount point. The kernel checks it in the step that opens,
// so there is nothing to race.
const resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// openFlags are those of every descriptor made here: nothing is inherited by a child, and nothing waits for a pipe's other end or for a
// lease to be given back.
const openFlags = unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY

// Open opens rel below dir.
func Open(dir *os.File, rel string, flags int) (*os.File, error) {
	how := unix.OpenHow{Flags: uint64(flags | openFlags), Resolve: resolve}
	if flags&unix.O_PATH != 0 {
		how.Flags &^= unix.O_NONBLOCK | unix.O_NOCTTY // openat2 refuses what O_PATH ignores
	}
	if flags&unix.O_CREAT != 0 {
		how.Mode = 0o600
	}
	for {
		fd, err := unix.Openat2(int(dir.Fd()), rel, &how)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		return os.NewFile(uintptr(fd), rel), nil
	}
}

// Dir opens the folder rel below dir for reading; "." is dir itself.
func Dir(dir *os.File, rel string) (*os.File, error) {
	return Open(dir, rel, unix.O_RDONLY|unix.O_DIRECTORY)
}

// Regular opens the regular file rel below dir for reading and returns what it is. It looks before it opens, through a descriptor
// that does nothing but name the file, so a device or a pipe is refused without ever having been opened.
func Regular(dir *os.File, rel string) (*os.File, unix.Stat_t, error) {
	var st unix.Stat_t
	name, err := Open(dir, rel, unix.O_PATH)
	if err != nil {
		return nil, st, err
	}
	defer name.Close()
	if err := unix.Fstat(int(name.Fd()), &st); err != nil {
		return nil, st, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		return nil, st, unix.EISDIR
	default:
		return nil, st, space.ErrNotAFile
	}
	// This link of /proc names the very file that was looked at, whatever has become of its path.
	for {
		fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", name.Fd()), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, st, err
		}
		return os.NewFile(uintptr(fd), rel), st, nil
	}
}

// Lstat describes name in dir without following it.
func Lstat(dir *os.File, name string) (unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	return st, err
}

// Readlink returns the text of the symbolic link name in dir, at most 4,095 bytes of it.
func Readlink(dir *os.File, name string) (string, error) {
	buf := make([]byte, unix.PathMax-1)
	n, err := unix.Readlinkat(int(dir.Fd()), name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// RenameNew moves a file or folder to a name that must be free: unix.EEXIST if it is not.
func RenameNew(from *os.File, old string, to *os.File, name string) error {
	err := unix.Renameat2(int(from.Fd()), old, int(to.Fd()), name, unix.RENAME_NOREPLACE)
	if err != unix.EINVAL && err != unix.ENOSYS {
		return err
	}
	// A file system without this rename can link a file under a free name just as surely.
	if err := unix.Linkat(int(from.Fd()), old, int(to.Fd()), name, 0); err != nil {
		return err
	}
	return unix.Unlinkat(int(from.Fd()), old, 0)
}

// Split returns the folder and the last name of a cleaned path.
func Split(p string) (dir, name string) {
	dir, name = path.Split(p)
	if dir = strings.TrimSuffix(dir, "/"); dir == "" {
		dir = "."
	}
	return dir, name
}

// Refusal turns what the kernel said about a path of a space into a fault that says it to people.
func Refusal(err error, p string) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok && !errors.Is(err, space.ErrNotAFile) {
		return err
	}
	shown := fmt.Sprintf("%+q", p)
	for _, r := range [...]struct {
		is     error
		as     *fault.Error
		format string
	}{
		{unix.ENOENT, space.ErrFileNotFound, "there is no %s"},
		{unix.EEXIST, space.ErrFileExists, "%s exists; set overwrite to replace it"},
		{unix.EISDIR, space.ErrNotAFile, "%s is a directory, not a file"},
		{space.ErrNotAFile, space.ErrNotAFile, "%s is a pipe, a socket or a device, not a file"},
		{unix.ENOTDIR, space.ErrNotADirectory, "%s goes through, or is, something that is not a directory"},
		{unix.ELOOP, space.ErrLink, "%s is a symbolic link or goes through one; name the file itself"},
		{unix.EXDEV, space.ErrMount, "%s leaves the space's own file system"},
		{unix.EAGAIN, space.ErrFileBusy, "a program in the space holds %s; try again when it has ended"},
		{unix.ETXTBSY, space.ErrFileBusy, "a program in the space holds %s; try again when it has ended"},
		{unix.ENAMETOOLONG, space.ErrInvalidPath, "%s is too long for the file system"},
		{unix.ENOSPC, space.ErrDiskFull, "%s cannot be written: the host's disk is full"},
		{unix.EDQUOT, space.ErrDiskFull, "%s cannot be written: the host's disk quota is used up"},
	} {
		if errors.Is(err, r.is) {
			return fault.Wrap(err, r.as.Kind, r.as.Code, r.format, shown)
		}
	}
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return fault.Wrap(err, fault.Denied, "file_access_denied", "the file's permission bits keep %s from being touched", shown)
	}
	if errors.Is(err, unix.ENOSYS) {
		return fault.Wrap(err, fault.Unavailable, "kernel_too_old", "the host's kernel lacks openat2; Linux 5.6 or later is needed")
	}
	return fault.Wrap(err, fault.Internal, "file_error", "%s cannot be accessed", shown)
}

// Root opens a folder by its path on the host, which the daemon alone controls.
func Root(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fault.Wrap(err, fault.NotFound, "space_files_missing", "the space's files are not on this host")
	}
	return os.NewFile(uintptr(fd), dir), nil
}
