//go:build linux && !portable

package snapshots

import (
	"golang.org/x/sys/unix"

	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/notes"
)

// The bounds of watching.
const (
	// watchFrom is the number of entries from which a space is watched. With fewer entries a full scan is faster.
	watchFrom = 512
	// maxWatched is the largest number of watched folders of a space. A larger tree gets full scans.
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

// watch notes the folders of a tree that change, from before their scan on. The kernel keeps the notes.
type watch struct {
	notes   *notes.Notes
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

// newWatch returns a watch of a tree. It returns nil if the host has none left; then each scan is a full one.
func newWatch(root *beneath.Folder) *watch {
	is, err := identify(root)
	if err != nil {
		return nil
	}
	made, err := notes.Open()
	if err != nil {
		return nil
	}
	return &watch{notes: made, folders: map[int32]string{}, root: is}
}

// of reports whether this is the tree that is watched.
func (w *watch) of(root *beneath.Folder) bool {
	is, err := identify(root)
	return err == nil && is == w.root
}

// add watches a folder before the scan reads it. It returns false if the host refuses or there are too many watches.
func (w *watch) add(dir *beneath.Folder, rel string) bool {
	if len(w.folders) >= maxWatched {
		return false
	}
	n, err := w.notes.Add(dir, whatChanges)
	if err != nil {
		return false
	}
	w.folders[n] = rel
	return true
}

// touched returns the folders in which something may have changed since they were last read, and marks them as read. It returns false if
// that is not known; then the watch is useless.
func (w *watch) touched() (map[string]bool, bool) {
	found, known := map[string]bool{}, true
	for {
		some, err := w.notes.Take(func(n notes.Note) {
			rel, ok := w.folders[n.Folder]
			switch folder := n.Mask&unix.IN_ISDIR != 0; {
			case !ok || n.Mask&always != 0 || folder && n.Mask&unknown != 0:
				known = false
			case !folder || n.Mask&^(unix.IN_OPEN|unix.IN_ISDIR) != 0: // who lists a folder changes nothing
				mark(found, rel)
			}
		})
		if err != nil || !known {
			return nil, false
		}
		if !some {
			return found, true
		}
	}
}

func (w *watch) close() { _ = w.notes.Close() }
