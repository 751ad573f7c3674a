package wasi

import (
	"encoding/binary"
	"io"
	"math"
	"time"

	"agentbox/internal/userland/vfs"
)

// Flags of descriptors.
const (
	flagAppend   = 1
	flagDsync    = 2
	flagNonblock = 4
	flagRsync    = 8
	flagSync     = 16
	flagsAll     = 31
)

// filetype is WASI's word for a kind of file.
func filetype(k vfs.Kind) byte {
	switch k {
	case vfs.Device:
		return 2
	case vfs.Directory:
		return 3
	case vfs.Regular:
		return 4
	case vfs.Symlink:
		return 7
	}
	return 0
}

// filetype is that of what is open: a stream is a device where it is a terminal, for C libraries take one for that.
func (d *descriptor) filetype() byte {
	if d.terminal {
		return filetype(vfs.Device)
	}
	if d.handle.Node() == nil {
		return 0
	}
	return filetype(d.kind())
}

// file returns a descriptor that can be read, written or sought, with rights for that.
func (c *call) file(number uint32, r rights) (*descriptor, errno) {
	d, e := c.fd(number, 0)
	if e != success {
		return nil, e
	}
	if d.kind() == vfs.Directory && r&(fdRead|fdWrite) != 0 {
		return nil, isdir
	}
	return d, d.may(r)
}

func (c *call) fdAdvise() errno {
	d, e := c.fd(c.i(0), fdAdvise)
	switch {
	case e != success:
		return e
	case c.i(3) > 5 || c.n(1) > math.MaxInt64 || c.n(2) > math.MaxInt64 || c.n(1)+c.n(2) > math.MaxInt64:
		return inval
	case d.kind() == vfs.Device || d.kind() == vfs.Pipe:
		return spipe
	}
	return success
}

func (c *call) fdAllocate() errno {
	d, e := c.file(c.i(0), fdAllocate)
	switch {
	case e != success:
		return e
	case c.n(1) > math.MaxInt64 || c.n(2) > math.MaxInt64 || c.n(2) == 0:
		return inval
	case c.n(1)+c.n(2) > math.MaxInt64:
		return fbig
	}
	return numbered(d.handle.Allocate(int64(c.n(1)), int64(c.n(2))))
}

func (c *call) fdClose() errno {
	d, e := c.fd(c.i(0), 0)
	if e == success {
		e = numbered(d.handle.Close())
		c.fds[c.i(0)] = nil
	}
	return e
}

// fdDatasync and fdSync have nothing to do, because writes take effect at once.
func (c *call) fdDatasync() errno {
	_, e := c.fd(c.i(0), fdDatasync)
	return e
}

func (c *call) fdSync() errno {
	_, e := c.fd(c.i(0), fdSync)
	return e
}

func (c *call) fdFdstatGet() errno {
	d, e := c.fd(c.i(0), 0)
	if e != success {
		return e
	}
	b, e := c.bytes(c.i(1), 24)
	if e != success {
		return e
	}
	clear(b)
	b[0] = d.filetype()
	binary.LittleEndian.PutUint16(b[2:], d.flags())
	binary.LittleEndian.PutUint64(b[8:], uint64(d.base))
	binary.LittleEndian.PutUint64(b[16:], uint64(d.inheriting))
	return success
}

func (d *descriptor) flags() uint16 {
	flags := d.sync
	if d.handle.Flags()&vfs.Append != 0 {
		flags |= flagAppend
	}
	if d.handle.Flags()&vfs.NonBlock != 0 {
		flags |= flagNonblock
	}
	return flags
}

func (c *call) fdFdstatSetFlags() errno {
	flags := c.i(1)
	d, e := c.fd(c.i(0), fdFdstatSetFlags)
	switch {
	case e != success:
		return e
	case flags&^flagsAll != 0:
		return inval
	}
	d.handle.SetFlags(handleFlags(flags))
	d.sync = uint16(flags) & (flagDsync | flagRsync | flagSync)
	return success
}

func handleFlags(flags uint32) (h vfs.Flags) {
	if flags&flagAppend != 0 {
		h |= vfs.Append
	}
	if flags&flagNonblock != 0 {
		h |= vfs.NonBlock
	}
	return h
}

// fdFdstatSetRights gives rights up, for good.
func (c *call) fdFdstatSetRights() errno {
	d, e := c.fd(c.i(0), 0)
	if e != success {
		return e
	}
	base, inheriting := rights(c.n(1)), rights(c.n(2))
	if base&^d.base != 0 || inheriting&^d.inheriting != 0 {
		return notcapable
	}
	d.base, d.inheriting = base, inheriting
	return success
}

func (c *call) fdFilestatGet() errno {
	d, e := c.fd(c.i(0), fdFilestatGet)
	if e != success {
		return e
	}
	c.charge(gasPerItem)
	return c.filestat(c.i(1), d.handle.Info(), d.filetype())
}

