package wasi

import "agentbox/internal/userland/vfs"

// rights say what may be done with a descriptor, and, as inheriting rights, with those that are opened from it.
type rights uint64

const (
	fdDatasync rights = 1 << iota
	fdRead
	fdSeek
	fdFdstatSetFlags
	fdSync
	fdTell
	fdWrite
	fdAdvise
	fdAllocate
	pathCreateDirectory
	pathCreateFile
	pathLinkSource
	pathLinkTarget
	pathOpen
	fdReaddir
	pathReadlink
	pathRenameSource
	pathRenameTarget
	pathFilestatGet
	pathFilestatSetSize
	pathFilestatSetTimes
	fdFilestatGet
	fdFilestatSetSize
	fdFilestatSetTimes
	pathSymlink
	pathRemoveDirectory
	pathUnlinkFile
	pollFdReadwrite
	sockShutdown
	sockAccept

	fileRights = fdDatasync | fdRead | fdSeek | fdFdstatSetFlags | fdSync | fdTell | fdWrite | fdAdvise | fdAllocate | fdFilestatGet |
		fdFilestatSetSize |
		fdFilestatSetTimes | pollFdReadwrite
	dirRights = fdDatasync | fdFdstatSetFlags | fdSync | fdAdvise | pathCreateDirectory | pathCreateFile | pathLinkSource | pathLinkTarget |
		pathOpen | fdReaddir |
		pathReadlink | pathRenameSource | pathRenameTarget | pathFilestatGet | pathFilestatSetSize | pathFilestatSetTimes | fdFilestatGet |
		fdFilestatSetTimes |
		pathSymlink | pathRemoveDirectory | pathUnlinkFile | pollFdReadwrite
	streamRights = fdDatasync | fdRead | fdFdstatSetFlags | fdSync | fdWrite | fdFilestatGet | pollFdReadwrite
	allRights    = fileRights | dirRights
)

// possible returns the rights that a descriptor of a kind can have. A device has those to seek, though it cannot be done: C libraries
// take one without them for a terminal.
func possible(k vfs.Kind) rights {
	switch k {
	case vfs.Directory:
		return dirRights
	case vfs.Regular, vfs.Device:
		return fileRights
	}
	return streamRights
}

// descriptor is an open file of a program.
type descriptor struct {
	handle     *vfs.Handle
	base       rights
	inheriting rights
	had        rights // at first: a right that it never had is another error than one that was given up
	sync       uint16 // flags of path_open that are kept to be told; everything is written at once
	terminal   bool   // a stream that is one
	preopened  bool
	name       string // of one that is preopened
	entries    []vfs.Entry
	listed     bool // entries is the list that fd_readdir read at its beginning
}

func (d *descriptor) kind() vfs.Kind { return d.handle.Kind() }

// may reports whether a descriptor has rights.
func (d *descriptor) may(r rights) errno {
	switch {
	case d.base&r == r:
		return success
	case d.had&r != r:
		return badf // the descriptor is of the wrong kind, with any rights
	}
	return notcapable
}
