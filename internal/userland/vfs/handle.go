package vfs

import (
	"cmp"
	"io"
	"strings"

	"agentbox/internal/userland/bound"
)

// Flags say how a file is opened.
type Flags uint16

// The flags of Open.
const (
	Read Flags = 1 << iota
	Write
	Append
	Create
	Exclusive
	Truncate
	MustDir  // anything but a folder is ENOTDIR
	NoFollow // a link at the end is ELOOP
	NonBlock
)

// Handle is an open file, folder, device or end of a pipe. Copies made by Dup share their offset, as descriptors of POSIX do.
type Handle struct {
	fs    *FS
	node  *Node // nil for a pipe without a name
	flags Flags
	off   int64
	refs  int
	pipe  *pipe
	dev   Stream
}

// Open opens what a path leads to, or makes a file there. Each handle without an error has its Close.
func (f *FS) Open(at At, path string, flags Flags, perm uint32) (*Handle, error) {
	if err := f.charge(0); err != nil {
		return nil, err
	}
	if flags&Create != 0 && strings.HasSuffix(path, "/") {
		if p, err := f.walk(at, path, nameful); err != nil || p.name != "" {
			return nil, cmp.Or(err, error(EISDIR))
		}
	}
	p, err := f.walk(at, path, ending(flags&NoFollow == 0 && flags&(Create|Exclusive) != Create|Exclusive))
	if err != nil {
		return nil, err
	}
	if p.node == nil {
		if flags&Create == 0 {
			return nil, ENOENT
		}
		if p.slash || flags&MustDir != 0 {
			return nil, EISDIR
		}
		if err := checkRoom(f); err != nil {
			return nil, err
		}
		if p.node, err = placeNode(f, p, Regular, perm); err != nil {
			return nil, err
		}
		return newHandle(f, p.node, flags), nil
	}
	if err := mayOpen(p.node, flags); err != nil {
		return nil, err
	}
	if err := checkRoom(f); err != nil {
		return nil, err
	}
	if flags&Truncate != 0 && p.node.kind == Regular {
		if err := p.node.resize(0); err != nil {
			return nil, err
		}
		p.node.wrote()
	}
	if p.node.kind == Directory {
		if err := f.load(p.node); err != nil {
			return nil, err
		}
	}
	return newHandle(f, p.node, flags), nil
}

func mayOpen(n *Node, flags Flags) error {
	writes := flags&(Write|Append|Truncate) != 0
	switch {
	case flags&Create != 0 && flags&Exclusive != 0:
		return EEXIST
	case n.kind == Symlink:
		return ELOOP
	case flags&MustDir != 0 && n.kind != Directory:
		return ENOTDIR
	case n.kind == Directory && (writes || flags&Create != 0):
		return EISDIR
	case n.kind == Other:
		return ENXIO
	case n.kind == Device:
		return nil
	case writes && (n.sealed || n.mount == nil):
		return EROFS
	case writes && n.mode&0o200 == 0, flags&Read != 0 && n.mode&0o400 == 0:
		return EACCES
	}
	return nil
}

// checkRoom counts a handle more.
func checkRoom(f *FS) error {
	if f.handles >= f.account.Limits().OpenFiles {
		f.account.Hit("open_files")
		return EMFILE
	}
	return nil
}

func newHandle(f *FS, n *Node, flags Flags) *Handle {
	f.handles++
	n.opens++
	return &Handle{fs: f, node: n, flags: written(flags), refs: 1, dev: n.device}
}

// written returns flags with Write added if they have Append. A handle opened for appending may write, also after Append is switched off.
func written(flags Flags) Flags {
	if flags&Append != 0 {
		flags |= Write
	}
	return flags
}

// OpenNode opens a node that was found, as Open does.
func (f *FS) OpenNode(n *Node, flags Flags) (*Handle, error) {
	if err := mayOpen(n, flags&^(Create|Exclusive)); err != nil {
		return nil, err
	}
	if err := checkRoom(f); err != nil {
		return nil, err
	}
	if err := f.load(n); err != nil {
		return nil, err
	}
	return newHandle(f, n, flags), nil
}

// Stream opens a device that has no name: the standard streams.
func (f *FS) Stream(s Stream, flags Flags) *Handle {
	f.handles++
	return &Handle{fs: f, flags: written(flags), refs: 1, dev: s}
}

// Dup returns the handle for one more user; each closes it.
func (h *Handle) Dup() *Handle {
	h.refs++
	return h
}

// Close ends one use of the handle.
func (h *Handle) Close() error {
	if h.refs == 0 {
		return EBADF
	}
	if h.refs--; h.refs > 0 {
		return nil
	}
	h.fs.handles--
	if h.pipe != nil {
		h.pipe.close(h.flags)
	}
	if h.node != nil {
		if h.node.opens--; h.node.opens == 0 && h.node.nlink == 0 && h.node.kind == Regular && h.node.mount != nil {
			h.node.freed()
		}
	}
	return nil
}

// Open reports whether somebody still uses the handle.
func (h *Handle) Open() bool { return h.refs > 0 }

// Node returns what is open, nil for pipes and streams without a name.
func (h *Handle) Node() *Node { return h.node }

