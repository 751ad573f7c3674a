//go:build linux

package platter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Trace runs a program to its end and records on a disk what it asks the kernel to do to the files below a folder: no layer of the program
// is replaced, and what it forgets is forgotten. Each line that the program writes to its standard output is a mark, a string. Calls that
// change files in a way that is not understood are an error. Files of memory that is shared, by the suffix -shm, are left out.
func Trace(cmd *exec.Cmd, dir string, disk *Disk) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // one thread does all of it
		err := (&tracer{dir: dir, disk: disk, calls: map[int]*call{}}).run(cmd)
		if err == nil {
			// Else it ends with the goroutine, and what it traces with it. So would other programs that it has started before, for other tests.
			runtime.UnlockOSThread()
		}
		ended <- err
	}()
	return <-ended
}

// tracer is the one who watches a program.
type tracer struct {
	dir   string
	disk  *Disk
	calls map[int]*call // under way, by thread
	text  string        // of the standard output, an unfinished line
}

// call is a system call that has begun.
type call struct {
	number uint64
	args   [6]uint64
	after  func() // records it, once it has succeeded with a result
	result int64
}

// The parts of the kernel's ptrace_syscall_info.
const (
	getSyscallInfo = 0x420e
	infoEntry      = 1
	infoExit       = 2
	syscallStop    = unix.SIGTRAP | 0x80
)

func (t *tracer) run(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Ptrace, cmd.SysProcAttr.Setpgid = true, true
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start what is traced: %w", err)
	}
	main := cmd.Process.Pid
	var status unix.WaitStatus
	if _, err := unix.Wait4(main, &status, unix.WALL, nil); err != nil {
		return fmt.Errorf("wait for what is traced: %w", err)
	}
	if err := unix.PtraceSetOptions(main, unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_EXITKILL); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	if err := unix.PtraceSyscall(main, 0); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	for {
		thread, err := t.next(main)
		if err == nil {
			_, err = unix.Wait4(thread, &status, unix.WALL, nil)
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for what is traced: %w", err)
		}
		if status.Exited() || status.Signaled() {
			if thread != main {
				continue
			}
			if status.ExitStatus() != 0 {
				return fmt.Errorf("what is traced ended with %d, signal %d", status.ExitStatus(), status.Signal())
			}
			return nil
		}
		deliver := 0
		switch stop := status.StopSignal(); stop {
		case syscallStop:
			if err := t.stopped(thread); err != nil {
				return errors.Join(err, unix.Kill(main, unix.SIGKILL))
			}
		case unix.SIGTRAP, unix.SIGSTOP: // a thread begins
		default:
			deliver = int(stop)
		}
		if err := unix.PtraceSyscall(thread, deliver); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("trace: %w", err)
		}
	}
}

// next waits until one of the program's threads has stopped or ended. It only looks, and only in the program's own group: this thread of
// ours may have started other programs, whose ends belong to those who wait for them, and may be left lying by those who do not.
func (t *tracer) next(main int) (thread int, err error) {
	for {
		var info [128]byte // siginfo_t, whose fifth word is the process
		how := uintptr(unix.WEXITED | unix.WSTOPPED | unix.WNOWAIT | unix.WALL | unix.WNOTHREAD)
		if _, _, errno := unix.Syscall6(unix.SYS_WAITID, unix.P_PGID, uintptr(main), uintptr(unsafe.Pointer(&info)), how, 0, 0); errno != 0 {
			return 0, errno
		}
		thread := int(int32(binary.NativeEndian.Uint32(info[16:])))
		if thread == main {
			return thread, nil
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", main, thread)); err == nil {
			return thread, nil
		}
		runtime.Gosched()
	}
}

// stopped looks at a thread that has begun or ended a system call.
func (t *tracer) stopped(thread int) error {
	var info [88]byte
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, getSyscallInfo, uintptr(thread), uintptr(len(info)), uintptr(unsafe.Pointer(&info)), 0,
		0); errno == unix.ESRCH {
		return nil // the program has ended meanwhile, and the thread with it
	} else if errno != 0 {
		return fmt.Errorf("look at a system call: %w", errno)
	}
	word := func(at int) uint64 { return binary.NativeEndian.Uint64(info[at:]) }
	switch info[0] {
	case infoEntry:
		c := &call{number: word(24)}
		for i := range c.args {
			c.args[i] = word(32 + 8*i)
		}
		t.calls[thread] = c
		return t.begun(thread, c)
	case infoExit:
		c := t.calls[thread]
		delete(t.calls, thread)
		if c == nil || c.after == nil {
			return nil
		}
		if c.result = int64(word(24)); c.result >= 0 {
			c.after()
		}
	}
	return nil
}

