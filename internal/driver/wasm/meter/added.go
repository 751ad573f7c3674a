package meter

import "slices"

// addedKind is a kind of function that the pass adds behind those of the module.
type addedKind uint8

const (
	bulkOfBytes   addedKind = iota // charges for bytes, eight for one gas, and returns its argument
	bulkOfEntries                  // charges for entries of a table, one for one gas, and returns its argument
	growMemory                     // is memory.grow, and charges for the pages that it got
	growTable                      // is table.grow, and charges for the entries that it got
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
		params := []byte{typeI32}
		if h.kind == growTable {
			params = []byte{p.tables[h.table], typeI32}
		}
		functions = appendU32(functions, p.typeOf(params, []byte{typeI32}))
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
		b = p.chargeFor(b, n, opI64ShrU, map[addedKind]byte{bulkOfBytes: 3, bulkOfEntries: 0}[h.kind])
		return append(b, opLocalGet, n, opEnd)
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

// chargeFor charges for the length in a local, shifted by so many bits, and looks at the gas.
func (p *pass) chargeFor(b []byte, length, shift, bits byte) []byte {
	b = appendU32(append(b, opGlobalGet), p.gas())
	b = append(b, opLocalGet, length, opI64ExtendI32U, opI64Const, bits, shift, opI64Sub)
	b = appendU32(append(b, opGlobalSet), p.gas())
	b = appendU32(append(b, opGlobalGet), p.gas())
	return p.yieldBelowZero(b)
}
