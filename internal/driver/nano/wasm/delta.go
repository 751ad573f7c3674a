package wasm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"agentbox/internal/domain/fault"
)

// Delta is how the state of an instance differs from the image that stands by itself below it.
type Delta struct {
	Base    [sha256.Size]byte // the hash of that image
	Size    uint64            // of the memory
	Globals []uint64
	Pieces  []Piece // of the memory, by their offsets
}

// grain is the smallest saved part of a memory: a line of most caches.
const grain = 64

// Piece is a part of the memory, a multiple of 64 bytes at such an offset.
type Piece struct {
	Offset uint64
	Bytes  []byte
}

// Bytes returns how much memory the delta holds.
func (d *Delta) Bytes() (n int) {
	for _, p := range d.Pieces {
		n += len(p.Bytes)
	}
	return n
}

// span is a part of a memory.
type span struct{ from, to uint64 }

// addChanges appends what of a page is not as it was, nil for zeroes. Most of what is written are counts, a few bytes in a page.
func addChanges(spans []span, at uint64, page, old []byte) []span {
	same := func(from int) bool {
		if old == nil {
			return isZero(page[from : from+grain])
		}
		return bytes.Equal(page[from:from+grain], old[from:from+grain])
	}
	if old != nil && bytes.Equal(page, old) {
		return spans
	}
	for from := 0; from < len(page); from += grain {
		if same(from) {
			continue
		}
		to := from + grain
		for to < len(page) && !same(to) {
			to += grain
		}
		begin, end := at+uint64(from), at+uint64(to)
		if n := len(spans); n > 0 && spans[n-1].to == begin {
			spans[n-1].to = end
		} else {
			spans = append(spans, span{begin, end})
		}
		from = to
	}
	return spans
}

// copySpans copies parts of a memory, all at once.
func (d *Delta) copySpans(memory []byte, spans []span) {
	size := uint64(0)
	for _, s := range spans {
		size += s.to - s.from
	}
	all := make([]byte, 0, size)
	d.Pieces = make([]Piece, 0, len(spans))
	for _, s := range spans {
		begin := len(all)
		all = append(all, memory[s.from:s.to]...)
		d.Pieces = append(d.Pieces, Piece{Offset: s.from, Bytes: all[begin:len(all):len(all)]})
	}
}

// add appends a piece, to the last one where that ends at it.
func (d *Delta) add(at uint64, b []byte) {
	if n := len(d.Pieces); n > 0 {
		if last := &d.Pieces[n-1]; last.Offset+uint64(len(last.Bytes)) == at {
			last.Bytes = append(last.Bytes, b...)
			return
		}
	}
	d.Pieces = append(d.Pieces, Piece{Offset: at, Bytes: bytes.Clone(b)})
}

// Freeze returns what With needs to go on later where the instance is now. It compares the memory with the image, where the system tells
// what was written only that. The instance goes on as it was; it must not be running.
func (in *Instance) Freeze() (Delta, error) {
	if in.body == nil || in.running > 0 {
		return Delta{}, ErrClosed
	}
	if reason := in.image.code.meta.Unsaved; reason != "" {
		return Delta{}, fault.New(ErrUnsaved.Kind, ErrUnsaved.Code, "no image can be made of this WebAssembly module: %s", reason)
	}
	root := in.image.root()
	memory, was := in.Memory(), root.store.bytes()
	d := Delta{Base: root.hash(), Size: uint64(len(memory)), Globals: in.values()}
	written := in.engine.marks.written(&in.linear.mapping, d.Size)
	var spans []span
	const stride = 16 * pieceSize // a memory is a multiple of it, and most of it is as it was
	for begin := 0; begin < len(memory); begin += stride {
		if written == nil && begin < len(was) && bytes.Equal(memory[begin:begin+stride], was[begin:begin+stride]) {
			continue
		}
		for at := begin; at < begin+stride; at += pieceSize {
			if len(written) > 0 && !written[at/pieceSize] {
				continue
			}
			var old []byte // nil for zeroes
			if at < len(was) {
				old = was[at : at+pieceSize]
			}
			spans = addChanges(spans, uint64(at), memory[at:at+pieceSize], old)
		}
	}
	d.copySpans(memory, spans)
	return d, nil
}

