// Package vaulttest is the conformance suite of key stores.
package vaulttest

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"sync"
	"testing"

	"agentbox/internal/kernel/vault"
)

const tree = "events/ws_dev"

// Run tests the key store that open makes. A non-nil reopen drops that store and opens it again on the same medium.
func Run(t *testing.T, open func(t *testing.T) vault.Keys, reopen func(t *testing.T, k vault.Keys) vault.Keys) {
	t.Run("a leaf has one key, and no two have the same", func(t *testing.T) {
		k := open(t)
		g := plant(t, k, tree)
		keys := map[[vault.KeyBytes]byte]string{}
		for _, name := range []string{tree, "events/ws_other", "blobs"} {
			other := plant(t, k, name)
			for _, leaf := range []uint64{0, 1, 2, 255, 256, 257, 1 << 40, math.MaxUint64 - 1, math.MaxUint64} {
				key := must(t, k, name, other, leaf)
				at := fmt.Sprintf("%s %d", name, leaf)
				if before, twice := keys[key]; twice {
					t.Errorf("%s has the key of %s", at, before)
				}
				keys[key] = at
				if again := must(t, k, name, other, leaf); again != key {
					t.Errorf("%s has another key the second time", at)
				}
			}
		}
		if again := plant(t, k, tree); again != g {
			t.Errorf("planted again: generation %x, want %x", again, g)
		}
	})
	t.Run("a forgotten leaf has no key and its neighbours keep theirs", func(t *testing.T) {
		k := open(t)
		g := plant(t, k, tree)
		gone := []uint64{0, 7, 8, 9, 300, 1 << 63, math.MaxUint64}
		var leaves []uint64
		for _, leaf := range gone {
			leaves = append(leaves, leaf-1, leaf, leaf+1)
		}
		leaves = append(leaves, 4, 5, 1<<20)
		was := map[uint64][vault.KeyBytes]byte{}
		for _, leaf := range leaves {
			was[leaf] = must(t, k, tree, g, leaf)
		}
		forgotten := map[uint64]bool{}
		hold := func(t *testing.T, k vault.Keys) {
			t.Helper()
			for _, leaf := range leaves {
				key, err := k.Key(tree, g, leaf)
				if holds := k.Holds(tree, g, leaf); !errors.Is(holds, err) {
					t.Errorf("leaf %d: Key says %v, Holds %v", leaf, err, holds)
				}
				if forgotten[leaf] {
					if !errors.Is(err, vault.ErrForgotten) || key != ([vault.KeyBytes]byte{}) {
						t.Errorf("forgotten leaf %d: %x, %v", leaf, key, err)
					}
				} else if err != nil || key != was[leaf] {
					t.Errorf("leaf %d: %x, %v; want %x", leaf, key, err, was[leaf])
				}
			}
		}
		for i, leaf := range gone {
			forgotten[leaf] = true
			if err := k.Forget(tree, gone[:i+1]...); err != nil { // forgetting twice is not a harm
				t.Fatal(err)
			}
			hold(t, k)
		}
		if reopen != nil {
			hold(t, reopen(t, k))
		}
	})
	t.Run("a range is forgotten as a whole", func(t *testing.T) {
		k := open(t)
		g := plant(t, k, tree)
		var leaves []uint64
		for leaf := uint64(100); leaf < 1_124; leaf++ {
			leaves = append(leaves, leaf)
		}
		before, after := must(t, k, tree, g, 99), must(t, k, tree, g, 1_124)
		if err := k.Forget(tree, leaves...); err != nil {
			t.Fatal(err)
		}
		for _, leaf := range leaves {
			if _, err := k.Key(tree, g, leaf); !errors.Is(err, vault.ErrForgotten) {
				t.Fatalf("leaf %d: %v", leaf, err)
			}
		}
		if must(t, k, tree, g, 99) != before || must(t, k, tree, g, 1_124) != after {
			t.Error("the keys beside the range have changed")
		}
	})
	t.Run("what is not here is missing, not forgotten", func(t *testing.T) {
		k := open(t)
		if _, err := k.Key(tree, 1, 1); !errors.Is(err, vault.ErrMissing) {
			t.Errorf("a key of a tree that was never planted: %v", err)
		}
		if err := k.Forget(tree, 1); err != nil {
			t.Errorf("forget a leaf of a tree that is not here: %v", err)
		}
		g := plant(t, k, tree)
		if _, err := k.Key(tree, g+1, 1); !errors.Is(err, vault.ErrMissing) {
			t.Errorf("a key of another generation: %v", err)
		}
		must(t, k, tree, g, 1)
	})
	t.Run("names are bounded", func(t *testing.T) {
		k := open(t)
		plant(t, k, strings.Repeat("a", vault.MaxNameBytes))
		for _, name := range []string{"", strings.Repeat("a", vault.MaxNameBytes+1), "a.b", "../a", "a\x00", "ä"} {
			if _, err := k.Plant(name); err == nil {
				t.Errorf("%.20q names a tree", name)
			}
		}
	})
	t.Run("many ask at once", func(t *testing.T) {
		k := open(t)
		g := plant(t, k, tree)
		want := must(t, k, tree, g, 5)
		var asking sync.WaitGroup
		for worker := range 4 {
			asking.Go(func() {
				for i := range uint64(500) {
					if i == 250 && worker == 0 {
						if err := k.Forget(tree, 1_000_000); err != nil {
							t.Error(err)
						}
					}
					if _, err := k.Key(tree, g, bits.Reverse64(i)+uint64(worker)); err != nil {
						t.Error(err)
					}
					if key, err := k.Key(tree, g, 5); err != nil || key != want {
						t.Errorf("leaf 5: %x, %v", key, err)
					}
				}
			})
		}
		asking.Wait()
	})
	if reopen == nil {
		return
	}
	t.Run("what was planted is there after a restart", func(t *testing.T) {
		k := open(t)
		g := plant(t, k, tree)
		want := must(t, k, tree, g, 42)
		k = reopen(t, k)
		if again := plant(t, k, tree); again != g {
			t.Errorf("generation %x after a restart, want %x", again, g)
		}
		if got := must(t, k, tree, g, 42); got != want {
			t.Error("another key after a restart")
		}
	})
}

func plant(t *testing.T, k vault.Keys, name string) vault.Generation {
	t.Helper()
	g, err := k.Plant(name)
	if err != nil || g == 0 {
		t.Fatalf("plant %s: generation %x, %v", name, g, err)
	}
	return g
}

func must(t *testing.T, k vault.Keys, name string, g vault.Generation, leaf uint64) [vault.KeyBytes]byte {
	t.Helper()
	key, err := k.Key(name, g, leaf)
	if err != nil {
		t.Fatalf("key of leaf %d of %s: %v", leaf, name, err)
	}
	return key
}