// begun prepares what is to be recorded of a call.
func (t *tracer) begun(thread int, c *call) error {
	switch c.number {
	case unix.SYS_OPENAT:
		return t.open(thread, c)
	case unix.SYS_WRITE, unix.SYS_PWRITE64:
		return t.write(thread, c)
	case unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		return t.shape(thread, c)
	case unix.SYS_MKDIRAT, unix.SYS_UNLINKAT:
		name, ok, err := t.at(thread, c.args[0], c.args[1])
		if err != nil || !ok {
			return err
		}
		c.after = func() { t.disk.Remove(name) }
		if c.number == unix.SYS_MKDIRAT {
			c.after = func() { t.disk.MakeFolder(name) }
		}
	case unix.SYS_RENAMEAT2, unix.SYS_RENAMEAT:
		from, ours, err := t.at(thread, c.args[0], c.args[1])
		if err != nil {
			return err
		}
		to, theirs, err := t.at(thread, c.args[2], c.args[3])
		if err != nil || !ours && !theirs {
			return err
		}
		if !ours || !theirs || c.number == unix.SYS_RENAMEAT2 && c.args[4]&^unix.RENAME_NOREPLACE != 0 {
			return fmt.Errorf("a rename from %s to %s is not understood", from, to)
		}
		c.after = func() { t.disk.Rename(from, to) }
	case unix.SYS_LINKAT:
		from, ours, err := t.at(thread, c.args[0], c.args[1])
		if err != nil {
			return err
		}
		to, theirs, err := t.at(thread, c.args[2], c.args[3])
		if err != nil || !ours && !theirs {
			return err
		}
		if !ours || !theirs {
			return fmt.Errorf("a link from %s to %s is not understood", from, to)
		}
		c.after = func() { t.disk.Link(from, to) }
	case unix.SYS_SYMLINKAT:
		to, ours, err := t.at(thread, c.args[1], c.args[2])
		if err != nil || ours {
			return errors.Join(err, fmt.Errorf("a link at %s is not understood", to))
		}
	case unix.SYS_WRITEV, unix.SYS_PWRITEV, unix.SYS_PWRITEV2, unix.SYS_SENDFILE:
		return t.unknown(thread, c.args[0])
	case unix.SYS_COPY_FILE_RANGE, unix.SYS_SPLICE:
		return t.unknown(thread, c.args[2])
	case unix.SYS_MMAP:
		if c.args[2]&unix.PROT_WRITE != 0 && c.args[3]&unix.MAP_SHARED != 0 && c.args[3]&unix.MAP_ANONYMOUS == 0 {
			return t.unknown(thread, c.args[4])
		}
	}
	return nil
}

// unknown refuses to go on where a file of the folder is changed in a way that is not recorded.
func (t *tracer) unknown(thread int, fd uint64) error {
	if name, ok := t.of(thread, fd); ok {
		return fmt.Errorf("%s is changed in a way that is not understood", name)
	}
	return nil
}

func (t *tracer) open(thread int, c *call) error {
	flags := c.args[2]
	if flags&(unix.O_CREAT|unix.O_TRUNC) == 0 {
		return nil
	}
	name, ok, err := t.at(thread, c.args[0], c.args[1])
	if err != nil || !ok {
		return err
	}
	if flags&unix.O_TMPFILE == unix.O_TMPFILE {
		return fmt.Errorf("a file without a name in %s is not understood", name)
	}
	c.after = func() {
		if flags&unix.O_CREAT != 0 {
			t.disk.Make(name)
		}
		if flags&unix.O_TRUNC != 0 {
			t.disk.Truncate(name, 0)
		}
	}
	return nil
}

