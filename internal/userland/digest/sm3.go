package digest

import (
	"encoding/binary"
	"hash"
	"math/bits"
)

// sm3 is the digest of GB/T 32905-2016.
type sm3 struct {
	state [8]uint32
	block [64]byte
	n     int // of block
	size  uint64
}

func newSM3() hash.Hash {
	d := &sm3{}
	d.Reset()
	return d
}

func (d *sm3) Reset() {
	*d = sm3{state: [8]uint32{0x7380166f, 0x4914b2b9, 0x172442d7, 0xda8a0600, 0xa96f30bc, 0x163138aa, 0xe38dee4d, 0xb0fb0e4e}}
}

func (d *sm3) Size() int { return 32 }

func (d *sm3) BlockSize() int { return 64 }

func (d *sm3) Write(p []byte) (int, error) {
	all := len(p)
	d.size += uint64(all)
	for len(p) > 0 {
		n := copy(d.block[d.n:], p)
		p = p[n:]
		if d.n += n; d.n == len(d.block) {
			d.mix()
			d.n = 0
		}
	}
	return all, nil
}

func (d *sm3) Sum(to []byte) []byte {
	e := *d
	bitCount := e.size * 8
	pad := make([]byte, 1, 72)
	pad[0] = 0x80
	for (e.n+len(pad))%64 != 56 {
		pad = append(pad, 0)
	}
	_, _ = e.Write(binary.BigEndian.AppendUint64(pad, bitCount))
	for _, s := range e.state {
		to = binary.BigEndian.AppendUint32(to, s)
	}
	return to
}

// mix takes in a block.
func (d *sm3) mix() {
	var w [68]uint32
	for i := range 16 {
		w[i] = binary.BigEndian.Uint32(d.block[4*i:])
	}
	for i := 16; i < 68; i++ {
		x := w[i-16] ^ w[i-9] ^ bits.RotateLeft32(w[i-3], 15)
		x ^= bits.RotateLeft32(x, 15) ^ bits.RotateLeft32(x, 23)
		w[i] = x ^ bits.RotateLeft32(w[i-13], 7) ^ w[i-6]
	}
	s := d.state
	for i := range 64 {
		t := uint32(0x79cc4519)
		ff, gg := s[0]^s[1]^s[2], s[4]^s[5]^s[6]
		if i >= 16 {
			t = 0x7a879d8a
			ff = s[0]&s[1] | s[0]&s[2] | s[1]&s[2]
			gg = s[4]&s[5] | ^s[4]&s[6]
		}
		a := bits.RotateLeft32(s[0], 12)
		ss1 := bits.RotateLeft32(a+s[4]+bits.RotateLeft32(t, i%32), 7)
		tt1 := ff + s[3] + (ss1 ^ a) + (w[i] ^ w[i+4])
		tt2 := gg + s[7] + ss1 + w[i]
		s = [8]uint32{tt1, s[0], bits.RotateLeft32(s[1], 9), s[2], tt2 ^ bits.RotateLeft32(tt2, 9) ^ bits.RotateLeft32(tt2, 17), s[4],
			bits.RotateLeft32(s[5], 19), s[6]}
	}
	for i := range s {
		d.state[i] ^= s[i]
	}
}
