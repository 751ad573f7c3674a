//go:build linux

package namespace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A look at /proc cannot see everything. Three things hold files that no link of /proc leads to:
//
//   - a process that hides its list of descriptors: we ask for each by its number (pidfd_getfd);
//   - a message in a socket that carries descriptors: we read the message and leave it in place (MSG_PEEK);
//   - a mapping, if the host lets only root follow mappings: the daemon keeps a reference (O_PATH) to each file of the space that it saw
//     mapped, while the file still has a name or a descriptor.
//
// The rest is noted under a key. The watcher ends a command if something stays unseen for longer than patience, because an unmeasurable
// thing counts as over every bound.

// The bounds of an eye.
const (
	mostKept  = 256       // references that the daemon keeps for one space
	mostPeeks = 4096      // messages of one socket that are read
	deepPeeks = 4         // sockets within messages of sockets
	scmPidfd  = 4         // SCM_PIDFD of Linux 6.5
	peekBytes = 512 << 10 // for one message; the kernel's default bound is 208 KiB
)

// eye is how a watcher looks at the processes of its space. One goroutine has it.
type eye struct {
	processes func() []int // those of the space, now
	folder    []byte       // in front of the path of each mapped file of the space, as its processes see it
	blind     bool         // the host does not let this daemon follow mappings
	kept      map[inode]int
	buffer    []byte // for messages, made when it is needed
}

func newEye(processes func() []int, folder string) *eye {
	return &eye{processes: processes, folder: []byte(folder + "/"), blind: mappingsClosed(), kept: map[inode]int{}}
}

// mappingsClosed reports whether this process may not even follow a mapping of its own.
func mappingsClosed() bool {
	const dir = "/proc/self/map_files"
	list, err := os.ReadDir(dir)
	if err != nil || len(list) == 0 {
		return true
	}
	_, err = os.Stat(dir + "/" + list[0].Name())
	return os.IsPermission(err)
}

// own returns the fields of a line of mappings up to the inode, if the mapped file is one of the space's folder. The path stands last,
// and the kernel writes it from the root of the space; only the mount of the folder begins with its name.
func (e *eye) own(line []byte) ([]string, bool) {
	rest := line
	for range 5 {
		rest = bytes.TrimLeft(rest, " ")
		_, after, ok := bytes.Cut(rest, []byte(" "))
		if !ok {
			return nil, false
		}
		rest = after
	}
	path := bytes.TrimLeft(rest, " ")
	if !bytes.HasPrefix(path, e.folder) {
		return nil, false
	}
	return strings.Fields(string(line[:len(line)-len(rest)])), true
}

// mappedInode reads the file of a line of mappings.
func mappedInode(fields []string) (inode, bool) {
	major, minor, ok := strings.Cut(fields[3], ":")
	a, err := strconv.ParseUint(major, 16, 32)
	b, err2 := strconv.ParseUint(minor, 16, 32)
	ino, err3 := strconv.ParseUint(fields[4], 10, 64)
	return inode{unix.Mkdev(uint32(a), uint32(b)), ino}, ok && errors.Join(err, err2, err3) == nil
}

// keep keeps a reference to a file, if it is the one that is meant.
func (e *eye) keep(key inode, dir int, name string, flags int) {
	if _, ok := e.kept[key]; ok || len(e.kept) >= mostKept {
		return
	}
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return // gone meanwhile
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || (inode{st.Dev, st.Ino}) != key {
		_ = unix.Close(fd)
		return
	}
	e.kept[key] = fd
}

// drop gives up the references to all files but those.
func (e *eye) drop(but map[inode]bool) {
	for key, fd := range e.kept {
		if _, ok := but[key]; !ok {
			_ = unix.Close(fd)
			delete(e.kept, key)
		}
	}
}

// recall measures mapped files without a name by their kept descriptors, and notes the files without one.
func (h *hidden) recall() {
	for key, deleted := range h.mapped {
		if !deleted || h.found[key] {
			continue
		}
		fd, ok := h.eye.kept[key]
		var st unix.Stat_t
		if !ok || unix.Fstat(fd, &st) != nil || h.add(&st, own(fd)) != nil {
			h.unseen[fmt.Sprintf("mapping %d %d", key.dev, key.ino)] = true
		}
	}
}

// own is the path of a descriptor of this daemon.
func own(fd int) string { return "/proc/thread-self/fd/" + strconv.Itoa(fd) }

// closed adds the files of a thread whose descriptors this daemon may not list.
func (h *hidden) closed(pid, tid int, err error) {
	if !os.IsPermission(err) || ending(tid) {
		return
	}
	size, ok := number(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid), "FDSize:")
	p, err := threadFD(pid, tid)
	if !ok || err != nil {
		h.refused(tid, unix.EPERM)
		return
	}
	defer func() { _ = unix.Close(p) }()
	for n := range size {
		fd, err := unix.PidfdGetfd(p, n, 0)
		switch err {
		case nil:
			h.holds(fd, fmt.Sprintf("process %d", tid), 0)
		case unix.EBADF: // that number is free
		case unix.ESRCH:
			return
		default:
			h.refused(tid, unix.EPERM)
			return
		}
	}
}