func (t *tracer) write(thread int, c *call) error {
	name, ok := t.of(thread, c.args[0])
	if !ok && (c.args[0] != 1 || c.number != unix.SYS_WRITE) {
		return nil
	}
	text, err := memory(thread, c.args[1], c.args[2])
	if err != nil {
		return err
	}
	if !ok {
		c.after = func() { t.said(string(text[:c.result])) }
		return nil
	}
	at := int64(c.args[3])
	if c.number == unix.SYS_WRITE {
		if at, err = position(thread, c.args[0]); err != nil {
			return err
		}
	}
	c.after = func() { t.disk.Write(name, at, text[:c.result]) }
	return nil
}

// said takes what the program writes to its standard output.
func (t *tracer) said(text string) {
	t.text += text
	for {
		line, rest, ok := strings.Cut(t.text, "\n")
		if !ok {
			return
		}
		t.disk.Mark(line)
		t.text = rest
	}
}

// shape prepares what changes the length of a file, or makes it durable.
func (t *tracer) shape(thread int, c *call) error {
	name, ok := t.of(thread, c.args[0])
	if !ok {
		return nil
	}
	info, err := os.Stat(filepath.Join(t.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	switch c.number {
	case unix.SYS_FTRUNCATE:
		c.after = func() { t.disk.Truncate(name, int64(c.args[1])) }
	case unix.SYS_FALLOCATE:
		if c.args[1] != 0 {
			return fmt.Errorf("%s is changed in a way that is not understood", name)
		}
		if size := int64(c.args[2] + c.args[3]); info != nil && size > info.Size() {
			c.after = func() { t.disk.Truncate(name, size) }
		}
	default:
		c.after = func() { t.disk.Sync(name) }
		if info != nil && info.IsDir() {
			c.after = func() { t.disk.SyncFolder(name) }
		}
	}
	return nil
}

// at returns the name below the folder that a call names by a folder's descriptor and a path; false for any other.
func (t *tracer) at(thread int, folder, path uint64) (string, bool, error) {
	text, err := memory(thread, path, unix.PathMax)
	if err != nil {
		return "", false, err
	}
	name, _, _ := strings.Cut(string(text), "\x00")
	if !filepath.IsAbs(name) {
		link := fmt.Sprintf("/proc/%d/fd/%d", thread, int32(folder))
		if int32(folder) == unix.AT_FDCWD {
			link = fmt.Sprintf("/proc/%d/cwd", thread)
		}
		in, err := os.Readlink(link)
		if err != nil {
			return "", false, fmt.Errorf("find out what %s is: %w", name, err)
		}
		name = filepath.Join(in, name)
	}
	below, ok := t.below(filepath.Clean(name))
	return below, ok, nil
}

// of returns the name below the folder of a file that is open; false for any other.
func (t *tracer) of(thread int, fd uint64) (string, bool) {
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", thread, int32(fd)))
	if err != nil {
		return "", false
	}
	return t.below(name)
}

func (t *tracer) below(name string) (string, bool) {
	if strings.HasSuffix(name, "-shm") || strings.HasSuffix(name, " (deleted)") {
		return "", false
	}
	rel, err := filepath.Rel(t.dir, name)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	return rel, true
}

// position returns where a file that is open is written next.
func position(thread int, fd uint64) (at int64, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", thread, int32(fd)))
	if err == nil {
		_, err = fmt.Sscanf(string(raw), "pos:\t%d", &at)
	}
	return at, err
}

// memory reads memory of a thread, up to n bytes, as far as there is any.
func memory(thread int, at, n uint64) ([]byte, error) {
	read := make([]byte, n)
	got := 0
	for uint64(got) < n {
		// A read that crosses into a page that is not there fails as a whole where it begins.
		part := min(n-uint64(got), 4096-(at+uint64(got))%4096)
		local := []unix.Iovec{{Base: &read[got], Len: part}}
		remote := []unix.RemoteIovec{{Base: uintptr(at) + uintptr(got), Len: int(part)}}
		m, err := unix.ProcessVMReadv(thread, local, remote, 0)
		if err != nil {
			if got > 0 {
				break
			}
			return nil, fmt.Errorf("read the memory of what is traced: %w", err)
		}
		got += m
	}
	return read[:got], nil
}
