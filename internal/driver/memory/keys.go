package memory

import (
	"fmt"
	"io"
	"sync"

	"agentbox/internal/kernel/vault"
)

var _ vault.Keys = (*Keys)(nil)

// Keys keeps trees of keys in memory, one generation of each.
type Keys struct {
	entropy io.Reader

	mu    sync.Mutex // guards trees
	trees map[string]*vault.Tree
}

// generation is the only one that a tree in memory has.
const generation vault.Generation = 1

// NewKeys returns a key store without any tree; the seeds of trees are drawn from entropy.
func NewKeys(entropy io.Reader) *Keys {
	return &Keys{entropy: entropy, trees: map[string]*vault.Tree{}}
}

// Plant implements vault.Keys.
func (k *Keys) Plant(tree string) (vault.Generation, error) {
	if err := vault.CheckName(tree); err != nil {
		return 0, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.trees[tree] == nil {
		var seed [vault.KeyBytes]byte
		if _, err := io.ReadFull(k.entropy, seed[:]); err != nil {
			return 0, fmt.Errorf("draw the keys of %s: %w", tree, err)
		}
		k.trees[tree] = vault.NewTree(seed)
	}
	return generation, nil
}

// Key implements vault.Keys.
func (k *Keys) Key(tree string, g vault.Generation, leaf uint64) ([vault.KeyBytes]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.trees[tree]
	if t == nil || g != generation {
		return [vault.KeyBytes]byte{}, vault.ErrMissing
	}
	key, ok := t.Key(leaf)
	if !ok {
		return key, vault.ErrForgotten
	}
	return key, nil
}

// Holds implements vault.Keys.
func (k *Keys) Holds(tree string, g vault.Generation, leaf uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch t := k.trees[tree]; {
	case t == nil || g != generation:
		return vault.ErrMissing
	case !t.Holds(leaf):
		return vault.ErrForgotten
	}
	return nil
}

// Forget implements vault.Keys.
func (k *Keys) Forget(tree string, leaves ...uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.trees[tree]; t != nil {
		k.trees[tree] = t.Without(leaves)
		t.Wipe()
	}
	return nil
}
