package javascript

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"agentbox/internal/userland/bound"
)

// compression is the host's part of the module zlib.
type compression struct{ run *run }

// gasPerPacked and gasPerUnpacked are the costs of compressing and unpacking a byte.
const (
	gasPerPacked   = 60
	gasPerUnpacked = 10
	gasPerBrotli   = 200
	gasPerDense    = 3000     // of brotli's two best qualities
	mostWindow     = 32 << 20 // of zstd
	denseQuality   = 10
)

// tables is the memory that a format takes beside its input.
var tables = map[string]int64{"br": 16 << 20, "zstd": mostWindow}

// unpackStep is how many bytes are unpacked between two checks of the account.
const unpackStep = 64 << 10

// pack compresses: the format is gzip, deflate (zlib's), raw, br (brotli) or zstd.
func (zl compression) pack(a *arguments) (any, error) {
	format, level := a.text(), a.int()
	data := bytes.Clone(a.bytes())
	if a.err != nil {
		return nil, a.err
	}
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	gas := int64(gasPerPacked)
	if format != "br" && format != "zstd" && (level < -1 || level > 9) {
		level = -1
	}
	switch format {
	case "br":
		if gas = gasPerBrotli; level >= denseQuality {
			gas = gasPerDense
		}
		w = brotli.NewWriterLevel(&out, level)
	case "zstd":
		w, err = zstd.NewWriter(&out, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(1<<20))
	case "gzip":
		w, err = gzip.NewWriterLevel(&out, level)
	case "deflate":
		w, err = zlib.NewWriterLevel(&out, level)
	default:
		w, err = flate.NewWriter(&out, level)
	}
	if err != nil {
		return nil, err
	}
	size := int64(len(data)) + tables[format] // what comes out is no larger, but for a head
	if err := zl.run.account.Allocate(size); err != nil {
		return nil, exhaustion(err)
	}
	defer zl.run.account.Release(size)
	for len(data) > 0 {
		n := min(len(data), unpackStep)
		if err := zl.run.account.Charge(int64(n) * gas); err != nil {
			return nil, err
		}
		if _, err := w.Write(data[:n]); err != nil {
			return nil, err
		}
		data = data[n:]
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// unpack is the other way round. It returns at most so many bytes; more is an error, as what is damaged is.
func (zl compression) unpack(a *arguments) (any, error) {
	format, most := a.text(), a.int()
	data := bytes.Clone(a.bytes())
	if a.err != nil {
		return nil, a.err
	}
	if err := zl.run.account.Allocate(tables[format]); err != nil {
		return nil, exhaustion(err)
	}
	defer zl.run.account.Release(tables[format])
	in, err := unpacker(format, data)
	if err != nil {
		return nil, damaged(format, err)
	}
	if z, ok := in.in.(*zstd.Decoder); ok {
		defer z.Close()
	}
	var out []byte
	var held int64
	defer func() { zl.run.account.Release(held) }()
	for {
		if err := zl.run.account.Charge(unpackStep * gasPerUnpacked); err != nil {
			return nil, err
		}
		if err := zl.run.account.Allocate(2 * unpackStep); err != nil { // here, and as it grows
			return nil, exhaustion(err)
		}
		held += 2 * unpackStep
		part := make([]byte, unpackStep)
		n, err := io.ReadFull(in, part)
		out = append(out, part[:n]...)
		switch {
		case len(out) > most:
			return nil, &thrown{"ERR_BUFFER_TOO_LARGE", fmt.Sprintf("Cannot create a Buffer larger than %d bytes", most)}
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF) && in.over:
			return out, nil
		case err != nil:
			return nil, damaged(format, err)
		}
	}
}

// unpacker reads what is packed. It tells by over whether it has come to its end.
func unpacker(format string, data []byte) (*ending, error) {
	if format == "either" { // gzip or zlib, as their first bytes say
		format = "deflate"
		if len(data) > 1 && data[0] == 0x1f && data[1] == 0x8b {
			format = "gzip"
		}
	}
	var in io.Reader
	var err error
	switch format {
	case "gzip":
		if len(data) >= 2 && (data[0] != 0x1f || data[1] != 0x8b) {
			return nil, gzip.ErrHeader
		}
		in, err = gzip.NewReader(bytes.NewReader(data))
	case "deflate":
		in, err = zlib.NewReader(bytes.NewReader(data))
	case "br":
		in = brotli.NewReader(bytes.NewReader(data))
	case "zstd":
		in, err = zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostWindow),
			zstd.WithDecoderLowmem(true))
	default:
		in = flate.NewReader(bytes.NewReader(data))
	}
	return &ending{in: in}, err
}

// ending is a reader that remembers whether it ended as it should: io.ReadFull tells both ends alike.
type ending struct {
	in   io.Reader
	over bool
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.in.Read(p)
	e.over = e.over || errors.Is(err, io.EOF)
	return n, err
}

// exhaustion is the error of a program whose memory is full.
func exhaustion(err error) error {
	if errors.Is(err, bound.ErrMemory) {
		return &thrown{"ERR_MEMORY_ALLOCATION_FAILED", "there is no memory left"}
	}
	return err
}

// damaged words errors of packed data as zlib does.
func damaged(format string, err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &thrown{"Z_BUF_ERROR", "unexpected end of file"}
	case format == "br":
		return &thrown{"ERR__ERROR_FORMAT_PADDING_1", "Decompression failed"}
	case errors.Is(err, zstd.ErrMagicMismatch):
		return &thrown{"ZSTD_error_prefix_unknown", "Unknown frame descriptor"}
	case format == "zstd":
		return &thrown{"ZSTD_error_corruption_detected", "Data corruption detected"}
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, zlib.ErrHeader):
		return &thrown{"Z_DATA_ERROR", "incorrect header check"}
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, zlib.ErrChecksum):
		return &thrown{"Z_DATA_ERROR", "incorrect data check"}
	}
	return &thrown{"Z_DATA_ERROR", "invalid block type"}
}

// sum returns a check sum that goes on from another one: crc32 or adler32.
func (zl compression) sum(a *arguments) (any, error) {
	name, from := a.text(), uint32(a.int())
	data := a.bytes()
	if a.err != nil {
		return nil, a.err
	}
	zl.run.p.Charge(len(data))
	if name == "adler32" {
		return float64(adler32.Checksum(data)), nil
	}
	return float64(crc32.Update(from, crc32.IEEETable, data)), nil
}
