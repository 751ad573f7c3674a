//go:build unix

package workdir

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	nonblock       = unix.O_NONBLOCK | unix.O_NOFOLLOW
	canMoveBetween = true
	hasOwners      = true
)

func device(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Dev) //nolint:unconvert // its type differs between systems
	}
	return 0
}

// inode returns what identifies a file on its device, and how many names it has.
func inode(info fs.FileInfo) (id uint64, links int) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino, int(s.Nlink) //nolint:unconvert // its type differs between systems
	}
	return 0, 1
}

// rename moves a name between two open folders.
func rename(_ *os.Root, from, to location) error {
	return both(from, to, func(a, b int) error { return unix.Renameat(a, from.name, b, to.name) })
}

// link gives an entry another name. It does not follow a link.
func link(_ *os.Root, from, to location) error {
	return both(from, to, func(a, b int) error { return unix.Linkat(a, from.name, b, to.name, 0) })
}

func both(from, to location, do func(a, b int) error) error {
	a, err := from.root.Open(".")
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := to.root.Open(".")
	if err != nil {
		return err
	}
	defer b.Close()
	return do(int(a.Fd()), int(b.Fd()))
}
