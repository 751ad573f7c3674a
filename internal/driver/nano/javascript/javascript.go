// Package javascript is the guest for JavaScript and TypeScript: QuickJS-ng in metered WebAssembly, with what programs expect of Node and
// Bun.
//
// The interpreter begins once and loads the prelude. Then the engine saves its state as an image, and every execution has a fresh copy of
// it. TypeScript loses its types before the interpreter sees it. Files, time, chance and output are those of the program's process.
package javascript

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/nano/meter"
	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/program"
)

// Version and names that the program reports. The version of Node is the one whose behaviour this follows.
const (
	Version     = "QuickJS-ng 0.16"
	NodeVersion = "v26.10.0"
	BunVersion  = "1.2.0"
)

// embedded holds README.md and, after `make build`, the interpreter.
//
//go:embed embedded
var embedded embed.FS

// prelude holds the scripts that build Node's environment, in the order of their names.
//
//go:embed prelude
var prelude embed.FS

// Module returns the interpreter that this build holds, or a fault that says how to get it.
func Module() ([]byte, error) {
	b, err := embedded.ReadFile("embedded/quickjs.wasm")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Unavailable, "runtime_unavailable",
			"this build of agentbox holds no JavaScript for nano spaces; build it with `make build`")
	}
	return b, err
}

// The limits of the interpreter itself.
const (
	stackBytes = 480 << 10 // of calls: beyond it a RangeError is thrown
	// of the engine's stack; the interpreter's main loop is charged as a large function and takes little, so its own bound is met first
	depth        = 8 * meter.SafeDepth
	collectBytes = 8 << 20 // of the heap from which on it looks for garbage in cycles: most runs end before
	heapBytes    = 4 << 20 // of the heap that the image has free
	spareBytes   = 4 << 20 // of the memory of an execution that the heap leaves to files and commands
)

// Runtime is the interpreter, ready to run programs. It may be used by many goroutines.
type Runtime struct {
	engine *wasm.Engine
	code   *wasm.Code
	image  *wasm.Image
	cell   uint64           // memory of every instance in which the interpreter leaves lengths
	known  map[string]value // of every instance
	// exports are the names that each module of Node's exports.
	exports map[string][]string
	orders  collators
	zones   func() (zoneTable, error) // read when a program first asks for one
}

// Open compiles the interpreter, whose module is metered already, and takes or makes the image with which every run begins. It takes kept,
// which MarshalBinary returned, if that belongs to this build. Otherwise, or if kept is empty, it makes the image.
func Open(ctx context.Context, o wasm.Options, prepared *wasm.Prepared, kept []byte) (_ *Runtime, err error) {
	r := &Runtime{exports: map[string][]string{}, zones: sync.OnceValues(readZones)}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close(ctx))
		}
	}()
	if o.Depth == 0 {
		o.Depth = depth
	}
	if r.engine, err = wasm.New(ctx, o); err != nil {
		return nil, err
	}
	if err = define(ctx, r.engine); err != nil {
		return nil, err
	}
	if r.code, err = r.engine.CompilePrepared(ctx, prepared); err != nil {
		return nil, err
	}
	if r.load(kept) == nil {
		return r, nil
	}
	account := bound.New(bound.Limits{
		Gas: 1 << 40, Time: time.Hour, MemoryBytes: 256 << 20, OutputBytes: 1 << 20, FileBytes: 1 << 20, OpenFiles: 1, Depth: 8,
	}, [32]byte{}, time.Unix(0, 0))
	r.image, err = r.code.Build(ctx, account, newRun(r, account, nil), func(in *wasm.Instance) error { return r.begin(ctx, in) })
	return r, err
}

// state is the host's state of an image beside its memory.
type state struct {
	Cell    uint64
	Known   map[string]value
	Exports map[string][]string
}

// MarshalBinary encodes the interpreter without its module, behind a checksum. The same interpreter has the same bytes.
func (r *Runtime) MarshalBinary() ([]byte, error) {
	head, err := json.Marshal(state{r.cell, r.known, r.exports})
	if err != nil {
		return nil, err
	}
	image, err := r.image.Encode()
	if err != nil {
		return nil, err
	}
	body := slices.Concat(binary.LittleEndian.AppendUint32(nil, uint32(len(head))), head, image)
	sum := sha256.Sum256(body)
	return append(sum[:], body...), nil
}

var errKept = errors.New("the JavaScript that was kept is damaged or of another build")

// load takes what MarshalBinary has returned.
func (r *Runtime) load(kept []byte) error {
	if len(kept) < sha256.Size+4 {
		return errKept
	}
	body := kept[sha256.Size:]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], kept[:sha256.Size]) {
		return errKept
	}
	n := uint64(binary.LittleEndian.Uint32(body))
	if body = body[4:]; n > uint64(len(body)) {
		return errKept
	}
	var s state
	if err := json.Unmarshal(body[:n], &s); err != nil {
		return err
	}
	image, err := r.code.Decode(body[n:])
	if err != nil {
		return err
	}
	r.image, r.cell, r.known, r.exports = image, s.Cell, s.Known, s.Exports
	return nil
}

