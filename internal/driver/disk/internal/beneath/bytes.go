package beneath

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"agentbox/internal/domain/event"
)

// copyChunk is how many bytes are copied between two checks of the context.
const copyChunk = 256 << 10

// RandomName returns a name of 32 hexadecimal digits that nobody can guess.
func RandomName(entropy io.Reader) (string, error) {
	var raw [16]byte
	if _, err := io.ReadFull(entropy, raw[:]); err != nil {
		return "", fmt.Errorf("read random bytes: %w", err)
	}
	return hex.EncodeToString(raw[:]), nil
}

// CreateTemp makes a file with a random name in dir.
func CreateTemp(dir *Folder, entropy io.Reader) (*os.File, string, error) {
	name, err := RandomName(entropy)
	if err != nil {
		return nil, "", err
	}
	file, err := createNew(dir, name)
	if err != nil {
		return nil, "", fmt.Errorf("make a temporary file: %w", err)
	}
	return file, name, nil
}

// CopyHashed copies at most max bytes from r to w, and returns their number and their hash. It reads and counts one byte more than max to
// find out that there is more.
func CopyHashed(ctx context.Context, w io.Writer, r io.Reader, max int64) (int64, event.Digest, error) {
	hash := sha256.New()
	buf := make([]byte, min(copyChunk, max+1))
	var n int64
	for n <= max {
		if err := ctx.Err(); err != nil {
			return n, event.Digest{}, err
		}
		got, err := r.Read(buf[:min(int64(len(buf)), max+1-n)])
		n += int64(got)
		if n <= max && got > 0 {
			hash.Write(buf[:got])
			if _, err := w.Write(buf[:got]); err != nil {
				return n, event.Digest{}, err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return n, event.Digest{}, fmt.Errorf("read the content: %w", err)
		}
	}
	return n, event.Digest(hash.Sum(nil)), nil
}

// Closed closes a file that err has made useless.
func Closed(c io.Closer, err error) error {
	c.Close()
	return err
}

// ContextReader returns a reader that stops when the context ends.
func ContextReader(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

// contextReader stops reading when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// Read reads unless the context has ended.
func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
