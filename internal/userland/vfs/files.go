package vfs

import (
	"slices"
	"strings"
	"time"
)

// attach gives a node a name. Nothing is checked.
func (f *FS) attach(dir *Node, name string, n *Node) *entry {
	e := &entry{node: n}
	dir.entries[name], dir.listed = e, nil
	if n.kind == Directory {
		n.parent, n.label, n.removed = dir, name, false
		dir.nlink++
	}
	return e
}

// detachNode takes a name away. Nothing is checked.
func detachNode(dir *Node, name string) *entry {
	e := dir.entries[name]
	delete(dir.entries, name)
	dir.listed = nil
	if e.node.kind == Directory {
		dir.nlink--
	}
	return e
}

// loseLink detaches a name for good and gives back what it took.
func loseLink(f *FS, dir *Node, name string) {
	e := detachNode(dir, name)
	n := e.node
	if e.old { // the record takes the place of the entry
		n.mount.gone = append(n.mount.gone, gone{e.origin, n})
	} else {
		f.account.Release(entryBytes(name))
	}
	n.changed = f.Now()
	if n.kind == Directory {
		n.nlink, n.removed = 0, true
		_ = n.mount.grow(f, 0, -1)
		return
	}
	if n.nlink--; n.opens == 0 {
		n.freed()
	}
}

// entryBytes returns how much memory a name in a folder counts for.
func entryBytes(name string) int64 { return nodeBytes + int64(len(name)) }

// writable reports whether names may be made and removed in a folder.
func (n *Node) writable() error {
	switch {
	case n.sealed || n.mount == nil:
		return EROFS
	case n.removed:
		return ENOENT
	case n.mode&0o300 != 0o300:
		return EACCES
	}
	return nil
}

func touchNode(f *FS, dir *Node) {
	dir.modified = f.Now()
	dir.changed = dir.modified
	dir.dirtyTimes = true
}

// makeNode is what every call does that makes a new name.
func makeNode(f *FS, at At, path string, kind Kind, perm uint32) (*Node, error) {
	if err := f.charge(0); err != nil {
		return nil, err
	}
	p, err := f.walk(at, path, nameful)
	if err != nil {
		return nil, err
	}
	if p.node != nil || p.name == "" {
		return nil, EEXIST
	}
	if p.slash && kind != Directory {
		return nil, ENOENT
	}
	return placeNode(f, p, kind, perm)
}

// placeNode makes a node where a walk has found nothing.
func placeNode(f *FS, p place, kind Kind, perm uint32) (*Node, error) {
	if err := p.dir.writable(); err != nil {
		return nil, err
	}
	if kind == Directory && p.dir.depth()+1 >= MaxDepth {
		f.account.Hit("folder_depth")
		return nil, ENAMETOOLONG
	}
	if err := f.account.Allocate(entryBytes(p.name)); err != nil {
		return nil, ENOMEM
	}
	if err := p.dir.mount.grow(f, 0, 1); err != nil {
		f.account.Release(entryBytes(p.name))
		return nil, err
	}
	n := f.node(kind, perm&0o7777, p.dir.mount)
	f.attach(p.dir, p.name, n)
	touchNode(f, p.dir)
	return n, nil
}

// Mkdir makes a folder.
func (f *FS) Mkdir(at At, path string, perm uint32) error {
	_, err := makeNode(f, at, path, Directory, perm)
	return err
}

// Symlink makes a symbolic link to a target, which need not be there.
func (f *FS) Symlink(target string, at At, path string) error {
	switch {
	case target == "":
		return ENOENT
	case len(target) >= MaxPath:
		return ENAMETOOLONG
	case strings.IndexByte(target, 0) >= 0:
		return EINVAL
	}
	if err := f.account.Allocate(int64(len(target))); err != nil {
		return ENOMEM
	}
	n, err := makeNode(f, at, path, Symlink, 0o777)
	if err != nil {
		f.account.Release(int64(len(target)))
		return err
	}
	n.target = target
	return nil
}

