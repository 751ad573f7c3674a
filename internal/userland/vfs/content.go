package vfs

import (
	"io"
	"slices"
)

// chunk is how much of a file is fetched from its source at once, and what each piece but the last holds of what is in memory.
const chunk = 256 << 10

// content is the content of a file: bytes in memory, and those that its source still has. The bytes in memory lie in pieces, so that a file
// which grows is never copied: memory that is new costs more than what is written into it.
type content struct {
	size    int64
	data    []byte   // of a file of the host's, instead of pieces
	pieces  [][]byte // at least as far as anything is held; each but the last has a chunk
	held    int64    // bytes in pieces
	from    string   // at the source; "" where everything is in memory
	fetched []bool   // of the chunks of the source; nil before the first is fetched
}

// fetch brings what lies in [off, off+n) into memory.
func (n *Node) fetch(off, length int64) error {
	c := &n.content
	if c.from == "" || length <= 0 {
		return nil
	}
	if c.fetched == nil {
		c.fetched = make([]bool, (c.size+chunk-1)/chunk)
	}
	end := min(off+length, c.size)
	for i := off / chunk; i*chunk < end; i++ {
		if c.fetched[i] {
			continue
		}
		from, to := i*chunk, min((i+1)*chunk, c.size)
		if err := n.hold(to); err != nil {
			return err
		}
		if err := n.fs.charge(int(to - from)); err != nil {
			return err
		}
		got, err := n.mount.source.Read(c.from, c.pieces[i][:to-from], from)
		if int64(got) < to-from {
			if err == nil || err == io.EOF {
				err = EIO // it became shorter
			}
			return lost(err)
		}
		c.fetched[i] = true
	}
	return nil
}

// hold makes room in memory for the first size bytes. It charges for the content of the file, not for the growth of the memory.
func (n *Node) hold(size int64) error {
	c := &n.content
	if size <= c.held {
		return nil
	}
	if err := n.fs.account.Allocate(size - c.held); err != nil {
		return ENOMEM
	}
	for c.held < size {
		if err := n.fs.account.Check(); err != nil { // memory that is new takes its time
			n.fs.account.Release(size - c.held)
			return err
		}
		i := c.held / chunk
		most, within := min(size-i*chunk, chunk), c.held-i*chunk
		if i == int64(len(c.pieces)) {
			c.pieces = append(c.pieces, nil)
		}
		p := c.pieces[i]
		if most > int64(cap(p)) {
			room := min(max(most, 2*int64(cap(p))), chunk)
			if i > 0 {
				room = chunk
			}
			p = append(make([]byte, 0, room), p...)
		}
		p = p[:most]
		clear(p[within:])
		c.pieces[i], c.held = p, i*chunk+most
	}
	return nil
}

// shrink gives up what is held beyond size.
func (n *Node) shrink(size int64) {
	c := &n.content
	if size >= c.held {
		return
	}
	n.fs.account.Release(c.held - size)
	c.held = size
	whole, rest := size/chunk, size%chunk
	if rest == 0 {
		c.pieces = slices.Clip(c.pieces[:whole])
		return
	}
	last := c.pieces[whole][:rest]
	if rest < int64(cap(last))/4 {
		last = slices.Clone(last)
	}
	clear(c.pieces[whole+1:])
	c.pieces = c.pieces[:whole+1]
	c.pieces[whole] = last
}

// part returns what is in memory from an offset to the end of its piece.
func (c *content) part(off int64) []byte {
	if c.data != nil {
		return c.data[min(off, int64(len(c.data))):]
	}
	if off >= c.held {
		return nil
	}
	return c.pieces[off/chunk][off%chunk:]
}

// readAt copies from the file.
func (n *Node) readAt(p []byte, off int64) (int, error) {
	if off >= n.content.size || len(p) == 0 {
		return 0, nil
	}
	length := min(int64(len(p)), n.content.size-off)
	if err := n.fs.charge(int(length)); err != nil {
		return 0, err
	}
	if err := n.fetch(off, length); err != nil {
		return 0, err
	}
	p = p[:length]
	for len(p) > 0 {
		copied := copy(p, n.content.part(off))
		if copied == 0 {
			break
		}
		p, off = p[copied:], off+int64(copied)
	}
	clear(p) // a hole at the end
	return int(length), nil
}

// writeAt copies into the file. Of what does not fit into the bound of a file it writes the beginning and says why no more; what does not
// fit otherwise is not written at all.
func (n *Node) writeAt(p []byte, off int64) (int, error) {
	if err := n.fs.charge(len(p)); err != nil || len(p) == 0 {
		return 0, err
	}
	end, most := off+int64(len(p)), n.fs.account.Limits().FileBytes
	var cut error
	if end > most || end < 0 {
		n.fs.account.Hit("file_bytes")
		if off >= most {
			return 0, EFBIG
		}
		p, end, cut = p[:most-off], most, EFBIG
	}
	if err := n.own(); err != nil {
		return 0, err
	}
	if end > n.content.size {
		if err := n.resize(end); err != nil {
			return 0, err
		}
	}
	if err := n.hold(end); err != nil {
		return 0, err
	}
	for rest := p; len(rest) > 0; {
		into := n.content.part(off)
		count := min(len(rest), len(into))
		if err := n.fs.account.Copy(into, rest[:count]); err != nil {
			return 0, err
		}
		if rest, off = rest[count:], off+int64(count); len(rest) > 0 {
			if err := n.fs.account.Check(); err != nil {
				return 0, err
			}
		}
	}
	n.wrote()
	return len(p), cut
}

// own makes the content ours alone. A changed file is held as a whole, so that nothing can be missing when it is written back.
func (n *Node) own() error {
	if n.content.from == "" {
		return nil
	}
	if err := n.whole(); err != nil {
		return err
	}
	n.content.from, n.content.fetched = "", nil
	return nil
}

// resize sets the size of the file. New bytes are zero.
func (n *Node) resize(size int64) error {
	c := &n.content
	if size == c.size {
		return nil
	}
	if size > n.fs.account.Limits().FileBytes {
		n.fs.account.Hit("file_bytes")
		return EFBIG
	}
	if size > 0 {
		if err := n.own(); err != nil {
			return err
		}
	}
	if err := n.mount.grow(n.fs, size-c.size, 0); err != nil {
		return err
	}
	if size == 0 {
		c.from, c.fetched = "", nil
	}
	n.shrink(size)
	c.size = size
	n.wrote()
	return nil
}

// wrote notes that the content is not the source's any more.
func (n *Node) wrote() {
	n.dirtyContent = true
	n.modified = n.fs.Now()
	n.changed = n.modified
	n.mode &^= 0o6000
}

// whole brings all of the file into memory.
func (n *Node) whole() error {
	if err := n.fetch(0, n.content.size); err != nil {
		return err
	}
	return n.hold(n.content.size)
}

// freed gives back what a file or link holds, when its last name and its last handle are gone.
func (n *Node) freed() {
	if n.nlink > 0 || n.unseen > 0 {
		return
	}
	_ = n.mount.grow(n.fs, -n.content.size, -1)
	n.fs.account.Release(n.content.held + int64(len(n.target)))
	n.content = content{}
	delete(n.mount.same, n.same) // a name that appears nevertheless is the source's file
}
