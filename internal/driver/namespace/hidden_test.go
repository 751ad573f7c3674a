//go:build linux

package namespace

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
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
    sys.stdout.flush(); time.sleep(20); print("never ended")
`
	return spacetest.Command{Space: spec.ID, Argv: []string{"python3", "-c", common + program}, MS: 60_000}
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

// The bound on the bytes of files holds for files that have no name.
func TestFilesWithoutAName(t *testing.T) {
	h := host(t)
	for name, program := range hiding {
		t.Run(name, func(t *testing.T) {
			spec, s := small(t, h)
			if r := h.Exec(t, s, python(spec, program)); r.Limit != "disk_bytes" || r.Code != 137 {
				t.Errorf("got %+v, want disk_bytes", r)
			}
			if r := h.Exec(t, s, python(spec, `print(os.statvfs(".").f_bfree > 0)`)); r.Stdout != "True\n" {
				t.Errorf("afterwards: got %+v", r)
			}
		})
	}
}

// What stays below the bound, what is memory, and what others of the host write ends no command.
func TestFilesWithoutANameBelowTheBound(t *testing.T) {
	h := host(t)
	for name, program := range map[string]string{
		"below the bound":         `f = unlinked("f"); fill(f, 3); time.sleep(2.5); print("ended")`,
		"of memory":               `f = os.memfd_create("m"); fill(f, 12); time.sleep(1.5); print("ended")`,
		"in the folder of memory": `f = unlinked("/tmp/f"); fill(f, 7); m = mmap.mmap(f, 7 << 20); time.sleep(1.5); print("ended")`,
		"given back":              `[(fill(f, 1), os.close(f)) for f in map(unlinked, map(str, range(50)))]; time.sleep(1.5); print("ended")`,
		"linked again":            `sys.stdout = open(os.devnull, "w"); f = os.open(".", os.O_TMPFILE | os.O_RDWR); fill(f, 3); print(ctypes.CDLL(None).linkat(-100, f"/proc/self/fd/{f}".encode(), -100, b"g", 0x400)); time.sleep(2.5); print("ended", file=sys.__stdout__)`,
	} {
		t.Run(name, func(t *testing.T) {
			spec, s := small(t, h)
			stop := writeBeside(t)
			r := h.Exec(t, s, python(spec, program))
			stop()
			if r.Stdout != "ended\n" || r.Limit != "" {
				t.Errorf("got %+v, want ended", r)
			}
		})
	}
}

// writeBeside takes room of the same file system until stop is called, as others of the host do.
func writeBeside(t *testing.T) (stop func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "beside"))
	if err != nil {
		t.Fatal(err)
	}
	quit, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				stopped <- f.Close()
				return
			case <-tick.C:
				if _, err := f.Write(make([]byte, 256<<10)); err != nil {
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
func lookOfThread(t *testing.T, own func() []int, before hidden) {
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
func seen(t *testing.T, what string, own func() []int, want int64) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var got hidden
	for range 300 {
		var err error
		if got, err = look(t.Context(), own); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if int64(got.bytes) == want {
			return
		}
		<-tick.C
	}
	t.Errorf("%s: got %d bytes, want %d", what, got.bytes, want)
}

// A look finds what this very process holds, each file once, and nothing that has a name.
func TestLook(t *testing.T) {
	own := func() []int { return []int{os.Getpid()} }
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
