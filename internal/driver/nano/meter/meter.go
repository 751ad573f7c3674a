// Package meter rewrites WebAssembly so that the code itself counts its gas and the depth of its calls.
//
// A metered module has the same cost and results on every engine and every machine: bulk operations are charged by their length,
// the limit of the depth is its own, and each NaN has one form.
package meter

import (
	"agentbox/internal/domain/fault"
)

// Version numbers the pass: whenever one more or one fewer byte comes out of Instrument, or anything costs something else, it rises. It
// is part of what a replay is keyed by.
const Version = 3

// The names that are reserved. A module that imports from the module Module, or exports a name that begins with "meter.", is refused.
const (
	// Namespace is the module from which a metered module imports Yield, a function without parameters and results.
	Namespace = "meter"
	// Yield is called when the gas or the depth is below zero. The host either tops up the gas or unwinds; below zero, the depth is never
	// topped up.
	Yield = "yield"
	// Gas is the exported i64 global from which the code subtracts its cost. It begins with 0: the first look calls Yield.
	Gas = "meter.gas"
	// Depth is the exported i64 global that says how many units of stack are left. A call takes its function's units and gives them back on
	// return, whichever way it returns; a trap gives nothing back, so the host sets it before each call. It begins with 0.
	Depth = "meter.depth"
	// Start is the exported function that was the module's start function, with Options.Detach.
	Start = "meter.start"
	// globalPrefix and an index name the mutable globals, with Options.Detach.
	globalPrefix = "meter.global."
	reserved     = "meter."
)

// Limits of a module. The numbers are those of the browsers' engines or below, and above what CPython and Go's compiler need.
const (
	MaxModule     = 48 << 20  // bytes of a module
	MaxOutput     = 128 << 20 // bytes of the result
	MaxFunction   = 4 << 20   // bytes of a function's body
	MaxNesting    = 4096      // blocks around an instruction, the function's own among them
	MaxBlocks     = 10_000    // blocks of a function: what an engine takes to compile one grows faster than their number
	MaxLocals     = 10_000    // locals of a function beside its parameters
	MaxArity      = 1000      // parameters of a function, and results
	MaxTypes      = 65_536
	MaxFunctions  = 200_000
	MaxImports    = 1000
	MaxGlobals    = 65_536
	MaxExports    = 65_536
	MaxSegments   = 100_000 // of data, and of elements
	MaxTables     = 16
	MaxTable      = 1 << 20 // entries of a table; a table that may grow further is limited to so many
	MaxTargets    = 65_536  // of one br_table
	MaxNameLength = 4096    // bytes of an imported or exported name
)

// Gas costs that are not in the table of opcodes.go.
const (
	// stretch is the most gas that a path takes between two looks at the gas, besides one instruction and small leaf functions.
	stretch = 4096
	// leaf is the most that a function without calls and loops may cost so that nothing looks at the gas in it.
	leaf = 32
	// tail is the most that a function takes between its last look at the gas and its return.
	tail = 512
	// PageGas is the cost of a page of memory.grow: the cost of filling it.
	PageGas = 8192
	// pageShift is its logarithm.
	pageShift = 13
	// frameUnit is how many bytes of a function's body, with 16 for each local, are one unit of stack. It stands for at most 3,000 bytes of an
	// engine's stack, of which wazero's compiler has at least 50,000,000: see SafeDepth.
	frameUnit = 1024
	// SafeDepth is a depth within which no engine's own limit is reached: wazero's interpreter apart, which has 2,000 calls and is for tests.
	SafeDepth = 16_384
	// MaxOvershoot is how far below zero the gas may be at most when Yield is called, as long as the depth is no more than SafeDepth.
	// Growing comes on top, and so do the bulk operations, which are charged in one step before they are done.
	MaxOvershoot = SafeDepth*tail + 4*stretch
)

// Options say how a module is rewritten. The zero value only meters it.
type Options struct {
	// Detach leaves out the effects of instantiation, so that copies of a running module do not repeat them: the active data segments are in
	// Module.Data, and the start function is exported as Start. Module.Globals lists the mutable globals, which are exported.
	Detach bool
	// MaxFunction and MaxBlocks are lower bounds than the constants of their names, for modules that are compiled while somebody waits; 0
	// for those.
	MaxFunction, MaxBlocks int
	// Check is called between functions. Its error ends the pass. It may be nil.
	Check func() error

	piece uint32 // of what memory.copy and memory.fill do without a look, a multiple of eight; bulkPiece if 0
}

// Module is a metered module.
type Module struct {
	Wasm []byte // the module in the binary format

	HasMemory            bool
	MemoryMin, MemoryMax uint32 // in pages of 65,536 bytes; MemoryMax is 65,536 where the module names none

	// The fields below are for a detached module only.

	Data    []Segment // in the order in which they are written into the memory
	Started bool      // there is a start function, exported as Start
	Globals []Global  // mutable globals that are numbers, without those of the pass
	Unsaved string    // what memory and globals do not hold of the module's state, for a person; empty if they hold all of it
}

// Segment is an active data segment.
type Segment struct {
	Offset uint32
	Bytes  []byte // shares memory with the module that was given
}

// Global is a mutable global that is exported so that its value can be saved and restored.
type Global struct {
	Name string // under which it is exported
	Type byte   // its type in the binary format: 0x7f i32, 0x7e i64, 0x7d f32, 0x7c f64
}

// Sentinels to compare with errors.Is: why a module is refused.
var (
	ErrMalformed   = fault.New(fault.Invalid, "wasm_malformed", "the WebAssembly module is malformed")
	ErrUnsupported = fault.New(fault.Invalid, "wasm_unsupported", "the WebAssembly module uses an unsupported feature")
	ErrReserved    = fault.New(fault.Invalid, "wasm_reserved", "the WebAssembly module uses a reserved name")
	ErrTooLarge    = fault.New(fault.Exhausted, "wasm_too_large", "the WebAssembly module is too large")
)

// Instrument returns the module with its own metering. It reads a module of WebAssembly 2.0 with tail calls. The result is valid if
// the module was; whether it was is for the engine to say, but no index of a module reaches what the pass has added. Nothing of module is
// changed.
func Instrument(module []byte, o Options) (*Module, error) {
	if len(module) > MaxModule {
		return nil, tooLarge("the module has %d bytes, and at most %d are taken", len(module), MaxModule)
	}
	if o.MaxFunction <= 0 {
		o.MaxFunction = MaxFunction
	}
	if o.MaxBlocks <= 0 {
		o.MaxBlocks = MaxBlocks
	}
	o.MaxFunction, o.MaxBlocks = min(o.MaxFunction, MaxFunction), min(o.MaxBlocks, MaxBlocks)
	r := &reader{b: module}
	p := &pass{r: r, o: o, operations: newInstructions()}
	p.parse()
	if r.err != nil {
		return nil, r.err
	}
	return p.assemble()
}

func malformed(format string, args ...any) error {
	return fault.New(ErrMalformed.Kind, ErrMalformed.Code, "the WebAssembly module is malformed: "+format, args...)
}

func unsupported(format string, args ...any) error {
	return fault.New(ErrUnsupported.Kind, ErrUnsupported.Code, "the WebAssembly module uses an unsupported feature: "+format, args...)
}

func tooLarge(format string, args ...any) error {
	return fault.New(ErrTooLarge.Kind, ErrTooLarge.Code, "the WebAssembly module is too large: "+format, args...)
}

func reservedName(format string, args ...any) error {
	return fault.New(ErrReserved.Kind, ErrReserved.Code, "the WebAssembly module uses a reserved name: "+format, args...)
}
