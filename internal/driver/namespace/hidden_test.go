//go:build linux

package namespace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
	"agentbox/internal/testkit/wall"
)

// python is a command that runs a program under common definitions.
func python(spec space.Spec, program string) spacetest.Command {
	const common = `
import ctypes, mmap, os, socket, sys, tempfile, threading, time
def fill(f, mib):
    for _ in range(mib): os.write(f, b"x" * (1 << 20))
def unlinked(name):
    f = os.open(name, os.O_RDWR | os.O_CREAT); os.unlink(name); return f
def hold():
    sys.stdout.flush(); time.sleep(%d); print("never ended")
`
	return spacetest.Command{Space: spec.ID, Argv: []string{"python3", "-c", fmt.Sprintf(common, int(wall.Patience.Seconds())) + program},
		MS: 2 * wall.Patience.Milliseconds()}
}

// hiding are programs that hold room on the disk in files without a name.
var hiding = map[string]string{
	"deleted files":        `l = [unlinked(str(i)) for i in range(4)]; [fill(f, 3) for f in l]; hold()`,
	"files that had none":  `f = os.open(".", os.O_TMPFILE | os.O_RDWR); fill(f, 12); hold()`,
	"files that grow late": `f = unlinked("f"); fill(f, 1); time.sleep(1.5); fill(f, 11); hold()`,
	"a mapping without a descriptor": `f = unlinked("f"); fill(f, 12); m = mmap.mmap(f, 12 << 20); os.close(f)
hold()`,
	"a child that holds what the parent made": `f = unlinked("f"); fill(f, 12)
if os.fork() == 0: hold()
os.close(f); hold()`,
	"a thread that outlives the first": `libc = ctypes.CDLL(None)
def work():
    time.sleep(0.1); f = unlinked("f"); fill(f, 12); hold()
threading.Thread(target=work).start(); sys.stdout.flush(); libc.pthread_exit(None)`,
	"a small mapping of a large file": `libc = ctypes.CDLL(None); libc.mmap.restype = ctypes.c_void_p
for i in range(4):
    f = unlinked("f"); fill(f, 3); libc.mmap(None, ctypes.c_size_t(4096), 1, 1, f, ctypes.c_long(0)); os.close(f)
hold()`,
	"a mapping under a name like that of memory": `os.mkdir("a "); libc = ctypes.CDLL(None); libc.mmap.restype = ctypes.c_void_p
for i in range(4):
    f = unlinked("a /memfd:x"); fill(f, 3); libc.mmap(None, ctypes.c_size_t(3 << 20), 1, 1, f, ctypes.c_long(0)); os.close(f)
hold()`,
	"a process that shows nobody its descriptors": `ctypes.CDLL(None).prctl(4, 0); f = unlinked("f"); fill(f, 12); hold()`,
	"many messages in a socket": `a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
for i in range(6):
    f = unlinked("f"); fill(f, 2); socket.send_fds(a, [b"x"], [f]); os.close(f)
hold()`,
	"a socket within a socket": `a, b = socket.socketpair(); c, d = socket.socketpair()
for i in range(4):
    f = unlinked("f"); fill(f, 3); socket.send_fds(a, [b"x"], [f]); os.close(f)
socket.send_fds(c, [b"x"], [b.fileno()]); b.close(); hold()`,
	"a message to who has not accepted": `l = socket.socket(socket.AF_UNIX); l.bind("s"); l.listen(); c = socket.socket(socket.AF_UNIX); c.connect("s")
for i in range(4): f = unlinked("f"); fill(f, 3); socket.send_fds(c, [b"x"], [f]); os.close(f)
hold()`,
	"a message in a socket": `a, b = socket.socketpair()
for i in range(4):
    f = unlinked("f"); fill(f, 4); socket.send_fds(a, [b"x"], [f]); os.close(f); time.sleep(0.3)
hold()`,
}

// small is a space whose files may take 4 MiB.
func small(t *testing.T, h spacetest.Host) (space.Spec, space.Instance) {
	t.Helper()
	spec := h.Spec(t)
	spec.Limits.DiskBytes = 4 << 20
	return spec, h.Create(t, spec)
}

