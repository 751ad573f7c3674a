//go:build unix

package nano

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// mapped returns the content of a file that nobody changes, only to be read. It is memory of the system's for files, which every process
// shares that reads it, and of which there is what was read. It stays as long as the process.
func mapped(name string) (content []byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
}

// lastRead returns when a file was read last, as far as the file system keeps it.
func lastRead(name string) time.Time {
	var stat unix.Stat_t
	if unix.Lstat(name, &stat) != nil {
		return time.Time{}
	}
	return time.Unix(stat.Atim.Unix())
}

// foreignOwner reports whether a file is another user's than this process's or root's.
func foreignOwner(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat.Uid != 0 && int(stat.Uid) != os.Geteuid()
}
