package meter

import (
	"encoding/binary"
	"unicode/utf8"
)

// reader reads the binary format. After the first error it stands at its end and reads nothing but zeroes, so that callers look at err only
// where they loop or act.
type reader struct {
	b   []byte
	off int
	at  int // where b begins in the module, for messages
	err error
}

// fail keeps the first error.
func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.off = len(r.b)
}

func (r *reader) malformed(what string) { r.fail(malformed("%s at byte %d", what, r.at+r.off)) }

func (r *reader) left() int { return len(r.b) - r.off }

func (r *reader) byte() byte {
	if r.off >= len(r.b) {
		r.malformed("it ends too early")
		return 0
	}
	c := r.b[r.off]
	r.off++
	return c
}

func (r *reader) bytes(n uint32) []byte {
	if int64(n) > int64(r.left()) {
		r.malformed("it ends too early")
		return nil
	}
	b := r.b[r.off : r.off+int(n) : r.off+int(n)]
	r.off += int(n)
	return b
}

// u32 reads an unsigned LEB128 of at most 32 bits.
func (r *reader) u32() uint32 {
	if r.off < len(r.b) && r.b[r.off] < 0x80 { // by far the most
		r.off++
		return uint32(r.b[r.off-1])
	}
	var v uint32
	for shift := 0; ; shift += 7 {
		c := r.byte()
		if r.err != nil {
			return 0
		}
		if shift == 28 && c > 0x0f {
			r.malformed("a number has more than 32 bits")
			return 0
		}
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
}

// signed reads a signed LEB128 of at most the given number of bits.
func (r *reader) signed(bits int) int64 {
	var v int64
	for shift := 0; ; shift += 7 {
		c := r.byte()
		if r.err != nil {
			return 0
		}
		v |= int64(c&0x7f) << shift
		if shift+7 >= bits { // the last byte: what is beyond the bits repeats the sign
			if c >= 0x80 || !extends(c, bits-shift) {
				r.malformed("a number has too many bits")
				return 0
			}
			return v << (64 - bits) >> (64 - bits)
		}
		if c < 0x80 {
			return v << (57 - shift) >> (57 - shift)
		}
	}
}

// extends reports whether the bits of a last byte from the number's sign upwards are all equal.
func extends(c byte, used int) bool {
	high := (c & 0x7f) >> (used - 1)
	return high == 0 || high == byte(0x7f)>>(used-1)
}

// count reads the length of a vector whose items have at least one byte each, so that no allocation outgrows the module.
func (r *reader) count(most int, what string) int {
	n := r.u32()
	if r.err != nil {
		return 0
	}
	if int64(n) > int64(most) {
		r.fail(tooLarge("%d %s, and at most %d are taken", n, what, most))
		return 0
	}
	if int64(n) > int64(r.left()) {
		r.malformed("a vector is longer than its section")
		return 0
	}
	return int(n)
}

func (r *reader) name() string {
	n := r.u32()
	if n > MaxNameLength && r.err == nil {
		r.fail(tooLarge("a name of %d bytes, and at most %d are taken", n, MaxNameLength))
	}
	b := r.bytes(n)
	if !utf8.Valid(b) {
		r.malformed("a name is not UTF-8")
	}
	return string(b)
}

// since returns the bytes that were read from a place on.
func (r *reader) since(off int) []byte {
	if r.err != nil {
		return nil
	}
	return r.b[off:r.off:r.off]
}

func appendU32(b []byte, v uint32) []byte { return binary.AppendUvarint(b, uint64(v)) }

// appendSigned appends a signed LEB128.
func appendSigned(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && c&0x40 == 0) || (v == -1 && c&0x40 != 0) {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func appendName(b []byte, name string) []byte {
	return append(appendU32(b, uint32(len(name))), name...)
}

// appendSection appends a section with the given content.
func appendSection(b []byte, id byte, content []byte) []byte {
	b = append(b, id)
	b = appendU32(b, uint32(len(content)))
	return append(b, content...)
}