// Readlink returns where a symbolic link points.
func (f *FS) Readlink(at At, path string) (string, error) {
	n, err := f.Lookup(at, path, false)
	if err != nil {
		return "", err
	}
	if n.kind != Symlink {
		return "", EINVAL
	}
	return n.target, nil
}

// Link gives a file another name. A folder is EPERM.
func (f *FS) Link(at At, old string, followed bool, to At, path string) error {
	if err := f.charge(0); err != nil {
		return err
	}
	from, err := f.find(at, old, ending(followed))
	if err != nil {
		return err
	}
	p, err := f.walk(to, path, nameful)
	switch {
	case err != nil:
		return err
	case p.node != nil || p.name == "":
		return EEXIST
	case p.slash:
		return ENOENT
	case p.dir.mount != from.node.mount:
		return EXDEV
	case from.node.kind == Directory:
		return EPERM
	case from.node.nlink+from.node.unseen >= MaxLinks:
		return EMLINK
	}
	if err := p.dir.writable(); err != nil {
		return err
	}
	if err := f.account.Allocate(entryBytes(p.name)); err != nil {
		return ENOMEM
	}
	f.attach(p.dir, p.name, from.node)
	from.node.nlink++
	from.node.changed = f.Now()
	touchNode(f, p.dir)
	return nil
}

// Unlink removes a name of something that is not a folder.
func (f *FS) Unlink(at At, path string) error {
	if err := f.charge(0); err != nil {
		return err
	}
	p, err := f.find(at, path, nameful)
	switch {
	case err != nil:
		return err
	case p.node.kind == Directory:
		return EISDIR
	case p.slash:
		return ENOTDIR
	}
	if err := p.dir.writable(); err != nil {
		return err
	}
	loseLink(f, p.dir, p.name)
	touchNode(f, p.dir)
	return nil
}

// Rmdir removes an empty folder.
func (f *FS) Rmdir(at At, path string) error {
	if err := f.charge(0); err != nil {
		return err
	}
	p, err := f.find(at, path, nameful)
	switch {
	case err != nil:
		return err
	case p.node.kind != Directory:
		return ENOTDIR
	case p.up:
		return ENOTEMPTY
	case p.name == "":
		return EINVAL
	case p.node.mount != p.dir.mount:
		return EBUSY
	}
	if err := p.dir.writable(); err != nil {
		return err
	}
	if err := f.load(p.node); err != nil {
		return err
	}
	if len(p.node.entries) > 0 {
		return ENOTEMPTY
	}
	loseLink(f, p.dir, p.name)
	touchNode(f, p.dir)
	return nil
}

// Rename moves something to another name, replacing what may be replaced there.
func (f *FS) Rename(at At, old string, to At, path string) error {
	if err := f.charge(0); err != nil {
		return err
	}
	from, err := f.walk(at, old, nameful)
	if err != nil {
		return err
	}
	p, err := f.walk(to, path, nameful)
	switch {
	case err != nil:
		return err
	case from.name == "" || p.name == "":
		return EBUSY
	case from.node == nil:
		return ENOENT
	case from.slash && from.node.kind != Directory, p.slash && from.node.kind != Directory:
		return ENOTDIR
	case from.node.mount != from.dir.mount || p.node != nil && p.node.mount != p.dir.mount:
		return EBUSY
	case from.dir.mount != p.dir.mount:
		return EXDEV
	case from.node.above(p.dir): // into itself
		return EINVAL
	case p.node != nil && p.node.above(from.dir):
		return ENOTEMPTY
	}
	if err := from.dir.writable(); err != nil {
		return err
	}
	if err := p.dir.writable(); err != nil {
		return err
	}
	if p.node == from.node {
		return nil
	}
	if p.node != nil {
		if err := replaceable(f, from.node, p.node); err != nil {
			return err
		}
	}
	if from.node.kind == Directory && from.dir != p.dir {
		if err := checkMove(f, from.node, p.dir); err != nil {
			return err
		}
	}
	more := int64(len(p.name) - len(from.name))
	if more > 0 {
		if err := f.account.Allocate(more); err != nil {
			return ENOMEM
		}
	} else {
		f.account.Release(-more)
	}
	if p.node != nil {
		loseLink(f, p.dir, p.name)
	}
	e := detachNode(from.dir, from.name)
	moved := f.attach(p.dir, p.name, e.node)
	moved.origin, moved.old = e.origin, e.old
	e.node.changed = f.Now()
	touchNode(f, from.dir)
	touchNode(f, p.dir)
	return nil
}

