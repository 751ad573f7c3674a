package javascript

import (
	"errors"
	"io"

	//nolint:staticcheck // programs ask for it by name

	"agentbox/internal/userland/vfs"
)

func (fl filesystem) chdir(a *arguments) (any, error) {
	n, err := fl.run.p.FS.Lookup(fl.run.p.At(), a.text(), true)
	if err != nil {
		return nil, err
	}
	if n.Kind() != vfs.Directory {
		return nil, vfs.ENOTDIR
	}
	fl.run.p.Cwd = n
	return str(n.Path())
}

// open opens a file by the flags of the file system, which the prelude makes of Node's.
func (fl filesystem) open(a *arguments) (any, error) {
	name, flags, perm := a.text(), vfs.Flags(a.int()), uint32(a.int())
	if a.err != nil {
		return nil, a.err
	}
	h, err := fl.run.p.OpenAs(name, flags, perm&0o777)
	if err != nil {
		return nil, err
	}
	fd := 10
	for fl.run.files[fd] != nil {
		fd++
	}
	fl.run.files[fd] = h
	return fd, nil
}

func (fl filesystem) handle(fd int) (*vfs.Handle, error) {
	if h := fl.run.files[fd]; h != nil {
		return h, nil
	}
	if h := fl.run.p.File(fd); h != nil {
		return h, nil
	}
	return nil, vfs.EBADF
}

func (fl filesystem) close(a *arguments) (any, error) {
	fd := a.int()
	h := fl.run.files[fd]
	if h == nil {
		return nil, vfs.EBADF
	}
	delete(fl.run.files, fd)
	return nil, fl.run.p.Close(h)
}

// readAt reads into a buffer, at a position or, where that is negative, on.
func (fl filesystem) readAt(a *arguments) (any, error) {
	fd := a.int()
	b, at := a.bytes(), 0
	size := len(b)
	if at = a.int(); a.err != nil {
		return nil, a.err
	}
	h, err := fl.handle(fd)
	if err != nil {
		return nil, err
	}
	fl.run.p.Charge(size)
	into := make([]byte, size) // while it waits other guests may run, and the memory of this one may not be held
	var n int
	if at >= 0 {
		n, err = h.ReadAt(into, int64(at))
	} else {
		n, err = h.Read(into)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	copy(b, into[:n])
	return n, nil
}

func (fl filesystem) writeAt(a *arguments) (any, error) {
	fd := a.int()
	b := append([]byte(nil), a.bytes()...)
	at := a.int()
	if a.err != nil {
		return nil, a.err
	}
	h, err := fl.handle(fd)
	if err != nil {
		return nil, err
	}
	if fd == 1 || fd == 2 {
		if _, err := fl.run.print(fd, b, nil); err != nil {
			return nil, err
		}
		return len(b), nil
	}
	fl.run.p.Charge(len(b))
	var n int
	if at >= 0 {
		n, err = h.WriteAt(b, int64(at))
	} else {
		n, err = h.Write(b)
	}
	return n, err
}

func (fl filesystem) readFile(a *arguments) (any, error) {
	h, err := fl.run.p.Open(a.text(), vfs.Read)
	if err != nil {
		return nil, err
	}
	defer func() { _ = fl.run.p.Close(h) }()
	if h.Kind() == vfs.Directory {
		return nil, vfs.EISDIR
	}
	b, err := h.ReadAll()
	if err != nil {
		return nil, err
	}
	fl.run.account.Release(int64(len(b)))
	fl.run.p.Charge(len(b))
	return b, nil
}

// filesystem is the host's part of the module fs.
type filesystem struct{ run *run }
