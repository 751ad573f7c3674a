package frames

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"time"

	"agentbox/internal/kernel/livestream"
)

// A file of frames begins with frameMagic and a mark. Each frame is a head and a body. The head has 8 bytes: the length of the body and
// its CRC-32C. The body has the number, the time in microseconds since 1970, the length and text of kind and operation, and the
// content. The content is sealed after the generation of its key and a nonce. Integers are big-endian.
//
// The mark is a size of the file and its CRC-32C: the last sync covered that many bytes and the mark. Files of earlier versions keep
// their format. One that begins with unmarkedMagic has no mark. One that begins with plainMagic has no mark either, and its content is
// not sealed. The first lines differ in at least two bits, so that one flipped bit makes none of them another.
const (
	frameMagic    = "agentbox frames 4\n"
	unmarkedMagic = "agentbox frames 2\n"
	plainMagic    = "agentbox frames 1\n"
	markBytes     = 8 + 4
	frameHead     = 8
	frameFixed    = 8 + 8 + 2 + 2
	// maxBody is the longest body: what livestream.Check lets through.
	maxBody = frameFixed + 2*livestream.MaxTextBytes + livestream.MaxJSONBytes + sealedMore
)

// errTorn means that no whole frame with the right number follows.
var errTorn = errors.New("not a whole frame")

func castagnoli(body []byte) uint32 { return crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) }

// markOf returns the mark of a size.
func markOf(size int64) []byte {
	raw := binary.BigEndian.AppendUint64(make([]byte, 0, markBytes), uint64(size))
	return binary.BigEndian.AppendUint32(raw, castagnoli(raw))
}

// readMark returns the size that a mark names, and false for other bytes.
func readMark(raw []byte) (size int64, ok bool) {
	if len(raw) != markBytes || binary.BigEndian.Uint32(raw[8:]) != castagnoli(raw[:8]) {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(raw)), true
}

// appendFrame appends a frame's bytes.
func appendFrame(to []byte, f livestream.Frame) []byte {
	start := len(to)
	to = append(to, make([]byte, frameHead)...)
	to = binary.BigEndian.AppendUint64(to, f.N)
	to = binary.BigEndian.AppendUint64(to, uint64(f.At.UnixMicro()))
	for _, text := range [...]string{f.Kind, f.Operation} {
		to = binary.BigEndian.AppendUint16(to, uint16(len(text)))
		to = append(to, text...)
	}
	to = append(to, f.Data...)
	body := to[start+frameHead:]
	binary.BigEndian.PutUint32(to[start:], uint32(len(body)))
	binary.BigEndian.PutUint32(to[start+4:], castagnoli(body))
	return to
}

// readFrame reads one frame from r, of which rest bytes are left, and returns how many it took. Bytes that are not a whole frame with the
// number want is errTorn; nothing longer than rest is ever allocated.
func readFrame(r io.Reader, rest int64, want uint64) (livestream.Frame, int64, error) {
	var head [frameHead]byte
	if rest < frameHead+frameFixed {
		return livestream.Frame{}, 0, errTorn
	}
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return livestream.Frame{}, 0, torn(err)
	}
	length := int64(binary.BigEndian.Uint32(head[:]))
	if length < frameFixed || length > maxBody || length > rest-frameHead {
		return livestream.Frame{}, 0, errTorn
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return livestream.Frame{}, 0, torn(err)
	}
	f, ok := parseBody(body)
	if !ok || castagnoli(body) != binary.BigEndian.Uint32(head[4:]) || f.N != want {
		return livestream.Frame{}, 0, errTorn
	}
	return f, frameHead + length, nil
}

// parseBody reads a frame's body; the frame's content is part of it, not a copy.
func parseBody(body []byte) (livestream.Frame, bool) {
	f := livestream.Frame{
		N:  binary.BigEndian.Uint64(body),
		At: time.UnixMicro(int64(binary.BigEndian.Uint64(body[8:]))).UTC(),
	}
	rest := body[16:]
	for _, text := range [...]*string{&f.Kind, &f.Operation} {
		if len(rest) < 2 {
			return f, false
		}
		n := int(binary.BigEndian.Uint16(rest))
		if rest = rest[2:]; len(rest) < n {
			return f, false
		}
		*text, rest = string(rest[:n]), rest[n:]
	}
	f.Data = rest
	return f, true
}

func torn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTorn
	}
	return err
}
