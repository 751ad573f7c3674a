package meter

import (
	"bytes"
	"strconv"
	"strings"
)

// The types of values in the binary format.
const (
	typeI32       = 0x7f
	typeI64       = 0x7e
	typeF32       = 0x7d
	typeF64       = 0x7c
	typeV128      = 0x7b
	typeFuncref   = 0x70
	typeExternref = 0x6f
)

// The sections, and in which order they come.
const (
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionTable     = 4
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionStart     = 8
	sectionElement   = 9
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
)

type funcType struct{ params, results []byte }

type globalType struct {
	value   byte
	mutable bool
}

// pass is the work on one module: its declarations, and the result.
type pass struct {
	r          *reader
	o          Options
	operations *instructions

	types         []funcType // declared, and those that the pass adds
	declaredTypes int
	imports       int      // imported functions
	functions     []uint32 // the type of each function, imported ones first
	tables        []byte   // the type of each table's entries
	globals       []globalType
	started       bool
	start         uint32
	unsaved       string
	bodies        int

	added []addedKey // functions that the pass adds

	importEntries, tableEntries, memoryEntry, globalEntries, exportEntries, elements, code, data []byte
	numTables, numGlobals, numExports, numElements, numData                                      int
	dataCounted                                                                                  bool

	module Module
}

// parse reads the module and rewrites its sections as it goes, except those that refer to later ones.
func (p *pass) parse() {
	r := p.r
	switch head := r.bytes(min(8, uint32(len(r.b)))); {
	case bytes.Equal(head, []byte("\x00asm\x0d\x00\x01\x00")):
		r.fail(unsupported("it is a component, not a module; compile it for WASI preview 1, as the target wasm32-wasip1 of clang and Rust does"))
		return
	case !bytes.Equal(head, []byte("\x00asm\x01\x00\x00\x00")):
		r.fail(malformed("it does not begin as a module of version 1 does"))
		return
	}
	last := 0
	for r.err == nil && r.left() > 0 {
		id := r.byte()
		size := r.u32()
		at := r.off
		content := r.bytes(size)
		if r.err != nil {
			return
		}
		if id == 0 { // custom: of no effect, and wrong once the functions have other numbers
			s := &reader{b: content, at: at}
			if s.name(); s.err != nil {
				r.fail(s.err)
			}
			continue
		}
		if id > sectionDataCount {
			r.fail(unsupported("the section %d at byte %d", id, at))
			return
		}
		place := order(id)
		if place <= last {
			r.fail(malformed("the section %d at byte %d comes twice or too late", id, at))
			return
		}
		last = place
		s := &reader{b: content, at: at}
		p.section(id, s)
		if s.err == nil && s.left() > 0 {
			s.malformed("a section goes on after its end")
		}
		if s.err != nil {
			r.fail(s.err)
		}
	}
	if r.err == nil && len(p.functions)-p.imports != p.bodies {
		r.fail(malformed("%d functions are declared and %d defined", len(p.functions)-p.imports, p.bodies))
	}
}

// order is the order of sections: the section that counts the data segments stands before the code.
func order(id byte) int {
	switch id {
	case sectionDataCount:
		return 2*sectionElement + 1
	default:
		return 2 * int(id)
	}
}

func (p *pass) section(id byte, r *reader) {
	switch id {
	case sectionType:
		p.readTypes(r)
	case sectionImport:
		p.readImports(r)
	case sectionFunction:
		p.readFunctions(r)
	case sectionTable:
		p.readTables(r)
	case sectionMemory:
		p.readMemories(r)
	case sectionGlobal:
		p.readGlobals(r)
	case sectionExport:
		p.readExports(r)
	case sectionStart:
		p.start, p.started = r.u32(), true
		p.within(r, p.start, len(p.functions), "function")
	case sectionElement:
		p.readElements(r)
	case sectionDataCount:
		p.dataCounted = true
		p.numData = int(r.u32())
	case sectionCode:
		p.readCode(r)
	case sectionData:
		p.readData(r)
	}
}