func (c *call) filestat(at uint32, i vfs.Info, filetype byte) errno {
	b, e := c.bytes(at, 64)
	if e != success {
		return e
	}
	clear(b)
	binary.LittleEndian.PutUint64(b, i.Device)
	binary.LittleEndian.PutUint64(b[8:], i.ID)
	b[16] = filetype
	// The permission bits lie in bytes that mean nothing to others, with a bit that says so: our own guests look for them.
	binary.LittleEndian.PutUint32(b[20:], 1<<16|i.Mode&0o7777)
	binary.LittleEndian.PutUint64(b[24:], uint64(i.Links))
	binary.LittleEndian.PutUint64(b[32:], uint64(i.Size))
	binary.LittleEndian.PutUint64(b[40:], stamp(i.Accessed))
	binary.LittleEndian.PutUint64(b[48:], stamp(i.Modified))
	binary.LittleEndian.PutUint64(b[56:], stamp(i.Changed))
	return success
}

// stamp is a time of a file; those before 1970 cannot be told.
func stamp(t time.Time) uint64 {
	if t.IsZero() || t.Unix() < 0 {
		return 0
	}
	return uint64(t.Unix())*1e9 + uint64(t.Nanosecond())
}

func (c *call) fdFilestatSetSize() errno {
	d, e := c.file(c.i(0), fdFilestatSetSize)
	switch {
	case e != success:
		return e
	case c.n(1) > math.MaxInt64:
		return inval
	}
	return numbered(d.handle.Truncate(int64(c.n(1))))
}

func (c *call) fdFilestatSetTimes() errno {
	d, e := c.fd(c.i(0), fdFilestatSetTimes)
	if e != success {
		return e
	}
	accessed, modified, e := c.times(c.n(1), c.n(2), c.i(3))
	switch {
	case e != success:
		return e
	case d.handle.Node() == nil:
		return inval
	}
	return numbered(d.handle.Node().Utimes(accessed, modified))
}

// times returns what to set the times of a file to; a zero one stays as it is.
func (c *call) times(atim, mtim uint64, flags uint32) (accessed, modified time.Time, e errno) {
	const (
		setAccessed = 1 << iota
		nowAccessed
		setModified
		nowModified
		all = 1<<iota - 1
	)
	if flags&^all != 0 || flags&setAccessed != 0 && flags&nowAccessed != 0 || flags&setModified != 0 && flags&nowModified != 0 {
		return accessed, modified, inval
	}
	now := c.fs.Now()
	switch {
	case flags&setAccessed != 0:
		accessed = time.Unix(int64(atim/1e9), int64(atim%1e9))
	case flags&nowAccessed != 0:
		accessed = now
	}
	switch {
	case flags&setModified != 0:
		modified = time.Unix(int64(mtim/1e9), int64(mtim%1e9))
	case flags&nowModified != 0:
		modified = now
	}
	return accessed, modified, success
}

// vectors calls do with each buffer of a list until one is not used fully, and puts how much was used in all.
func (c *call) vectors(list, count, used uint32, do func(b []byte) (int, error)) errno {
	if count > maxVectors {
		return inval
	}
	c.charge(int64(count) * gasPerItem)
	in, e := c.bytes(list, count*8)
	if e != success {
		return e
	}
	if e := c.put32(used, 0); e != success {
		return e
	}
	// All entries are checked before the first is used, so that a refused call does nothing.
	vectors := make([][]byte, count)
	total := uint64(0)
	for i := range vectors {
		at, length := binary.LittleEndian.Uint32(in[i*8:]), binary.LittleEndian.Uint32(in[i*8+4:])
		if total += uint64(length); total > math.MaxInt32 {
			return inval
		}
		if vectors[i], e = c.bytes(at, length); e != success {
			return e
		}
	}
	all := 0
	for _, b := range vectors {
		if len(b) == 0 {
			continue
		}
		n, err := do(b)
		all += n
		if err != nil {
			if e := numbered(err); e != success && all == 0 {
				return e
			}
			break
		}
		if n < len(b) {
			break
		}
	}
	return c.put32(used, uint32(all))
}

func (c *call) fdRead() errno {
	d, e := c.file(c.i(0), fdRead)
	if e != success {
		return e
	}
	some := false
	return c.vectors(c.i(1), c.i(2), c.i(3), func(b []byte) (int, error) {
		if some && d.kind() != vfs.Regular {
			return 0, io.EOF // what has come is not made to wait for more
		}
		some = true
		return d.handle.Read(b)
	})
}

func (c *call) fdWrite() errno {
	d, e := c.file(c.i(0), fdWrite)
	if e != success {
		return e
	}
	return c.vectors(c.i(1), c.i(2), c.i(3), d.handle.Write)
}

func (c *call) fdPread() errno {
	return c.positioned(fdRead, (*vfs.Handle).ReadAt)
}