// With returns the image that a frozen instance was. It stands on this one, which has to stay open, and keeps the delta's memory.
func (im *Image) With(d Delta) (*Image, error) {
	if im.under != nil {
		return nil, fault.New(fault.Invalid, ErrImage.Code, "the image stands on another; apply the delta to that one")
	}
	if d.Base != im.hash() || !im.code.takes(d.Globals) || !im.code.fits(d.Size) || d.Size < im.size || !d.within() {
		return nil, ErrImage
	}
	im.live.Add(1)
	hash := func() [sha256.Size]byte { return sha256.Sum256(d.Append(nil)) } // an image of one execution is not asked for it
	return &Image{code: im.code, size: d.Size, globals: d.Globals, under: im, delta: d, hash: hash}, nil
}

// within reports whether all pieces lie within the memory.
func (d *Delta) within() bool {
	end := uint64(0)
	for _, p := range d.Pieces {
		n := uint64(len(p.Bytes))
		if p.Offset < end || p.Offset > d.Size || n > d.Size-p.Offset || p.Offset%grain != 0 || n%grain != 0 {
			return false
		}
		end = p.Offset + n
	}
	return true
}

// addTo writes what is different into a fresh instance of the image below.
func (im *Image) addTo(in *Instance) {
	memory := in.Memory()
	for _, p := range im.delta.Pieces {
		if len(p.Bytes) >= 4*pieceSize {
			in.linear.mapping.populate(p.Offset, uint64(len(p.Bytes)))
		}
		copy(memory[p.Offset:], p.Bytes)
	}
}

// deltaMagic begins an encoded delta; its last character is the version of the format.
const deltaMagic = "agentbox delta 2"

// EncodedBytes returns the length of the encoded delta.
func (d *Delta) EncodedBytes() int {
	return len(deltaMagic) + sha256.Size + 16 + 8*len(d.Globals) + 16*len(d.Pieces) + d.Bytes()
}

// MarshalBinary encodes the delta. The same delta has the same bytes.
func (d *Delta) MarshalBinary() ([]byte, error) {
	return d.Append(make([]byte, 0, d.EncodedBytes())), nil
}

// Append appends the encoded delta.
func (d *Delta) Append(b []byte) []byte {
	b = append(append(b, deltaMagic...), d.Base[:]...)
	b = binary.LittleEndian.AppendUint64(b, d.Size)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(d.Globals)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(d.Pieces)))
	for _, g := range d.Globals {
		b = binary.LittleEndian.AppendUint64(b, g)
	}
	for _, p := range d.Pieces {
		b = binary.LittleEndian.AppendUint64(b, p.Offset)
		b = binary.LittleEndian.AppendUint64(b, uint64(len(p.Bytes)))
		b = append(b, p.Bytes...)
	}
	return b
}

// UnmarshalBinary decodes what MarshalBinary made. The pieces share memory with b.
func (d *Delta) UnmarshalBinary(b []byte) error {
	broken := fault.New(fault.Invalid, ErrImage.Code, "the saved state of a WebAssembly guest is broken or of another version; make it anew")
	const head = len(deltaMagic) + sha256.Size + 16
	if len(b) < head || string(b[:len(deltaMagic)]) != deltaMagic {
		return broken
	}
	b = b[len(deltaMagic):]
	*d = Delta{}
	copy(d.Base[:], b)
	b = b[sha256.Size:]
	d.Size = binary.LittleEndian.Uint64(b)
	globals, pieces := binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
	b = b[16:]
	if uint64(globals)*8+uint64(pieces)*16 > uint64(len(b)) {
		return broken
	}
	for range globals {
		d.Globals = append(d.Globals, binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	for range pieces {
		if len(b) < 16 {
			return broken
		}
		p := Piece{Offset: binary.LittleEndian.Uint64(b)}
		n := binary.LittleEndian.Uint64(b[8:])
		b = b[16:]
		if n > uint64(len(b)) {
			return broken
		}
		p.Bytes, b = b[:n:n], b[n:]
		d.Pieces = append(d.Pieces, p)
	}
	if len(b) > 0 || !d.within() {
		return broken
	}
	return nil
}