// within refuses an index that is not of the module's own.
func (p *pass) within(r *reader, i uint32, n int, what string) {
	if int64(i) >= int64(n) && r.err == nil {
		r.malformed("there is no " + what + " " + strconv.FormatUint(uint64(i), 10))
	}
}

func isValueType(t byte) bool {
	return t >= typeV128 && t <= typeI32 || t == typeFuncref || t == typeExternref
}

func (p *pass) valueType(r *reader) byte {
	t := r.byte()
	if r.err == nil && !isValueType(t) {
		r.fail(unsupported("the type %#x at byte %d", t, r.at+r.off-1))
	}
	return t
}

func (p *pass) referenceType(r *reader) byte {
	t := r.byte()
	if r.err == nil && t != typeFuncref && t != typeExternref {
		r.fail(unsupported("the type of a reference %#x at byte %d", t, r.at+r.off-1))
	}
	return t
}

func (p *pass) readTypes(r *reader) {
	for range r.count(MaxTypes, "types") {
		if form := r.byte(); r.err == nil && form != 0x60 {
			r.fail(unsupported("the form of type %#x at byte %d", form, r.at+r.off-1))
		}
		params := p.valueTypes(r)
		p.types = append(p.types, funcType{params: params, results: p.valueTypes(r)})
		if r.err != nil {
			return
		}
	}
	p.declaredTypes = len(p.types)
}

func (p *pass) valueTypes(r *reader) []byte {
	n := r.count(MaxArity, "parameters or results")
	off := r.off
	for range n {
		p.valueType(r)
	}
	return r.since(off)
}

func (p *pass) readImports(r *reader) {
	for range r.count(MaxImports, "imports") {
		off := r.off
		module, name := r.name(), r.name()
		kind := r.byte()
		if r.err != nil {
			return
		}
		if module == Namespace {
			r.fail(reservedName("it imports %q from %q", name, module))
			return
		}
		if kind != 0 {
			r.fail(unsupported("the import of %q from %q, which is not a function", name, module))
			return
		}
		t := r.u32()
		p.within(r, t, p.declaredTypes, "type")
		p.functions = append(p.functions, t)
		p.importEntries = append(p.importEntries, r.since(off)...)
		p.imports++
	}
}

func (p *pass) readFunctions(r *reader) {
	for range r.count(MaxFunctions, "functions") {
		t := r.u32()
		p.within(r, t, p.declaredTypes, "type")
		if r.err != nil {
			return
		}
		p.functions = append(p.functions, t)
	}
}

// limits reads how large something is at the beginning and may be at most.
func (p *pass) limits(r *reader, ceiling uint32, what string) (least, most uint32, bounded bool) {
	flags := r.byte()
	if flags > 1 {
		r.fail(unsupported("a %s that is shared or has 64 bits, at byte %d", what, r.at+r.off-1))
		return
	}
	least, most = r.u32(), ceiling
	if flags == 1 {
		most, bounded = r.u32(), true
		if most < least && r.err == nil {
			r.malformed("the most is less than the least")
		}
	}
	if least > ceiling && r.err == nil {
		r.fail(tooLarge("a %s begins with %d, and at most %d are taken", what, least, ceiling))
	}
	return least, most, bounded
}

func (p *pass) readTables(r *reader) {
	p.numTables = r.count(MaxTables, "tables")
	for range p.numTables {
		t := p.referenceType(r)
		least, most, _ := p.limits(r, MaxTable, "table")
		p.tables = append(p.tables, t)
		p.tableEntries = append(p.tableEntries, t, 1)
		p.tableEntries = appendU32(appendU32(p.tableEntries, least), min(most, MaxTable))
	}
}

