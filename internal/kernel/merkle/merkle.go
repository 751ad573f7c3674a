// Package merkle is the tree of hashes over a workspace's log, its signed checkpoints, and the proofs that rest on them.
//
// The tree is that of RFC 6962: one leaf for each event, in the order of seq, so that the leaf of seq 1 has the index 0. A leaf hashes the
// text of LeafOf. That text binds the event's place and its chained hash; the chained hash binds everything else.
package merkle

import (
	"context"
	"strconv"

	"golang.org/x/mod/sumdb/tlog"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Hash is a node of the tree. Its text form is base64, as checkpoints write it.
type Hash = tlog.Hash

// ErrNone means that there is no checkpoint yet.
var ErrNone = fault.New(fault.NotFound, "checkpoint_not_found",
	"no checkpoint has been signed yet; a running daemon signs one within a second of the first event")

// Store keeps the trees and the last checkpoint of every workspace, apart from the log. The hashes can be rebuilt from the log. The
// checkpoint cannot, because the log is checked against it. One goroutine at a time writes for a workspace; any may read. The conformance
// suite is package merkletest.
type Store interface {
	// Workspaces returns every workspace that has a checkpoint, in order.
	Workspaces(ctx context.Context) ([]id.Workspace, error)
	// Checkpoint returns the last note that Keep took, or ErrNone.
	Checkpoint(ctx context.Context, ws id.Workspace) ([]byte, error)
	// Keep replaces the checkpoint, in one step and durably.
	Keep(ctx context.Context, ws id.Workspace, note []byte) error
	// Stored returns how many hashes are there, without a gap, in the order of tlog.StoredHashIndex.
	Stored(ctx context.Context, ws id.Workspace) (int64, error)
	// ReadHashes returns the hashes at the given indexes, or an error if one is missing.
	ReadHashes(ctx context.Context, ws id.Workspace, indexes []int64) ([]Hash, error)
	// WriteHashes puts hashes at an index, durably, and drops all hashes after them. The index is at most Stored.
	WriteHashes(ctx context.Context, ws id.Workspace, at int64, hashes []Hash) error
	// Abandon puts the checkpoint aside, under a name that tells when, with a reason, and forgets the hashes. ErrNone if there is none.
	Abandon(ctx context.Context, ws id.Workspace, reason string) error
}

// LeafOf returns the record whose RecordHash is the leaf of an event: its seq in decimal digits, a space, its event_hash, a line feed.
func LeafOf(seq uint64, hash event.Digest) []byte {
	var room [96]byte
	b := strconv.AppendUint(room[:0], seq, 10)
	b = append(b, ' ')
	b = append(b, hash.String()...)
	return append(b, '\n')
}

// LeafHash returns the leaf of an event: the SHA-256 of a zero byte and LeafOf.
func LeafHash(seq uint64, hash event.Digest) Hash { return tlog.RecordHash(LeafOf(seq, hash)) }
