package memory

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"agentbox/internal/domain/content"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/blob"
)

var _ blob.Store = (*Blobs)(nil)

// Blobs is a store of content in memory.
type Blobs struct {
	holds   blob.Holds
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
	b.holds.Put(ref.Digest)
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

// Forget implements blob.Store.
func (b *Blobs) Forget(ctx context.Context, contents ...event.Digest) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range contents {
		delete(b.content, d)
	}
	return ctx.Err()
}

// Hold implements blob.Store.
func (b *Blobs) Hold() func() { return b.holds.Hold() }

// Survey implements blob.Store.
func (b *Blobs) Survey(ctx context.Context, mark blob.Mark) (content.Freed, error) {
	return b.sweep(ctx, mark, func(event.Digest) {})
}

// Sweep implements blob.Store.
func (b *Blobs) Sweep(ctx context.Context, p policy.Permit, mark blob.Mark) (content.Freed, error) {
	if _, err := p.Redeem(policy.ContentSweep); err != nil {
		return content.Freed{}, err
	}
	return b.sweep(ctx, mark, func(d event.Digest) {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.content, d)
	})
}

func (b *Blobs) sweep(ctx context.Context, mark blob.Mark, remove func(event.Digest)) (content.Freed, error) {
	free, end := b.holds.Sweep()
	defer end()
	var swept content.Freed
	b.mu.RLock()
	found := make(map[event.Digest]int64, len(b.content))
	for d, body := range b.content {
		found[d] = int64(len(body))
	}
	b.mu.RUnlock()
	named := map[event.Digest]bool{}
	if err := mark(ctx, func(d event.Digest) { named[d] = true }); err != nil {
		return swept, err
	}
	for d, size := range found {
		freed := false
		if !named[d] {
			freed, _ = free(d, func() error { remove(d); return nil })
		}
		swept.Count(freed, size)
	}
	return swept, nil
}

type reader struct{ *bytes.Reader }

func (reader) Close() error { return nil }
