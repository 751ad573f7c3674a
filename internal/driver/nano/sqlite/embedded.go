package sqlite

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"errors"
	"io"
	"io/fs"

	"agentbox/internal/domain/fault"
)

// embedded holds README.md and, after `make nano`, the program.
//
//go:embed embedded
var embedded embed.FS

const (
	packed      = "embedded/sqlite3.wasm.gz"
	maxUnpacked = 32 << 20 // bytes; it is a tenth of it
)

// Key tells the program that this build holds from that of another build, without unpacking it. It fails as Module does.
func Key() (key [8]byte, err error) {
	b, err := embedded.ReadFile(packed)
	if errors.Is(err, fs.ErrNotExist) {
		return key, errNone()
	}
	if err != nil {
		return key, err
	}
	// A packed file ends with the checksum and the length of its content.
	sum := sha256.Sum256(b[max(0, len(b)-8):])
	copy(key[:], sum[:])
	return key, nil
}

func errNone() error {
	return fault.New(fault.Unavailable, "runtime_unavailable",
		"this build of agentbox holds no sqlite3 for nano spaces; build it with `make nano` and then `make build`")
}

// Module returns the program that this build holds, a WebAssembly module, or a fault that says how to build it.
func Module() ([]byte, error) {
	b, err := embedded.ReadFile(packed)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNone()
	}
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err == nil {
		b, err = io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	}
	if err != nil || len(b) > maxUnpacked {
		return nil, fault.Wrap(err, fault.Internal, "runtime_damaged",
			"the sqlite3 that this build holds is damaged; run `make nano` and then `make build`")
	}
	return b, nil
}
