package python_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/nano/python"
	"agentbox/internal/driver/nano/wasi"
	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/fiber"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// loaded unpacks the interpreter once.
var loaded = sync.OnceValues(python.Load)

// load returns the interpreter that this build holds. Where there is none, the test is skipped, but not in CI.
func load(t testing.TB) *python.Runtime {
	t.Helper()
	r, err := loaded()
	if fault.CodeOf(err) == "runtime_unavailable" && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// shared is what all tests run: compiling takes seconds.
var shared = sync.OnceValues(func() (*python.Guest, error) {
	r, err := loaded()
	if err != nil {
		return nil, err
	}
	return start(r, nil)
})

// start makes a guest on an engine of its own.
func start(r *python.Runtime, image []byte) (*python.Guest, error) {
	ctx := context.Background()
	cache := filepath.Join(os.TempDir(), "agentbox-test-wasm")
	e, err := wasm.New(ctx, wasm.Options{Cache: cache, Depth: python.Depth})
	if err != nil {
		return nil, err
	}
	if err := e.Define(ctx, wasi.Module, wasi.Functions(python.WASI)...); err != nil {
		return nil, err
	}
	return python.New(ctx, e, r, image)
}

func guest(t testing.TB) *python.Guest {
	t.Helper()
	load(t)
	g, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// epoch is when the clock of the tests begins.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// limits are generous.
var limits = bound.Limits{
	Gas: 100_000_000_000, Time: 2 * time.Hour, MemoryBytes: 256 << 20, OutputBytes: 1 << 20, FileBytes: 64 << 20, OpenFiles: 256, Depth: 64,
}

// world is an execution: its start and its results.
type world struct {
	limits bound.Limits
	seed   byte
	stdin  string
	env    []string
	files  map[string]string // below /proj
	during func(w *world, p *program.Process)

	stdout, stderr bytes.Buffer
	status         program.Status
	stopped        *bound.Stopped
	lacks          []program.Lack
	account        *bound.Account
	changes        []vfs.Change
	displays       []space.Display
}

// device is a stream of a test.
type device struct {
	io.Reader
	io.Writer
}

// within makes the world and calls f in it.
func (w *world) within(t testing.TB, f func(p *program.Process)) {
	t.Helper()
	if w.limits == (bound.Limits{}) {
		w.limits = limits
	}
	w.account = bound.New(w.limits, [32]byte{w.seed}, epoch)
	runtime := load(t)
	fiber.Run(func(g *fiber.Group) {
		fs := vfs.New(w.account, g)
		root := vfs.At{Dir: fs.Root()}
		check := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		check(fs.Mount("/tmp", vfs.Options{Bytes: 64 << 20, Files: 1000}))
		check(fs.Mount("/proj", vfs.Options{Bytes: 64 << 20, Files: 1000}))
		check(fs.MakeFile(python.LibraryPath, 0o444, runtime.Library))
		check(fs.MakeDevice("/dev/null", device{strings.NewReader(""), io.Discard}))
		for _, name := range sorted(w.files) {
			at := "/proj"
			for _, part := range strings.Split(filepath.Dir(name), "/") {
				if at += "/" + part; part != "." {
					if err := fs.Mkdir(root, at, 0o755); err != nil && !errors.Is(err, vfs.EEXIST) {
						t.Fatal(err)
					}
				}
			}
			h, err := fs.Open(root, "/proj/"+name, vfs.Write|vfs.Create, 0o644)
			check(err)
			_, err = h.Write([]byte(w.files[name]))
			check(errors.Join(err, h.Close()))
		}
		cwd, err := fs.Lookup(root, "/proj", true)
		check(err)
		p := &program.Process{
			Env: w.env, Cwd: cwd, FS: fs, Account: w.account, Umask: 0o022, PID: 1,
			Stdin:  fs.Stream(device{strings.NewReader(w.stdin), io.Discard}, vfs.Read),
			Stdout: fs.Stream(device{strings.NewReader(""), printer{&w.stdout, w.account}}, vfs.Write),
			Stderr: fs.Stream(device{strings.NewReader(""), printer{&w.stderr, w.account}}, vfs.Write),
		}
		p.Host = &host{world: w}
		defer func() {
			if s, ok := recover().(*bound.Stopped); ok {
				w.stopped = s
			}
		}()
		f(p)
		w.changes, err = fs.Changes("/proj")
		check(err)
	})
}

// printer counts output as a worker does.
type printer struct {
	to      *bytes.Buffer
	account *bound.Account
}

func (w printer) Write(p []byte) (int, error) {
	n, err := w.account.Print(len(p))
	w.to.Write(p[:n])
	return n, err
}

// python runs a command line of Python's.
func (w *world) python(t testing.TB, args ...string) *world {
	t.Helper()
	g := guest(t)
	w.within(t, func(p *program.Process) {
		p.Args = append([]string{"python3"}, args...)
		if w.during != nil {
			w.during(w, p)
		}
		w.status = program.Run(g.Programs()["python3"], p)
	})
	return w
}

// host starts the commands that the tests have.
type host struct{ world *world }

func (h *host) Find(_ *program.Process, name string) (string, error) {
	if _, ok := commands[filepath.Base(name)]; !ok {
		return "", vfs.ENOENT
	}
	return "/bin/" + name, nil
}

func (h *host) Execute(p *program.Process) (program.Status, error) {
	return program.Run(commands[filepath.Base(p.Args[0])], p), nil
}

func (h *host) Go(f func())                 { panic("not used") }
func (h *host) Sleep(d time.Duration) error { return h.world.account.Sleep(d) }
func (h *host) Report(l program.Lack)       { h.world.lacks = append(h.world.lacks, l) }

func (h *host) Show(d program.Display) bool {
	h.world.displays = append(h.world.displays, space.Display(d))
	return true
}

// commands are those of the tests.
var commands = program.Table{
	"echo": program.Func(func(p *program.Process) int {
		p.Out().WriteString(strings.Join(p.Args[1:], " ") + "\n")
		return 0
	}),
	"upper": program.Func(func(p *program.Process) int {
		all, err := p.Stdin.ReadAll()
		if err != nil {
			return 1
		}
		p.Out().WriteString(strings.ToUpper(string(all)))
		return 0
	}),
	"fail": program.Func(func(p *program.Process) int {
		p.Stderrf("it failed\n")
		return 3
	}),
	"sleep": program.Func(func(p *program.Process) int {
		p.Sleep(time.Hour)
		return 0
	}),
	"sh": program.Func(func(p *program.Process) int { // as far as the tests need it
		s, err := p.Execute(p.Child(strings.Fields(p.Args[2])...))
		if err != nil {
			return 127
		}
		return s.Exit()
	}),
}

func sorted[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
