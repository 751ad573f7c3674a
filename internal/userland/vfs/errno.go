package vfs

// Errno is an error of the file system, by its POSIX name.
type Errno uint8

// The errors of the file system.
const (
	EACCES Errno = iota + 1
	EBADF
	EBUSY
	EEXIST
	EFBIG
	EINVAL
	EIO
	EISDIR
	ELOOP
	EMFILE
	EMLINK
	ENAMETOOLONG
	ENOENT
	ENOMEM
	ENOSPC
	ENOTDIR
	ENOTEMPTY
	ENOTSUP
	ENXIO
	EPERM
	EPIPE
	EROFS
	ESPIPE
	ETXTBSY
	EXDEV
	ENOTCAPABLE
	EAGAIN
)

var messages = [...]string{
	EACCES: "Permission denied", EBADF: "Bad file descriptor", EBUSY: "Device or resource busy", EEXIST: "File exists",
	EFBIG:  "File too large",
	EINVAL: "Invalid argument", EIO: "Input/output error", EISDIR: "Is a directory", ELOOP: "Too many levels of symbolic links",
	EMFILE: "Too many open files", EMLINK: "Too many links", ENAMETOOLONG: "File name too long", ENOENT: "No such file or directory",
	ENOMEM: "Cannot allocate memory", ENOSPC: "No space left on device", ENOTDIR: "Not a directory", ENOTEMPTY: "Directory not empty",
	ENOTSUP: "Operation not supported", ENXIO: "No such device or address", EPERM: "Operation not permitted", EPIPE: "Broken pipe",
	EROFS: "Read-only file system", ESPIPE: "Illegal seek", ETXTBSY: "Text file busy", EXDEV: "Invalid cross-device link",
	ENOTCAPABLE: "Capabilities insufficient", EAGAIN: "Resource temporarily unavailable",
}

// Error returns what POSIX systems print for it.
func (e Errno) Error() string {
	if int(e) < len(messages) && messages[e] != "" {
		return messages[e]
	}
	return "Unknown error"
}
