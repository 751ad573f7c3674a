package memory

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/kernel/blob"
)

var _ blob.Store = (*Blobs)(nil)

// Blobs is a store of content in memory.
type Blobs struct {
	mu      sync.RWMutex // guards content
	content map[event.Digest][]byte
}

// NewBlobs returns an empty store.
func NewBlobs() *Blobs { return &Blobs{content: map[event.Digest][]byte{}} }

// Put implements blob.Store.
func (b *Blobs) Put(ctx context.Context, r io.Reader, maxBytes int64) (blob.Ref, error) {
	if err := ctx.Err(); err != nil {
		return blob.Ref{}, err
	}
	body, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return blob.Ref{}, fmt.Errorf("read the content: %w", err)
	}
	if int64(len(body)) > maxBytes {
		return blob.Ref{}, blob.ErrTooLarge
	}
	if err := ctx.Err(); err != nil {
		return blob.Ref{}, err
	}
	ref := blob.Ref{Digest: event.DigestOf(body), Size: int64(len(body))}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.content[ref.Digest] = body
	return ref, nil
}

// Open implements blob.Store.
func (b *Blobs) Open(ctx context.Context, d event.Digest) (io.ReadSeekCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	body, ok := b.content[d]
	if !ok {
		return nil, blob.ErrNotFound
	}
	return reader{bytes.NewReader(body)}, nil
}

type reader struct{ *bytes.Reader }

func (reader) Close() error { return nil }
