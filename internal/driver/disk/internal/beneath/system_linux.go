//go:build linux && !portable

package beneath

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

// Folder is an open folder.
type Folder = os.File

// Stat describes a file in the kernel's terms.
type Stat = unix.Stat_t

// Time is when something happened to a file.
type Time = unix.Timespec

// NoFollow keeps the opening of a path from following a symbolic link at its end.
const NoFollow = unix.O_NOFOLLOW

// ForSync are the flags with which a file is opened to be made durable.
const ForSync = os.O_RDONLY

// resolve is how every path of a space is resolved: below the folder that is held open, without following a symbolic link (code inside
// made it, for reasons of its own), a kernel link such as those of /proc, or a mount point. The kernel checks it in the step that opens,
// so there is nothing to race.
const resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// openFlags are those of every descriptor made here: nothing is inherited by a child, and nothing waits for a pipe's other end or for a
// lease to be given back.
const openFlags = unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY

// Root opens a folder by its path on the host, which the daemon alone controls.
func Root(dir string) (*Folder, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fault.Wrap(err, fault.NotFound, "space_files_missing", "the space's files are not on this host")
	}
	return os.NewFile(uintptr(fd), dir), nil
}

// At opens a folder by a path on the host in which links are followed.
func At(path string) (*Folder, error) { return os.Open(path) }

// pathBytes is the longest path that the kernel resolves in one step.
const pathBytes = unix.PathMax - 1

// Open opens rel below dir. A path may be longer than the kernel takes at once: code in a space makes such folders step by step.
func Open(dir *Folder, rel string, flags int) (*os.File, error) {
	for len(rel) > pathBytes {
		cut := strings.LastIndexByte(rel[:pathBytes], '/')
		if cut <= 0 {
			return nil, unix.ENAMETOOLONG
		}
		next, err := open(dir, rel[:cut], unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return nil, err
		}
		defer next.Close()
		dir, rel = next, rel[cut+1:]
	}
	return open(dir, rel, flags)
}

func open(dir *Folder, rel string, flags int) (*os.File, error) {
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
func Dir(dir *Folder, rel string) (*Folder, error) {
	return Open(dir, rel, unix.O_RDONLY|unix.O_DIRECTORY)
}

// Regular opens the regular file rel below dir for reading and describes it. It looks before it opens, through a descriptor
// that does nothing but name the file, so a device or a pipe is refused without ever having been opened.
func Regular(dir *Folder, rel string) (*os.File, Stat, error) {
	var st Stat
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
	// This link of /proc names the very file that was checked, even if its path has changed.
	for {
		fd, err := unix.Open(itself(name), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, st, err
		}
		return os.NewFile(uintptr(fd), rel), st, nil
	}
}

// itself is a path to the file of a descriptor.
func itself(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// Lstat describes name in dir without following it.
func Lstat(dir *Folder, name string) (Stat, error) {
	var st Stat
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	return st, err
}

// Fstat describes an open file or folder.
func Fstat(f Handle, st *Stat) error { return unix.Fstat(int(f.Fd()), st) }

// Readlink returns the text of the symbolic link name in dir, at most 4,095 bytes of it.
func Readlink(dir *Folder, name string) (string, error) {
	buf := make([]byte, unix.PathMax-1)
	n, err := unix.Readlinkat(int(dir.Fd()), name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// Symlink makes a symbolic link with a text.
func Symlink(text string, dir *Folder, name string) error {
	return unix.Symlinkat(text, int(dir.Fd()), name)
}

// Link gives the file target below root a second name in dir.
func Link(root *Folder, target string, dir *Folder, name string) error {
	file, err := Open(root, target, unix.O_PATH)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Linkat(unix.AT_FDCWD, itself(file), int(dir.Fd()), name, unix.AT_SYMLINK_FOLLOW)
}

// Mkdir makes a folder that only the daemon's user may enter.
func Mkdir(dir *Folder, name string) error { return unix.Mkdirat(int(dir.Fd()), name, 0o700) }

// Unlink removes an entry that is not a folder. For a folder it fails with unix.EISDIR.
func Unlink(dir *Folder, name string) error { return unix.Unlinkat(int(dir.Fd()), name, 0) }

// Rmdir removes an empty folder.
func Rmdir(dir *Folder, name string) error {
	return unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
}

// Rename moves a file or folder in one step; a file that has the name already gives way.
func Rename(from *Folder, old string, to *Folder, name string) error {
	return unix.Renameat(int(from.Fd()), old, int(to.Fd()), name)
}

// Move moves a file or folder in one step to a name that must be free: unix.EEXIST if it is not.
func Move(from *Folder, old string, to *Folder, name string) error {
	return unix.Renameat2(int(from.Fd()), old, int(to.Fd()), name, unix.RENAME_NOREPLACE)
}

// RenameNew moves a file to a name that must be free, also where the file system cannot Move: unix.EEXIST if it is not.
func RenameNew(from *Folder, old string, to *Folder, name string) error {
	err := Move(from, old, to, name)
	if err != unix.EINVAL && err != unix.ENOSYS {
		return err
	}
	// A file system without this rename can link a file under a free name just as surely.
	if err := unix.Linkat(int(from.Fd()), old, int(to.Fd()), name, 0); err != nil {
		return err
	}
	return Unlink(from, old)
}

// Fchmod sets the permission bits of an open file or folder.
func Fchmod(f Handle, mode uint32) error { return unix.Fchmod(int(f.Fd()), mode) }

// Chmod sets the permission bits of an entry that is not a link.
func Chmod(dir *Folder, name string, mode uint32) error { return chmod(dir, name, unix.O_PATH, mode) }

// permit gives a folder permission bits with which its owner may do everything.
func permit(dir *Folder, name string) error {
	return chmod(dir, name, unix.O_PATH|unix.O_DIRECTORY, 0o700)
}

func chmod(dir *Folder, name string, flags int, mode uint32) error {
	f, err := Open(dir, name, flags)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Chmod(itself(f), mode)
}

// Fchown gives an open file or folder to a user, and to the group of the same number.
func Fchown(f Handle, uid int) error { return unix.Fchown(int(f.Fd()), uid, uid) }

// Lchown gives an entry to a user and a group. It does not follow links.
func Lchown(dir *Folder, name string, uid, gid int) error {
	return unix.Fchownat(int(dir.Fd()), name, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
}

// createNew makes a file that only the daemon's user may read, under a name that is free.
func createNew(dir *Folder, name string) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// SyncDir makes the names in a folder durable.
func SyncDir(dir *Folder) error {
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("make a folder durable: %w", err)
	}
	return nil
}

// SyncPath makes the names in a folder durable.
func SyncPath(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return SyncDir(dir)
}

// SyncData makes the content of a file durable.
func SyncData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// SyncFS makes everything below a folder durable, and may do so with everything else on its file system.
func SyncFS(dir *Folder) error { return unix.Syncfs(int(dir.Fd())) }

// Tick returns the time of the file system's clock, which the times of changes use. It changes the times of a folder for that.
func Tick(path string) (Time, error) {
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}, 0); err != nil {
		return Time{}, err
	}
	var st Stat
	err := unix.Stat(path, &st)
	return st.Ctim, err
}
