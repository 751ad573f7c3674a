// Package beneath reaches below a folder whose contents hostile code may change at any moment, and nowhere else.
package beneath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/freespace"
)

// The permission bits of new files and folders below such a folder.
const (
	FileMode   = 0o644
	FolderMode = 0o755
	ExecBits   = 0o111 // kept where a file had any
)

// Types of files, as bits of Stat.Mode.
const (
	TypeBits   = 0o170000
	TypeFile   = 0o100000
	TypeFolder = 0o040000
	TypeLink   = 0o120000
)

// Handle is an open file or folder.
type Handle interface {
	Fd() uintptr
	Stat() (os.FileInfo, error)
	Chmod(os.FileMode) error
	Sync() error
}

// Split returns the folder and the last name of a cleaned path.
func Split(p string) (dir, name string) {
	dir, name = path.Split(p)
	if dir = strings.TrimSuffix(dir, "/"); dir == "" {
		dir = "."
	}
	return dir, name
}

// Refusal turns the kernel's error about a path of a space into a fault for people.
func Refusal(err error, p string) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok && !errors.Is(err, space.ErrNotAFile) {
		return err
	}
	shown := fmt.Sprintf("%+q", p)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			err = at.Err // who uses a space is not told where the host keeps it
		}
		return freespace.Refused(err, "; "+shown+" cannot be written")
	}
	for _, r := range [...]struct {
		is     error
		as     *fault.Error
		format string
	}{
		{syscall.ENOENT, space.ErrFileNotFound, "there is no %s"},
		{syscall.EEXIST, space.ErrFileExists, "%s exists; set overwrite to replace it"},
		{syscall.EISDIR, space.ErrNotAFile, "%s is a directory, not a file"},
		{space.ErrNotAFile, space.ErrNotAFile, "%s is a pipe, a socket or a device, not a file"},
		{syscall.ENOTDIR, space.ErrNotADirectory, "%s goes through, or is, something that is not a directory"},
		{syscall.ELOOP, space.ErrLink, "%s is a symbolic link or goes through one; name the file itself"},
		{syscall.EXDEV, space.ErrMount, "%s leaves the space's own file system"},
		{syscall.EAGAIN, space.ErrFileBusy, "a program in the space holds %s; try again when it has ended"},
		{syscall.ETXTBSY, space.ErrFileBusy, "a program in the space holds %s; try again when it has ended"},
		{syscall.ENAMETOOLONG, space.ErrInvalidPath, "%s is too long for the file system"},
	} {
		if errors.Is(err, r.is) {
			return fault.Wrap(err, r.as.Kind, r.as.Code, r.format, shown)
		}
	}
	if errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) {
		return fault.Wrap(err, fault.Denied, "file_access_denied", "the file's permission bits keep %s from being touched", shown)
	}
	if errors.Is(err, syscall.ENOSYS) {
		return fault.Wrap(err, fault.Unavailable, "kernel_too_old", "the host's kernel lacks openat2; Linux 5.6 or later is needed")
	}
	return fault.Wrap(err, fault.Internal, "file_error", "%s cannot be accessed", shown)
}
