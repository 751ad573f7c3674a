package wasi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/driver/nano/wasi"
	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/fiber"
	"agentbox/internal/userland/vfs"
)

// probe is the program in testdata, built once.
var probe = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "probe")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "probe.wasm")
	build := exec.Command("go", "build", "-ldflags=-s", "-o", out, "./testdata/probe")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if said, err := build.CombinedOutput(); err != nil {
		return nil, errors.Join(err, errors.New(string(said)))
	}
	return os.ReadFile(out)
})

// compiled is an engine with the probe.
var compiled = sync.OnceValues(func() (*wasm.Code, error) {
	code, err := probe()
	if err != nil {
		return nil, err
	}
	return compileFor(code)
})

// stream is a standard stream of a test.
type stream struct {
	in  io.Reader
	out io.Writer
}

func (s stream) Read(p []byte) (int, error) {
	if s.in == nil {
		return 0, io.EOF
	}
	return s.in.Read(p)
}

func (s stream) Write(p []byte) (int, error) { return s.out.Write(p) }

// counted counts output.
type counted struct {
	account *bound.Account
	to      io.Writer
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.account.Print(len(p))
	_, _ = c.to.Write(p[:n])
	return n, err
}

var limits = bound.Limits{Gas: 1 << 40, Time: 24 * time.Hour, MemoryBytes: 1 << 30, OutputBytes: 1 << 20, FileBytes: 1 << 30,
	OpenFiles: 100, Depth: 64}

// began is where the virtual clock of tests begins.
var began = time.Unix(1_700_000_000, 0)

// ran is what one run of the probe was.
type ran struct {
	code        uint32
	err         error // why it ended, but for an exit
	out, stderr string
	gas         int64
	left        int // how much there is in the folder
}

// run runs the probe over an empty folder.
func run(t testing.TB, l bound.Limits, stdin string, args ...string) ran {
	t.Helper()
	return runSeeded(t, l, [32]byte{1}, stdin, args...)
}

func runSeeded(t testing.TB, l bound.Limits, seed [32]byte, stdin string, args ...string) ran {
	t.Helper()
	code, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return runCode(t, code, l, seed, stdin, wasi.Config{Args: append([]string{"probe"}, args...), Env: []string{"HOME=/", "EMPTY="}}, "/")
}

// runCode runs a program over an empty folder, which it finds under some names.
func runCode(t testing.TB, code *wasm.Code, l bound.Limits, seed [32]byte, stdin string, c wasi.Config, names ...string) (r ran) {
	t.Helper()
	fiber.Run(func(g *fiber.Group) {
		account := bound.New(l, seed, began)
		fs := vfs.New(account, g)
		if err := fs.Mount("/w", vfs.Options{Bytes: 1 << 30, Files: 1 << 20}); err != nil {
			t.Fatal(err)
		}
		dir, err := fs.Lookup(vfs.At{Dir: fs.Root()}, "/w", true)
		if err != nil {
			t.Fatal(err)
		}
		var out, stderr bytes.Buffer
		c.Stdio = [3]*vfs.Handle{
			fs.Stream(stream{in: strings.NewReader(stdin)}, vfs.Read), fs.Stream(stream{out: counted{account, &out}}, vfs.Write),
			fs.Stream(stream{out: &stderr}, vfs.Write),
		}
		for _, name := range names {
			c.Preopens = append(c.Preopens, wasi.Preopen{Name: name, Dir: dir})
		}
		p, err := wasi.New(fs, c)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		r.code, r.err = start(account, code, p)
		r.out, r.stderr, r.gas = out.String(), stderr.String(), account.Used()
		if r.err != nil { // what was stopped looks no further
			return
		}
		left, err := dir.List()
		if err != nil {
			t.Error(err)
		}
		r.left = len(left)
	})
	return r
}

func start(account *bound.Account, code *wasm.Code, p *wasi.Program) (uint32, error) {
	ctx := context.Background()
	in, err := code.Initial().New(ctx, account, p)
	if err != nil {
		return 0, err
	}
	defer in.Close(ctx)
	if err := in.Start(ctx); err != nil {
		return 0, err
	}
	_, err = in.Call(ctx, "_start")
	if exit, ok := errors.AsType[*wasm.Exit](err); ok {
		return exit.Code, nil
	}
	return 0, err
}

// ends are the probes that say themselves how they end.
var ends = map[string]bool{"exit": true, "abort": true, "sink": true, "cat": true, "leave": true, "spin": true}

func TestEveryProbePasses(t *testing.T) {
	list := run(t, limits, "", "list")
	if list.err != nil {
		t.Fatal(list.err, list.stderr)
	}
	for _, name := range strings.Fields(list.out) {
		if ends[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if r := run(t, limits, "input", name); r.code != 0 || r.err != nil {
				t.Fatalf("exit code %d, %v\n%s", r.code, r.err, r.stderr)
			}
		})
	}
}

func TestAProgramEndsAsItSays(t *testing.T) {
	for _, x := range []struct {
		args  string
		stdin string
		code  uint32
		out   string
	}{
		{"exit 0", "", 0, ""}, {"exit 7", "", 7, ""}, {"exit 4294967295", "", 1<<32 - 1, ""}, {"abort", "", 128 + 6, ""}, {"leave", "", 3, ""},
		{"cat", "hello\n", 0, "hello\n"}, {"cat", strings.Repeat("0123456789abcde\n", 9999), 0, strings.Repeat("0123456789abcde\n", 9999)},
	} {
		r := run(t, limits, x.stdin, strings.Fields(x.args)...)
		if r.err != nil || r.code != x.code || r.out != x.out {
			t.Errorf("%s: code %d, %d bytes, %v; want %d, %d\n%s", x.args, r.code, len(r.out), r.err, x.code, len(x.out), r.stderr)
		}
	}
}

