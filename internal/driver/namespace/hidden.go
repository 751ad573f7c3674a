//go:build linux

package namespace

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Files without a name. A walk of the folder does not find a file that was deleted while a process holds it, nor one that was made by
// O_TMPFILE. So the host looks at the files that the processes of the space hold: descriptors of every thread, mappings, programs and
// working folders. A loss of the disk's free space meanwhile proves nothing, because neighbours write to it too (unseen.go).

// rounds bounds how often the list of processes is read again to find new ones.
const rounds = 4

// inode names a file on this host.
type inode struct{ dev, ino uint64 }

// hidden counts the nameless files that processes hold.
type hidden struct {
	bytes  int64
	found  map[inode]bool
	unseen map[string]bool // files that could not be measured, each under a key that stays the same from look to look
	eye    *eye
	mapped map[inode]bool // for a blind eye: the space's files that are mapped; true for those that have lost their name
}

// look adds up the files without a name that the processes hold. It opens them at most by reference, never for reading or writing.
func look(ctx context.Context, e *eye) (hidden, error) {
	h := hidden{found: map[inode]bool{}, unseen: map[string]bool{}, eye: e, mapped: map[inode]bool{}}
	looked := map[int]bool{}
	for range rounds {
		fresh := false
		for _, pid := range e.processes() {
			if looked[pid] {
				continue
			}
			if err := ctx.Err(); err != nil {
				return h, err
			}
			looked[pid], fresh = true, true
			h.process(pid)
		}
		if !fresh {
			break
		}
	}
	h.recall()
	return h, ctx.Err()
}

// process adds what one process holds.
func (h *hidden) process(pid int) {
	dir := "/proc/" + strconv.Itoa(pid)
	tasks, err := os.ReadDir(dir + "/task")
	if err != nil {
		return // it has ended
	}
	mapped, last := false, 0
	for _, t := range tasks {
		tid, err := strconv.Atoi(t.Name())
		if err != nil || last != 0 && sameFiles(last, tid) {
			continue
		}
		last = tid
		mapped = mapped || h.mappings(tid) // before the descriptors: a descriptor of a mapped file is worth keeping
		h.descriptors(pid, tid)
	}
	for _, name := range []string{"exe", "cwd"} {
		if _, err := h.at(unix.AT_FDCWD, dir+"/"+name); err != nil {
			h.refused(pid, err)
		}
	}
}

// sameFiles reports whether two threads have one table of descriptors. If the kernel does not say, each thread is read.
func sameFiles(a, b int) bool {
	const kcmpFiles = 2
	n, _, e := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpFiles, 0, 0, 0)
	return e == 0 && n == 0
}

// descriptors adds the files that the descriptors of a thread hold.
func (h *hidden) descriptors(pid, tid int) {
	task := fmt.Sprintf("/proc/%d/task/%d", pid, tid)
	dir, err := os.Open(task + "/fd")
	if err != nil {
		h.closed(pid, tid, err)
		return
	}
	defer func() { _ = dir.Close() }()
	for {
		names, err := dir.Readdirnames(1024)
		for _, name := range names {
			st, failed := h.at(int(dir.Fd()), name)
			if failed != nil {
				h.refused(pid, failed)
				continue
			}
			if st.Mode&unix.S_IFMT == unix.S_IFSOCK {
				h.socket(pid, tid, name, st)
			}
		}
		if err != nil {
			if os.IsPermission(err) {
				h.closed(pid, tid, err)
			}
			return
		}
	}
}

// at adds the file behind a link of /proc, if it has no name and takes room on a disk.
func (h *hidden) at(dir int, name string) (unix.Stat_t, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, 0); err != nil {
		return st, err
	}
	path := name
	if dir != unix.AT_FDCWD {
		path = filepath.Join("/proc/thread-self/fd", strconv.Itoa(dir), name) // the first thread may have a table of its own
	}
	return st, h.add(&st, path)
}

// add adds a file by its attributes and a path that leads to it, if it has no name and takes room on a disk.
func (h *hidden) add(st *unix.Stat_t, path string) error {
	key := inode{st.Dev, st.Ino}
	if kind := st.Mode & unix.S_IFMT; st.Nlink > 0 || kind != unix.S_IFREG && kind != unix.S_IFDIR || h.found[key] {
		return nil
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return err
	}
	switch uint32(fs.Type) {
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.HUGETLBFS_MAGIC: // memory, which is bounded as memory
		return nil
	}
	h.found[key] = true
	h.bytes += st.Blocks * 512
	if h.mapped[key] {
		h.eye.keep(key, unix.AT_FDCWD, path, 0)
	}
	return nil
}

// refused notes that the host did not let us inspect a part of a process. A process that is gone holds nothing. One that has given up its
// memory is ending, and will hold nothing soon.
func (h *hidden) refused(pid int, err error) {
	if os.IsPermission(err) && !ending(pid) {
		h.unseen["process "+strconv.Itoa(pid)] = true
	}
}

// ending reports whether a process, or thread, has no memory any more. Everybody may read that of every process.
func ending(tid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/statm")
	return err != nil || bytes.HasPrefix(text, []byte("0 "))
}

// mappings adds the files of the space that a thread has mapped and whose names are gone. It reports whether the thread has a memory at
// all.
func (h *hidden) mappings(tid int) bool {
	dir := "/proc/" + strconv.Itoa(tid)
	maps, err := os.Open(dir + "/maps")
	if err != nil {
		h.refused(tid, err)
		return false
	}
	defer func() { _ = maps.Close() }()
	any := false
	lines := bufio.NewReaderSize(maps, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		any = any || len(line) > 0
		if fields, ok := h.eye.own(line); ok {
			h.mapping(tid, dir, fields, bytes.HasSuffix(line, []byte(" (deleted)\n")))
		}
		if err != nil && err != bufio.ErrBufferFull {
			h.refused(tid, err)
			return any
		}
	}
}

// mapping adds one mapped file of the space, by the fields of its line. A blind eye only notes it.
func (h *hidden) mapping(tid int, dir string, fields []string, deleted bool) {
	if h.eye.blind {
		if key, ok := mappedInode(fields); ok {
			h.mapped[key] = h.mapped[key] || deleted
		}
		return
	}
	if !deleted {
		return
	}
	if _, err := h.at(unix.AT_FDCWD, dir+"/map_files/"+fields[0]); err != nil {
		h.refused(tid, err)
	}
}

// processes lists the processes of the space: those of its control group, else those of its namespace. Its init is the daemon's own
// program, holds nothing of the space, and lets only root look.
func (s *instance) processes() []int {
	var list []int
	if dir := s.group.pids(); dir != "" {
		for _, text := range words(filepath.Join(dir, "cgroup.procs")) {
			if pid, err := strconv.Atoi(text); err == nil && pid > 0 && pid != s.process.Pid {
				list = append(list, pid)
			}
		}
		return list
	}
	var own, other unix.Stat_t
	if unix.Stat("/proc/"+strconv.Itoa(s.process.Pid)+"/ns/pid", &own) != nil {
		return nil
	}
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, p := range all {
		if pid, err := strconv.Atoi(p.Name()); err == nil && pid != s.process.Pid && unix.Stat("/proc/"+p.Name()+"/ns/pid", &other) == nil &&
			own.Ino == other.Ino {
			list = append(list, pid)
		}
	}
	return list
}
