// Package python is CPython as a guest of the nano tier, with a fresh interpreter for each execution.
//
// It is a WASI reactor that is initialised once, with the common modules imported, frozen into an image, and thawed for each execution.
// So each begins in the same state, whatever others have done. See docs/RATIONALE.md, "Why is the Python of nano spaces built here, and
// how does it start in a millisecond?".
package python

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/nano/contexts"
	"agentbox/internal/driver/nano/wasi"
	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// LibraryPath is where every file system in which Python runs has Runtime.Library.
const LibraryPath = "/usr/lib/python313.zip"

// Depth is the stack that the engine has to give its calls, in units of the metering. With less, the engine would end a program that
// recurses through C, as json and sorted do, as a crash before CPython raises RecursionError. With this value, calls do not reach wazero's
// own limit.
const Depth = 1 << 20

// Gas costs of starting, and bounds of what the guest reports.
const (
	gasToStart   = 200_000
	bytesPerGas  = 8
	maxReport    = 32 << 20
	clean        = 0x6e616e00 // a return of nano_run with the exit code in the low byte
	initialPages = 4096       // that the making of the image may use
)

// Guest is an initialised interpreter. Make it with New; it may run on one goroutine at a time, as its engine.
type Guest struct {
	code  *wasm.Code
	image *wasm.Image
}

// New compiles the interpreter and makes its image. If encoded, which Encode returned, is not empty and of this build, New takes the image
// from it. Call New once for an engine: it defines the imports of the interpreter besides WASI; WASI is defined there with the function
// WASI.
func New(ctx context.Context, e *wasm.Engine, r *Runtime, encoded []byte) (*Guest, error) {
	call := wasm.Function{Name: "call", Params: []byte{wasm.I32, wasm.I32}, Results: []byte{wasm.I32}, Call: ask}
	take := wasm.Function{Name: "take", Params: []byte{wasm.I32}, Call: take}
	zone := wasm.Function{Name: "zone", Params: []byte{wasm.I32, wasm.I32, wasm.I64, wasm.I32, wasm.I32}, Call: zone}
	if err := e.Define(ctx, "nano", call, take, zone); err != nil {
		return nil, err
	}
	var code *wasm.Code
	var err error
	if r.Prepared != nil {
		code, err = e.CompilePrepared(ctx, r.Prepared)
	} else {
		code, err = e.Compile(ctx, r.Module)
	}
	if err != nil {
		return nil, fmt.Errorf("compile Python: %w", err)
	}
	g := &Guest{code: code}
	if len(encoded) > 0 {
		if g.image, err = code.Decode(encoded); err == nil {
			return g, nil
		}
	}
	if g.image, err = build(ctx, code, r.Library); err != nil {
		return nil, errors.Join(fmt.Errorf("start Python: %w", err), code.Close(ctx))
	}
	return g, nil
}

// Encode returns the image, so that New need not make it again.
func (g *Guest) Encode() ([]byte, error) { return g.image.Encode() }

// Hash identifies the image on which the states of contexts stand.
func (g *Guest) Hash() [32]byte { return g.image.Hash() }

// Warm prepares the next execution. Call it between executions. It does not change their results.
func (g *Guest) Warm(ctx context.Context) error { return g.image.Warm(ctx) }

// Settle ends the rehearsals, from which Warm learns the needs of later executions.
func (g *Guest) Settle() { g.image.Settle() }

// Close frees the image and the code.
func (g *Guest) Close(ctx context.Context) error {
	return errors.Join(g.image.Close(), g.code.Close(ctx))
}

// build starts the interpreter in a file system that holds its library and nothing else, and runs the boot script.
func build(ctx context.Context, code *wasm.Code, library []byte) (*wasm.Image, error) {
	limits := bound.Limits{
		Gas: 1 << 40, Time: time.Hour, MemoryBytes: initialPages << 16, OutputBytes: 1 << 20, FileBytes: 1 << 20, OpenFiles: 64, Depth: 8,
	}
	account := bound.New(limits, [32]byte{}, time.Unix(0, 0).UTC())
	fs := vfs.New(account, nil)
	if err := fs.MakeFile(LibraryPath, 0o444, library); err != nil {
		return nil, err
	}
	var printed bytes.Buffer
	out := stream{write: printed.Write}
	s, err := begin(fs, nil, [3]*vfs.Handle{fs.Stream(stream{}, vfs.Read), fs.Stream(out, vfs.Write), fs.Stream(out, vfs.Write)})
	if err != nil {
		return nil, err
	}
	defer s.wasi.Close()
	image, err := code.Build(ctx, account, s, func(in *wasm.Instance) error {
		if _, err := in.Call(ctx, "_initialize"); err != nil {
			return err
		}
		address, err := put(ctx, in, boot)
		if err != nil {
			return err
		}
		result, err := in.Call(ctx, "nano_init", address, uint64(len(boot)))
		if err == nil && result[0] != 0 {
			err = fmt.Errorf("step %d failed", result[0])
		}
		return err
	})
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "runtime_damaged", "Python does not start in a nano space: %s", printed.Bytes())
	}
	return image, nil
}