func (p *pass) readMemories(r *reader) {
	const most = 1 << 16
	switch n := r.count(1<<16, "memories"); n {
	case 0:
	case 1:
		off := r.off
		least, bound, bounded := p.limits(r, most, "memory")
		if bounded && bound > most && r.err == nil {
			r.malformed("a memory has more than 65,536 pages")
		}
		p.memoryEntry = r.since(off)
		p.module.HasMemory, p.module.MemoryMin, p.module.MemoryMax = true, least, bound
	default:
		r.fail(unsupported("%d memories", n))
	}
}

func (p *pass) readGlobals(r *reader) {
	p.numGlobals = r.count(MaxGlobals, "globals")
	for i := range p.numGlobals {
		off := r.off
		g := globalType{value: p.valueType(r)}
		switch r.byte() {
		case 0:
		case 1:
			g.mutable = true
		default:
			r.malformed("a global is neither mutable nor not")
		}
		p.globalEntries = append(p.globalEntries, r.since(off)...)
		p.globalEntries = p.constant(p.globalEntries, r)
		if r.err != nil {
			return
		}
		p.globals = append(p.globals, g)
		if !g.mutable || !p.o.Detach {
			continue
		}
		if g.value < typeF64 {
			p.unsaved = "it has a mutable global that is a vector or a reference"
			continue
		}
		name := globalPrefix + strconv.Itoa(i)
		p.export(name, 3, uint32(i))
		p.module.Globals = append(p.module.Globals, Global{Name: name, Type: g.value})
	}
}

// constant copies a constant expression.
func (p *pass) constant(dst []byte, r *reader) []byte {
	off := r.off
	switch op := r.byte(); op {
	case opI32Const:
		r.signed(32)
	case opI64Const:
		r.signed(64)
	case opF32Const:
		r.bytes(4)
	case opF64Const:
		r.bytes(8)
	case opRefNull:
		p.referenceType(r)
	case 0xfd:
		if r.u32() != 12 {
			r.malformed("an expression is not constant")
		}
		r.bytes(16)
	case opRefFunc:
		f := r.u32()
		p.within(r, f, len(p.functions), "function")
		p.end(r)
		return append(appendU32(append(dst, opRefFunc), p.shifted(f)), opEnd)
	default: // global.get names an imported global, and there are none
		if r.err == nil {
			r.fail(unsupported("the instruction %#x in a constant expression at byte %d", op, r.at+off))
		}
	}
	p.end(r)
	return append(dst, r.since(off)...)
}

func (p *pass) end(r *reader) {
	if r.byte() != opEnd && r.err == nil {
		r.fail(unsupported("a constant expression of more than one instruction, at byte %d", r.at+r.off-1))
	}
}

func (p *pass) export(name string, kind byte, index uint32) {
	p.exportEntries = appendU32(append(appendName(p.exportEntries, name), kind), index)
	p.numExports++
}

func (p *pass) readExports(r *reader) {
	memories := 0
	if p.module.HasMemory {
		memories = 1
	}
	for range r.count(MaxExports, "exports") {
		name, kind, i := r.name(), r.byte(), r.u32()
		switch kind {
		case 0:
			p.within(r, i, len(p.functions), "function")
			i = p.shifted(i)
		case 1:
			p.within(r, i, len(p.tables), "table")
		case 2:
			p.within(r, i, memories, "memory")
		case 3:
			p.within(r, i, len(p.globals), "global")
		default:
			r.fail(unsupported("the export %q, which is neither a function nor a table, a memory or a global", name))
		}
		if r.err == nil && strings.HasPrefix(name, reserved) {
			r.fail(reservedName("it exports %q", name))
		}
		if r.err != nil {
			return
		}
		p.export(name, kind, i)
	}
}

