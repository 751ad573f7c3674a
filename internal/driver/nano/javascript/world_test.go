package javascript

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/space"
	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/fiber"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// plenty are the limits of programs whose bounds are not in question.
var plenty = bound.Limits{Gas: 20_000_000_000, Time: time.Hour, MemoryBytes: 256 << 20, OutputBytes: 16 << 20, FileBytes: 64 << 20,
	OpenFiles: 64, Depth: 16}

// begin is where the virtual clock of programs begins.
var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// shared is the interpreter of all tests: it takes a second to make and nothing changes it.
var shared = sync.OnceValues(func() (*Runtime, error) {
	return compiled(context.Background())
})

// compiled compiles the interpreter and makes the image with which every run begins.
func compiled(ctx context.Context) (*Runtime, error) {
	module, err := Module()
	if err != nil {
		return nil, err
	}
	prepared, err := wasm.Prepare(module)
	if err != nil {
		return nil, err
	}
	return Open(ctx, wasm.Options{}, prepared, nil)
}

func runtimeOf(t testing.TB) *Runtime {
	t.Helper()
	r, err := shared()
	if err != nil {
		if os.Getenv("CI") == "" {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	return r
}

// world is what a program finds: its command line, files and input.
type world struct {
	args  []string
	files map[string]string // by absolute paths
	stdin string
	env   []string
	limit bound.Limits
	seed  byte
	cells func(*Runtime, *program.Process) int // instead of the command line
	until time.Duration                        // after which it is ended; 0 for never
}

// result is what a program did.
type result struct {
	out, err string
	code     int
	signal   int
	gas      int64
	stopped  *bound.Stopped
	hit      string
	lacks    []string
	files    map[string]string // those in /space that changed
	slept    time.Duration
}

// host answers the requests of a program to its starter.
type host struct {
	program.Host
	fs    *vfs.FS
	lacks *[]string

	displays *[]space.Display
}

func (h host) Sleep(d time.Duration) error { return h.fs.Sleep(d) }
func (h host) Report(l program.Lack)       { *h.lacks = append(*h.lacks, l.String()) }
func (h host) Show(d program.Display) bool {
	*h.displays = append(*h.displays, space.Display(d))
	return true
}
func (h host) Execute(*program.Process) (program.Status, error) {
	return program.Status{}, vfs.ENOENT
}

// sink is a stream into a buffer, counted as output.
type sink struct {
	a *bound.Account
	bytes.Buffer
}

func (s *sink) Read([]byte) (int, error) { return 0, vfs.EBADF }

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.a.Print(len(p))
	s.Buffer.Write(p[:n])
	return n, err
}

// execute runs a program in /space.
func execute(t testing.TB, w world) (r result) {
	t.Helper()
	guest := runtimeOf(t)
	if w.limit == (bound.Limits{}) {
		w.limit = plenty
	}
	a := bound.New(w.limit, [32]byte{1, w.seed}, begin)
	out, errs := &sink{a: a}, &sink{a: a}
	var failure error
	fiber.Run(func(g *fiber.Group) {
		fs := vfs.New(a, g)
		if failure = fs.Mount("/space", vfs.Options{Bytes: 64 << 20, Files: 10_000}); failure != nil {
			return
		}
		if failure = fs.Mount("/tmp", vfs.Options{Bytes: 64 << 20, Files: 10_000}); failure != nil {
			return
		}
		root := vfs.At{Dir: fs.Root()}
		for _, name := range slices.Sorted(mapKeys(w.files)) {
			if failure = write(fs, root, name, w.files[name]); failure != nil {
				return
			}
		}
		if failure = write(fs, root, "/tmp/stdin", w.stdin); failure != nil {
			return
		}
		in, err := fs.Open(root, "/tmp/stdin", vfs.Read, 0)
		cwd, other := fs.Lookup(root, "/space", true)
		if failure = errors.Join(err, other); failure != nil {
			return
		}
		p := &program.Process{
			Args: w.args, Env: append([]string{"HOME=/space", "PATH=/bin"}, w.env...), Cwd: cwd, Stdin: in, Stdout: fs.Stream(out, vfs.Write),
			Stderr: fs.Stream(errs, vfs.Write),
			FS:     fs, Account: a, Umask: 0o022, PID: 7, PPID: 1, Host: host{fs: fs, lacks: &r.lacks, displays: &[]space.Display{}},
		}
		if w.until > 0 {
			p.Deadline = begin.Add(w.until)
		}
		func() {
			defer func() {
				if x := recover(); x != nil {
					s, ok := x.(*bound.Stopped)
					if !ok {
						panic(x)
					}
					r.stopped = s
				}
			}()
			var runs program.Program = guest
			if w.cells != nil {
				runs = program.Func(func(p *program.Process) int { return w.cells(guest, p) })
			}
			status := program.Run(runs, p)
			r.code, r.signal = status.Code, status.Signal
		}()
		r.files = map[string]string{}
		changes, err := fs.Changes("/space")
		failure = err
		for _, c := range changes {
			if c.Op == vfs.WriteFile && w.files["/space/"+c.Path] != string(bytes.Join(c.Content, nil)) {
				r.files[c.Path] = string(bytes.Join(c.Content, nil))
			}
		}
	})
	if failure != nil {
		t.Fatal(failure)
	}
	r.out, r.err, r.gas, r.hit, r.slept = out.String(), errs.String(), a.Used(), a.WasHit(), a.Slept()
	if held, _ := a.Memory(); r.stopped == nil && held > 4<<20 {
		t.Errorf("%d bytes are held after the end", held)
	}
	return r
}

func write(fs *vfs.FS, at vfs.At, name, content string) error {
	folder := ""
	for part := range strings.SplitSeq(strings.TrimPrefix(path.Dir(name), "/"), "/") {
		folder += "/" + part
		if err := fs.Mkdir(at, folder, 0o755); err != nil && !errors.Is(err, vfs.EEXIST) {
			return err
		}
	}
	h, err := fs.Open(at, name, vfs.Write|vfs.Create, 0o644)
	if err != nil {
		return err
	}
	_, err = h.Write([]byte(content))
	return errors.Join(err, h.Close())
}
