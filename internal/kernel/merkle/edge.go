package merkle

import (
	"context"
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"

	"agentbox/internal/domain/id"
)

// Edge is the right edge of a tree: the few hashes that it takes to add leaves and to tell the root. The zero Edge is that of an empty
// tree.
type Edge struct {
	size  uint64
	nodes []Hash // of the complete subtrees, the largest first: one for each bit of size that is set
}

// Size returns how many leaves the tree has.
func (e *Edge) Size() uint64 { return e.size }

// Add appends a leaf, and appends to dst the hashes that this completes: the leaf and the subtrees that end with it, in the order of
// tlog.StoredHashIndex.
func (e *Edge) Add(leaf Hash, dst []Hash) []Hash {
	dst = append(dst, leaf)
	node := leaf
	for n := e.size; n&1 != 0; n >>= 1 {
		last := len(e.nodes) - 1
		node = tlog.NodeHash(e.nodes[last], node)
		e.nodes = e.nodes[:last]
		dst = append(dst, node)
	}
	e.nodes = append(e.nodes, node)
	e.size++
	return dst
}

// Root returns the hash of the tree; that of a tree without leaves is the SHA-256 of nothing.
func (e *Edge) Root() Hash {
	if len(e.nodes) == 0 {
		return emptyRoot()
	}
	root := e.nodes[len(e.nodes)-1]
	for i := len(e.nodes) - 2; i >= 0; i-- {
		root = tlog.NodeHash(e.nodes[i], root)
	}
	return root
}

func emptyRoot() Hash {
	root, err := tlog.TreeHash(0, nil)
	if err != nil {
		panic(fmt.Sprintf("merkle: the hash of an empty tree: %v", err)) // nothing is read for it
	}
	return root
}

// EdgeAt reads the edge of a tree as it was at a size.
func EdgeAt(ctx context.Context, s Store, ws id.Workspace, size uint64) (Edge, error) {
	e := Edge{size: size}
	var indexes []int64
	for from, left := int64(0), size; left != 0; {
		level := bits.Len64(left) - 1
		indexes = append(indexes, tlog.StoredHashIndex(level, from>>level))
		from += 1 << level
		left &^= 1 << level
	}
	if len(indexes) == 0 {
		return e, nil
	}
	nodes, err := s.ReadHashes(ctx, ws, indexes)
	e.nodes = nodes
	return e, err
}