// making is the version of how an image is made, beside the files and names that Key looks at. It changes with begin.
const making = 1

// Key tells the interpreter that this build holds, with its prelude and what the host offers it, from that of another build. It fails as
// Module does.
func Key() (key [8]byte, err error) {
	module, err := Module()
	if err != nil {
		return key, err
	}
	h := sha256.New()
	fmt.Fprintln(h, making, Version, NodeVersion, BunVersion, stackBytes, collectBytes, heapBytes, entries, slices.Sorted(mapKeys(operations)),
		len(module))
	h.Write(module)
	names, err := fs.Glob(prelude, "prelude/*.js")
	if err != nil {
		return key, err
	}
	for _, name := range names {
		text, err := prelude.ReadFile(name)
		if err != nil {
			return key, err
		}
		fmt.Fprintln(h, name, len(text))
		h.Write(text)
	}
	copy(key[:], h.Sum(nil))
	return key, nil
}

// Hash identifies the interpreter with its prelude, and the version of the metering.
func (r *Runtime) Hash() [32]byte { return r.image.Hash() }

// Warm prepares the next execution. Call it between executions. It does not change their results.
func (r *Runtime) Warm(ctx context.Context) error { return r.image.Warm(ctx) }

// Settle ends the rehearsals, from which Warm learns the needs of later executions.
func (r *Runtime) Settle() { r.image.Settle() }

// Close frees the interpreter. No program runs any more.
func (r *Runtime) Close(ctx context.Context) error {
	var err error
	if r.image != nil {
		err = r.image.Close()
	}
	if r.code != nil {
		err = errors.Join(err, r.code.Close(ctx))
	}
	if r.engine != nil {
		err = errors.Join(err, r.engine.Close(ctx))
	}
	return err
}

// begin starts the interpreter and loads the prelude.
func (r *Runtime) begin(ctx context.Context, in *wasm.Instance) error {
	vm := &guest{in: in, ctx: ctx}
	in.State.(*run).vm = vm
	if err := vm.must("_initialize"); err != nil {
		return err
	}
	cell, err := vm.call("wasm_malloc", 8)
	if err != nil {
		return err
	}
	r.cell, vm.cell = cell, cell
	if started, err := vm.call("qjs_init"); err != nil || int32(started) != 0 {
		return errors.Join(err, fault.New(fault.Internal, "runtime_damaged", "the JavaScript interpreter does not start"))
	}
	for _, on := range []string{"qjs_set_interrupt_handler", "qjs_set_promise_rejection_handler", "qjs_set_module_loader"} {
		if err := vm.must(on, 1); err != nil {
			return err
		}
	}
	if err := vm.must("qjs_set_max_stack_size", stackBytes); err != nil {
		return err
	}
	if err := vm.install(slices.Sorted(mapKeys(operations))); err != nil {
		return err
	}
	names, err := fs.Glob(prelude, "prelude/*.js")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := prelude.ReadFile(name)
		if err != nil {
			return err
		}
		v, thrown, err := vm.eval(string(text), "node:internal/"+name[len("prelude/"):], 0)
		if err != nil {
			return err
		}
		if thrown {
			return fault.New(fault.Internal, "prelude_invalid", "the prelude %s does not load: %s", name, vm.describe())
		}
		if err := vm.free(v); err != nil {
			return err
		}
	}
	if v, thrown, err := vm.eval(fmt.Sprintf("__agentbox.about(%q, %q, %q)", strings.TrimPrefix(NodeVersion, "v"), Version, BunVersion),
		"node:internal/about", 0); err != nil || thrown {
		return errors.Join(err, fault.New(fault.Internal, "prelude_invalid", "the prelude takes no versions"))
	} else if err := vm.free(v); err != nil {
		return err
	}
	if err := r.know(vm); err != nil {
		return err
	}
	list, err := vm.ask("__agentbox.list()")
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(list), &r.exports); err != nil {
		return err
	}
	if _, err := vm.drain(); err != nil {
		return err
	}
	if err := vm.must("qjs_run_gc"); err != nil {
		return err
	}
	room, err := vm.call("wasm_malloc", heapBytes) // so that the memory of most runs need not grow
	if err := errors.Join(err, vm.must("wasm_free", room)); err != nil {
		return err
	}
	return vm.must("qjs_set_gc_threshold", collectBytes)
}

// know finds the entries of the prelude, once for all instances.
func (r *Runtime) know(vm *guest) error {
	undefined, err := vm.call("qjs_get_undefined")
	if err != nil {
		return err
	}
	r.known = map[string]value{"undefined": value(undefined)}
	for _, name := range entries {
		f, thrown, err := vm.eval("__agentbox."+name, "node:internal/know", 0)
		if err != nil {
			return err
		}
		if thrown {
			return fault.New(fault.Internal, "prelude_invalid", "the prelude has no %s: %s", name, vm.describe())
		}
		r.known[name] = f
	}
	return nil
}

// Programs are the commands of the guest.
func (r *Runtime) Programs() program.Table {
	return program.Table{"js": r, "node": r, "bun": r}
}
