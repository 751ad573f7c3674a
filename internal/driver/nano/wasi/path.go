package wasi

import (
	"path"

	"agentbox/internal/userland/vfs"
)

const followLinks = 1 // the only flag of a lookup

func (c *call) pathCreateDirectory() errno {
	mode := c.made(0o777)
	at, e := c.at(c.i(0), pathCreateDirectory)
	if e != success {
		return e
	}
	p, e := c.path(c.i(1), c.i(2), true)
	if e != success {
		return e
	}
	return numbered(c.fs.Mkdir(at, p, mode))
}

func (c *call) pathFilestatGet() errno {
	at, e := c.at(c.i(0), pathFilestatGet)
	if e != success {
		return e
	}
	if c.i(1)&^followLinks != 0 {
		return inval
	}
	p, e := c.path(c.i(2), c.i(3), false)
	if e != success {
		return e
	}
	info, err := c.fs.Stat(at, p, c.i(1) != 0)
	if err != nil {
		return numbered(err)
	}
	return c.filestat(c.i(4), info, filetype(info.Kind))
}

func (c *call) pathFilestatSetTimes() errno {
	at, e := c.at(c.i(0), pathFilestatSetTimes)
	if e != success {
		return e
	}
	if c.i(1)&^followLinks != 0 {
		return inval
	}
	p, e := c.path(c.i(2), c.i(3), false)
	if e != success {
		return e
	}
	accessed, modified, e := c.times(c.n(4), c.n(5), c.i(6))
	if e != success {
		return e
	}
	return numbered(c.fs.Utimes(at, p, c.i(1) != 0, accessed, modified))
}

func (c *call) pathLink() errno {
	from, e := c.at(c.i(0), pathLinkSource)
	if e != success {
		return e
	}
	to, e := c.at(c.i(4), pathLinkTarget)
	if e != success {
		return e
	}
	if c.i(1)&^followLinks != 0 {
		return inval
	}
	old, e := c.path(c.i(2), c.i(3), false)
	if e != success {
		return e
	}
	fresh, e := c.path(c.i(5), c.i(6), true)
	if e != success {
		return e
	}
	return numbered(c.fs.Link(from, old, c.i(1) != 0, to, fresh))
}

// Flags of path_open.
const (
	openCreate = 1 << iota
	openDirectory
	openExclusive
	openTruncate
	openAll = 1<<iota - 1
)

func (c *call) pathOpen() errno {
	mode := c.made(0o666)
	lookup, flags, fdflags := c.i(1), c.i(4), c.i(7)
	base, inheriting := rights(c.n(5)), rights(c.n(6))
	needed, inherited := pathOpen, base|inheriting
	if flags&openCreate != 0 {
		needed |= pathCreateFile
	}
	if flags&openTruncate != 0 {
		needed |= pathFilestatSetSize
	}
	if fdflags&flagDsync != 0 {
		inherited |= fdDatasync
	}
	if fdflags&(flagSync|flagRsync) != 0 {
		inherited |= fdSync
	}
	at, e := c.at(c.i(0), needed)
	switch {
	case e != success:
		return e
	case lookup&^followLinks != 0, flags&^openAll != 0, fdflags&^flagsAll != 0, flags&openDirectory != 0 && flags&^openDirectory != 0:
		return inval
	case inherited&^c.fds[c.i(0)].inheriting != 0:
		return notcapable
	}
	p, e := c.path(c.i(2), c.i(3), flags&openCreate != 0)
	if e != success {
		return e
	}
	if e := c.put32(c.i(8), 0); e != success {
		return e
	}
	h, err := c.open(at, p, openFlags(lookup, flags, fdflags, base), mode)
	if err != nil {
		return numbered(err)
	}
	d := &descriptor{handle: h, base: base & possible(h.Kind()), sync: uint16(fdflags) & (flagDsync | flagRsync | flagSync)}
	if h.Kind() == vfs.Directory {
		d.inheriting = inheriting & allRights
	}
	d.had = d.base
	number := uint32(len(c.fds))
	for i := range c.fds {
		if c.fds[i] == nil {
			number = uint32(i)
			break
		}
	}
	if int(number) == len(c.fds) {
		c.fds = append(c.fds, nil)
	}
	c.fds[number] = d
	return c.put32(c.i(8), number)
}

