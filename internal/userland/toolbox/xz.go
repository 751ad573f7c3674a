package toolbox

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"

	"github.com/ulikunitz/xz/lzma"

	"agentbox/internal/userland/program"
)

// maxXZDictionary is the largest dictionary that is unpacked, which xz -9 writes. A file of a few bytes may demand 4 GiB.
const maxXZDictionary = 64 << 20

// Gas costs of unpacking.
const (
	gasPerXZ       = 60  // of a byte that comes out
	gasPerXZHeader = 500 // of a block or a stream, beside the bytes of its dictionary
)

const xzMagic = "\xfd7zXZ\x00"

var (
	errXZFormat  = errors.New("File format not recognized")
	errXZCorrupt = errors.New("Compressed data is corrupt")
	errXZEnd     = errors.New("Unexpected end of input")
)

// unxz unpacks for a program, which pays for it. It reads the header of each block before it makes the block's dictionary, because the
// library makes one of any size that a header demands.
type unxz struct {
	p  *program.Process
	in *bufio.Reader
	n  int64 // bytes that were read

	failed  error // why it cannot go on
	streams int
	flags   [2]byte // of the stream
	open    bool    // within a stream

	block        *lzma.Reader2 // nil between blocks
	held         int
	check        hash.Hash // nil where there is none
	header, from int64     // length of the header of the block, and where its data begin
	packed, size int64     // what the header says of them, -1 where it says nothing
	out          int64     // bytes that came out of the block

	blocks  uint64    // blocks that were read
	records hash.Hash // over their sizes
}

func newUnxz(p *program.Process, in io.Reader) *unxz { return &unxz{p: p, in: bufio.NewReader(in)} }

// packedBytes reads and counts.
type packedBytes struct{ u *unxz }

func (c packedBytes) Read(b []byte) (int, error) {
	n, err := c.u.in.Read(b)
	c.u.n += int64(n)
	c.u.p.Charge(n * gasPerPacked)
	return n, err
}

func (c packedBytes) ReadByte() (byte, error) {
	b, err := c.u.in.ReadByte()
	if err == nil {
		c.u.n++
	}
	return b, err
}

// Close gives back what is held.
func (u *unxz) Close() error {
	u.p.Drop(u.held)
	u.held, u.block = 0, nil
	return nil
}

func (u *unxz) Read(b []byte) (int, error) {
	if u.failed != nil {
		return 0, u.failed
	}
	n, err := u.read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		u.failed = err
	}
	return n, err
}

func (u *unxz) read(b []byte) (int, error) {
	for len(b) > 0 {
		switch {
		case !u.open:
			if err := u.stream(); err != nil {
				return 0, err
			}
		case u.block == nil:
			if err := u.next(); err != nil {
				return 0, broken(err)
			}
		default:
			n, err := u.block.Read(b)
			u.p.Charge(n * gasPerXZ)
			u.out += int64(n)
			if u.check != nil {
				_, _ = u.check.Write(b[:n])
			}
			switch {
			case errors.Is(err, io.EOF):
				err = u.end()
			case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
				err = errXZCorrupt
			}
			if n > 0 || err != nil {
				return n, broken(err)
			}
		}
	}
	return 0, nil
}

// broken says what an end in the middle means.
func broken(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errXZEnd
	}
	return err
}

func (u *unxz) bytes(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(packedBytes{u}, b)
	return b, err
}

// stream reads the header of a stream, and the zeros before it; io.EOF where none follows.
func (u *unxz) stream() error {
	u.p.Charge(gasPerXZHeader)
	head, err := u.bytes(4)
	for u.streams > 0 && err == nil && bytes.Equal(head, make([]byte, 4)) {
		head, err = u.bytes(4)
	}
	switch {
	case errors.Is(err, io.EOF) && u.streams > 0:
		return io.EOF
	case err != nil && (u.streams > 0 || len(head) > 0 && string(head[:1]) == xzMagic[:1]):
		return broken(err)
	case err != nil:
		return errXZFormat
	}
	unknown := errXZFormat
	if u.streams > 0 {
		unknown = errXZCorrupt
	}
	if string(head) != xzMagic[:4] {
		return unknown
	}
	rest, err := u.bytes(8)
	if err != nil {
		return broken(err)
	}
	if head = append(head, rest...); string(head[:6]) != xzMagic {
		return unknown
	}
	if crc32.ChecksumIEEE(head[6:8]) != binary.LittleEndian.Uint32(head[8:]) {
		return errXZCorrupt
	}
	if _, _, ok := checkOf(head[7]); head[6] != 0 || !ok {
		return errors.New("Unsupported options")
	}
	u.streams++
	u.open, u.flags, u.blocks, u.records = true, [2]byte(head[6:8]), 0, sha256.New()
	return nil
}

// checkOf returns the check of a stream by its number, and the length of it.
func checkOf(kind byte) (sum hash.Hash, length int, ok bool) {
	switch kind {
	case 0:
		return nil, 0, true
	case 1:
		return crc32.NewIEEE(), 4, true
	case 4:
		return crc64.New(crc64.MakeTable(crc64.ECMA)), 8, true
	case 10:
		return sha256.New(), 32, true
	}
	return nil, 0, false
}

