package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/projection"
)

// Bounds of what known keeps.
const (
	maxKnown     = 1_024
	maxKnownBody = 16 << 10
)

// known reads documents of one type. The document is read from the store each time, for authority is never remembered; only what its
// bytes mean is, so that the same bytes are parsed once. What it returns is shared and not to be changed.
type known[T any] struct {
	mu   sync.RWMutex // guards docs
	docs map[projection.Ref]parsed[T]
}

type parsed[T any] struct {
	body []byte
	doc  T
}

// load returns a document and its version.
func (k *known[T]) load(ctx context.Context, r projection.Reader, ws id.Workspace, name, key string) (T, uint64, error) {
	d, err := projection.Lend(ctx, r, ws, name, key)
	if err != nil {
		var none T
		return none, 0, err
	}
	ref := projection.Ref{Workspace: ws, Name: name, Key: key}
	k.mu.RLock()
	found, ok := k.docs[ref]
	k.mu.RUnlock()
	if ok && bytes.Equal(found.body, d.Body) {
		return found.doc, d.Version, nil
	}
	doc, err := k.parse(ref, d.Body)
	return doc, d.Version, err
}

// parse reads a document and keeps what it says.
func (k *known[T]) parse(ref projection.Ref, body []byte) (doc T, err error) {
	if err := json.Unmarshal(body, &doc); err != nil {
		return doc, fmt.Errorf("read document %s %s: %w", ref.Name, ref.Key, err)
	}
	if len(body) > maxKnownBody {
		return doc, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.docs == nil || len(k.docs) >= maxKnown {
		k.docs = map[projection.Ref]parsed[T]{}
	}
	k.docs[ref] = parsed[T]{slices.Clone(body), doc}
	return doc, nil
}
