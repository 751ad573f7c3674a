//go:build linux && !portable

package watch

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/notes"
)

// The events that are noted: of a watched folder, and of the folders on the way to it.
const (
	within = unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM |
		unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
	above = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
)

// Limits of one read.
const (
	maxFolders = 8192                 // folders with notes in one watch; a larger tree gets full scans
	maxTakes   = 16                   // of 64 KiB of notes
	halfRename = 2 * time.Millisecond // the wait for the second note of a rename
)

// hints are the notes of the folders of a tree.
type hints struct {
	notes   *notes.Notes
	folders map[int32]*node
	way     map[int32]bool // the folders on the way to the watched one
}

// newHints returns hints without a folder; nil where the host has none left.
func newHints() *hints {
	made, err := notes.Open()
	if err != nil {
		return nil
	}
	return &hints{notes: made, folders: map[int32]*node{}, way: map[int32]bool{}}
}

// add begins to note the changes in a folder. It returns false where the host refuses or there are too many.
func (h *hints) add(n *node, dir *beneath.Folder) bool {
	if len(h.folders) >= maxFolders {
		return false
	}
	number, err := h.notes.Add(dir, within)
	if err != nil {
		return false
	}
	h.folders[number], n.note = n, number
	return true
}

// above begins to note whether a folder on the way to the watched one changes.
func (h *hints) above(dir *beneath.Folder) bool {
	number, err := h.notes.Add(dir, above)
	h.way[number] = err == nil
	return err == nil
}

// drop ends the notes of a folder.
func (h *hints) drop(n *node) {
	if n.note != 0 && h.folders[n.note] == n {
		delete(h.folders, n.note)
		h.notes.Remove(n.note)
	}
	n.note = 0
}

// take reads the notes that are there. It returns true where some were lost.
func (h *hints) take() (*found, bool) {
	f := &found{written: map[place]bool{}, from: map[place]bool{}, to: map[place]bool{}}
	lost, half := false, false
	see := func(n notes.Note) {
		half = n.Mask&unix.IN_MOVED_FROM != 0
		folder := h.folders[n.Folder]
		switch {
		case n.Mask&(unix.IN_Q_OVERFLOW|unix.IN_UNMOUNT) != 0:
			lost = true
		case h.way[n.Folder]:
			f.shaken = true
		case folder == nil: // its notes ended meanwhile
		case n.Name == "":
			f.shaken = f.shaken || folder.up == nil
			folder.dead = folder.dead || n.Mask&(unix.IN_DELETE_SELF|unix.IN_IGNORED) != 0
		default:
			at := place{folder, n.Name}
			f.written[at] = f.written[at] || n.Mask&unix.IN_MODIFY != 0
			if n.Mask&unix.IN_MOVED_FROM != 0 {
				f.from[at] = true
			}
			if n.Mask&unix.IN_MOVED_TO != 0 {
				f.to[at] = true
			}
		}
	}
	for range maxTakes {
		some, err := h.notes.Take(see)
		if err != nil {
			return f, true
		}
		if !some && half {
			half = false
			<-time.NewTimer(halfRename).C
			continue
		}
		if !some {
			break
		}
	}
	return f, lost
}

func (h *hints) wait(ctx context.Context) error { return h.notes.Wait(ctx) }

func (h *hints) wake() { h.notes.Wake() }

func (h *hints) close() { _ = h.notes.Close() } // of notes, which hold nothing back