// atOnce is how many programs of a test run at the same time: they mostly wait.
const atOnce = 5

// trial is a program that ran in a small space of its own.
type trial struct {
	h      spacetest.Host
	spec   space.Spec
	living space.Instance
	ended  chan struct{} // closed when it has ended
	result spacetest.Result
	err    error
}

// tryTogether runs each program in a space of its own, some at the same time, and judges each in a test of its name.
func tryTogether(t *testing.T, programs map[string]string, judge func(t *testing.T, x *trial)) {
	t.Helper()
	h := host(t)
	trials := map[string]*trial{}
	for name := range programs {
		x := &trial{h: h, ended: make(chan struct{})}
		x.spec, x.living = small(t, h)
		trials[name] = x
	}
	room := make(chan struct{}, atOnce)
	for name, x := range trials {
		go func() {
			room <- struct{}{}
			defer func() { <-room }()
			defer close(x.ended)
			x.result, x.err = h.TryExec(t.Context(), x.living, python(x.spec, programs[name]))
		}()
	}
	for name, x := range trials {
		t.Run(name, func(t *testing.T) {
			<-x.ended
			if x.err != nil {
				t.Fatal(x.err)
			}
			judge(t, x)
		})
	}
}

// The bound on the bytes of files holds for files that have no name.
func TestFilesWithoutAName(t *testing.T) {
	tryTogether(t, hiding, func(t *testing.T, x *trial) {
		if x.result.Limit != "disk_bytes" || x.result.Code != 137 {
			t.Errorf("got %+v, want disk_bytes", x.result)
		}
		if r := x.h.Exec(t, x.living, python(x.spec, `print(os.statvfs(".").f_bfree > 0)`)); r.Stdout != "True\n" {
			t.Errorf("afterwards: got %+v", r)
		}
	})
}

// Files below the bound, memory, and the files of other programs of the host end no command.
func TestFilesWithoutANameBelowTheBound(t *testing.T) {
	defer writeBeside(t)()
	tryTogether(t, map[string]string{
		"below the bound":         `f = unlinked("f"); fill(f, 3); time.sleep(2.5); print("ended")`,
		"of memory":               `f = os.memfd_create("m"); fill(f, 12); time.sleep(1.5); print("ended")`,
		"in the folder of memory": `f = unlinked("/tmp/f"); fill(f, 7); m = mmap.mmap(f, 7 << 20); time.sleep(1.5); print("ended")`,
		"given back":              `[(fill(f, 1), os.close(f)) for f in map(unlinked, map(str, range(50)))]; time.sleep(1.5); print("ended")`,
		"a mapping": `f = unlinked("f"); fill(f, 3); m = mmap.mmap(f, 3 << 20); time.sleep(1.2); os.close(f); time.sleep(1.5); ` +
			`print("ended")`,
		"a message": `a, b = socket.socketpair()
for i in range(3): f = unlinked("f"); fill(f, 1); socket.send_fds(a, [b"x"], [f]); os.close(f)
time.sleep(2.5); print([len(socket.recv_fds(b, 9, 9)[1]) for i in range(3)] == [1, 1, 1] and "ended")`,
		"no look at it": `ctypes.CDLL(None).prctl(4, 0); f = unlinked("f"); fill(f, 3); time.sleep(2.5); print("ended")`,
		"a library that is replaced": `f = open("lib", "wb"); f.write(b"x" * (1 << 20)); f.close(); f = os.open("lib", os.O_RDONLY)
libc = ctypes.CDLL(None); libc.mmap.restype = ctypes.c_void_p; libc.mmap(None, ctypes.c_size_t(1 << 20), 1, 2, f, ctypes.c_long(0)); os.close(f)
time.sleep(1.5); open("new", "wb").write(b"y" * (1 << 20)); os.rename("new", "lib"); time.sleep(2.5); print("ended")`,
		"processes that come and go": `t = time.time() + 2.5
while time.time() < t:
    if os.fork() == 0: os._exit(0)
    os.wait()
print("ended")`,
		"linked again": `sys.stdout = open(os.devnull, "w"); f = os.open(".", os.O_TMPFILE | os.O_RDWR); fill(f, 3); ` +
			`print(ctypes.CDLL(None).linkat(-100, f"/proc/self/fd/{f}".encode(), -100, b"g", 0x400)); time.sleep(2.5); print("ended", ` +
			`file=sys.__stdout__)`,
	}, func(t *testing.T, x *trial) {
		if x.result.Stdout != "ended\n" || x.result.Limit != "" {
			t.Errorf("got %+v, want ended", x.result)
		}
	})
}