func (c *call) fdPwrite() errno {
	return c.positioned(fdWrite, (*vfs.Handle).WriteAt)
}

func (c *call) positioned(right rights, do func(h *vfs.Handle, p []byte, off int64) (int, error)) errno {
	d, e := c.file(c.i(0), right)
	switch {
	case e != success:
		return e
	case d.handle.Node() == nil || d.kind() != vfs.Regular:
		return spipe
	case d.base&fdSeek == 0:
		return notcapable
	case c.n(3) > math.MaxInt64:
		return inval
	}
	off := int64(c.n(3))
	return c.vectors(c.i(1), c.i(2), c.i(4), func(b []byte) (int, error) {
		n, err := do(d.handle, b, off)
		off += int64(n)
		return n, err
	})
}

func (c *call) fdSeek() errno {
	off, whence := int64(c.n(1)), c.i(2)
	r := fdSeek
	if off == 0 && whence == 1 {
		r = 0 // a seek that only asks for the position needs either right
	}
	d, e := c.fd(c.i(0), r)
	switch {
	case e != success:
		return c.unseekable(d, e)
	case r == 0 && d.base&(fdSeek|fdTell) == 0:
		return c.unseekable(d, d.may(fdTell))
	case whence > 2:
		return inval
	}
	at, err := d.handle.Seek(off, int(whence))
	if err != nil {
		return numbered(err)
	}
	return c.put64(c.i(3), uint64(at))
}

// unseekable is POSIX's error for seeking in a stream.
func (c *call) unseekable(d *descriptor, e errno) errno {
	if d != nil && e == badf && d.handle.Node() == nil {
		return spipe
	}
	return e
}

func (c *call) fdTell() errno {
	d, e := c.fd(c.i(0), fdTell)
	if e != success {
		return c.unseekable(d, e)
	}
	at, err := d.handle.Seek(0, io.SeekCurrent)
	if err != nil {
		return numbered(err)
	}
	return c.put64(c.i(1), uint64(at))
}

func (c *call) fdPrestatGet() errno {
	d, e := c.fd(c.i(0), 0)
	if e != success || !d.preopened {
		return badf
	}
	if e := c.put32(c.i(1), 0); e != success {
		return e
	}
	return c.put32(c.i(1)+4, uint32(len(d.name)))
}

func (c *call) fdPrestatDirName() errno {
	d, e := c.fd(c.i(0), 0)
	if e != success || !d.preopened {
		return badf
	}
	if uint64(c.i(2)) < uint64(len(d.name)) {
		return nametoolong
	}
	b, e := c.bytes(c.i(1), uint32(len(d.name)))
	if e == success {
		copy(b, d.name)
	}
	return e
}

// fdRenumber moves a descriptor to the number of another one, which is closed.
func (c *call) fdRenumber() errno {
	from, e := c.fd(c.i(0), 0)
	if e != success {
		return e
	}
	to, e := c.fd(c.i(1), 0)
	if e != success || from == to {
		return e
	}
	c.fds[c.i(1)], c.fds[c.i(0)] = from, nil
	return numbered(to.handle.Close())
}

// fdReaddir lists a folder as it was when the list was begun. A cookie is how many entries were read; the first two are the folder itself
// and the one above.
func (c *call) fdReaddir() errno {
	d, e := c.fd(c.i(0), fdReaddir)
	if e != success {
		if d != nil && d.kind() != vfs.Directory {
			return notdir
		}
		return e
	}
	buf, e := c.bytes(c.i(1), c.i(2))
	if e != success {
		return e
	}
	if e := c.put32(c.i(4), 0); e != success {
		return e
	}
	cookie := c.n(3)
	node := d.handle.Node()
	if cookie == 0 || !d.listed {
		if d.entries, e = c.entries(node); e != success {
			return e
		}
		d.listed = true
	}
	used := 0
	for ; cookie < uint64(len(d.entries))+2 && used < len(buf); cookie++ {
		c.charge(gasPerItem)
		var entry [24]byte
		name, id, kind := ".", node.Info().ID, vfs.Directory
		switch {
		case cookie == 1:
			name = ".."
			if !d.preopened { // a preopened folder has no visible parent
				id = node.Parent().Info().ID
			}
		case cookie > 1:
			x := d.entries[cookie-2]
			name, id, kind = x.Name, x.Node.Info().ID, x.Node.Kind()
		}
		binary.LittleEndian.PutUint64(entry[:], cookie+1)
		binary.LittleEndian.PutUint64(entry[8:], id)
		binary.LittleEndian.PutUint32(entry[16:], uint32(len(name)))
		entry[20] = filetype(kind)
		used += copy(buf[used:], entry[:])
		used += copy(buf[used:], name)
	}
	return c.put32(c.i(4), uint32(used))
}

func (c *call) entries(n *vfs.Node) ([]vfs.Entry, errno) {
	all, err := n.List()
	return all, numbered(err)
}
