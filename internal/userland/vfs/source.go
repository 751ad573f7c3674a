package vfs

import (
	"errors"
	"io"
	"slices"
	"strings"
	"time"
)

// Source is where the files of a mount come from: a folder on the other side of a pipe. Paths are relative, with slashes; "." is the
// folder itself.
type Source interface {
	// List returns what is in a folder.
	List(dir string) ([]Found, error)
	// Read reads a file at an offset until p is full or the file ends, as io.ReaderAt does.
	Read(path string, p []byte, off int64) (int, error)
	// Room returns how many more bytes and files fit. It is called at most once, when the files begin to grow.
	Room() (bytes, files int64, err error)
}

// Found is one entry of a folder at its source.
type Found struct {
	Name     string
	Kind     Kind // Regular, Directory, Symlink or Other
	Mode     uint32
	Size     int64
	Modified time.Time
	Target   string // of a symbolic link
	Same     uint64 // equal and not 0 for names of one file that has several
	Links    int    // how many names a file with Same has
}

// mount is a part of the tree that has a source, or is empty at first.
type mount struct {
	root      *Node
	path      string // where it hangs
	number    uint64
	source    Source // nil for one without
	same      map[uint64]*Node
	gone      []gone // names at the source that are none any more
	bytes     int64  // by how many the files have grown
	files     int64
	asked     bool
	moreBytes int64 // that fit, once asked
	moreFiles int64
	disk      bool // what does not fit is the bound disk_bytes
}

type gone struct {
	origin string
	node   *Node
}

// Options say what a mount is.
type Options struct {
	Source Source // nil for a folder that is empty at first
	Bytes  int64  // that fit without a source
	Files  int64  // that fit without a source
	Disk   bool   // the space's own files: a write that does not fit is noted as the bound disk_bytes
	Sealed bool   // code may change nothing in it
}

// Mount hangs a writable folder into the tree, at an absolute path whose parent is there.
func (f *FS) Mount(path string, o Options) error {
	p, err := f.walk(At{Dir: f.root}, path, follow)
	if err != nil {
		return err
	}
	m := &mount{path: path, number: uint64(len(f.mounts) + 1), source: o.Source, same: map[uint64]*Node{}, disk: o.Disk}
	if o.Source == nil {
		m.asked, m.moreBytes, m.moreFiles = true, o.Bytes, o.Files
	}
	m.root = f.node(Directory, 0o755, m)
	m.root.source, m.root.loaded, m.root.sealed = ".", o.Source == nil, o.Sealed
	if p.name == "" { // the whole tree
		if p.node != f.root || len(f.mounts) > 0 || len(f.root.entries) > 0 {
			return EBUSY
		}
		m.root.parent = m.root
		f.root = m.root
	} else {
		if p.node != nil {
			return EEXIST
		}
		f.attach(p.dir, p.name, m.root)
	}
	f.mounts = append(f.mounts, m)
	return nil
}

// load fetches what is in a folder, once.
func (f *FS) load(n *Node) error {
	if n.loaded || n.kind != Directory {
		return nil
	}
	found, err := n.mount.source.List(n.source)
	if err != nil {
		return lost(err)
	}
	if err := f.account.Charge(int64(len(found)) * gasPerEntry); err != nil {
		return err
	}
	var held int64
	for _, x := range found {
		if x.Name == "" || x.Name == "." || x.Name == ".." || strings.ContainsAny(x.Name, "/\x00") || x.Size < 0 {
			return EIO
		}
		held += entryBytes(x.Name) + int64(len(x.Target))
	}
	if err := f.account.Allocate(held); err != nil {
		return ENOMEM
	}
	slices.SortFunc(found, func(a, b Found) int { return strings.Compare(a.Name, b.Name) })
	n.loaded, n.entries, n.listed = true, make(map[string]*entry, len(found)), nil
	for _, x := range found {
		origin := join(n.source, x.Name)
		child := n.mount.same[x.Same]
		if x.Same == 0 || child == nil {
			child = attachFound(f, n, x, origin)
			if x.Same != 0 {
				n.mount.same[x.Same] = child
			}
		} else {
			child.nlink++
			child.unseen = max(child.unseen-1, 0)
		}
		n.entries[x.Name] = &entry{node: child, origin: origin, old: true}
	}
	return nil
}

func attachFound(f *FS, dir *Node, x Found, origin string) *Node {
	child := f.node(x.Kind, x.Mode&0o7777, dir.mount)
	child.sealed = dir.sealed
	child.modified, child.accessed, child.changed = x.Modified, x.Modified, x.Modified
	switch x.Kind {
	case Directory:
		child.parent, child.source, child.loaded, child.entries = dir, origin, false, nil
		child.label = x.Name
		dir.nlink++
	case Regular:
		if child.content.size = x.Size; x.Size > 0 {
			child.content.from = origin
		}
		if child.linked = x.Same != 0; child.linked {
			child.unseen, child.same = max(x.Links, 2)-1, x.Same
		}
	case Symlink:
		child.target = x.Target
	}
	return child
}

// lost is the error of a source in the file system's terms; one that stops the execution stays what it is.
func lost(err error) error {
	if e, ok := errors.AsType[Errno](err); ok {
		return e
	}
	if errors.Is(err, io.EOF) {
		return EIO
	}
	return err
}

// grow counts the additional bytes and files of a mount. It returns ENOSPC if they do not fit.
func (m *mount) grow(f *FS, bytes, files int64) error {
	if m == nil {
		return EROFS
	}
	if (bytes > 0 && m.bytes+bytes > 0 || files > 0 && m.files+files > 0) && !m.asked {
		b, n, err := m.source.Room()
		if err != nil {
			return lost(err)
		}
		m.asked, m.moreBytes, m.moreFiles = true, b, n
	}
	if bytes > 0 && m.bytes+bytes > m.moreBytes && m.asked || files > 0 && m.files+files > m.moreFiles && m.asked {
		if m.disk {
			f.account.Hit("disk_bytes")
		}
		return ENOSPC
	}
	m.bytes += bytes
	m.files += files
	return nil
}

func join(dir, name string) string {
	if dir == "." || dir == "" {
		return name
	}
	return dir + "/" + name
}