func (p *pass) readElements(r *reader) {
	p.numElements = r.count(MaxSegments, "segments of elements")
	for range p.numElements {
		if r.err != nil {
			return
		}
		flags := r.u32()
		if flags > 7 {
			r.fail(unsupported("a segment of elements of the form %d at byte %d", flags, r.at+r.off-1))
			return
		}
		dst := appendU32(p.elements, flags)
		if flags&1 == 0 { // active
			if flags&2 != 0 {
				t := r.u32()
				p.within(r, t, len(p.tables), "table")
				dst = appendU32(dst, t)
			} else {
				p.within(r, 0, len(p.tables), "table")
			}
			dst = p.constant(dst, r)
		}
		expressions := flags&4 != 0
		if flags&3 != 0 { // what they are is written
			kind := r.byte()
			dst = append(dst, kind)
			if !expressions && kind != 0 || expressions && kind != typeFuncref && kind != typeExternref {
				r.fail(unsupported("elements of the kind %#x at byte %d", kind, r.at+r.off-1))
			}
		}
		n := r.count(MaxModule, "elements")
		dst = appendU32(dst, uint32(n))
		for range n {
			if r.err != nil {
				return
			}
			if expressions {
				dst = p.constant(dst, r)
				continue
			}
			f := r.u32()
			p.within(r, f, len(p.functions), "function")
			dst = appendU32(dst, p.shifted(f))
		}
		p.elements = dst
	}
}

func (p *pass) readCode(r *reader) {
	p.bodies = r.count(MaxFunctions, "functions")
	if p.bodies > len(p.functions)-p.imports {
		r.malformed("more functions are defined than declared")
		return
	}
	w := &rewriter{p: p}
	for i := range p.bodies {
		size := r.u32()
		if size > uint32(p.o.MaxFunction) {
			r.fail(tooLarge("a function has %d bytes, and at most %d are taken", size, p.o.MaxFunction))
		}
		if p.o.Check != nil && i%64 == 0 {
			if err := p.o.Check(); err != nil {
				r.fail(err)
			}
		}
		at := r.at + r.off
		body := &reader{b: r.bytes(size), at: at}
		if r.err != nil {
			return
		}
		p.code = w.rewrite(p.code, body, &p.types[p.functions[p.imports+i]])
		if body.err == nil && len(p.code) > MaxOutput {
			body.fail(tooLarge("its metered code has more than %d bytes", MaxOutput))
		}
		if body.err != nil {
			r.fail(body.err)
			return
		}
	}
}

func (p *pass) readData(r *reader) {
	n := r.count(MaxSegments, "segments of data")
	if p.dataCounted && n != p.numData {
		r.malformed("the data segments are not as many as was said")
	}
	p.numData = n
	for range n {
		if r.err != nil {
			return
		}
		flags := r.u32()
		var offset []byte
		var constant int64
		switch flags {
		case 2:
			if r.u32() != 0 {
				r.fail(unsupported("data of a memory beside the first, at byte %d", r.at+r.off-1))
			}
			fallthrough
		case 0:
			if !p.module.HasMemory && r.err == nil {
				r.malformed("data without a memory")
			}
			off := r.off
			offset = p.constant(nil, r)
			if c := (&reader{b: r.since(off), off: 1}); r.err == nil {
				if r.b[off] != opI32Const {
					r.malformed("the offset of data is not an i32")
				}
				constant = c.signed(32)
			}
		case 1:
		default:
			r.fail(unsupported("a data segment of the form %d at byte %d", flags, r.at+r.off-1))
		}
		content := r.bytes(r.u32())
		if r.err != nil {
			return
		}
		switch {
		case flags == 1:
			p.data = append(p.data, 1)
		case p.o.Detach:
			// An active segment is dropped once it is written: a passive segment without content takes its place.
			p.module.Data = append(p.module.Data, Segment{Offset: uint32(constant), Bytes: content})
			p.data = append(p.data, 1)
			content = nil
		default:
			p.data = append(append(p.data, 0), offset...)
		}
		p.data = append(appendU32(p.data, uint32(len(content))), content...)
	}
}