// state is the state of an instance for the functions that the guest imports.
type state struct {
	wasi    *wasi.Program
	process *program.Process  // nil while the image is made
	begun   int               // descriptors that were open at first
	answer  []byte            // of the door, until it is taken
	zone    string            // value of the variable TZ that the guest asked for last
	place   *time.Location    // what that means
	showing *contexts.Showing // of a cell
}

// WASI returns the state for the functions of WASI.
func (s *state) WASI() *wasi.Program { return s.wasi }

// WASI finds what the functions of WASI work on in the state of an instance, of this guest or another whose state has a method WASI.
func WASI(instance any) *wasi.Program { return instance.(interface{ WASI() *wasi.Program }).WASI() }

// begin opens the descriptors of every instance in the same order, because the image knows them by their numbers.
func begin(fs *vfs.FS, p *program.Process, stdio [3]*vfs.Handle) (*state, error) {
	c := wasi.Config{Args: []string{"python3"}, Stdio: stdio, Preopens: []wasi.Preopen{{Name: "/", Dir: fs.Root()}}}
	if p != nil {
		c.Umask, c.Deadline, c.Late = p.Umask, p.Deadline, func() { p.Kill(program.SIGTERM) }
	}
	w, err := wasi.New(fs, c)
	if err != nil {
		return nil, err
	}
	return &state{wasi: w, process: p, begun: w.Descriptors()}, nil
}

// put copies bytes into memory that it allocates in the guest.
func put(ctx context.Context, in *wasm.Instance, b []byte) (uint64, error) {
	result, err := in.Call(ctx, "nano_alloc", uint64(len(b)))
	if err != nil {
		return 0, err
	}
	to, ok := in.Bytes(uint32(result[0]), uint32(len(b)))
	if result[0] == 0 || !ok {
		return 0, bound.ErrMemory
	}
	copy(to, b)
	return result[0], nil
}

// outcome is how a run of the interpreter ended.
type outcome struct {
	code   int
	exited bool   // in the middle of what it did: the interpreter cannot go on
	crash  string // why the interpreter itself died; the code means nothing then
	report report
}

// report is the last message of the boot script.
type report struct {
	Lacks []Lack     `json:"lacks"`
	Error *CellError `json:"error"`
}

// Lack is something that a program has requested and that a nano space does not have.
type Lack struct {
	Kind string `json:"kind"` // module, thread, process, network or signal
	Name string `json:"name"`
}

// execute runs a command in a fresh instance of an image. after, if it is not nil, sees the instance when it has ended and was not stopped.
func (g *Guest) execute(p *program.Process, image *wasm.Image, c *command, after func(in *wasm.Instance) error) (o outcome, err error) {
	ctx := context.Background() // the account stops a running program
	p.Charge(gasToStart)
	var stdio [3]*vfs.Handle
	for i := range stdio {
		if h := p.File(i); h != nil {
			stdio[i] = h.Dup()
		}
	}
	s, err := begin(p.FS, p, stdio)
	if err != nil {
		return o, err
	}
	defer s.wasi.Close()
	if c.Kind == kindCell {
		s.showing = contexts.NewShowing(p)
		defer s.showing.End()
	}
	in, err := image.New(ctx, p.Account, s)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, in.Close(ctx)) }()
	if !p.Deadline.IsZero() {
		in.Watch = s.wasi.Check
	}
	request := c.encode()
	p.Charge(len(request) / bytesPerGas)
	address, err := put(ctx, in, request)
	if err != nil {
		return o, err
	}
	result, err := in.Call(ctx, "nano_run", address, uint64(len(request)))
	exit, exited := errors.AsType[*wasm.Exit](err)
	trap, trapped := errors.AsType[*wasm.Trap](err)
	switch {
	case exited:
		o.code, o.exited = int(exit.Code&0xff), true
	case trapped:
		if o.crash = trap.Detail; o.crash == "" {
			o.crash = string(trap.Kind)
		}
	case err != nil:
		return o, err
	case result[0]&^0xff != clean:
		o.crash = "it could not even say what went wrong; its memory may be used up"
	default:
		o.code = int(result[0] & 0xff)
	}
	if o.crash == "" {
		if o.report, err = said(ctx, in, p); err != nil {
			return o, err
		}
	}
	if after != nil {
		return o, after(in)
	}
	return o, nil
}

// said decodes the report of the boot script.
func said(ctx context.Context, in *wasm.Instance, p *program.Process) (r report, err error) {
	result, err := in.Call(ctx, "nano_report")
	if err != nil {
		return r, err
	}
	n := uint32(result[0])
	b, ok := in.Bytes(uint32(result[0]>>32), n)
	if !ok || n > maxReport {
		return r, nil
	}
	p.Charge(int(n) / bytesPerGas)
	if n > 0 && json.Unmarshal(b, &r) != nil {
		return report{}, nil // the program has changed what the boot script says: it tells nothing then
	}
	return r, nil
}

// stream is a device without a name.
type stream struct {
	read  func(p []byte) (int, error)
	write func(p []byte) (int, error)
}

func (s stream) Read(p []byte) (int, error) {
	if s.read == nil {
		return 0, io.EOF
	}
	return s.read(p)
}

func (s stream) Write(p []byte) (int, error) {
	if s.write == nil {
		return len(p), nil
	}
	return s.write(p)
}