// threadFD opens a descriptor of a thread. For a thread that is not the first this needs Linux 6.9.
func threadFD(pid, tid int) (int, error) {
	const thread = unix.O_EXCL // PIDFD_THREAD
	if pid == tid {
		return unix.PidfdOpen(pid, 0)
	}
	return unix.PidfdOpen(tid, thread)
}

// number reads a number that follows a word in a file of /proc.
func number(path, word string) (int, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	_, after, ok := strings.Cut(string(text), word)
	line, _, _ := strings.Cut(after, "\n")
	n, err := strconv.Atoi(strings.TrimSpace(line))
	return n, ok && err == nil
}

// socket looks into a socket of a thread, if descriptors were sent to it that were not received yet.
func (h *hidden) socket(pid, tid int, name string, st unix.Stat_t) {
	path := fmt.Sprintf("/proc/%d/task/%d/fdinfo/%s", pid, tid, name)
	if n, ok := number(path, "scm_fds:"); ok && n == 0 {
		return
	} else if !ok && !forbidden(path) {
		return // closed meanwhile, or no socket that carries descriptors
	}
	key := "socket " + strconv.FormatUint(st.Ino, 10)
	number, err := strconv.Atoi(name)
	if err != nil {
		return
	}
	p, err := threadFD(pid, tid)
	if err != nil {
		h.unseen[key] = h.unseen[key] || !ending(tid)
		return
	}
	defer func() { _ = unix.Close(p) }()
	fd, err := unix.PidfdGetfd(p, number, 0)
	switch err {
	case nil:
		h.holds(fd, key, 0)
	case unix.EBADF, unix.ESRCH:
	default:
		h.unseen[key] = true
	}
}

// holds adds the file of a descriptor that was brought here, and closes it.
func (h *hidden) holds(fd int, key string, depth int) {
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		h.unseen[key] = true
		return
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		if h.add(&st, own(fd)) != nil {
			h.unseen[key] = true
		}
		return
	}
	if domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil || domain != unix.AF_UNIX {
		// Closing it must never wait for the peer, not even when the space has closed it meanwhile.
		_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{})
		return
	}
	n, ok := number("/proc/thread-self/fdinfo/"+strconv.Itoa(fd), "scm_fds:")
	if ok && n == 0 {
		return
	}
	key = "socket " + strconv.FormatUint(st.Ino, 10)
	if !ok || depth >= deepPeeks || h.peek(fd, key, depth) < n && h.peekAll(fd, key, depth) < n {
		h.unseen[key] = true
	}
}

// peek reads the next message of a socket and leaves it there. It returns how many descriptors the message carries.
func (h *hidden) peek(fd int, key string, depth int) int {
	n, _ := h.message(fd, key, depth)
	return n
}

// peekAll reads every message of a socket and leaves them there. For that moment the socket's offset for such reads is this daemon's,
// unless a program of the space has set it. It returns how many descriptors the messages carry.
func (h *hidden) peekAll(fd int, key string, depth int) int {
	if at, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEEK_OFF); err != nil || at >= 0 {
		return 0
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEEK_OFF, 0) != nil {
		return 0
	}
	defer func() { _ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEEK_OFF, -1) }()
	all := 0
	for range mostPeeks {
		n, more := h.message(fd, key, depth)
		if all += n; !more {
			break
		}
	}
	return all
}

// message reads a message of a socket, leaves it there and adds what its descriptors hold. It reports whether there was one that fits.
func (h *hidden) message(fd int, key string, depth int) (descriptors int, ok bool) {
	if h.eye.buffer == nil {
		h.eye.buffer = make([]byte, peekBytes)
	}
	rights := make([]byte, 4096)
	n, size, flags, _, err := unix.Recvmsg(fd, h.eye.buffer, rights, unix.MSG_PEEK|unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return 0, false
	}
	messages, err := unix.ParseSocketControlMessage(rights[:size])
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == scmPidfd && len(m.Data) >= 4 {
			_ = unix.Close(int(binary.NativeEndian.Uint32(m.Data))) // the sender, for a socket that asks for it
			continue
		}
		fds, failed := unix.ParseUnixRights(&m)
		if failed != nil {
			continue // credentials, which hold nothing
		}
		for _, other := range fds {
			h.holds(other, key, depth+1)
		}
		descriptors += len(fds)
	}
	runtime.KeepAlive(rights)
	if err != nil || n == len(h.eye.buffer) || flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		return 0, false // not all of it was seen
	}
	return descriptors, n > 0 || descriptors > 0
}

// forbidden reports whether a file of /proc is there and refused, in which case nobody knows what stands in it.
func forbidden(path string) bool {
	_, err := os.ReadFile(path)
	return os.IsPermission(err)
}
