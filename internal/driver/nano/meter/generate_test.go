package meter

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// generator writes random valid modules: control flow, calls of all kinds, memory, floats, vectors, bulk operations and tables. They end:
// loops count down, and each call takes one of a number of calls that a global holds.
type generator struct {
	*rand.Rand
	canonical bool // each result of a float operation is made canonical, so that the plain module depends on no machine's NaN
	types     []funcType
	functions []uint32 // the type of each; the first is imported
	b         []byte
	params    []byte
	locals    []byte // the function's, parameters first; behind them one of each type for the generator itself
	results   []byte
	labels    [][]byte // what branches to each enclosing block take with them, the outermost first
	size      int      // how many more expressions the function may have
}

var valueTypes = []byte{typeI32, typeI64, typeF32, typeF64, typeV128}

const (
	callsGlobal = 0 // i32, how many calls are left
	numGlobals  = 6 // one more of each type
)

// generate returns a module that exports "run", a function (i32 i64 f64) -> (i32 i64 f32 f64).
func generate(seed uint64, canonical bool) []byte {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), canonical: canonical}
	g.types = []funcType{
		{[]byte{typeI32}, []byte{typeI32}},
		{[]byte{typeI32, typeI64, typeF64}, []byte{typeI32, typeI64, typeF32, typeF64}},
		{nil, nil},
	}
	for range 3 + g.IntN(4) {
		g.types = append(g.types, funcType{g.someTypes(9), g.someTypes(3)})
	}
	g.functions = []uint32{0, 1}
	for range 3 + g.IntN(6) {
		g.functions = append(g.functions, uint32(g.IntN(len(g.types))))
	}

	var types []byte
	for _, t := range g.types {
		types = append(append(append(types, 0x60, byte(len(t.params))), t.params...), byte(len(t.results)))
		types = append(types, t.results...)
	}
	out := []byte("\x00asm\x01\x00\x00\x00")
	p := &pass{}
	out = p.vector(out, sectionType, len(g.types), types)
	out = p.vector(out, sectionImport, 1, append(appendName(appendName(nil, "host"), "twist"), 0, 0))
	var functions []byte
	for _, t := range g.functions[1:] {
		functions = appendU32(functions, t)
	}
	out = p.vector(out, sectionFunction, len(g.functions)-1, functions)
	out = p.vector(out, sectionTable, 1, []byte{typeFuncref, 1, 12, 20})
	out = p.vector(out, sectionMemory, 1, []byte{1, 1, 4})
	globals := append([]byte{typeI32, 1, opI32Const}, appendSigned(nil, 60)...)
	globals = append(globals, opEnd)
	for _, t := range valueTypes {
		globals = append(globals, t, 1)
		globals = append(g.constant(globals, t), opEnd)
	}
	out = p.vector(out, sectionGlobal, numGlobals, globals)
	exports := append(appendName(nil, "run"), 0, 1)
	for i := range byte(numGlobals - 1) {
		exports = append(appendName(exports, "g"+string('0'+rune(i))), 3, i)
	}
	out = p.vector(out, sectionExport, numGlobals, exports)
	// Two segments of elements: one that fills most of the table, and one that is passive.
	elements := []byte{0, opI32Const, 0, opEnd, 9}
	for range 9 {
		elements = append(elements, byte(g.IntN(len(g.functions))))
	}
	elements = append(elements, 1, 0, 4)
	for range 4 {
		elements = append(elements, byte(g.IntN(len(g.functions))))
	}
	out = p.vector(out, sectionElement, 2, elements)
	out = appendSection(out, sectionDataCount, []byte{2})
	var code []byte
	for _, t := range g.functions[1:] {
		body := g.function(g.types[t])
		code = append(appendU32(code, uint32(len(body))), body...)
	}
	out = p.vector(out, sectionCode, len(g.functions)-1, code)
	data := append([]byte{0, opI32Const, 0x20, opEnd, 64}, g.noise(64)...)
	data = append(append(data, 1, 32), g.noise(32)...)
	return p.vector(out, sectionData, 2, data)
}

func (g *generator) noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return b
}

func (g *generator) someTypes(n int) []byte {
	t := make([]byte, g.IntN(n+1))
	for i := range t {
		t[i] = valueTypes[g.IntN(len(valueTypes))]
	}
	return t
}

func (g *generator) function(t funcType) []byte {
	g.b, g.params, g.results, g.labels, g.size = nil, t.params, t.results, [][]byte{t.results}, 120
	own := g.someTypes(5)
	g.locals = append(append(append([]byte(nil), t.params...), own...), valueTypes...)
	g.locals = append(g.locals, valueTypes...)             // the generator's own
	g.locals = append(g.locals, typeI32, typeI32, typeI32) // counters of loops
	for range 1 + g.IntN(6) {
		g.statement(3)
	}
	g.values(t.results, 3)
	declared := g.locals[len(t.params):]
	head := appendU32(nil, uint32(len(declared)))
	for _, t := range declared {
		head = append(head, 1, t)
	}
	// The guard: without calls left it returns zeroes or traps.
	head = append(head, opGlobalGet, callsGlobal, 0x45, opIf, 0x40)
	if g.IntN(3) == 0 {
		head = append(head, opUnreachable)
	} else {
		for _, t := range t.results {
			head = zeroOf(head, t)
		}
		head = append(head, opReturn)
	}
	head = append(head, opEnd, opGlobalGet, callsGlobal, opI32Const, 1, 0x6b, opGlobalSet, callsGlobal)
	return append(append(head, g.b...), opEnd)
}

