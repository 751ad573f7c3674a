package meter

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// shifted returns the index of a function after the import of Yield, which is the last import.
func (p *pass) shifted(f uint32) uint32 {
	if int64(f) < int64(p.imports) {
		return f
	}
	return f + 1
}

func (p *pass) yield() uint32 { return uint32(p.imports) }
func (p *pass) gas() uint32   { return uint32(len(p.globals)) }
func (p *pass) depth() uint32 { return uint32(len(p.globals)) + 1 }

// typeOf returns the index of a function type, which it adds where there is none. It searches only the few types of the pass itself.
func (p *pass) typeOf(params, results []byte) uint32 {
	for i := p.declaredTypes; i < len(p.types); i++ {
		if bytes.Equal(p.types[i].params, params) && bytes.Equal(p.types[i].results, results) {
			return uint32(i)
		}
	}
	p.types = append(p.types, funcType{params: params, results: results})
	return uint32(len(p.types) - 1)
}

// blockTypeOf returns the type of a block without parameters.
func (p *pass) blockTypeOf(results []byte) []byte {
	switch len(results) {
	case 0:
		return []byte{0x40}
	case 1:
		return results
	default:
		return appendSigned(nil, int64(p.typeOf(nil, results)))
	}
}

// yieldBelowZero calls Yield if the number on the stack is negative.
func (p *pass) yieldBelowZero(b []byte) []byte {
	b = append(b, opI64Const, 0, opI64LtS, opIf, 0x40)
	b = appendU32(append(b, opCall), p.yield())
	return append(b, opEnd)
}

// assemble writes the module.
func (p *pass) assemble() (*Module, error) {
	p.export(Gas, 3, p.gas())
	p.export(Depth, 3, p.depth())
	if p.started && p.o.Detach {
		p.export(Start, 0, p.shifted(p.start))
		p.module.Started = true
	}
	imports := appendName(appendName(p.importEntries, Namespace), Yield)
	imports = appendU32(append(imports, 0), p.typeOf(nil, nil))
	functions, code := p.defineAdded()

	var types []byte
	for _, t := range p.types {
		types = append(appendU32(append(types, 0x60), uint32(len(t.params))), t.params...)
		types = append(appendU32(types, uint32(len(t.results))), t.results...)
	}
	zero := []byte{typeI64, 1, opI64Const, 0, opEnd}
	out := []byte("\x00asm\x01\x00\x00\x00")
	out = p.vector(out, sectionType, len(p.types), types)
	out = p.vector(out, sectionImport, p.imports+1, imports)
	out = p.vector(out, sectionFunction, len(p.functions)-p.imports+len(p.added), functions)
	if len(p.tables) > 0 {
		out = p.vector(out, sectionTable, len(p.tables), p.tableEntries)
	}
	if p.module.HasMemory {
		out = p.vector(out, sectionMemory, 1, p.memoryEntry)
	}
	out = p.vector(out, sectionGlobal, p.numGlobals+2, slices.Concat(p.globalEntries, zero, zero))
	out = p.vector(out, sectionExport, p.numExports, p.exportEntries)
	if p.started && !p.o.Detach {
		out = appendSection(out, sectionStart, appendU32(nil, p.shifted(p.start)))
	}
	if p.numElements > 0 {
		out = p.vector(out, sectionElement, p.numElements, p.elements)
	}
	if p.dataCounted {
		out = appendSection(out, sectionDataCount, appendU32(nil, uint32(p.numData)))
	}
	out = p.vector(out, sectionCode, p.bodies+len(p.added), code)
	if p.numData > 0 {
		out = p.vector(out, sectionData, p.numData, p.data)
	}
	if len(out) > MaxOutput {
		return nil, tooLarge("the metered module has %d bytes, and at most %d are made", len(out), MaxOutput)
	}
	p.module.Wasm = out
	if p.o.Detach {
		p.module.Unsaved = p.unsaved
	}
	m := p.module // not the pass itself, which holds what it was made of
	return &m, nil
}

// vector appends a section that is a vector of so many items.
func (p *pass) vector(out []byte, id byte, n int, items []byte) []byte {
	count := binary.AppendUvarint(nil, uint64(n))
	out = appendU32(append(out, id), uint32(len(count)+len(items)))
	return append(append(out, count...), items...)
}
