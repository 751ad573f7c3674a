package vault

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"sort"
)

// A Tree derives 2^64 keys from one seed and can lose any of them for good. It is the tree of Goldreich, Goldwasser and Micali: a hash
// derives the seeds of the two children of a node from its seed, and nothing leads back up. To forget a leaf, the tree replaces the node
// above it by the nodes beside the path to it, at most 64. They give every other key and not that one. Adjacent leaves share most of that
// path, so forgetting a range costs no more than its two ends.
//
// A Tree is not safe for concurrent use: Key caches the last paths, so that adjacent keys cost two or three hashes each.
type Tree struct {
	nodes  []node // the nodes that give the keys, in the order of their leaves; none covers another's
	blocks [keptBlocks]block
	oldest int // the block that is given up next
}

// node is a subtree that still has its seed.
type node struct {
	first uint64 // its lowest leaf
	depth uint8  // from 0, the root, to 64, a leaf
	seed  [KeyBytes]byte
}

// The way to the last leaf of each of some blocks of 256 is kept.
const (
	blockBits  = 8
	blockDepth = 64 - blockBits
	keptBlocks = 16
)

type block struct {
	kept   bool
	number uint64 // of the leaves >> blockBits
	last   uint8  // leaf within the block that way leads to
	way    [blockBits + 1][KeyBytes]byte
}

// The constants that seeds are hashed with.
const (
	toLeft = iota
	toRight
	toKey
)

func derive(seed *[KeyBytes]byte, to byte) [KeyBytes]byte {
	var text [1 + KeyBytes]byte
	text[0] = to
	copy(text[1:], seed[:])
	return sha256.Sum256(text[:])
}

// NewTree returns the tree of a random seed.
func NewTree(seed [KeyBytes]byte) *Tree {
	return &Tree{nodes: []node{{seed: seed}}}
}

// Key returns the key of a leaf; false if it was forgotten.
func (t *Tree) Key(leaf uint64) (key [KeyBytes]byte, ok bool) {
	number, within := leaf>>blockBits, uint8(leaf&(1<<blockBits-1))
	for i := range t.blocks {
		if b := &t.blocks[i]; b.kept && b.number == number {
			b.lead(within, blockBits-bits.Len8(b.last^within))
			return derive(&b.way[blockBits], toKey), true
		}
	}
	n := t.over(leaf)
	if n == nil {
		return key, false
	}
	if n.depth > blockDepth {
		// A part of the block was forgotten: there are at most eight steps to go.
		seed := descend(n.seed, leaf, n.depth, 64)
		return derive(&seed, toKey), true
	}
	b := &t.blocks[t.oldest]
	t.oldest = (t.oldest + 1) % keptBlocks
	b.kept, b.number = true, number
	b.way[0] = descend(n.seed, leaf, n.depth, blockDepth)
	b.lead(within, 0)
	return derive(&b.way[blockBits], toKey), true
}

// lead makes the way lead to a leaf of the block; its first steps are right already.
func (b *block) lead(within uint8, right int) {
	for step := right; step < blockBits; step++ {
		b.way[step+1] = derive(&b.way[step], within>>(blockBits-1-step)&1)
	}
	b.last = within
}

// descend returns the seed of the node at a depth above a leaf, from that of the node at a smaller depth.
func descend(seed [KeyBytes]byte, leaf uint64, from, to uint8) [KeyBytes]byte {
	for depth := from; depth < to; depth++ {
		seed = derive(&seed, byte(leaf>>(63-depth)&1))
	}
	return seed
}

// over returns the node that covers a leaf, nil if none does.
func (t *Tree) over(leaf uint64) *node {
	i := sort.Search(len(t.nodes), func(i int) bool { return t.nodes[i].first > leaf })
	if i == 0 || leaf > t.nodes[i-1].last() {
		return nil
	}
	return &t.nodes[i-1]
}

// last is the highest leaf below the node.
func (n *node) last() uint64 { return n.first + ^uint64(0)>>n.depth }

// Holds reports whether the key of a leaf can still be derived.
func (t *Tree) Holds(leaf uint64) bool { return t.over(leaf) != nil }

// Without returns the tree that cannot derive the keys of the given leaves. The receiver still can, until it is wiped.
func (t *Tree) Without(leaves []uint64) *Tree {
	leaves = slices.Clone(leaves)
	slices.Sort(leaves)
	less := &Tree{nodes: make([]node, 0, len(t.nodes))}
	for _, n := range t.nodes {
		low, _ := slices.BinarySearch(leaves, n.first)
		high := sort.Search(len(leaves), func(i int) bool { return leaves[i] > n.last() })
		less.puncture(n, leaves[low:high])
	}
	return less
}

// puncture adds the remaining parts of a node without some of its leaves.
func (t *Tree) puncture(n node, leaves []uint64) {
	switch {
	case len(leaves) == 0:
		t.nodes = append(t.nodes, n)
		return
	case n.depth == 64:
		return
	}
	left := node{first: n.first, depth: n.depth + 1, seed: derive(&n.seed, toLeft)}
	right := node{first: left.last() + 1, depth: n.depth + 1, seed: derive(&n.seed, toRight)}
	at, _ := slices.BinarySearch(leaves, right.first)
	t.puncture(left, leaves[:at])
	t.puncture(right, leaves[at:])
}

// Wipe overwrites every seed; the tree has no key any more.
func (t *Tree) Wipe() {
	clear(t.nodes)
	t.nodes, t.blocks = nil, [keptBlocks]block{}
}

// A tree in bytes: the number of its nodes, and each node's first leaf, depth and seed.
const nodeBytes = 8 + 1 + KeyBytes

// Append appends the tree to bytes, from which Parse reads it.
func (t *Tree) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(len(t.nodes)))
	for i := range t.nodes {
		n := &t.nodes[i]
		dst = binary.BigEndian.AppendUint64(dst, n.first)
		dst = append(dst, n.depth)
		dst = append(dst, n.seed[:]...)
	}
	return dst
}

var errTree = errors.New("these bytes are no tree of keys")

// Parse reads a tree that Append wrote, and nothing else.
func Parse(raw []byte) (*Tree, error) {
	if len(raw) < 8 || (len(raw)-8)%nodeBytes != 0 || binary.BigEndian.Uint64(raw) != uint64((len(raw)-8)/nodeBytes) {
		return nil, errTree
	}
	t := &Tree{nodes: make([]node, (len(raw)-8)/nodeBytes)}
	rest := bytes.NewBuffer(raw[8:])
	for i := range t.nodes {
		n := &t.nodes[i]
		n.first = binary.BigEndian.Uint64(rest.Next(8))
		n.depth = rest.Next(1)[0]
		copy(n.seed[:], rest.Next(KeyBytes))
		if n.depth > 64 || n.first&(^uint64(0)>>n.depth) != 0 || i > 0 && (t.nodes[i-1].last() == ^uint64(0) || n.first <= t.nodes[i-1].last()) {
			return nil, errTree
		}
	}
	return t, nil
}