// above reports whether a folder is another one or lies above it.
func (n *Node) above(dir *Node) bool {
	for ; dir != n; dir = dir.parent {
		if dir == dir.parent {
			return false
		}
	}
	return true
}

// checkMove reports whether a folder may move into another one: its own name for that, .., has to be written, and nothing in it may come
// to lie too deep.
func checkMove(f *FS, n, dir *Node) error {
	if n.mode&0o200 == 0 {
		return EACCES
	}
	deeper := dir.depth() + 1 - n.depth()
	if deeper <= 0 {
		return nil
	}
	return isWithin(f, n, MaxDepth-1-deeper)
}

// isWithin fails where a folder, or one below it, lies deeper than most.
func isWithin(f *FS, n *Node, most int) error {
	if n.depth() > most {
		f.account.Hit("folder_depth")
		return ENAMETOOLONG
	}
	if err := f.load(n); err != nil {
		return err
	}
	for _, name := range n.names() {
		if child := n.entries[name].node; child.kind == Directory {
			if err := isWithin(f, child, most); err != nil {
				return err
			}
		}
	}
	return nil
}

// replaceable reports whether a node may take the place of another.
func replaceable(f *FS, n, old *Node) error {
	switch {
	case n.kind == Directory && old.kind != Directory:
		return ENOTDIR
	case n.kind != Directory && old.kind == Directory:
		return EISDIR
	case old.kind == Directory:
		if err := f.load(old); err != nil {
			return err
		}
		if len(old.entries) > 0 {
			return ENOTEMPTY
		}
	}
	return nil
}

// Chmod sets the permission bits.
func (f *FS) Chmod(at At, path string, perm uint32, follow bool) error {
	n, err := f.Lookup(at, path, follow)
	if err != nil {
		return err
	}
	return n.Chmod(perm)
}

// Chmod sets the permission bits.
func (n *Node) Chmod(perm uint32) error {
	if n.sealed || n.mount == nil {
		return EROFS
	}
	if n.kind == Symlink {
		return ENOTSUP
	}
	n.mode, n.dirtyMode, n.changed = perm&0o7777, true, n.fs.Now()
	return nil
}

// Utimes sets the times of what a path leads to; a zero time leaves the one that is.
func (f *FS) Utimes(at At, path string, follow bool, accessed, modified time.Time) error {
	n, err := f.Lookup(at, path, follow)
	if err != nil {
		return err
	}
	return n.Utimes(accessed, modified)
}

// Utimes sets the times; a zero time leaves the one that is.
func (n *Node) Utimes(accessed, modified time.Time) error {
	if n.sealed || n.mount == nil {
		return EROFS
	}
	if !accessed.IsZero() {
		n.accessed = accessed
	}
	if !modified.IsZero() {
		n.modified = modified
	}
	n.dirtyTimes, n.changed = true, n.fs.Now()
	return nil
}

// names returns what is in a folder, in order.
func (n *Node) names() []string {
	if n.listed == nil {
		n.listed = make([]string, 0, len(n.entries))
		for name := range n.entries {
			n.listed = append(n.listed, name)
		}
		slices.Sort(n.listed)
	}
	return n.listed
}

// Entry is a name in a folder and what bears it.
type Entry struct {
	Name string
	Node *Node
}

