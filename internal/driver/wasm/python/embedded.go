package python

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"io"
	"io/fs"

	"agentbox/internal/domain/fault"
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

// Runtime is the interpreter, a WebAssembly reactor, and its library, an archive.
type Runtime struct {
	Module  []byte
	Library []byte
}

// Load returns the interpreter that this build holds, or a fault that says how to build it.
func Load() (*Runtime, error) {
	module, err := unpack("embedded/python.wasm.gz")
	if err != nil {
		return nil, err
	}
	library, err := unpack("embedded/python.zip.gz")
	if err != nil {
		return nil, err
	}
	return &Runtime{Module: module, Library: library}, nil
}

func unpack(name string) ([]byte, error) {
	packed, err := embedded.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Unavailable, "runtime_unavailable",
			"this build of agentbox holds no Python for nano spaces; build it with `make nano` and then `make build`")
	}
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "runtime_damaged", "the Python that this build holds is damaged; run `make nano` and then `make build`")
	}
	b, err := io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	if err != nil || len(b) > maxUnpacked {
		return nil, fault.Wrap(err, fault.Internal, "runtime_damaged", "the Python that this build holds is damaged; run `make nano` and then `make build`")
	}
	return b, nil
}
