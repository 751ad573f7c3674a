// Package vfs is the file system that one execution sees: in memory, loaded from the space's files as they are touched, with symbolic and
// hard links, permission bits, pipes, devices and quotas.
//
// Nothing in it is safe for concurrent use; the fibers of an execution run one at a time. The changes of an execution are a list of
// changes at its end.
package vfs

import (
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/fiber"
)

// Bounds of names, and what work costs in gas.
const (
	MaxName     = 255
	MaxPath     = 4096
	MaxSymlinks = 40
	MaxDepth    = 256 // of folders: deeper ones have no snapshot
	MaxLinks    = 32_000

	gasPerStep  = 100 // of a path
	gasPerCall  = 200 // of an operation
	gasPerEntry = 20  // of a folder that is listed or loaded
	bytesPerGas = 8   // that are copied
	nodeBytes   = 256 // of memory that a file's entry counts for, beside its name
)

// Kind is what a node is.
type Kind uint8

// The kinds of nodes.
const (
	Regular Kind = iota + 1
	Directory
	Symlink
	Pipe
	Device
	Other // on disk: a socket, a pipe or a device, which cannot be opened
)

// FS is the file system of one execution. Make it with New.
type FS struct {
	account *bound.Account
	group   *fiber.Group
	root    *Node
	mounts  []*mount
	nodes   uint64
	handles int64
}

// New returns a file system with an empty root, in which only the host makes anything. Pipes need the group.
func New(a *bound.Account, g *fiber.Group) *FS {
	f := &FS{account: a, group: g}
	f.root = f.node(Directory, 0o755, nil)
	f.root.parent, f.root.nlink, f.root.sealed = f.root, 2, true
	return f
}

// Account returns the account of the execution.
func (f *FS) Account() *bound.Account { return f.account }

// Group returns the fibers of the execution.
func (f *FS) Group() *fiber.Group { return f.group }

// Root returns the root folder.
func (f *FS) Root() *Node { return f.root }

// Now returns the virtual time.
func (f *FS) Now() time.Time { return f.account.Now() }

// Worked returns how much of the virtual time was work, not sleep.
func (f *FS) Worked() time.Duration { return f.account.Worked() }

// Node is a file, folder, link, pipe or device.
type Node struct {
	fs       *FS
	id       uint64
	kind     Kind
	mode     uint32 // permission bits, as in 07777
	nlink    int    // names that are loaded
	unseen   int    // names at the source that are not loaded
	accessed time.Time
	modified time.Time
	changed  time.Time
	mount    *mount
	sealed   bool // code may change nothing about it

	parent  *Node             // of a folder
	label   string            // its name there
	entries map[string]*entry // of a folder that is loaded
	listed  []string          // the names of entries in order; nil when they have to be sorted again
	source  string            // where a folder lies at its source
	loaded  bool

	content content
	target  string // of a symbolic link
	device  Stream
	removed bool // a folder that has no name any more
	opens   int  // handles

	linked                              bool   // at its source it has other names
	same                                uint64 // what identifies it there
	dirtyContent, dirtyMode, dirtyTimes bool
}

// entry is a name in a folder.
type entry struct {
	node   *Node
	origin string // where it lies at the mount's source; "" for a new one
	old    bool   // it has an origin
}

// Info is what a node tells about itself.
type Info struct {
	ID       uint64
	Kind     Kind
	Mode     uint32 // permission bits
	Links    int
	Size     int64
	Accessed time.Time
	Modified time.Time
	Changed  time.Time
	Device   uint64 // which mount it lies in
}

// IsDir reports whether it is a folder.
func (i Info) IsDir() bool { return i.Kind == Directory }

// Info returns what the node tells about itself.
func (n *Node) Info() Info {
	i := Info{ID: n.id, Kind: n.kind, Mode: n.mode, Links: n.nlink + n.unseen, Accessed: n.accessed, Modified: n.modified, Changed: n.changed}
	switch n.kind {
	case Regular:
		i.Size = n.content.size
	case Symlink:
		i.Size = int64(len(n.target))
	case Directory:
		i.Size = 4096
	}
	if n.mount != nil {
		i.Device = n.mount.number
	}
	return i
}

// Kind returns what the node is.
func (n *Node) Kind() Kind { return n.kind }

// Parent returns the folder above a folder, which is the root's own for the root. One that was removed has it still.
func (n *Node) Parent() *Node { return n.parent }

// Target returns where a symbolic link points.
func (n *Node) Target() string { return n.target }

// Stream is what a device does with what is read from it and written to it.
type Stream interface {
	Read(p []byte) (int, error)
	Write(p []byte) (int, error)
}

// node makes a node without a name.
func (f *FS) node(kind Kind, mode uint32, m *mount) *Node {
	f.nodes++
	now := f.Now()
	n := &Node{fs: f, id: f.nodes, kind: kind, mode: mode, nlink: 1, accessed: now, modified: now, changed: now, mount: m}
	if kind == Directory {
		n.entries, n.loaded, n.nlink = map[string]*entry{}, true, 2
	}
	return n
}

// charge counts an operation and what it copies.
func (f *FS) charge(bytes int) error {
	return f.account.Charge(gasPerCall + int64(bytes/bytesPerGas))
}