// List returns what is in a folder, in order of the names, without . and ...
func (f *FS) List(at At, path string) ([]Entry, error) {
	p, err := f.find(at, path, follow)
	if err != nil {
		return nil, err
	}
	return p.node.List()
}

// List returns what is in a folder, in order of the names, without . and ...
func (n *Node) List() ([]Entry, error) {
	f := n.fs
	if n.kind != Directory {
		return nil, ENOTDIR
	}
	if n.mode&0o400 == 0 {
		return nil, EACCES
	}
	if err := f.load(n); err != nil {
		return nil, err
	}
	if err := f.account.Charge(gasPerCall + int64(len(n.entries))*gasPerEntry); err != nil {
		return nil, err
	}
	names := n.names()
	all := make([]Entry, len(names))
	for i, name := range names {
		all[i] = Entry{name, n.entries[name].node}
	}
	return all, nil
}

// MakeDir, MakeFile, MakeLink and MakeDevice are the host's: they make what code finds and may not change. Folders on the way are made.

// MakeDir makes a folder of the host's.
func (f *FS) MakeDir(path string) (*Node, error) {
	dir := f.root
	for _, name := range split(path) {
		e := dir.entries[name]
		if e == nil {
			n := f.node(Directory, 0o755, nil)
			n.sealed = true
			e = f.attach(dir, name, n)
		}
		if dir = e.node; dir.kind != Directory {
			return nil, ENOTDIR
		}
	}
	return dir, nil
}

// MakeFile makes a read-only file of the host's; data is shared, not copied, and counts for nothing.
func (f *FS) MakeFile(path string, mode uint32, data []byte) error {
	n, err := attachFixed(f, path, Regular, mode)
	if err == nil {
		n.content = content{size: int64(len(data)), data: data}
	}
	return err
}

// File is a read-only file of the host's.
type File struct {
	Name string
	Mode uint32
	Data []byte // shared, not copied
}

// MakeFiles makes read-only files of the host's in a folder, as MakeFile does. One that is there already stays.
func (f *FS) MakeFiles(path string, files []File) error {
	dir, err := f.MakeDir(path)
	if err != nil {
		return err
	}
	if len(dir.entries) == 0 {
		dir.entries = make(map[string]*entry, len(files))
	}
	now := f.Now()
	nodes, entries := make([]Node, len(files)), make([]entry, len(files))
	for i, x := range files {
		if dir.entries[x.Name] != nil {
			continue
		}
		f.nodes++
		nodes[i] = Node{
			fs: f, id: f.nodes, kind: Regular, mode: x.Mode, nlink: 1, accessed: now, modified: now, changed: now, sealed: true,
			content: content{size: int64(len(x.Data)), data: x.Data},
		}
		entries[i].node = &nodes[i]
		dir.entries[x.Name] = &entries[i]
	}
	dir.listed = nil
	return nil
}

// MakeLink makes a symbolic link of the host's.
func (f *FS) MakeLink(path, target string) error {
	n, err := attachFixed(f, path, Symlink, 0o777)
	if err == nil {
		n.target = target
	}
	return err
}

// MakeDevice makes a device of the host's.
func (f *FS) MakeDevice(path string, s Stream) error {
	n, err := attachFixed(f, path, Device, 0o666)
	if err == nil {
		n.device = s
	}
	return err
}

func attachFixed(f *FS, path string, kind Kind, mode uint32) (*Node, error) {
	names := split(path)
	if len(names) == 0 {
		return nil, EINVAL
	}
	dir := f.root
	if len(names) > 1 {
		var err error
		if dir, err = f.MakeDir(path[:len(path)-len(names[len(names)-1])]); err != nil {
			return nil, err
		}
	}
	name := names[len(names)-1]
	if dir.entries[name] != nil {
		return nil, EEXIST
	}
	n := f.node(kind, mode, nil)
	n.sealed = true
	f.attach(dir, name, n)
	return n, nil
}
