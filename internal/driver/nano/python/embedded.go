package python

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"

	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/nano/wasm"
)

// embedded holds README.md and, after `make nano`, the interpreter and its library.
//
//go:embed embedded
var embedded embed.FS

// boot is the guest's side of the protocol.
//
//go:embed boot.py
var boot []byte

// maxUnpacked bounds what a packed file becomes; both are a tenth of it.
const maxUnpacked = 128 << 20

// The packed files.
const (
	packedModule  = "embedded/python.wasm.gz"
	packedLibrary = "embedded/python.zip.gz"
)

// Runtime is the interpreter, a WebAssembly reactor, and its library, an archive.
type Runtime struct {
	Module   []byte
	Library  []byte
	Prepared *wasm.Prepared // what engine.Prepare made of Module, which is not needed then; nil for nothing
}

// Key tells the interpreter that this build holds, with its library and its boot script, from that of another build, without unpacking
// them: by what packed files say of their content at their end, a checksum and its length. It fails as Load does.
func Key() (key [8]byte, err error) {
	h := sha256.New()
	h.Write(boot)
	for _, name := range []string{packedModule, packedLibrary} {
		f, err := embedded.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return key, errNone()
		}
		if err != nil {
			return key, err
		}
		end := make([]byte, 8)
		n, err := f.(io.Seeker).Seek(int64(-len(end)), io.SeekEnd)
		if err == nil {
			_, err = io.ReadFull(f, end)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return key, err
		}
		h.Write(binary.LittleEndian.AppendUint64(end, uint64(n)))
	}
	copy(key[:], h.Sum(nil))
	return key, nil
}

func errNone() error {
	return fault.New(fault.Unavailable, "runtime_unavailable",
		"this build of agentbox holds no Python for nano spaces; build it with `make nano` and then `make build`")
}

// Load returns the interpreter that this build holds, or a fault that says how to build it.
func Load() (*Runtime, error) {
	module, err := unpack(packedModule)
	if err != nil {
		return nil, err
	}
	library, err := unpack(packedLibrary)
	if err != nil {
		return nil, err
	}
	return &Runtime{Module: module, Library: library}, nil
}

func unpack(name string) ([]byte, error) {
	packed, err := embedded.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNone()
	}
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "runtime_damaged",
			"the Python that this build holds is damaged; run `make nano` and then `make build`")
	}
	b, err := io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	if err != nil || len(b) > maxUnpacked {
		return nil, fault.Wrap(err, fault.Internal, "runtime_damaged",
			"the Python that this build holds is damaged; run `make nano` and then `make build`")
	}
	return b, nil
}
