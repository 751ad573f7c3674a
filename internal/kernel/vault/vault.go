// Package vault is the contract of the keys under which sensitive content is sealed: a key for each piece, until that piece is forgotten.
package vault

import (
	"strings"

	"agentbox/internal/domain/fault"
)

// KeyBytes is the length of a key, and of the seeds that keys are derived from.
const KeyBytes = 32

// MaxNameBytes is how long the name of a tree may be.
const MaxNameBytes = 128

// The refusals of a key store.
var (
	// ErrForgotten means that the key was destroyed: nobody can read the sealed content any more.
	ErrForgotten = fault.New(fault.NotFound, "content_forgotten", "this was redacted, and its key destroyed: nobody can read it any more")
	// ErrMissing means that the key is not here, as in a backup that was restored without its keys.
	ErrMissing = fault.New(fault.Unavailable, "keys_missing",
		"the key that opens this is not here; it lies where the log was written, in the folder keys of the data directory").
		With("bring the keys with: agentbox restore --keys PATH")
)

// Generation names one planting of a tree. A tree gets another one only if its former keys were missing, as after a restore without keys.
// So sealed content records its generation. 0 is none.
type Generation uint32

// Keys derives the key of each leaf of a named tree, until the leaf is forgotten. Methods are safe for concurrent use and Key does no
// I/O. The conformance suite is package vaulttest.
type Keys interface {
	// Plant returns the generation of a tree under which new content is sealed, and makes the tree, durably, where there is none.
	Plant(tree string) (Generation, error)
	// Key returns the key of a leaf: ErrForgotten once it was forgotten, ErrMissing where there is no such generation here.
	Key(tree string, g Generation, leaf uint64) ([KeyBytes]byte, error)
	// Holds says what Key would say of a leaf, at a hundredth of the cost.
	Holds(tree string, g Generation, leaf uint64) error
	// Forget destroys the keys of leaves in every generation of a tree that is here. When it returns, no file holds anything from which
	// they could be derived. It is idempotent, and a tree that is not here is not an error.
	Forget(tree string, leaves ...uint64) error
}

// CheckName refuses an invalid name of a tree: it is 1 to MaxNameBytes of a-z, A-Z, 0-9, _ - and /.
func CheckName(tree string) error {
	ok := tree != "" && len(tree) <= MaxNameBytes && strings.IndexFunc(tree, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '/'
	}) < 0
	if !ok {
		return fault.New(fault.Invalid, "tree_invalid", "%.64q cannot name a tree of keys: 1 to %d letters, digits, _, - and /", tree,
			MaxNameBytes)
	}
	return nil
}