// next begins the next block, or ends the stream.
func (u *unxz) next() error {
	u.p.Charge(gasPerXZHeader)
	begin := u.n
	length, err := packedBytes{u}.ReadByte()
	if err != nil {
		return err
	}
	if length == 0 {
		return u.index(begin)
	}
	rest, err := u.bytes((int(length)+1)*4 - 1)
	if err != nil {
		return err
	}
	h := append([]byte{length}, rest...)
	end := len(h) - 4
	if crc32.ChecksumIEEE(h[:end]) != binary.LittleEndian.Uint32(h[end:]) || h[1]&0x3c != 0 {
		return errXZCorrupt
	}
	fields := bytes.NewReader(h[2:end])
	u.packed, u.size = -1, -1
	for _, f := range []struct {
		bit byte
		to  *int64
	}{{0x40, &u.packed}, {0x80, &u.size}} {
		if h[1]&f.bit != 0 {
			v, err := binary.ReadUvarint(fields)
			if err != nil || v>>62 != 0 {
				return errXZCorrupt
			}
			*f.to = int64(v)
		}
	}
	filter := make([]byte, 3) // LZMA2, the length of what it is told, and its dictionary
	if _, err := io.ReadFull(fields, filter); err != nil {
		return errXZCorrupt
	}
	if h[1]&3 != 0 || filter[0] != 0x21 || filter[1] != 1 {
		u.p.Lack(program.LackFeature, "xz filters")
		return errors.New("Unsupported filter: only LZMA2 is supported here")
	}
	dictionary, err := lzma.DecodeDictCap(filter[2])
	if err != nil {
		return errXZCorrupt
	}
	if dictionary > maxXZDictionary {
		u.p.Lack(program.LackFeature, "large xz dictionaries")
		return fmt.Errorf("the file needs a dictionary of %d bytes; at most %d are supported here: pack it with xz -9 or less", dictionary,
			int64(maxXZDictionary))
	}
	u.p.Hold(int(dictionary))
	u.held = int(dictionary)
	u.p.Charge(u.held)
	u.check, _, _ = checkOf(u.flags[1])
	u.header, u.from, u.out = int64(len(h)), u.n, 0
	u.block, err = lzma.Reader2Config{DictCap: u.held}.NewReader2(packedBytes{u})
	return err
}

// end reads what is behind a block.
func (u *unxz) end() error {
	packed := u.n - u.from
	_ = u.Close()
	if u.packed >= 0 && packed != u.packed || u.size >= 0 && u.out != u.size {
		return errXZCorrupt
	}
	padding, err := u.bytes(int(-packed & 3))
	if err != nil {
		return err
	}
	_, length, _ := checkOf(u.flags[1])
	sum, err := u.bytes(length)
	if err != nil {
		return err
	}
	if len(bytes.Trim(padding, "\x00")) > 0 || u.check != nil && !bytes.Equal(sum, stored(u.check)) {
		return errXZCorrupt
	}
	u.blocks++
	note(u.records, uint64(u.header+packed)+uint64(length), uint64(u.out))
	return nil
}

// stored is a sum as the file holds it: the CRCs have their lowest byte first.
func stored(h hash.Hash) []byte {
	switch h := h.(type) {
	case hash.Hash64:
		return binary.LittleEndian.AppendUint64(nil, h.Sum64())
	case hash.Hash32:
		return binary.LittleEndian.AppendUint32(nil, h.Sum32())
	}
	return h.Sum(nil)
}

// note takes the sizes of a block into a sum.
func note(h hash.Hash, unpadded, size uint64) {
	_, _ = h.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, unpadded), size))
}

// index reads the list of the blocks and the end of the stream. The list begins at the byte begin.
func (u *unxz) index(begin int64) error {
	sum := crc32.NewIEEE()
	_, _ = sum.Write([]byte{0})
	summed := &summing{u: u, sum: sum}
	count, err := binary.ReadUvarint(summed)
	if err != nil {
		return broken(err)
	}
	if count != u.blocks {
		return errXZCorrupt
	}
	found := sha256.New()
	for range count {
		u.p.Charge(gasPerXZHeader)
		unpadded, err1 := binary.ReadUvarint(summed)
		size, err2 := binary.ReadUvarint(summed)
		if err := errors.Join(err1, err2); err != nil {
			return broken(err)
		}
		note(found, unpadded, size)
	}
	for (u.n-begin)&3 != 0 {
		if b, err := summed.ReadByte(); err != nil || b != 0 {
			return errors.Join(err, errXZCorrupt)
		}
	}
	length := u.n + 4 - begin
	tail, err := u.bytes(16) // the sum of the index, and the footer
	if err != nil {
		return err
	}
	footer := tail[4:]
	if binary.LittleEndian.Uint32(tail) != sum.Sum32() || !bytes.Equal(found.Sum(nil), u.records.Sum(nil)) ||
		crc32.ChecksumIEEE(footer[4:10]) != binary.LittleEndian.Uint32(footer) || string(footer[10:]) != "YZ" ||
		(int64(binary.LittleEndian.Uint32(footer[4:]))+1)*4 != length || [2]byte(footer[8:10]) != u.flags {
		return errXZCorrupt
	}
	u.open = false
	return nil
}

// summing reads bytes into a sum.
type summing struct {
	u   *unxz
	sum hash.Hash
}

func (s *summing) ReadByte() (byte, error) {
	b, err := packedBytes{s.u}.ReadByte()
	if err == nil {
		_, _ = s.sum.Write([]byte{b})
	}
	return b, err
}
