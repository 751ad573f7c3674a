package wasm

import (
	"github.com/tetratelabs/wazero/experimental"

	"agentbox/internal/userland/bound"
)

const (
	pageSize  = 1 << 16 // of WebAssembly
	pieceSize = 1 << 12 // saved and compared at once: a page of most machines
)

// linear is the memory of an instance. It counts on the account, and is freed by its instance also where the engine forgets it.
type linear struct {
	account *bound.Account // nil while no instance has it
	image   *Image
	most    uint64 // the memory never has more bytes
	begin   uint64 // how large it is at first
	counted int64
	mapping mapping
}

// Allocate makes the memory when the engine asks for it.
func (l *linear) Allocate(_, most uint64) experimental.LinearMemory {
	l.most = min(most, l.most)
	return l
}

// Reallocate makes the memory so large, but never smaller than it was at first.
func (l *linear) Reallocate(size uint64) []byte {
	size = max(size, l.begin)
	more := int64(size) - l.counted
	if size > l.most || l.account != nil && l.account.Allocate(more) != nil {
		return nil
	}
	b := l.mapping.resize(l.image, size, l.most)
	if l.account == nil {
		return b
	}
	if b == nil {
		l.account.Release(more)
		return nil
	}
	l.counted = int64(size)
	return b
}

// leave takes the memory off the account of the instance that had it.
func (l *linear) leave() {
	if l.account != nil {
		l.account.Release(l.counted)
	}
	l.account, l.counted = nil, 0
}

// Free releases the memory. It may be called more than once. A stopped execution may have written many pages; they are released after its
// end was reported.
func (l *linear) Free() {
	m := l.mapping
	l.mapping = mapping{}
	if l.account == nil {
		m.free()
		return
	}
	l.account.Afterwards(m.free)
	l.leave()
}
