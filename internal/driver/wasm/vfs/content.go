package vfs

import "io"

// chunk is how much of a file is fetched from its source at once.
const chunk = 256 << 10

// maxWhole bounds the memory that is made for a file at once, when the first of it is fetched.
const maxWhole = 4 << 20

// content is what a file holds: bytes in memory, and those which its source has still.
type content struct {
	size    int64
	data    []byte // at least as far as anything is held
	from    string // at the source; "" where everything is in memory
	fetched []bool // of the chunks of the source; nil before the first is fetched
}

// fetch brings what lies in [off, off+n) into memory.
func (n *Node) fetch(off, length int64) error {
	c := &n.content
	if c.from == "" || length <= 0 {
		return nil
	}
	if c.fetched == nil {
		c.fetched = make([]bool, (c.size+chunk-1)/chunk)
		if c.data == nil { // most files are read to their end
			c.data = make([]byte, 0, max(min(c.size, maxWhole, n.fs.account.Spare()), 0))
		}
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
		got, err := n.mount.source.Read(c.from, c.data[from:to], from)
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

// hold makes room in memory for the first size bytes. What is counted is what the file holds, not how the memory grows.
func (n *Node) hold(size int64) error {
	c := &n.content
	have := int64(len(c.data))
	if size <= have {
		return nil
	}
	if err := n.fs.account.Allocate(size - have); err != nil {
		return ENOMEM
	}
	if size <= int64(cap(c.data)) {
		c.data = c.data[:size]
		clear(c.data[have:])
		return nil
	}
	grown := make([]byte, size, max(size, min(2*have, have+(16<<20))))
	if err := n.fs.account.Copy(grown, c.data); err != nil {
		n.fs.account.Release(size - have)
		return err
	}
	c.data = grown
	return nil
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
	copied := 0
	if off < int64(len(n.content.data)) {
		copied = copy(p, n.content.data[off:])
	}
	clear(p[copied:]) // a hole at the end
	return int(length), nil
}

// writeAt copies into the file. Of what does not fit into the bound of a file it writes the beginning and says why no more; what does not fit otherwise is
// not written at all.
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
	if err := n.fs.account.Copy(n.content.data[off:end], p); err != nil {
		return 0, err
	}
	n.wrote()
	return len(p), cut
}

// own makes the content ours alone: what is changed is held as a whole, so that nothing can be missing when it is written back.
func (n *Node) own() error {
	if n.content.from == "" {
		return nil
	}
	if _, err := n.whole(); err != nil {
		return err
	}
	n.content.from, n.content.fetched = "", nil
	return nil
}

// resize sets the size of the file; what is new is zero.
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
	if size < c.size {
		if held := int64(len(c.data)); size < held {
			n.fs.account.Release(held - size)
			c.data = c.data[:size]
			if cap(c.data) > 1<<20 && size < int64(cap(c.data))/4 {
				c.data = append(make([]byte, 0, size), c.data...)
			}
		}
	}
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

// whole brings all of the file into memory and returns it. It is valid until the file is changed.
func (n *Node) whole() ([]byte, error) {
	if err := n.fetch(0, n.content.size); err != nil {
		return nil, err
	}
	if err := n.hold(n.content.size); err != nil {
		return nil, err
	}
	return n.content.data[:n.content.size], nil
}

// freed gives back what a file or link holds, when its last name and its last handle are gone.
func (n *Node) freed() {
	if n.nlink > 0 || n.unseen > 0 {
		return
	}
	_ = n.mount.grow(n.fs, -n.content.size, -1)
	n.fs.account.Release(int64(len(n.content.data) + len(n.target)))
	n.content = content{}
	delete(n.mount.same, n.same) // a name that appears nevertheless is the source's file
}
