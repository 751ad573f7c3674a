// Package wasm runs WebAssembly under an account: it compiles metered modules, makes images of initialised ones, and restores fresh
// instances from them by copy-on-write.
package wasm

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/nano/meter"
)

// Options configure an engine. The zero value compiles, keeps nothing on disk and has the defaults that the fields name.
type Options struct {
	// Cache is a folder for compiled code. Its files are executed, so only the daemon may write there.
	Cache string
	// Interpreter executes without compiling: 60 times slower, at most 2,000 calls deep, for tests and for machines without a compiler.
	Interpreter bool
	// MemoryPages bounds every memory, in pages of 64 KiB; 4,096 (256 MiB) if 0. So much address space is reserved for each instance.
	MemoryPages uint32
	// Slice is how much gas is taken from the account at once, and so the distance between two checks for a stop; 1,000,000 if 0, about a
	// millisecond.
	Slice int64
	// Foreign says that modules are compiled while an execution waits that brings them: their functions are bounded to what takes some
	// tenths of a second, and the context of Compile ends the compilation between two of them.
	Foreign bool
	// Depth is the stack that calls may take, in units of the metering; meter.SafeDepth if 0.
	Depth int64
}

// Limits of a function that is compiled while an execution waits. CPython's largest has 160,000 bytes and 3,000
// blocks.
const (
	ForeignFunction = 256 << 10
	ForeignBlocks   = 4096
)

// Engine compiles and runs modules. Many goroutines may use it, but only one at a time may use a thing that it made.
type Engine struct {
	o       Options
	runtime wazero.Runtime
	cache   wazero.CompilationCache
	marks   marks
}

// Errors to compare with errors.Is.
var (
	ErrModule  = fault.New(fault.Invalid, "wasm_invalid", "the WebAssembly module is not valid")
	ErrImport  = fault.New(fault.Invalid, "wasm_import", "the WebAssembly module imports something that is not provided")
	ErrUnsaved = fault.New(fault.Invalid, "wasm_unsaved", "no image can be made of this WebAssembly module")
	ErrExport  = fault.New(fault.Invalid, "wasm_export", "the WebAssembly module does not export the called function")
	ErrClosed  = fault.New(fault.Conflict, "wasm_closed", "the WebAssembly instance is closed or is running: call it only in between")
	ErrMemory  = fault.New(fault.Exhausted, "wasm_memory", "the memory of the WebAssembly module exceeds the bound")
	ErrImage   = fault.New(fault.Invalid, "wasm_image", "the image does not belong to this WebAssembly module")
)

// New makes an engine.
func New(ctx context.Context, o Options) (*Engine, error) {
	if o.MemoryPages == 0 {
		o.MemoryPages = 4096
	}
	o.MemoryPages = min(o.MemoryPages, 1<<16-1) // wazero keeps the size in 32 bits
	if o.Slice <= 0 {
		o.Slice = 1_000_000
	}
	if o.Depth <= 0 {
		o.Depth = meter.SafeDepth
	}
	config := wazero.NewRuntimeConfigInterpreter()
	if !o.Interpreter {
		config = wazero.NewRuntimeConfig()
	}
	e := &Engine{o: o, marks: openMarks()}
	if o.Cache != "" {
		var err error
		if e.cache, err = wazero.NewCompilationCacheWithDir(o.Cache); err != nil {
			e.marks.close()
			return nil, fault.Wrap(err, fault.Unavailable, "wasm_cache",
				"the folder for compiled WebAssembly cannot be used; make it writable for the daemon alone")
		}
		config = config.WithCompilationCache(e.cache)
	}
	config = config.WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall).WithMemoryLimitPages(
		o.MemoryPages).WithDebugInfoEnabled(false)
	e.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	yield := Function{Name: meter.Yield, call: (*Instance).yield}
	if err := e.Define(ctx, meter.Namespace, yield); err != nil {
		return nil, errors.Join(err, e.Close(ctx))
	}
	return e, nil
}

// Close frees all that was compiled. Instances and images are closed before.
func (e *Engine) Close(ctx context.Context) error {
	e.marks.close()
	err := e.runtime.Close(ctx)
	if e.cache != nil {
		err = errors.Join(err, e.cache.Close(ctx))
	}
	return err
}

