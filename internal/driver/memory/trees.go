package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/merkle"
)

// Trees is a merkle.Store in memory.
type Trees struct {
	mu   sync.Mutex // guards of
	of   map[id.Workspace]*tree
	past []Abandoned
}

// Abandoned is a checkpoint that was put aside.
type Abandoned struct {
	Workspace id.Workspace
	Note      []byte
	Reason    string
}

type tree struct {
	note   []byte
	hashes []merkle.Hash
}

var _ merkle.Store = (*Trees)(nil)

// NewTrees returns an empty store.
func NewTrees() *Trees { return &Trees{of: map[id.Workspace]*tree{}} }

// Past returns the abandoned trees, the oldest first.
func (t *Trees) Past() []Abandoned {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.past)
}

func (t *Trees) at(ws id.Workspace) *tree {
	if t.of[ws] == nil {
		t.of[ws] = &tree{}
	}
	return t.of[ws]
}

// Workspaces implements merkle.Store.
func (t *Trees) Workspaces(ctx context.Context) ([]id.Workspace, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := slices.Sorted(maps.Keys(t.of))
	return slices.DeleteFunc(found, func(ws id.Workspace) bool { return t.of[ws].note == nil }), ctx.Err()
}

// Checkpoint implements merkle.Store.
func (t *Trees) Checkpoint(ctx context.Context, ws id.Workspace) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one := t.of[ws]; one != nil && one.note != nil {
		return slices.Clone(one.note), ctx.Err()
	}
	return nil, merkle.ErrNone
}

// Keep implements merkle.Store.
func (t *Trees) Keep(ctx context.Context, ws id.Workspace, note []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at(ws).note = slices.Clone(note)
	return ctx.Err()
}

// Stored implements merkle.Store.
func (t *Trees) Stored(ctx context.Context, ws id.Workspace) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.at(ws).hashes)), ctx.Err()
}

// ReadHashes implements merkle.Store.
func (t *Trees) ReadHashes(ctx context.Context, ws id.Workspace, indexes []int64) ([]merkle.Hash, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.at(ws)
	out := make([]merkle.Hash, len(indexes))
	for i, n := range indexes {
		if n < 0 || n >= int64(len(one.hashes)) {
			return nil, fmt.Errorf("the tree of %s has no hash %d", ws, n)
		}
		out[i] = one.hashes[n]
	}
	return out, ctx.Err()
}

// WriteHashes implements merkle.Store.
func (t *Trees) WriteHashes(ctx context.Context, ws id.Workspace, at int64, hashes []merkle.Hash) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.at(ws)
	if at > int64(len(one.hashes)) {
		return fmt.Errorf("hash %d would leave a gap behind %d", at, len(one.hashes))
	}
	one.hashes = append(slices.Clone(one.hashes[:at]), hashes...)
	return ctx.Err()
}

// Abandon implements merkle.Store.
func (t *Trees) Abandon(ctx context.Context, ws id.Workspace, reason string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.of[ws]
	if one == nil || one.note == nil {
		return merkle.ErrNone
	}
	t.past = append(t.past, Abandoned{ws, one.note, reason})
	delete(t.of, ws)
	return ctx.Err()
}
