package meter

import "slices"

// addedKind is a kind of function that the pass adds behind those of the module.
type addedKind uint8

const (
	bulkOfBytes   addedKind = iota // charges for bytes, eight for one gas, and returns its argument
	copyMemory                     // is memory.copy in pieces, each of which is charged before
	fillMemory                     // is memory.fill in pieces
	bulkOfEntries                  // charges for entries of a table, one for one gas, and returns its argument
	growMemory                     // is memory.grow, and charges for the pages that it got
	growTable                      // is table.grow, and charges for the entries that it got
)

// bytesShift is the logarithm of how many bytes a unit of gas copies, and bulkPiece how many are copied without a look.
const (
	bytesShift = 3
	bulkPiece  = 1 << 20
)

type addedKey struct {
	kind  addedKind
	table uint32
}

// addedFunction returns the index of a function that the pass adds.
func (p *pass) addedFunction(kind addedKind, table uint32) uint32 {
	key := addedKey{kind: kind, table: table}
	i := slices.Index(p.added, key)
	if i < 0 {
		i = len(p.added)
		p.added = append(p.added, key)
	}
	return uint32(1 + len(p.functions) + i)
}

// defineAdded returns the types of all functions that the module defines, and their code.
func (p *pass) defineAdded() (functions, code []byte) {
	for _, t := range p.functions[p.imports:] {
		functions = appendU32(functions, t)
	}
	code = p.code
	for _, h := range p.added {
		params, results := []byte{typeI32}, []byte{typeI32}
		switch h.kind {
		case growTable:
			params = []byte{p.tables[h.table], typeI32}
		case copyMemory, fillMemory:
			params, results = []byte{typeI32, typeI32, typeI32}, nil
		}
		functions = appendU32(functions, p.typeOf(params, results))
		body := p.define(h)
		code = append(appendU32(code, uint32(len(body))), body...)
	}
	return functions, code
}

func (p *pass) define(h addedKey) []byte {
	const n = 0 // the parameter of all but growTable
	switch h.kind {
	case bulkOfBytes, bulkOfEntries:
		b := []byte{0}
		b = p.chargeFor(b, n, opI64ShrU, map[addedKind]byte{bulkOfBytes: bytesShift, bulkOfEntries: 0}[h.kind])
		return append(b, opLocalGet, n, opEnd)
	case copyMemory, fillMemory:
		return p.inPieces(h.kind)
	case growMemory:
		const got = 1
		b := []byte{1, 1, typeI32, opLocalGet, n, opMemoryGrow, 0, opLocalTee, got}
		b = append(b, opI32Const, 0x7f, opI32Ne, opIf, 0x40)
		b = p.chargeFor(b, n, opI64Shl, pageShift)
		return append(b, opEnd, opLocalGet, got, opEnd)
	default:
		const ref, n, got = 0, 1, 2
		b := []byte{1, 1, typeI32, opLocalGet, ref, opLocalGet, n, 0xfc, opTableGrow & 0xff}
		b = append(appendU32(b, h.table), opLocalTee, got, opI32Const, 0x7f, opI32Ne, opIf, 0x40)
		b = p.chargeFor(b, n, opI64Shl, 0)
		return append(b, opEnd, opLocalGet, got, opEnd)
	}
}

// inPieces is memory.copy or memory.fill of at most so many bytes at once, with a look between two of them: pages that are written for
// the first time cost the machine most, and a hundred megabytes are far more than some milliseconds of them. A range outside of the
// memory is one piece, which traps before it writes anything.
func (p *pass) inPieces(kind addedKind) []byte {
	const to, from, n = 0, 1, 2 // from is the byte of a fill
	piece := p.o.piece
	if piece == 0 {
		piece = bulkPiece
	}
	b := []byte{0}
	get := func(locals ...byte) {
		for _, l := range locals {
			b = append(b, opLocalGet, l)
		}
	}
	constant := func() { b = appendSigned(append(b, opI32Const), int64(piece)) }
	do := func() {
		if kind == fillMemory {
			b = append(b, 0xfc, opMemoryFill&0xff, 0)
		} else {
			b = append(b, 0xfc, opMemoryCopy&0xff, 0, 0)
		}
	}
	charge := func() {
		b = appendU32(append(b, opGlobalGet), p.gas())
		b = append(appendSigned(append(b, opI64Const), int64(piece>>bytesShift)), opI64Sub)
		b = appendU32(append(b, opGlobalSet), p.gas())
		b = appendU32(append(b, opGlobalGet), p.gas())
		b = p.yieldBelowZero(b)
	}
	move := func(op byte, locals ...byte) {
		for _, l := range locals {
			get(l)
			constant()
			b = append(b, op, opLocalSet, l)
		}
	}
	long := func() {
		get(n)
		constant()
		b = append(b, opI32GtU)
	}
	forwards := func() {
		b = append(b, opLoop, 0x40)
		charge()
		get(to, from)
		constant()
		do()
		if kind == copyMemory {
			move(opI32Add, to, from)
		} else {
			move(opI32Add, to)
		}
		move(opI32Sub, n)
		long()
		b = append(b, opBrIf, 0, opEnd)
	}
	within := func(l byte) {
		get(l)
		b = append(b, opI64ExtendI32U)
		get(n)
		b = append(b, opI64ExtendI32U, opI64Add, opMemorySize, 0, opI64ExtendI32U, opI64Const, 16, opI64Shl, opI64LeU)
	}
	long()
	b = append(b, opIf, 0x40)
	within(to)
	if kind == copyMemory {
		within(from)
		b = append(b, opI32And)
	}
	b = append(b, opIf, 0x40)
	if kind == copyMemory { // what is written first must not be what is still to be read
		get(to, from)
		b = append(b, opI32LeU, opIf, 0x40)
		forwards()
		b = append(b, opElse, opLoop, 0x40)
		charge()
		move(opI32Sub, n)
		get(to, n)
		b = append(b, opI32Add)
		get(from, n)
		b = append(b, opI32Add)
		constant()
		do()
		long()
		b = append(b, opBrIf, 0, opEnd, opEnd)
	} else {
		forwards()
	}
	b = append(b, opEnd, opEnd)
	b = p.chargeFor(b, n, opI64ShrU, bytesShift)
	get(to, from, n)
	do()
	return append(b, opEnd)
}

// chargeFor charges for the length in a local, shifted by so many bits, and looks at the gas.
func (p *pass) chargeFor(b []byte, length, shift, bits byte) []byte {
	b = appendU32(append(b, opGlobalGet), p.gas())
	b = append(b, opLocalGet, length, opI64ExtendI32U, opI64Const, bits, shift, opI64Sub)
	b = appendU32(append(b, opGlobalSet), p.gas())
	b = appendU32(append(b, opGlobalGet), p.gas())
	return p.yieldBelowZero(b)
}
