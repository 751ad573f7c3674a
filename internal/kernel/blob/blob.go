// Package blob is the contract of content that is too large for an event: bytes kept under the hash of what they are.
package blob

import (
	"context"
	"io"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
)

// The refusals of a blob store.
var (
	// ErrNotFound means that no such content is stored.
	ErrNotFound = fault.New(fault.NotFound, "content_not_found", "the content is not stored here")
	// ErrTooLarge means that the content did not fit the caller's bound.
	ErrTooLarge = fault.New(fault.Exhausted, "content_too_large", "the content is larger than permitted")
)

// Ref names stored content.
type Ref struct {
	Digest event.Digest `json:"sha256"`
	Size   int64        `json:"size_bytes"`
}

// Store keeps content. What Put has returned is durable and never changes. The conformance suite is package blobtest.
type Store interface {
	// Put stores what r yields, at most max bytes of it; more is ErrTooLarge and nothing is stored.
	Put(ctx context.Context, r io.Reader, max int64) (Ref, error)
	// Open returns the content; the caller closes it.
	Open(ctx context.Context, d event.Digest) (io.ReadSeekCloser, error)
}
