package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"

	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/nano/meter"
)

// Prepared is a metered module, so that it need not be metered each time that it is compiled.
type Prepared struct {
	meta meter.Module
	hash [sha256.Size]byte // of the module that was metered, and of the metering
}

// Prepare meters a module.
func Prepare(module []byte) (*Prepared, error) { return prepare(module, meter.Options{Detach: true}) }

func prepare(module []byte, o meter.Options) (*Prepared, error) {
	m, err := meter.Instrument(module, o)
	if err != nil {
		return nil, err
	}
	p := &Prepared{meta: *m}
	h := sha256.New()
	h.Write(binary.LittleEndian.AppendUint32([]byte("agentbox wasm\x00"), meter.Version))
	h.Write(module)
	h.Sum(p.hash[:0])
	return p, nil
}

// CompilePrepared compiles the result of Prepare, as Compile does. A prepared module contains its own metering, so it must come from where
// nobody but the daemon writes.
func (e *Engine) CompilePrepared(ctx context.Context, p *Prepared) (*Code, error) {
	if p.meta.MemoryMin > e.o.MemoryPages {
		return nil, fault.New(ErrMemory.Kind, ErrMemory.Code, "the module's memory begins with %d pages, and at most %d are given",
			p.meta.MemoryMin, e.o.MemoryPages)
	}
	meta := p.meta
	c := &Code{engine: e, meta: &meta, Depth: e.o.Depth, hash: p.hash}
	var err error
	if c.compiled, err = e.runtimeCompile(ctx, meta.Wasm); err != nil {
		return nil, err
	}
	meta.Wasm = nil
	if c.initial, err = c.begin(); err != nil {
		return nil, errors.Join(err, c.compiled.Close(ctx))
	}
	meta.Data = nil
	return c, nil
}

// preparedMagic begins an encoded module; its last character is the version of the format.
const preparedMagic = "agentbox module 1"

// The facts about a module, each a bit.
const (
	hasMemory = 1 << iota
	hasStart
)

// MarshalBinary encodes the module. The same module has the same bytes.
func (p *Prepared) MarshalBinary() ([]byte, error) {
	m := &p.meta
	flags := byte(0)
	if m.HasMemory {
		flags |= hasMemory
	}
	if m.Started {
		flags |= hasStart
	}
	b := slices.Concat([]byte(preparedMagic), p.hash[:], []byte{flags})
	text := func(s []byte) { b = append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...) }
	b = binary.LittleEndian.AppendUint32(b, m.MemoryMin)
	b = binary.LittleEndian.AppendUint32(b, m.MemoryMax)
	text([]byte(m.Unsaved))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.Globals)))
	for _, g := range m.Globals {
		text([]byte(g.Name))
		b = append(b, g.Type)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.Data)))
	for _, s := range m.Data {
		b = binary.LittleEndian.AppendUint32(b, s.Offset)
		text(s.Bytes)
	}
	text(m.Wasm)
	return b, nil
}

// UnmarshalBinary decodes what MarshalBinary made. The module shares memory with b.
func (p *Prepared) UnmarshalBinary(b []byte) error {
	broken := false
	take := func(n uint32) []byte {
		if broken = broken || uint64(n) > uint64(len(b)); broken {
			return nil
		}
		taken := b[:n:n]
		b = b[n:]
		return taken
	}
	number := func() uint32 {
		if four := take(4); four != nil {
			return binary.LittleEndian.Uint32(four)
		}
		return 0
	}
	text := func() []byte { return take(number()) }
	one := func() byte {
		if taken := take(1); taken != nil {
			return taken[0]
		}
		return 0
	}
	broken = string(take(uint32(len(preparedMagic)))) != preparedMagic
	*p = Prepared{}
	copy(p.hash[:], take(sha256.Size))
	flags := one()
	m := &p.meta
	m.HasMemory, m.Started = flags&hasMemory != 0, flags&hasStart != 0
	m.MemoryMin, m.MemoryMax = number(), number()
	m.Unsaved = string(text())
	for n := number(); n > 0 && !broken; n-- {
		m.Globals = append(m.Globals, meter.Global{Name: string(text()), Type: one()})
	}
	for n := number(); n > 0 && !broken; n-- {
		m.Data = append(m.Data, meter.Segment{Offset: number(), Bytes: text()})
	}
	if m.Wasm = text(); broken || len(b) > 0 {
		return fault.New(fault.Invalid, "wasm_prepared", "the prepared WebAssembly module is broken or of another version; make it anew")
	}
	return nil
}