// Flags returns how it is open.
func (h *Handle) Flags() Flags { return h.flags }

// SetFlags sets Append and NonBlock as they are in flags.
func (h *Handle) SetFlags(flags Flags) {
	h.flags = h.flags&^(Append|NonBlock) | flags&(Append|NonBlock)
}

// Kind returns what is open; streams are devices.
func (h *Handle) Kind() Kind {
	switch {
	case h.pipe != nil:
		return Pipe
	case h.node != nil:
		return h.node.kind
	}
	return Device
}

// Info returns what is open tells about itself.
func (h *Handle) Info() Info {
	if h.node != nil {
		return h.node.Info()
	}
	return Info{Kind: h.Kind(), Mode: 0o600, Links: 1}
}

// Read reads on. At the end of a file it returns 0 and io.EOF.
func (h *Handle) Read(p []byte) (int, error) {
	switch {
	case h.flags&Read == 0:
		return 0, EBADF
	case h.pipe != nil:
		return h.pipe.read(p, h.flags&NonBlock != 0)
	case h.dev != nil:
		if err := h.fs.charge(len(p)); err != nil {
			return 0, err
		}
		return h.dev.Read(p)
	case h.node.kind == Directory:
		return 0, EISDIR
	}
	n, err := h.node.readAt(p, h.off)
	h.off += int64(n)
	if n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return n, err
}

// Write writes on, at the end with Append.
func (h *Handle) Write(p []byte) (int, error) {
	switch {
	case h.flags&Write == 0:
		return 0, EBADF
	case h.pipe != nil:
		return h.pipe.write(p, h.flags&NonBlock != 0)
	case h.dev != nil:
		if err := h.fs.charge(len(p)); err != nil {
			return 0, err
		}
		return h.dev.Write(p)
	case h.node.kind == Directory:
		return 0, EISDIR
	}
	if h.flags&Append != 0 {
		h.off = h.node.content.size
	}
	n, err := h.node.writeAt(p, h.off)
	h.off += int64(n)
	return n, err
}

// ReadAt reads at an offset and leaves that of the handle.
func (h *Handle) ReadAt(p []byte, off int64) (int, error) {
	if err := h.positioned(Read, off); err != nil {
		return 0, err
	}
	n, err := h.node.readAt(p, off)
	if n < len(p) && err == nil {
		err = io.EOF
	}
	return n, err
}

// WriteAt writes at an offset and leaves that of the handle.
func (h *Handle) WriteAt(p []byte, off int64) (int, error) {
	if err := h.positioned(Write, off); err != nil {
		return 0, err
	}
	return h.node.writeAt(p, off)
}

func (h *Handle) positioned(flag Flags, off int64) error {
	switch {
	case h.flags&flag == 0:
		return EBADF
	case h.pipe != nil || h.dev != nil:
		return ESPIPE
	case h.node.kind == Directory:
		return EISDIR
	case off < 0:
		return EINVAL
	}
	return nil
}

// Seek moves the offset, as io.Seeker does.
func (h *Handle) Seek(off int64, whence int) (int64, error) {
	if h.pipe != nil || h.dev != nil {
		return 0, ESPIPE
	}
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		off += h.off
	case io.SeekEnd:
		off += h.node.content.size
	default:
		return 0, EINVAL
	}
	if off < 0 {
		return 0, EINVAL
	}
	h.off = off
	return off, nil
}

// Truncate sets the size of the file.
func (h *Handle) Truncate(size int64) error {
	switch {
	case size < 0:
		return EINVAL
	case h.flags&Write == 0 || h.node == nil:
		return EINVAL
	case h.node.kind != Regular:
		return EINVAL
	}
	if err := h.fs.charge(0); err != nil {
		return err
	}
	return h.node.resize(size)
}

// Allocate makes the file at least as long as off and length say.
func (h *Handle) Allocate(off, length int64) error {
	if off < 0 || length <= 0 || off+length < 0 {
		return EINVAL
	}
	if h.node == nil || h.node.kind != Regular || h.flags&Write == 0 {
		return EBADF
	}
	if off+length <= h.node.content.size {
		return nil
	}
	return h.node.resize(off + length)
}

// maxAhead bounds the memory that is made for what a file says it holds, before anything of it was read.
const maxAhead = 16 << 20

// left is how much of a file is left to read, 0 for what is none, as far as memory is made for it at once.
func (h *Handle) left() int64 {
	if h.node == nil || h.node.kind != Regular {
		return 0
	}
	return max(min(h.node.content.size-h.off, h.fs.account.Spare(), maxAhead), 0)
}

// ReadAll returns the rest of the file, as far as the memory reaches. The caller holds the bytes until Release of their number.
func (h *Handle) ReadAll() ([]byte, error) {
	all := make([]byte, 0, h.left()) // grown piece by piece it would be copied several times
	buf := make([]byte, 32<<10)
	for {
		n, err := h.Read(buf)
		if n > 0 {
			if e := h.fs.account.Allocate(int64(n)); e != nil {
				h.fs.account.Release(int64(len(all)))
				return nil, bound.ErrMemory
			}
			all = append(all, buf[:n]...)
		}
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			h.fs.account.Release(int64(len(all)))
			return nil, err
		}
	}
}
