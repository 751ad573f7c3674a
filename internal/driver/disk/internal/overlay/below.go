// Package overlay lays the changes of one space over a tree of files that others share, by the kernel's file system of that name.
//
// A mount made here is a descriptor and nothing else: no table of mounts shows it, no path leads to it, and it ends with the last
// descriptor.
package overlay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Layers are the folders of an overlay, all in one file system.
type Layers struct {
	Lower string // the shared files; nothing changes them while the overlay is there
	Owner int    // owner of its files on the disk
	User  int    // owner of its files, and of new files, in the overlay
	Upper string // changed, new and removed entries
	Work  string // of the kernel
}

// Frozen is the folder of all frozen trees, beside the homes of the spaces: trees of files that nothing changes any more.
const Frozen = ".frozen"

// Files is the folder of a space's files, in its home or in a frozen tree. Staging is the folder of files that are still being written.
const (
	Files   = "files"
	Staging = "staging"
)

// The contents of the home of a space that shares files, instead of one folder: the folders of its overlay, and a link whose text names
// the tree below. The upper folder has the staging folder and the folder for files that rewinds move away.
const (
	Upper = "upper"
	work  = "work"
	link  = "over"
	Moved = "trash"
)

// Below names the tree that the files of a space lie over.
type Below struct {
	Tree id.Space // the space whose files became the frozen tree
	User int      // the host uid of the space that lies over it
}

// Lay makes the folders and the link in a space's home with which it lies over a tree. The caller makes them durable, so that the disk is
// waited for once and not twice.
func Lay(home string, b Below) error {
	return errors.Join(os.Mkdir(filepath.Join(home, Upper), 0o700), os.Mkdir(filepath.Join(home, work), 0o700),
		os.Symlink(fmt.Sprintf("%s %d", b.Tree, b.User), filepath.Join(home, link)))
}

// Unlay removes what Lay made, as long as nothing was changed in it.
func Unlay(home string) error {
	var all error
	for _, name := range []string{link, Upper, work} {
		all = errors.Join(all, os.RemoveAll(filepath.Join(home, name)))
	}
	return all
}

// Own reports whether a name in the home of a space is of what Lay made.
func Own(name string) bool { return name == link || name == Upper || name == work }

// Find reads the tree that the files of a space lie over; false if they lie over none.
func Find(home string) (b Below, ok bool, err error) {
	text, err := os.Readlink(filepath.Join(home, link))
	if errors.Is(err, os.ErrNotExist) {
		return b, false, nil
	}
	if err == nil {
		_, err = fmt.Sscanf(text, "%s %d", &b.Tree, &b.User)
	}
	if err == nil {
		_, err = id.Parse[id.Space](string(b.Tree))
	}
	if err != nil {
		return b, false, fault.Wrap(err, fault.Internal, "space_damaged", "what the files of %s lie over cannot be read", filepath.Base(home))
	}
	return b, true, nil
}

// Layers returns those of the overlay of a space, whose home lies beside the frozen trees.
func (b Below) Layers(home string) (Layers, error) {
	l := Layers{
		Lower: filepath.Join(filepath.Dir(home), Frozen, string(b.Tree)), User: b.User, Upper: filepath.Join(home, Upper),
		Work: filepath.Join(home, work),
	}
	owner, err := owner(filepath.Join(l.Lower, Files))
	if err != nil {
		return l, fault.Wrap(err, fault.NotFound, "space_files_missing", "the files of %s are not on this host", filepath.Base(home))
	}
	l.Owner = owner
	return l, nil
}
