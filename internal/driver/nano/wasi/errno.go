package wasi

import (
	"errors"
	"io"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/vfs"
)

// errno is an error of WASI preview 1, by its number.
type errno uint16

// The errors that this host returns.
const (
	success     errno = 0
	acces       errno = 2
	again       errno = 6
	badf        errno = 8
	busy        errno = 10
	exist       errno = 20
	fault       errno = 21
	fbig        errno = 22
	ilseq       errno = 25
	inval       errno = 28
	ioerr       errno = 29
	isdir       errno = 31
	loop        errno = 32
	mfile       errno = 33
	mlink       errno = 34
	nametoolong errno = 37
	noent       errno = 44
	nomem       errno = 48
	nospc       errno = 51
	notdir      errno = 54
	notempty    errno = 55
	notsock     errno = 57
	notsup      errno = 58
	nxio        errno = 60
	overflow    errno = 61
	perm        errno = 63
	epipe       errno = 64
	rofs        errno = 69
	spipe       errno = 70
	txtbsy      errno = 74
	xdev        errno = 75
	notcapable  errno = 76
)

var errnos = map[vfs.Errno]errno{
	vfs.EACCES: acces, vfs.EBADF: badf, vfs.EBUSY: busy, vfs.EEXIST: exist, vfs.EFBIG: fbig, vfs.EINVAL: inval, vfs.EIO: ioerr,
	vfs.EISDIR: isdir,
	vfs.ELOOP:  loop, vfs.EMFILE: mfile, vfs.EMLINK: mlink, vfs.ENAMETOOLONG: nametoolong, vfs.ENOENT: noent, vfs.ENOMEM: nomem,
	vfs.ENOSPC:  nospc,
	vfs.ENOTDIR: notdir, vfs.ENOTEMPTY: notempty, vfs.ENOTSUP: notsup, vfs.ENXIO: nxio, vfs.EPERM: perm, vfs.EPIPE: epipe, vfs.EROFS: rofs,
	vfs.ESPIPE: spipe, vfs.ETXTBSY: txtbsy, vfs.EXDEV: xdev, vfs.ENOTCAPABLE: notcapable, vfs.EAGAIN: again,
}

// numbered returns the number of an error. It throws an error that stops the execution.
func numbered(err error) errno {
	if err == nil {
		return success
	}
	if stopped, ok := errors.AsType[*bound.Stopped](err); ok {
		panic(stopped)
	}
	if e, ok := errors.AsType[vfs.Errno](err); ok {
		if number, known := errnos[e]; known {
			return number
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		return success
	case errors.Is(err, bound.ErrMemory):
		return nomem
	}
	return ioerr
}