func zeroOf(b []byte, t byte) []byte {
	switch t {
	case typeI32:
		return append(b, opI32Const, 0)
	case typeI64:
		return append(b, opI64Const, 0)
	case typeF32:
		return append(b, opF32Const, 0, 0, 0, 0)
	case typeF64:
		return append(b, opF64Const, 0, 0, 0, 0, 0, 0, 0, 0)
	default:
		return append(append(b, 0xfd, 12), make([]byte, 16)...)
	}
}

var interesting = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, math.Inf(1), math.Inf(-1), math.NaN(), 1e300, 1e-300, 2147483648,
	-9223372036854775808, 5e-324, 1e38}

func (g *generator) constant(b []byte, t byte) []byte {
	v := int64(g.Uint64())
	if g.IntN(2) == 0 {
		v = int64(g.IntN(200)) - 100
	}
	f := interesting[g.IntN(len(interesting))]
	if g.IntN(3) == 0 {
		f = math.Float64frombits(g.Uint64())
	}
	switch t {
	case typeI32:
		return appendSigned(append(b, opI32Const), int64(int32(v)))
	case typeI64:
		return appendSigned(append(b, opI64Const), v)
	case typeF32:
		return binary.LittleEndian.AppendUint32(append(b, opF32Const), math.Float32bits(float32(f)))
	case typeF64:
		return binary.LittleEndian.AppendUint64(append(b, opF64Const), math.Float64bits(f))
	default:
		return append(append(b, 0xfd, 12), g.noise(16)...)
	}
}

func (g *generator) emit(code ...byte) { g.b = append(g.b, code...) }

func (g *generator) values(types []byte, depth int) {
	for _, t := range types {
		g.value(t, depth)
	}
}

// own is the local of a type that the generator keeps for itself.
func (g *generator) own(t byte) byte {
	for i := len(g.locals) - 8; ; i++ {
		if g.locals[i] == t {
			return byte(i)
		}
	}
}

func (g *generator) localOf(t byte) byte {
	var of []byte
	for i := range len(g.locals) - 8 { // not the generator's own
		if g.locals[i] == t {
			of = append(of, byte(i))
		}
	}
	return of[g.IntN(len(of))]
}

func globalOf(t byte) byte { return 1 + typeI32 - t }

// address puts one on the stack that is mostly within the memory.
func (g *generator) address(depth int) {
	g.value(typeI32, depth)
	if g.IntN(12) > 0 {
		g.emit(opI32Const, 0xff, 0xff, 0x01, 0x71) // and 0x7fff
	}
}

// nan makes a float canonical where the module shall not depend on the machine.
func (g *generator) nan(t byte, wide bool) {
	if !g.canonical {
		return
	}
	x := g.own(t)
	switch {
	case t == typeF32:
		g.emit(0x21, x, opLocalGet, x, opLocalGet, x, opF32Eq, opIf, typeF32, opLocalGet, x, opElse, opF32Const, 0, 0, 0xc0, 0x7f, opEnd)
	case t == typeF64:
		g.emit(0x21, x, opLocalGet, x, opLocalGet, x, opF64Eq, opIf, typeF64, opLocalGet, x, opElse, opF64Const, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f,
			opEnd)
	default:
		lanes, equal := []byte{0, 0, 0xc0, 0x7f, 0, 0, 0xc0, 0x7f}, byte(opF32x4Eq&0xff)
		if wide {
			lanes, equal = []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x7f}, opF64x2Eq&0xff
		}
		g.emit(opLocalTee, x, 0xfd, 12)
		g.emit(lanes...)
		g.emit(lanes...)
		g.emit(opLocalGet, x, opLocalGet, x, 0xfd, equal, 0xfd, 0x52)
	}
}

// callTo calls a function in one way or another; its parameters are on the stack.
func (g *generator) callTo(f int, tail bool) {
	switch g.IntN(3) {
	case 0:
		g.emit(opI32Const, byte(g.IntN(20))) // mostly another type, or nothing: a trap
		g.emit(opCallIndirect+2*b2i(tail), byte(g.functions[f]), 0)
	default:
		g.emit(opCall+2*b2i(tail), byte(f))
	}
}

func b2i(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// block opens one of three kinds around what then writes.
func (g *generator) block(results []byte, then func()) {
	kind := g.IntN(3)
	blockType := []byte{0x40}
	if len(results) == 1 {
		blockType = results
	}
	switch kind {
	case 0:
		g.emit(opBlock)
		g.emit(blockType...)
		g.labels = append(g.labels, results)
		then()
	case 1:
		counter := byte(len(g.locals) - 1 - g.IntN(3))
		g.emit(opI32Const, byte(1+g.IntN(5)), 0x21, counter, opLoop)
		g.emit(blockType...)
		g.labels = append(g.labels, []byte{0}) // nothing branches here but what counts
		then()
		g.emit(opLocalGet, counter, opI32Const, 1, 0x6b, opLocalTee, counter, opI32Const, 0, 0x4a) // gt_s
		if len(results) == 0 {
			g.emit(opBrIf, 0)
		} else {
			g.emit(0x1a)
		}
	default:
		g.value(typeI32, 1)
		g.emit(opIf)
		g.emit(blockType...)
		g.labels = append(g.labels, results)
		then()
		if len(results) > 0 || g.IntN(2) == 0 {
			g.emit(opElse)
			then()
		}
	}
	g.emit(opEnd)
	g.labels = g.labels[:len(g.labels)-1]
}

// branchTo picks a label, as it is counted from inside, to which such values can be taken.
func (g *generator) branchTo() (label byte, values []byte, ok bool) {
	i := g.IntN(len(g.labels))
	if len(g.labels[i]) == 1 && g.labels[i][0] == 0 {
		return 0, nil, false
	}
	return byte(len(g.labels) - 1 - i), g.labels[i], true
}