// writeBeside takes 200 MB a second of the same file system until stop is called, as a neighbour would. It gives the room back each half
// second.
func writeBeside(t *testing.T) (stop func()) {
	t.Helper()
	const piece, most = 4 << 20, 100 << 20
	f, err := os.Create(filepath.Join(t.TempDir(), "beside"))
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, piece)
	quit, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		at := 0
		for {
			select {
			case <-quit:
				stopped <- f.Close()
				return
			case <-tick.C:
				_, err := f.Write(data)
				if at += piece; at > most && err == nil {
					at = 0
					_, err = f.Seek(0, io.SeekStart)
					err = errors.Join(err, f.Truncate(0))
				}
				if err != nil {
					stopped <- errors.Join(err, f.Close())
					return
				}
			}
		}
	}()
	return func() {
		close(quit)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}
}

// lookOfThread holds a file in a table of descriptors that only one thread has.
func lookOfThread(t *testing.T, own *eye, before hidden) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f")
	held, release, done := make(chan error), make(chan struct{}), make(chan struct{})
	var hold func()
	hold = func() {
		runtime.LockOSThread()              // never unlocked: the thread ends, and its table with it
		if unix.Gettid() == unix.Getpid() { // the first thread of a process never ends: another one does it while this goroutine holds that
			defer runtime.UnlockOSThread()
			go hold()
			<-done
			return
		}
		defer close(done)
		err := unix.Unshare(unix.CLONE_FILES)
		fd := -1
		if err == nil {
			fd, err = unix.Open(name, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		}
		if err == nil {
			_, err = unix.Write(fd, make([]byte, 1<<20))
			err = errors.Join(err, unix.Unlink(name))
		}
		held <- err
		<-release
	}
	go hold()
	if err := <-held; err != nil {
		t.Error(err)
	}
	seen(t, "held by a thread of its own table", own, before.bytes+2<<20)
	close(release)
	<-done
}

// seen looks until so many bytes are found: a thread of this process that ends takes a moment to give its table back.
func seen(t *testing.T, what string, own *eye, want int64) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var got hidden
	for start := time.Now(); time.Since(start) < wall.Patience; <-tick.C {
		var err error
		if got, err = look(t.Context(), own); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if int64(got.bytes) == want {
			return
		}
	}
	t.Errorf("%s: got %d bytes, want %d", what, got.bytes, want)
}

// A look finds what this very process holds, each file once, and nothing that has a name.
func TestLook(t *testing.T) {
	own := newEye(func() []int { return []int{os.Getpid()} }, workdir)
	before, err := look(t.Context(), own)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "f")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if got, err := look(t.Context(), own); err != nil || got.bytes != before.bytes {
		t.Errorf("a file with a name: got %d bytes, %v, want %d", got.bytes, err, before.bytes)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	second, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := look(t.Context(), own); err != nil || got.bytes != before.bytes+1<<20 || len(got.found) != len(before.found)+1 {
		t.Errorf("a file without a name: got %d bytes of %d files, %v, want %d of one more", got.bytes, len(got.found), err, before.bytes+1<<20)
	}
	lookOfThread(t, own, before)
	if err := errors.Join(unix.Close(second), f.Close()); err != nil {
		t.Fatal(err)
	}
	seen(t, "closed", own, before.bytes)
}
