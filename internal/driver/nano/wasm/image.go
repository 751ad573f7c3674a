package wasm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"

	"agentbox/internal/domain/fault"
	"agentbox/internal/userland/bound"
)

// Image is a module together with the state in which its instances begin: its memory and its mutable globals. Nothing changes it.
type Image struct {
	code    *Code
	size    uint64                   // of the memory
	globals []uint64                 // nil for those with which the module begins
	store   store                    // of an image that stands by itself
	hash    func() [sha256.Size]byte // once: of a memory that is large and empty it takes long, and is not asked for
	live    atomic.Int64             // instances that are not closed, and images that stand on this one

	under *Image // the image on which it stands, nil if it stands by itself
	delta Delta  // what is different in it

	mu      sync.Mutex // guards the fields below, of an image that stands by itself
	warm    bool       // the memory of old instances is kept for the next ones
	settled bool       // it is not learned any more which pages they write
	spare   *body      // nil for none
	hot     []bool     // the pages that the first of them have written, as the others will
}

// Build makes an image: an instance of the module begins, runs its start function and what init calls, and is saved. The same module and
// the same calls under the same limits and seed make the same image.
func (c *Code) Build(ctx context.Context, account *bound.Account, state any, init func(in *Instance) error) (*Image, error) {
	if c.meta.Unsaved != "" {
		return nil, fault.New(ErrUnsaved.Kind, ErrUnsaved.Code, "no image can be made of this WebAssembly module: %s", c.meta.Unsaved)
	}
	in, err := c.initial.New(ctx, account, state)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close(ctx) }()
	if err := in.Start(ctx); err != nil {
		return nil, err
	}
	if err := init(in); err != nil {
		return nil, err
	}
	memory := in.Memory()
	im := &Image{code: c, size: uint64(len(memory)), globals: in.values()}
	return im, im.keep(memory)
}

// keep stores the memory and computes the hash.
func (im *Image) keep(memory []byte) (err error) {
	if im.store, err = newStore(memory, im.size); err != nil {
		return fault.Wrap(err, fault.Unavailable, "wasm_no_memory", "the system has no room for an image of %d bytes; run fewer guests at once",
			im.size)
	}
	im.hash = sync.OnceValue(func() (sum [sha256.Size]byte) {
		h := sha256.New()
		h.Write(im.code.hash[:])
		h.Write(im.head())
		h.Write(im.store.bytes())
		h.Sum(sum[:0])
		return sum
	})
	return nil
}

// head is all of an image but its memory.
func (im *Image) head() []byte {
	b := binary.LittleEndian.AppendUint64(nil, im.size)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(im.globals)))
	for _, g := range im.globals {
		b = binary.LittleEndian.AppendUint64(b, g)
	}
	return b
}

// Hash identifies the image: its module, the version of its metering, and its state.
func (im *Image) Hash() [sha256.Size]byte { return im.hash() }

// Code returns the module.
func (im *Image) Code() *Code { return im.code }

// Size returns the size of the memory in bytes.
func (im *Image) Size() uint64 { return im.size }

// Close frees the image. It fails while instances of it are open, or images that stand on it.
func (im *Image) Close() error {
	if n := im.live.Load(); n > 0 {
		return fault.New(fault.Conflict, "wasm_in_use", "the image is in use by %d instances or images; close them before", n)
	}
	if im.under != nil {
		im.under.live.Add(-1)
		im.under = nil
		return nil
	}
	im.mu.Lock()
	defer im.mu.Unlock()
	err := error(nil)
	if im.spare != nil {
		err = im.spare.close(context.Background())
	}
	im.spare, im.warm = nil, false
	return errors.Join(err, im.store.close())
}

// Encode returns the image as bytes, from which Decode makes it again, in this process or another. Pieces of zeroes take no room.
func (im *Image) Encode() ([]byte, error) {
	if im.under != nil {
		return nil, fault.New(fault.Invalid, ErrImage.Code, "the image stands on another; encode the other one and the delta")
	}
	d := Delta{Base: im.code.hash, Size: im.size, Globals: im.globals}
	memory := im.store.bytes()
	for at := uint64(0); at < im.size; at += pieceSize {
		if piece := memory[at : at+pieceSize]; !isZero(piece) {
			d.add(at, piece)
		}
	}
	return d.MarshalBinary()
}

// Decode makes an image of this module from what Encode returned.
func (c *Code) Decode(encoded []byte) (*Image, error) {
	var d Delta
	if err := d.UnmarshalBinary(encoded); err != nil {
		return nil, err
	}
	if d.Base != c.hash || !c.takes(d.Globals) || !c.fits(d.Size) {
		return nil, ErrImage
	}
	memory := make([]byte, d.Size)
	for _, p := range d.Pieces {
		copy(memory[p.Offset:], p.Bytes)
	}
	im := &Image{code: c, size: d.Size, globals: d.Globals}
	return im, im.keep(memory)
}

// fits reports whether a memory of the module may have that size.
func (c *Code) fits(size uint64) bool {
	pages := size / pageSize
	return size%pageSize == 0 && pages >= uint64(c.meta.MemoryMin) && pages <= uint64(min(c.meta.MemoryMax, c.engine.o.MemoryPages)) &&
		(c.meta.HasMemory || size == 0)
}

// takes reports whether values are those of the mutable globals of the module, each within its type.
func (c *Code) takes(values []uint64) bool {
	if len(values) != len(c.meta.Globals) {
		return false
	}
	for i, v := range values {
		if t := c.meta.Globals[i].Type; (t == I32 || t == F32) && v>>32 != 0 {
			return false
		}
	}
	return true
}

// values returns the mutable globals.
func (in *Instance) values() []uint64 {
	values := make([]uint64, len(in.globals))
	for i, g := range in.globals {
		values[i] = g.Get()
		if t := in.image.code.meta.Globals[i].Type; t == I32 || t == F32 {
			values[i] = uint64(uint32(values[i]))
		}
	}
	return values
}

// root is the image that stands by itself below this one.
func (im *Image) root() *Image {
	if im.under != nil {
		return im.under
	}
	return im
}

// isZero reports whether all bytes are zero.
func isZero(b []byte) bool {
	return len(b) == 0 || b[0] == 0 && bytes.Equal(b[:len(b)-1], b[1:])
}
