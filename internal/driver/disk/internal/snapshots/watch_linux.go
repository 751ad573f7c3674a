//go:build linux && !portable

package snapshots

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"agentbox/internal/driver/disk/internal/beneath"
)

// The bounds of watching.
const (
	// watchFrom is how many entries a space has whose folders are watched; fewer are looked at faster.
	watchFrom = 512
	// maxWatched is how many folders of a space are watched; of a tree with more, everything is looked at.
	maxWatched = 4096
)

// whatChanges are the events that come before a file or a folder differs. A mapping that is written to makes no event, but the file must
// have been opened before, which does.
const whatChanges = unix.IN_OPEN | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM |
	unix.IN_MOVED_TO |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

// Of those, the ones after which nobody can say any more which folder has which path.
const (
	always  = unix.IN_Q_OVERFLOW | unix.IN_IGNORED | unix.IN_UNMOUNT | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
	unknown = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO // of a folder
)

// watch notes in which folders of a tree something happens, from before they were looked at. The kernel keeps the notes.
type watch struct {
	fd      int
	notes   *os.File // the same descriptor, for its end
	folders map[int32]string
	root    identity
}

// identity tells a folder from every other one that is there at the same time.
type identity struct{ dev, ino uint64 }

func identify(dir *beneath.Folder) (identity, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(dir.Fd()), &st)
	return identity{st.Dev, st.Ino}, err
}

// newWatch returns a watch of a tree, nil where the host has none left: then everything is looked at.
func newWatch(root *beneath.Folder) *watch {
	is, err := identify(root)
	if err != nil {
		return nil
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	return &watch{fd: fd, notes: os.NewFile(uintptr(fd), "inotify"), folders: map[int32]string{}, root: is}
}

// of reports whether this is the tree that is watched.
func (w *watch) of(root *beneath.Folder) bool {
	is, err := identify(root)
	return err == nil && is == w.root
}

// add watches a folder, before anything in it is looked at. It returns false where the host refuses or there are too many.
func (w *watch) add(dir *beneath.Folder, rel string) bool {
	if len(w.folders) >= maxWatched {
		return false
	}
	n, err := unix.InotifyAddWatch(w.fd, fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), whatChanges|unix.IN_ONLYDIR)
	if err != nil {
		return false
	}
	w.folders[int32(n)] = rel
	return true
}

// touched returns the folders in which something may have changed since they were last read, and marks them as read. It returns false if
// that is not known; then the watch is useless.
func (w *watch) touched() (map[string]bool, bool) {
	found := map[string]bool{}
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(w.fd, buf)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return found, true
		case err != nil || n < unix.SizeofInotifyEvent:
			return nil, false
		}
		for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			folder := int32(binary.NativeEndian.Uint32(rest))
			mask := binary.NativeEndian.Uint32(rest[4:])
			rest = rest[unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(rest[12:])):]
			rel, ok := w.folders[folder]
			if !ok || mask&always != 0 || mask&unix.IN_ISDIR != 0 && mask&unknown != 0 {
				return nil, false
			}
			if mask&unix.IN_ISDIR == 0 || mask&^(unix.IN_OPEN|unix.IN_ISDIR) != 0 { // who lists a folder changes nothing
				mark(found, rel)
			}
		}
	}
}

func (w *watch) close() { _ = w.notes.Close() }
