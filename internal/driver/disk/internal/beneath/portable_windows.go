package beneath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/windows"
)

// NoFollow is nothing here: files that the daemon opens by a path of the host lie in folders that only its user can write to.
const NoFollow = 0

// ForSync are the flags with which a file is opened to be made durable: only one that may be written can be.
const ForSync = os.O_RDWR

const noWait = 0

// plain returns the number by which POSIX knows a system's error.
func plain(err error) error {
	number, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return err
	}
	switch number {
	case windows.ERROR_SHARING_VIOLATION, windows.ERROR_LOCK_VIOLATION:
		return syscall.EAGAIN
	case windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL:
		return syscall.ENOSPC
	case windows.ERROR_DIR_NOT_EMPTY:
		return syscall.ENOTEMPTY
	case windows.ERROR_DIRECTORY:
		return syscall.ENOTDIR
	case windows.ERROR_CANT_ACCESS_FILE, windows.ERROR_REPARSE_POINT_ENCOUNTERED:
		return syscall.ELOOP
	case windows.ERROR_NOT_SAME_DEVICE:
		return syscall.EXDEV
	case windows.ERROR_FILENAME_EXCED_RANGE:
		return syscall.ENAMETOOLONG
	}
	switch {
	case errors.Is(number, fs.ErrNotExist):
		return syscall.ENOENT
	case errors.Is(number, fs.ErrExist):
		return syscall.EEXIST
	case errors.Is(number, fs.ErrPermission):
		return syscall.EACCES
	}
	return number
}

// described describes a name. The identity of a file is known only of one that is open.
func described(dir *Folder, name string, info os.FileInfo) Stat {
	if info.Mode().IsRegular() || info.IsDir() {
		if f, err := dir.root.Open(name); err == nil {
			defer f.Close()
			return opened(f, info)
		}
	}
	return statOf(info)
}

func opened(f Handle, info os.FileInfo) Stat {
	st := statOf(info)
	var is windows.ByHandleFileInformation
	if windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &is) == nil {
		st.Dev, st.Ino, st.Nlink = uint64(is.VolumeSerialNumber), uint64(is.FileIndexHigh)<<32|uint64(is.FileIndexLow), uint64(is.NumberOfLinks)
	}
	return st
}

// statOf says of every file that its owner may write and all may read it, for the system keeps no permission bits.
func statOf(info os.FileInfo) Stat {
	st := Stat{Mode: TypeFile | FileMode, Nlink: 1, Size: info.Size(), Blocks: (info.Size() + 4095) / 4096 * 8}
	switch {
	case info.IsDir():
		st.Mode, st.Size, st.Blocks = TypeFolder|FolderMode, 0, 0
	case info.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0: // junctions and the like lead elsewhere as links do
		st.Mode = TypeLink | 0o777
	case !info.Mode().IsRegular():
		st.Mode = FileMode
	}
	st.Mtim = Time{Sec: info.ModTime().Unix(), Nsec: int64(info.ModTime().Nanosecond())}
	st.Ctim = st.Mtim
	return st
}

// whole returns the path of a name in a folder that is held open, wherever that lies now.
func (f *Folder) whole(name string) (string, error) {
	buf := make([]uint16, windows.MAX_LONG_PATH)
	n, err := windows.GetFinalPathNameByHandle(windows.Handle(f.Fd()), &buf[0], uint32(len(buf)), 0)
	if err != nil {
		return "", err
	}
	if int(n) > len(buf) {
		return "", syscall.ENAMETOOLONG
	}
	return strings.TrimRight(windows.UTF16ToString(buf[:n]), `\`) + string(filepath.Separator) + name, nil
}

// both returns two paths for the functions of the system.
func both(from *Folder, old string, to *Folder, name string) (a, b *uint16, err error) {
	one, err := from.whole(old)
	if err != nil {
		return nil, nil, err
	}
	other, err := to.whole(name)
	if err != nil {
		return nil, nil, err
	}
	a, err = windows.UTF16PtrFromString(one)
	if err == nil {
		b, err = windows.UTF16PtrFromString(other)
	}
	return a, b, err
}

func link(from *Folder, old string, to *Folder, name string) error {
	one, other, err := both(from, old, to, name)
	if err != nil {
		return err
	}
	return windows.CreateHardLink(other, one, 0)
}

func unlink(dir *Folder, name string) error {
	_, st, err := dir.look(name)
	if err != nil {
		return err
	}
	if st.Mode&TypeBits == TypeFolder {
		return syscall.EISDIR
	}
	return dir.root.Remove(name)
}

func rename(from *Folder, old string, to *Folder, name string) error {
	one, other, err := both(from, old, to, name)
	if err != nil {
		return err
	}
	return windows.MoveFileEx(one, other, windows.MOVEFILE_REPLACE_EXISTING|windows.MOVEFILE_WRITE_THROUGH)
}

func move(from *Folder, old string, to *Folder, name string) error {
	one, other, err := both(from, old, to, name)
	if err != nil {
		return err
	}
	return windows.MoveFileEx(one, other, windows.MOVEFILE_WRITE_THROUGH)
}

// The system keeps no permission bits.
func fchmod(Handle, uint32) error { return nil }

func chmod(*Folder, string, uint32) error { return nil }

// All files are of the daemon's user.
func fchown(Handle, int) error { return nil }

func lchown(*Folder, string, int, int) error { return nil }

// The names in a folder are made durable by the file system's own journal.
func syncNames(*os.File) error { return nil }

// SyncPath makes the names in a folder durable.
func SyncPath(path string) error {
	_, err := os.Stat(path)
	return err
}

// Tick returns the time of the file system's clock, which is that of the host.
func Tick(string) (Time, error) {
	var now windows.Filetime
	windows.GetSystemTimeAsFileTime(&now)
	return Time{Sec: now.Nanoseconds() / 1e9, Nsec: now.Nanoseconds() % 1e9}, nil
}
