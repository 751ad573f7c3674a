// Package blob is the contract of content that is too large for an event: bytes stored under their hash.
package blob

import (
	"context"
	"io"

	"agentbox/internal/domain/content"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
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

// Store keeps content. After Put has returned, the content is durable and does not change, until a sweep finds that nothing names it. The
// conformance suite is package blobtest.
type Store interface {
	// Put stores what r yields, at most max bytes of it; more is ErrTooLarge and nothing is stored.
	Put(ctx context.Context, r io.Reader, max int64) (Ref, error)
	// Open returns the content; the caller closes it. Open content can be read to its end, even if it is swept meanwhile.
	Open(ctx context.Context, d event.Digest) (io.ReadSeekCloser, error)
	// Forget destroys contents for good. After that, nobody can read them, here or in an earlier copy of this store. Content that is not
	// stored is forgotten too, wherever it is sealed by its hash. The same content can be put again.
	Forget(ctx context.Context, contents ...event.Digest) error
	// Hold protects later puts from the sweep until release is called, once. A caller that puts content and records its name afterwards holds
	// it in between.
	Hold() (release func())
	// Survey counts the content that a sweep would free now. It changes nothing.
	Survey(ctx context.Context, mark Mark) (content.Freed, error)
	// Sweep removes content that neither the mark names nor a hold protects, by a permit for content.sweep. After a crash the next sweep
	// continues.
	Sweep(ctx context.Context, p policy.Permit, mark Mark) (content.Freed, error)
}

// Mark calls named for all content that is named anywhere. A sweep calls it once, after it noted the held content. Named content that Mark
// misses is lost, so Mark fails if it cannot read everything.
type Mark func(ctx context.Context, named func(event.Digest)) error
