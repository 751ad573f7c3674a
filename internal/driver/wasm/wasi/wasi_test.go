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

	"agentbox/internal/driver/wasm/bound"
	"agentbox/internal/driver/wasm/engine"
	"agentbox/internal/driver/wasm/fiber"
	"agentbox/internal/driver/wasm/vfs"
	"agentbox/internal/driver/wasm/wasi"
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
var compiled = sync.OnceValues(func() (*engine.Code, error) {
	code, err := probe()
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	e, err := engine.New(ctx, engine.Options{})
	if err != nil {
		return nil, err
	}
	if err := e.Define(ctx, wasi.Module, wasi.Functions(func(state any) *wasi.Program { return state.(*wasi.Program) })...); err != nil {
		return nil, err
	}
	return e.Compile(ctx, code)
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

var limits = bound.Limits{Gas: 1 << 40, Time: 24 * time.Hour, MemoryBytes: 1 << 30, OutputBytes: 1 << 20, FileBytes: 1 << 30, OpenFiles: 100, Depth: 64}

// began is where the virtual clock of tests begins.
var began = time.Unix(1_700_000_000, 0)

// ran is what one run of the probe was.
type ran struct {
	code        uint32
	err         error // why it ended, but for an exit
	out, stderr string
	gas         int64
}

// run runs the probe over an empty folder.
func run(t testing.TB, l bound.Limits, stdin string, args ...string) ran {
	t.Helper()
	code, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	var r ran
	fiber.Run(func(g *fiber.Group) {
		account := bound.New(l, [32]byte{1}, began)
		fs := vfs.New(account, g)
		if err := fs.Mount("/w", vfs.Options{Bytes: 1 << 30, Files: 1 << 20}); err != nil {
			t.Fatal(err)
		}
		dir, err := fs.Lookup(vfs.At{Dir: fs.Root()}, "/w", true)
		if err != nil {
			t.Fatal(err)
		}
		var out, stderr bytes.Buffer
		p, err := wasi.New(fs, wasi.Config{
			Args: append([]string{"probe"}, args...), Env: []string{"HOME=/", "EMPTY="},
			Stdio: [3]*vfs.Handle{
				fs.Stream(stream{in: strings.NewReader(stdin)}, vfs.Read), fs.Stream(stream{out: &out}, vfs.Write), fs.Stream(stream{out: &stderr}, vfs.Write),
			},
			Preopens: []wasi.Preopen{{Name: "/", Dir: dir}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		r.code, r.err = start(account, code, p)
		r.out, r.stderr, r.gas = out.String(), stderr.String(), account.Used()
	})
	return r
}

func start(account *bound.Account, code *engine.Code, p *wasi.Program) (uint32, error) {
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
	if exit, ok := errors.AsType[*engine.Exit](err); ok {
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
