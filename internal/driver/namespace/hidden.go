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
	"strings"

	"golang.org/x/sys/unix"
)

// Files without a name. A walk of the folder does not find a file that was deleted while a process holds it, nor one that was made by
// O_TMPFILE. So the host looks at what the processes of the space hold: descriptors of every thread, mappings, programs and working folders.

// rounds bounds how often the list of processes is read again for those that were started meanwhile.
const rounds = 4

// inode names a file on this host.
type inode struct{ dev, ino uint64 }

// hidden is what processes hold of files that have no name.
type hidden struct {
	bytes int64
	found map[inode]bool
	// unsure says that a descriptor may hold more than this look can see: it is under way in a socket, or the host refused the look.
	unsure bool
}

// look adds up the files without a name that the processes hold. It opens none of their files.
func look(ctx context.Context, processes func() []int) (hidden, error) {
	h := hidden{found: map[inode]bool{}}
	looked := map[int]bool{}
	for range rounds {
		fresh := false
		for _, pid := range processes() {
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
		task := dir + "/task/" + t.Name()
		h.descriptors(task)
		mapped = mapped || h.mappings(task, dir)
	}
	for _, name := range []string{"exe", "cwd"} {
		h.at(unix.AT_FDCWD, dir+"/"+name)
	}
}

// sameFiles reports whether two threads have one table of descriptors. A kernel that does not tell makes each be looked at.
func sameFiles(a, b int) bool {
	const kcmpFiles = 2
	n, _, e := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpFiles, 0, 0, 0)
	return e == 0 && n == 0
}

// descriptors adds what the table of a thread holds.
func (h *hidden) descriptors(task string) {
	dir, err := os.Open(task + "/fd")
	if err != nil {
		h.refused(err)
		return
	}
	defer func() { _ = dir.Close() }()
	for {
		names, err := dir.Readdirnames(1024)
		for _, name := range names {
			if st, ok := h.at(int(dir.Fd()), name); ok && st.Mode&unix.S_IFMT == unix.S_IFSOCK && underWay(task, name) {
				h.unsure = true
			}
		}
		if err != nil {
			h.refused(err)
			return
		}
	}
}

// at adds the file behind a link of /proc, if it has no name and takes room on a disk.
func (h *hidden) at(dir int, name string) (unix.Stat_t, bool) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, 0); err != nil {
		h.refused(err)
		return st, false
	}
	if kind := st.Mode & unix.S_IFMT; st.Nlink > 0 || kind != unix.S_IFREG && kind != unix.S_IFDIR {
		return st, true
	}
	key := inode{st.Dev, st.Ino}
	if h.found[key] {
		return st, true
	}
	path := name
	if dir != unix.AT_FDCWD {
		path = filepath.Join("/proc/thread-self/fd", strconv.Itoa(dir), name) // the first thread may have a table of its own
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		h.refused(err)
		return st, true
	}
	switch uint32(fs.Type) {
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.HUGETLBFS_MAGIC: // memory, which is bounded as memory
	default:
		h.found[key] = true
		h.bytes += st.Blocks * 512
	}
	return st, true
}

// refused notes that the host did not let something be looked at. What is gone holds nothing.
func (h *hidden) refused(err error) {
	if os.IsPermission(err) {
		h.unsure = true
	}
}

// underWay reports whether a socket has descriptors that were sent and not received yet.
func underWay(task, name string) bool {
	text, err := os.ReadFile(task + "/fdinfo/" + name)
	if err != nil {
		return os.IsPermission(err)
	}
	_, after, ok := strings.Cut(string(text), "scm_fds:")
	n, _, _ := strings.Cut(after, "\n")
	return ok && strings.TrimSpace(n) != "0"
}

// mappings adds the files that a process has mapped and whose names are gone. It reports whether the thread has a memory at all.
func (h *hidden) mappings(task, process string) bool {
	maps, err := os.Open(task + "/maps")
	if err != nil {
		h.refused(err)
		return false
	}
	defer func() { _ = maps.Close() }()
	any := false
	lines := bufio.NewReaderSize(maps, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		any = any || len(line) > 0
		if bytes.HasSuffix(line, []byte(" (deleted)\n")) && !inMemory(line) {
			h.mapping(task, process, strings.Fields(string(line)))
		}
		if err != nil && err != bufio.ErrBufferFull {
			h.refused(err)
			return any
		}
	}
}

// mapping adds one mapped file, by the fields of its line. Only root may follow the links of mappings.
func (h *hidden) mapping(task, process string, fields []string) {
	before := h.unsure
	h.at(unix.AT_FDCWD, process+"/map_files/"+fields[0])
	if before || !h.unsure && filepath.Base(task) == filepath.Base(process) {
		return // else the first thread may be gone, and the links of mappings with it
	}
	var tmp unix.Stat_t
	err := unix.Stat(task+"/root/tmp", &tmp)
	h.unsure = err != nil || len(fields) < 4 || fields[3] != fmt.Sprintf("%02x:%02x", unix.Major(tmp.Dev), unix.Minor(tmp.Dev))
}

// inMemory reports whether a line of mappings names what is memory by its name. A file of a space cannot have these names where it lies.
func inMemory(line []byte) bool {
	for _, name := range []string{" /memfd:", " /SYSV", " /dev/zero (deleted)"} {
		if bytes.Contains(line, []byte(name)) {
			return true
		}
	}
	return false
}

// processes lists the processes of the space: those of its control group, else those of its namespace. Its init is the daemon's own program,
// holds nothing of the space, and lets only root look.
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
		if pid, err := strconv.Atoi(p.Name()); err == nil && pid != s.process.Pid && unix.Stat("/proc/"+p.Name()+"/ns/pid", &other) == nil && own.Ino == other.Ino {
			list = append(list, pid)
		}
	}
	return list
}