// open opens a file. The names of the standard streams mean those of the program, where the whole tree is open.
func (c *call) open(at vfs.At, path string, flags vfs.Flags, mode uint32) (*vfs.Handle, error) {
	if d := c.fds[c.i(0)]; d.preopened && d.name == "/" {
		n, ok := map[string]int{"dev/stdin": 0, "dev/stdout": 1, "dev/stderr": 2}[path]
		if ok && n < len(c.fds) && c.fds[n] != nil && !c.fds[n].preopened {
			return c.fds[n].handle.Dup(), nil
		}
	}
	return c.fs.Open(at, path, flags, mode)
}

func openFlags(lookup, flags, fdflags uint32, base rights) vfs.Flags {
	f := handleFlags(fdflags)
	for _, x := range []struct {
		given bool
		flag  vfs.Flags
	}{
		{lookup&followLinks == 0, vfs.NoFollow},
		{flags&openCreate != 0, vfs.Create},
		{flags&openDirectory != 0, vfs.MustDir},
		{flags&openExclusive != 0, vfs.Exclusive},
		{flags&openTruncate != 0, vfs.Truncate},
		{base&(fdRead|fdReaddir) != 0, vfs.Read},
		{base&(fdWrite|fdAllocate) != 0, vfs.Write},
	} {
		if x.given {
			f |= x.flag
		}
	}
	if f&vfs.Write == 0 { // to append is to write
		f &^= vfs.Append
	}
	return f
}

func (c *call) pathReadlink() errno {
	at, e := c.at(c.i(0), pathReadlink)
	if e != success {
		return e
	}
	p, e := c.path(c.i(1), c.i(2), false)
	if e != success {
		return e
	}
	target, err := c.fs.Readlink(at, p)
	if err != nil {
		return numbered(err)
	}
	b, e := c.bytes(c.i(3), min(c.i(4), uint32(len(target))))
	if e != success {
		return e
	}
	return c.put32(c.i(5), uint32(copy(b, target)))
}

func (c *call) pathRemoveDirectory() errno {
	at, e := c.at(c.i(0), pathRemoveDirectory)
	if e != success {
		return e
	}
	p, e := c.path(c.i(1), c.i(2), false)
	if e != success {
		return e
	}
	return numbered(c.fs.Rmdir(at, p))
}

func (c *call) pathRename() errno {
	from, e := c.at(c.i(0), pathRenameSource)
	if e != success {
		return e
	}
	to, e := c.at(c.i(3), pathRenameTarget)
	if e != success {
		return e
	}
	old, e := c.path(c.i(1), c.i(2), false)
	if e != success {
		return e
	}
	fresh, e := c.path(c.i(4), c.i(5), true)
	if e != success {
		return e
	}
	return numbered(c.fs.Rename(from, old, to, fresh))
}

// pathSymlink makes a link. One to an absolute path would lead out of the folder, unless the folder is everything.
func (c *call) pathSymlink() errno {
	at, e := c.at(c.i(2), pathSymlink)
	if e != success {
		return e
	}
	target, e := c.path(c.i(0), c.i(1), true)
	if e != success {
		return e
	}
	p, e := c.path(c.i(3), c.i(4), true)
	if e != success {
		return e
	}
	if path.IsAbs(target) && at.Dir != c.fs.Root() {
		return perm
	}
	return numbered(c.fs.Symlink(target, at, p))
}

func (c *call) pathUnlinkFile() errno {
	at, e := c.at(c.i(0), pathUnlinkFile)
	if e != success {
		return e
	}
	p, e := c.path(c.i(1), c.i(2), false)
	if e != success {
		return e
	}
	return numbered(c.fs.Unlink(at, p))
}