// The types of values that functions take and return.
const (
	I32 = api.ValueTypeI32
	I64 = api.ValueTypeI64
	F32 = api.ValueTypeF32
	F64 = api.ValueTypeF64
)

// Function is one that modules import.
type Function struct {
	Name            string
	Params, Results []api.ValueType
	// Call finds its parameters in stack and leaves its results there. While it runs, the account holds all gas that is not used, so that it
	// charges the account. It ends the guest by a panic: with an error (*bound.Stopped, *Exit, *Trap), which Instance.Call then returns, or
	// with anything else, which goes on from Instance.Call.
	Call func(in *Instance, stack []uint64)

	call func(in *Instance, ctx context.Context) // for what lies below the account
}

// Define makes functions that modules import from a module of that name. Call it once for each name, before making instances.
func (e *Engine) Define(ctx context.Context, module string, functions ...Function) error {
	builder := e.runtime.NewHostModuleBuilder(module)
	for _, f := range functions {
		var g api.GoModuleFunc
		if f.call != nil {
			g = func(ctx context.Context, _ api.Module, _ []uint64) {
				c := ctx.(*callContext)
				f.call(c.in, c.Context)
			}
		} else {
			g = func(ctx context.Context, _ api.Module, stack []uint64) { ctx.(*callContext).in.host(f.Call, stack) }
		}
		builder.NewFunctionBuilder().WithGoModuleFunction(g, f.Params, f.Results).Export(f.Name)
	}
	_, err := builder.Instantiate(ctx)
	return err
}

// Code is a compiled module with the state in which it begins.
type Code struct {
	// Depth is the stack that calls may take, instead of what the engine's options say, if it is set before instances are made. Beyond
	// meter.SafeDepth it is for modules that are our own, of which it was measured that their frames are smaller than they might be.
	Depth int64

	engine   *Engine
	compiled wazero.CompiledModule
	meta     *meter.Module
	hash     [sha256.Size]byte
	initial  *Image
}

// Compile meters and compiles a module. Its imports are resolved when an instance is made.
func (e *Engine) Compile(ctx context.Context, module []byte) (*Code, error) {
	o := meter.Options{Detach: true, Check: ctx.Err}
	if e.o.Foreign {
		o.MaxFunction, o.MaxBlocks = ForeignFunction, ForeignBlocks
	}
	p, err := prepare(module, o)
	if err != nil {
		return nil, err
	}
	return e.CompilePrepared(ctx, p)
}

// runtimeCompile compiles what was metered.
func (e *Engine) runtimeCompile(ctx context.Context, module []byte) (wazero.CompiledModule, error) {
	if e.o.Foreign {
		ctx = experimental.WithCompilationWorkers(ctx, 2) // one would not look whether it is to end
	}
	compiled, err := e.runtime.CompileModule(ctx, module)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fault.Wrap(err, ErrModule.Kind, ErrModule.Code, "the WebAssembly module is not valid")
	}
	return compiled, nil
}

// Hash identifies the module and the version of its metering.
func (c *Code) Hash() [sha256.Size]byte { return c.hash }

// Initial is the image of the module before anything of it has run. It is closed with the code.
func (c *Code) Initial() *Image { return c.initial }

// Exports reports whether the module exports a function of that name, and its types.
func (c *Code) Exports(name string) (params, results []api.ValueType, ok bool) {
	f, ok := c.compiled.ExportedFunctions()[name]
	if !ok {
		return nil, nil, false
	}
	return f.ParamTypes(), f.ResultTypes(), true
}

// Close frees the compiled code.
func (c *Code) Close(ctx context.Context) error {
	return errors.Join(c.initial.Close(), c.compiled.Close(ctx))
}

// begin writes the module's data into an empty memory.
func (c *Code) begin() (*Image, error) {
	im := &Image{code: c, size: uint64(c.meta.MemoryMin) * pageSize}
	content := make([]byte, 0)
	for _, s := range c.meta.Data {
		end := uint64(s.Offset) + uint64(len(s.Bytes))
		if end > im.size {
			return nil, fault.Wrap(&Trap{Kind: OutOfBounds}, ErrModule.Kind, ErrModule.Code,
				"the data of the WebAssembly module does not fit into its memory")
		}
		if end > uint64(len(content)) {
			content = append(content, make([]byte, end-uint64(len(content)))...)
		}
		copy(content[s.Offset:], s.Bytes)
	}
	return im, im.keep(content)
}
