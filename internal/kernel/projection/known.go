package projection

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"agentbox/internal/domain/id"
)

// Bounds of what Known keeps.
const (
	maxKnown     = 1_024
	maxKnownBody = 16 << 10
)

// Known reads documents of one type and parses the same bytes once. It reads the document from the store each time, so that a change shows
// at once. It caches only the parsed value. The value is shared: callers must not change it. The zero value is ready, and any goroutine may
// call its methods.
type Known[T any] struct {
	mu   sync.RWMutex // guards docs
	docs map[Ref]parsed[T]
}

type parsed[T any] struct {
	body []byte
	doc  T
}

// Load returns a document and its version. ErrNotFound means that there is none.
func (k *Known[T]) Load(ctx context.Context, r Reader, ws id.Workspace, name, key string) (T, uint64, error) {
	d, err := Lend(ctx, r, ws, name, key)
	if err != nil {
		var none T
		return none, 0, err
	}
	ref := Ref{Workspace: ws, Name: name, Key: key}
	k.mu.RLock()
	found, ok := k.docs[ref]
	k.mu.RUnlock()
	if ok && bytes.Equal(found.body, d.Body) {
		return found.doc, d.Version, nil
	}
	doc, err := k.parse(ref, d.Body)
	return doc, d.Version, err
}

// parse decodes a document and keeps the value.
func (k *Known[T]) parse(ref Ref, body []byte) (doc T, err error) {
	if err := json.Unmarshal(body, &doc); err != nil {
		return doc, fmt.Errorf("read document %s %s: %w", ref.Name, ref.Key, err)
	}
	if len(body) > maxKnownBody {
		return doc, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.docs == nil || len(k.docs) >= maxKnown {
		k.docs = map[Ref]parsed[T]{}
	}
	k.docs[ref] = parsed[T]{slices.Clone(body), doc}
	return doc, nil
}
