package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentbox/internal/domain/space"
	"agentbox/internal/driver/nano/worker"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/fiber"
	"agentbox/internal/userland/vfs"
)

// TestMain makes the test's program a worker where it was started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		serve()
	}
	if len(os.Args) > 3 && os.Args[1] == "late" {
		comeUpLate(os.Args[2], os.Args[3])
	}
	os.Exit(m.Run())
}

// comeUpLate serves at the start of this number, and later. A file counts the starts. At the earlier ones the host lacks something.
func comeUpLate(file, number string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString("x")
	}
	info, statErr := os.Stat(file)
	wanted, parseErr := strconv.ParseInt(number, 10, 64)
	if err := errors.Join(err, statErr, parseErr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if info.Size() < wanted {
		fmt.Fprintln(os.Stderr, "no room for another process")
		os.Exit(1)
	}
	serve()
}

func serve() {
	if err := worker.Confine(worker.Confinement{DataBytes: 1 << 30}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := worker.Serve(os.Stdin, os.Stdout, system{}, func() { os.Exit(1) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// system executes orders whose first word says what to do.
type system struct{}

func (system) Version() string { return "of a test" }

func (system) Rest() {}

func (system) Execute(o worker.Order, a *bound.Account, sources []vfs.Source, out func(int, []byte) error) (o2 worker.Outcome,
	changed func() ([][]vfs.Change, error)) {
	fiber.Run(func(g *fiber.Group) {
		fs := vfs.New(a, g)
		for i, m := range o.Mounts {
			if err := fs.Mount(m.Path, vfs.Options{Source: sources[i], Disk: m.Disk}); err != nil {
				o2.Crash = err.Error() // cannot be
				return
			}
		}
		o2 = act(o, a, fs, out)
		changed = func() (all [][]vfs.Change, err error) {
			for _, m := range o.Mounts {
				list, err := fs.Changes(m.Path)
				if err != nil {
					return nil, err
				}
				all = append(all, list)
			}
			return all, nil
		}
	})
	return o2, changed
}

func act(o worker.Order, a *bound.Account, fs *vfs.FS, out func(int, []byte) error) worker.Outcome {
	at := vfs.At{Dir: fs.Root()}
	fail := func(err error) worker.Outcome {
		if s, ok := errors.AsType[*bound.Stopped](err); ok {
			return worker.Outcome{Code: 1, Limit: s.Limit, TimedOut: s.TimedOut, Canceled: s.Canceled}
		}
		_ = out(2, []byte(err.Error()))
		return worker.Outcome{Code: 1}
	}
	switch o.Argv[0] {
	case "echo":
		_ = out(1, []byte(strings.Join(o.Argv[1:], " ")))
	case "input":
		_ = out(1, o.Stdin)
	case "env":
		_ = out(2, []byte(strings.Join(o.Env, "|")+" "+o.Cwd))
	case "copy":
		from, err := fs.Open(at, o.Argv[1], vfs.Read, 0)
		if err != nil {
			return fail(err)
		}
		content, err := from.ReadAll()
		if err != nil {
			return fail(err)
		}
		to, err := fs.Open(at, o.Argv[2], vfs.Write|vfs.Create|vfs.Truncate, 0o644)
		if err != nil {
			return fail(err)
		}
		if _, err := to.Write(content); err != nil {
			return fail(err)
		}
	case "list":
		found, err := fs.List(at, o.Argv[1])
		if err != nil {
			return fail(err)
		}
		_ = out(1, fmt.Append(nil, len(found)))
	case "spin":
		_ = out(1, []byte("spinning"))
		for {
			if err := a.Charge(1); err != nil {
				return fail(err)
			}
		}
	case "deaf": // code that looks at nothing
		_ = out(1, []byte("deaf"))
		for x := 1; x != 0; x = x*3 | 1 {
		}
	case "flood":
		for {
			p := bytes.Repeat([]byte("x"), 1000)
			n, err := a.Print(len(p))
			_ = out(1, p[:n])
			if err != nil {
				return fail(err)
			}
		}
	case "liar": // prints more than it may
		for range 100 {
			_ = out(1, make([]byte, 1<<20))
		}
	case "die":
		os.Exit(3)
	case "garbage":
		_, _ = os.Stdout.Write(bytes.Repeat([]byte{0xfe}, 100))
		select {}
	case "escape":
		return worker.Outcome{Code: escapes(out)}
	case "hoard":
		var all [][]byte
		for {
			p := make([]byte, 16<<20)
			for i := range p {
				p[i] = 1
			}
			all = append(all, p)
			if len(all) > 1<<20 {
				return worker.Outcome{}
			}
		}
	case "gather": // looks whether it is stopped
		var all [][]byte
		for {
			if err := a.Charge(1); err != nil {
				return fail(err)
			}
			all = append(all, bytes.Repeat([]byte{1}, 1<<20))
			if len(all) > 1<<20 {
				return worker.Outcome{}
			}
		}
	case "sink":
		var sink func(n int) int
		sink = func(n int) int { return sink(n+1) + n }
		return worker.Outcome{Code: sink(0)}
	case "lack":
		_ = out(1, []byte("tried"))
		if to, err := fs.Open(at, "/workspace/tried", vfs.Write|vfs.Create, 0o644); err == nil {
			_, _ = to.Write([]byte("x"))
		}
		return worker.Outcome{Code: 127, Lacks: []space.Lack{{Kind: "command", Name: "gcc"}}}
	}
	return worker.Outcome{}
}

// folder is files in memory, as the daemon keeps them.
type folder struct {
	mu     sync.Mutex
	files  map[string]string
	many   int // further files, for a listing that does not fit into one frame
	begun  int
	listed int    // how often it was asked for since the last order
	slow   func() // called for each change, and may be nil
}

func (f *folder) List(dir string) ([]vfs.Found, error) {
	if dir != "." {
		return nil, vfs.ENOENT
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listed++
	var found []vfs.Found
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		found = append(found, vfs.Found{Name: name, Kind: vfs.Regular, Mode: 0o644, Size: int64(len(f.files[name])), Modified: time.Unix(1, 0)})
	}
	for i := range f.many {
		found = append(found, vfs.Found{Name: fmt.Sprintf("%0200d", i), Kind: vfs.Regular, Mode: 0o644})
	}
	return found, nil
}

func (f *folder) Few(most int) ([]vfs.Found, bool) {
	found, err := f.List(".")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listed = 0
	return found, err == nil && len(found) <= most
}

func (f *folder) Read(path string, p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.NewReader(f.files[path]).ReadAt(p, off)
}

func (f *folder) Room() (int64, int64, error) { return 1 << 30, 1000, nil }

func (f *folder) Begin() (worker.Changes, error) {
	f.begun++
	return &changes{f: f, to: map[string]string{}}, nil
}

type changes struct {
	f  *folder
	to map[string]string
}

func (c *changes) Add(x vfs.Change, content io.Reader) error {
	if c.f.slow != nil {
		c.f.slow()
	}
	if x.Op == vfs.WriteFile {
		b, err := io.ReadAll(content)
		c.to[x.Path] = string(b)
		return err
	}
	return nil
}

func (c *changes) Commit() error {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	maps.Copy(c.f.files, c.to)
	return nil
}

func (c *changes) Abort() error { return nil }

func newPool(t *testing.T, n int) *worker.Pool { return newPoolOf(t, n, nil) }

func newPoolOf(t *testing.T, n int, started func(*os.Process)) *worker.Pool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := worker.NewPool(worker.Options{Command: []string{self, "serve"}, Workers: n, Hold: time.Hour, Started: started,
		Prepare: worker.Prepare, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func order(argv ...string) worker.Order {
	return worker.Order{
		Argv: argv, Cwd: "/", Start: time.Unix(1_000_000_000, 0), Mounts: []worker.Mount{{Path: "/workspace", Disk: true}},
		Limits: bound.Limits{Gas: 1 << 40, Time: 20 * time.Second, MemoryBytes: 256 << 20, OutputBytes: 1 << 20, FileBytes: 128 << 20,
			OpenFiles: 100, Depth: 100},
	}
}

type result struct {
	worker.Outcome
	out, err string
}

func run(t *testing.T, p *worker.Pool, o worker.Order, f *folder) (result, error) {
	t.Helper()
	var r result
	var err error
	r.Outcome, err = p.Execute(t.Context(), o, []worker.Files{f}, func(channel string, b []byte) error {
		if channel == "stdout" {
			r.out += string(b)
		} else {
			r.err += string(b)
		}
		return nil
	})
	return r, err
}

// TestFewEntriesAreToldWithTheOrder: a folder of 64 entries is not asked for, one of 65 is; both are found whole.
func TestFewEntriesAreToldWithTheOrder(t *testing.T) {
	p := newPool(t, 1)
	for many, asked := range map[int]int{0: 0, 64: 0, 65: 1} {
		f := &folder{many: many}
		if r, err := run(t, p, order("list", "/workspace"), f); err != nil || r.out != fmt.Sprint(many) || f.listed != asked {
			t.Errorf("a folder of %d: got %s, %v, and it was asked for %d times, want %d", many, r.out, err, f.listed, asked)
		}
	}
}

func TestAWorkerExecutes(t *testing.T) {
	p := newPool(t, 1)
	f := &folder{files: map[string]string{"a": "content of a", "large": strings.Repeat("0123456789abcdef", 200_000)}}
	if r, err := run(t, p, order("echo", "hi", "there"), f); err != nil || r.out != "hi there" || r.Code != 0 {
		t.Errorf("echo: got %+v, %v", r, err)
	}
	o := order("input")
	o.Stdin = bytes.Repeat([]byte("in"), 300_000)
	if r, err := run(t, p, o, f); err != nil || r.out != string(o.Stdin) {
		t.Errorf("input: got %d bytes, %v", len(r.out), err)
	}
	o = order("env")
	o.Env, o.Cwd = []string{"A=1", "B=x=y"}, "/workspace"
	if r, err := run(t, p, o, f); err != nil || r.err != "A=1|B=x=y /workspace" {
		t.Errorf("env: got %+v, %v", r, err)
	}
	for _, name := range []string{"a", "large"} {
		if r, err := run(t, p, order("copy", "/workspace/"+name, "/workspace/"+name+".copy"), f); err != nil || r.Code != 0 ||
			f.files[name+".copy"] != f.files[name] {
			t.Errorf("copy %s: got %+v, %v and %d bytes", name, r, err, len(f.files[name+".copy"]))
		}
	}
	if r, err := run(t, p, order("copy", "/workspace/none", "/workspace/x"), f); err != nil || r.err != "No such file or directory" {
		t.Errorf("a file that is not there: got %+v, %v", r, err)
	}
	f.many = 20_000
	if r, err := run(t, p, order("list", "/workspace"), f); err != nil || r.out != "20004" {
		t.Errorf("a folder of 20004: got %+v, %v", r, err)
	}
	if r, err := run(t, p, order("lack"), f); err != nil || len(r.Lacks) != 1 || r.Lacks[0] != (space.Lack{Kind: "command", Name: "gcc"}) ||
		r.Code != 127 {
		t.Errorf("a lack: got %+v, %v", r, err)
	}
	if f.files["tried"] != "x" {
		t.Error("what it did is not kept")
	}
	delete(f.files, "tried")
	o = order("lack")
	o.Tentative = true
	if r, err := run(t, p, o, f); err != nil || len(r.Lacks) != 1 || !r.Dropped || r.out != "" || f.files["tried"] != "" {
		t.Errorf("an attempt that lacks something: got %+v, %v, want nothing left", r, err)
	}
	o.Argv = []string{"copy", "/workspace/a", "/workspace/tentative"}
	if r, err := run(t, p, o, f); err != nil || r.Dropped || f.files["tentative"] == "" {
		t.Errorf("an attempt that lacks nothing: got %+v, %v", r, err)
	}
	o.Argv = []string{"echo", "hi"}
	if r, err := run(t, p, o, f); err != nil || r.out != "hi" {
		t.Errorf("what an attempt prints: got %+v, %v", r, err)
	}
}

func TestAWorkerIsStopped(t *testing.T) {
	p := newPool(t, 1)
	f := &folder{files: map[string]string{}}
	o := order("spin")
	o.Limits.Gas = 1_000_000
	if r, err := run(t, p, o, f); err != nil || r.Limit != bound.Gas || r.Outcome.Gas != 1_000_000 {
		t.Errorf("gas: got %+v, %v", r, err)
	}
	o = order("spin")
	o.Limits.Time = 50 * time.Millisecond
	if r, err := run(t, p, o, f); err != nil || !r.TimedOut || r.out != "spinning" {
		t.Errorf("time: got %+v, %v", r, err)
	}
	o = order("deaf")
	o.Limits.Time = 50 * time.Millisecond
	if r, err := run(t, p, o, f); err != nil || !r.TimedOut || r.Code != 124 || r.out != "deaf" {
		t.Errorf("time of who does not look: got %+v, %v", r, err)
	}
	for _, name := range []string{"spin", "deaf"} {
		ctx, cancel := context.WithCancel(t.Context())
		got, err := p.Execute(ctx, order(name), []worker.Files{f}, func(string, []byte) error { cancel(); return nil })
		if err != nil || !got.Canceled {
			t.Errorf("%s, cancelled: got %+v, %v", name, got, err)
		}
	}
	if r, err := run(t, p, order("flood"), f); err != nil || r.Limit != bound.Output || len(r.out) != 1<<20 {
		t.Errorf("output: got %d bytes, %+v, %v", len(r.out), r.Outcome, err)
	}
	refusal := errors.New("no more")
	if _, err := p.Execute(t.Context(), order("spin"), []worker.Files{f}, func(string, []byte) error { return refusal }); !errors.Is(err,
		refusal) {
		t.Errorf("output that is refused: got %v", err)
	}
	if r, err := run(t, p, order("echo", "alive"), f); err != nil || r.out != "alive" {
		t.Errorf("afterwards: got %+v, %v", r, err)
	}
}

func TestAWorkerThatMisbehavesIsReplaced(t *testing.T) {
	p := newPool(t, 1)
	for _, name := range []string{"die", "garbage", "liar"} {
		f := &folder{files: map[string]string{}}
		if r, err := run(t, p, order(name), f); !errors.Is(err, worker.ErrEnded) {
			t.Errorf("%s: got %+v, %v, want ErrEnded", name, r, err)
		}
		if r, err := run(t, p, order("echo", "alive"), f); err != nil || r.out != "alive" {
			t.Errorf("after %s: got %+v, %v", name, r, err)
		}
	}
}

// TestAWorkerThatTakesAllMemoryNamesItsBound has code hold what no account counts: at once, piece by piece while it looks, and on the
// stack.
func TestAWorkerThatTakesAllMemoryNamesItsBound(t *testing.T) {
	if raceDetector {
		t.Skip("the detector's own memory runs out first, in its own words")
	}
	p := newPool(t, 1)
	for _, name := range []string{"hoard", "gather", "sink"} {
		f := &folder{files: map[string]string{}}
		o := order(name)
		o.Limits.MemoryBytes = 16 << 20
		if r, err := run(t, p, o, f); err != nil || r.Limit != bound.Memory || r.Code == 0 {
			t.Errorf("%s: got %+v, %v, want an end by the bound on memory", name, r, err)
		}
		if r, err := run(t, p, order("echo", "alive"), f); err != nil || r.out != "alive" {
			t.Errorf("after %s: got %+v, %v", name, r, err)
		}
	}
}

func TestExecutionsWaitForTheirTurn(t *testing.T) {
	p := newPool(t, 2)
	f := &folder{files: map[string]string{}}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			want := fmt.Sprint(i)
			if r, err := run(t, p, order("echo", want), f); err != nil || r.out != want {
				t.Errorf("got %+v, %v, want %s", r, err, want)
			}
		})
	}
	all.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	for range 2 {
		busy.Go(func() {
			_, _ = p.Execute(ctx, order("spin"), []worker.Files{f}, func(string, []byte) error { return nil })
		})
	}
	late, give := context.WithCancel(t.Context())
	give()
	if got, err := p.Execute(late, order("spin"), []worker.Files{f}, func(string, []byte) error { return nil }); err != nil || !got.Canceled {
		t.Errorf("cancelled while it waits: got %+v, %v", got, err)
	}
	cancel()
	busy.Wait()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := run(t, p, order("echo"), f); err == nil {
		t.Error("a closed pool executes")
	}
}

// TestWhatWasChangedIsToldAfterTheTime has the daemon take what was changed only when the time of the command has long run out: it ended
// within it, and is neither killed nor forgotten. Making the changes is told apart.
func TestWhatWasChangedIsToldAfterTheTime(t *testing.T) {
	p := newPool(t, 1)
	o := order("copy", "/workspace/a", "/workspace/b")
	if r, err := run(t, p, o, &folder{files: map[string]string{"a": "x"}}); err != nil || r.Code != 0 { // the worker starts
		t.Fatalf("got %+v, %v", r, err)
	}
	o.Limits.Time = 2 * time.Second // a busy machine takes a part of it before the first change is made
	f := &folder{files: map[string]string{"a": "x"}}
	f.slow = func() { <-time.After(o.Limits.Time + 500*time.Millisecond) }
	r, err := run(t, p, o, f)
	if err != nil || r.Code != 0 || f.files["b"] != "x" {
		t.Errorf("got %+v, %v and the files %v", r, err, f.files)
	}
	if r.Commit <= 0 {
		t.Errorf("the changes were made in %v", r.Commit)
	}
}

// TestAWorkerIsReplacedWhenItIsWornOut has one worker execute as much as it may, and one execution more.
func TestAWorkerIsReplacedWhenItIsWornOut(t *testing.T) {
	var starts atomic.Int64
	p := newPoolOf(t, 1, func(*os.Process) { starts.Add(1) })
	f := &folder{files: map[string]string{}}
	const most = 10_000
	for i := range most {
		if r, err := run(t, p, order("echo", "x"), f); err != nil || r.out != "x" {
			t.Fatalf("execution %d: got %+v, %v", i, r, err)
		}
		if i == most-2 && starts.Load() != 1 {
			t.Fatalf("after %d executions there were %d workers", i+1, starts.Load())
		}
	}
	if r, err := run(t, p, order("echo", "x"), f); err != nil || r.out != "x" || starts.Load() != 2 {
		t.Errorf("one more: got %+v, %v from worker %d, want the second", r, err, starts.Load())
	}
}