func TestAProgramIsStoppedAtItsBounds(t *testing.T) {
	for _, x := range []struct {
		name string
		set  func(l *bound.Limits)
		args string
		want bound.Stopped
	}{
		{"gas in code", func(l *bound.Limits) { l.Gas = 200e6 }, "spin", bound.Stopped{Limit: bound.Gas}},
		{"gas in calls", func(l *bound.Limits) { l.Gas = 5e6 }, "readdir_lots", bound.Stopped{Limit: bound.Gas}},
		{"output", func(l *bound.Limits) { l.OutputBytes = 10_000 }, "sink", bound.Stopped{Limit: bound.Output}},
		{"sleep", func(l *bound.Limits) { l.Time = time.Hour }, "poll_clock", bound.Stopped{TimedOut: true}},
	} {
		t.Run(x.name, func(t *testing.T) {
			l := limits
			x.set(&l)
			r := run(t, l, "", strings.Fields(x.args)...)
			stopped, ok := errors.AsType[*bound.Stopped](r.err)
			if !ok || *stopped != x.want {
				t.Fatalf("got %v, exit code %d, want %v\n%s", r.err, r.code, &x.want, r.stderr)
			}
			if x.want.Limit == bound.Output && len(r.out) != 10_000 {
				t.Fatalf("%d bytes of output, want exactly the bound", len(r.out))
			}
		})
	}
}

func TestTheSameRunTwiceIsTheSame(t *testing.T) {
	first, second := run(t, limits, "in", "all"), run(t, limits, "in", "all")
	if first != second {
		t.Fatalf("got %+v, then %+v", first, second)
	}
	if first.code != 0 || first.gas == 0 {
		t.Fatalf("code %d, gas %d\n%s", first.code, first.gas, first.stderr)
	}
	// Chance is the seed's alone.
	if other := runSeeded(t, limits, [32]byte{2}, "in", "random"); other.code != 0 {
		t.Fatal(other.stderr)
	}
}

// TestProgramsShareAPipe runs two programs as the stages of a pipeline.
func TestProgramsShareAPipe(t *testing.T) {
	code, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("0123456789abcde\n", 20_000)
	pipeline := func() (string, int64) {
		var out bytes.Buffer
		var gas int64
		fiber.Run(func(g *fiber.Group) {
			account := bound.New(limits, [32]byte{}, began)
			fs := vfs.New(account, g)
			r, w, err := fs.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			for _, stdio := range [][3]*vfs.Handle{
				{fs.Stream(stream{in: strings.NewReader(text)}, vfs.Read), w, fs.Stream(stream{out: io.Discard}, vfs.Write)},
				{r, fs.Stream(stream{out: &out}, vfs.Write), fs.Stream(stream{out: io.Discard}, vfs.Write)},
			} {
				g.Go(func() {
					dir, err := fs.MakeDir("/w")
					if err != nil {
						t.Error(err)
						return
					}
					p, err := wasi.New(fs, wasi.Config{Args: []string{"probe", "filter"}, Stdio: stdio, Preopens: []wasi.Preopen{{Name: "/", Dir: dir}}})
					if err != nil {
						t.Error(err)
						return
					}
					defer p.Close()
					if c, err := start(account, code, p); c != 0 || err != nil {
						t.Errorf("exit code %d, %v", c, err)
					}
					gas = account.Used()
				})
			}
		})
		return out.String(), gas
	}
	out, gas := pipeline()
	if want := text + strings.Repeat("y", 200_000); out != want {
		t.Fatalf("%d bytes came through, want %d", len(out), len(want))
	}
	if again, same := pipeline(); again != out || same != gas {
		t.Fatalf("gas %d, then %d", gas, same)
	}
}

func TestAReadOnlyFolderIsNotChanged(t *testing.T) {
	code, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	account := bound.New(limits, [32]byte{}, began)
	fs := vfs.New(account, nil)
	if err := fs.Mount("/w", vfs.Options{Bytes: 1 << 20, Files: 100}); err != nil {
		t.Fatal(err)
	}
	dir, err := fs.Lookup(vfs.At{Dir: fs.Root()}, "/w", true)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	p, err := wasi.New(fs, wasi.Config{
		Args: []string{"probe", "yield"}, Stdio: [3]*vfs.Handle{nil, nil, fs.Stream(stream{out: &stderr}, vfs.Write)},
		Preopens: []wasi.Preopen{{Name: "/", Dir: dir, ReadOnly: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	// The probe begins by making a folder.
	if c, err := start(account, code, p); c != 1 || err != nil || !strings.Contains(stderr.String(), "errno 76") {
		t.Fatalf("exit code %d, %v\n%s", c, err, stderr.String())
	}
	if all, err := dir.List(); err != nil || len(all) != 0 {
		t.Fatalf("got %v, %v", all, err)
	}
}

func TestArgumentsHaveNoNUL(t *testing.T) {
	fs := vfs.New(bound.New(limits, [32]byte{}, began), nil)
	if _, err := wasi.New(fs, wasi.Config{Args: []string{"a\x00b"}}); err == nil {
		t.Fatal("want an error")
	}
}
