package vault_test

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"

	"agentbox/internal/kernel/vault"
)

// A tree without some leaves gives every other key, whatever the order in which it lost them, and reads back from its bytes.
func TestTreeForgetsWhatItIsToldAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		leaf := rapid.OneOf(rapid.Uint64Range(0, 600), rapid.Uint64Range(math.MaxUint64-600, math.MaxUint64), rapid.Uint64())
		gone := rapid.SliceOfN(leaf, 0, 40).Draw(t, "gone")
		asked := append(rapid.SliceOfN(leaf, 1, 40).Draw(t, "asked"), gone...)
		whole, punctured := vault.NewTree([32]byte{1}), vault.NewTree([32]byte{1})
		half := rapid.IntRange(0, len(gone)).Draw(t, "half")
		punctured = punctured.Without(gone[:half]).Without(gone[half:])
		at := vault.NewTree([32]byte{1}).Without(gone)
		if !bytes.Equal(at.Append(nil), punctured.Append(nil)) {
			t.Fatal("forgotten in two steps it is another tree than in one")
		}
		read, err := vault.Parse(punctured.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		forgotten := map[uint64]bool{}
		for _, l := range gone {
			forgotten[l] = true
		}
		for _, l := range asked {
			want, _ := whole.Key(l)
			got, ok := read.Key(l)
			if ok == forgotten[l] || ok != read.Holds(l) || ok && got != want {
				t.Fatalf("leaf %d: %x, %v; want %x, forgotten %v", l, got, ok, want, forgotten[l])
			}
		}
	})
}

func TestARangeCostsItsTwoEnds(t *testing.T) {
	var leaves []uint64
	for leaf := uint64(1); leaf <= 10_000; leaf++ {
		leaves = append(leaves, leaf)
	}
	if nodes := (len(vault.NewTree([32]byte{}).Without(leaves).Append(nil)) - 8) / 41; nodes > 2*64 {
		t.Errorf("10,000 adjacent leaves leave %d nodes, want at most 128", nodes)
	}
}

func TestAWipedTreeHasNoKey(t *testing.T) {
	tree := vault.NewTree([32]byte{1})
	if _, ok := tree.Key(1); !ok {
		t.Fatal("no key before")
	}
	tree.Wipe()
	if _, ok := tree.Key(1); ok {
		t.Error("a key after")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(vault.NewTree([32]byte{1}).Append(nil))
	f.Add(vault.NewTree([32]byte{1}).Without([]uint64{0, 77, math.MaxUint64}).Append(nil))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		tree, err := vault.Parse(raw)
		if err == nil && !bytes.Equal(tree.Append(nil), raw) {
			t.Errorf("%x reads as another tree than it is", raw)
		}
	})
}
