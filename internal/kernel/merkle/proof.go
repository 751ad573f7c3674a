package merkle

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Inclusion proves that an event is in the log that a checkpoint was signed for. A reader with the public key needs nothing else.
type Inclusion struct {
	Seq        uint64       `json:"seq"`
	EventHash  event.Digest `json:"event_hash"`
	Record     string       `json:"leaf_record"` // LeafOf
	Index      uint64       `json:"leaf_index"`  // seq - 1
	Hashes     []string     `json:"hashes"`      // base64, from the leaf's sibling up to the root's child: the audit path of RFC 6962
	Checkpoint string       `json:"checkpoint"`  // the signed note
	PublicKey  PublicKey    `json:"public_key"`  // the reader compares it with the key that they were given
}

// Consistency proves that the log of one checkpoint begins with the log of an earlier size.
type Consistency struct {
	Old        uint64    `json:"old_size"`
	OldRoot    string    `json:"old_root_hash"`
	New        uint64    `json:"new_size"`
	NewRoot    string    `json:"new_root_hash"`
	Hashes     []string  `json:"hashes"` // base64: the consistency proof of RFC 6962
	Checkpoint string    `json:"checkpoint"`
	PublicKey  PublicKey `json:"public_key"`
}

// The refusals of proofs.
var (
	// ErrProof means that a proof does not hold.
	ErrProof = fault.New(fault.Invalid, "proof_invalid", "the proof does not hold: its subject is not in the signed log")

	errUncovered = fault.New(fault.NotFound, "event_not_covered",
		"the last checkpoint does not cover this event yet; a running daemon signs one within a second")
)

// Reader reads the stored hashes of one workspace.
func Reader(ctx context.Context, s Store, ws id.Workspace) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]Hash, error) { return s.ReadHashes(ctx, ws, indexes) })
}

// RootAt returns the root of a tree as it was at a size, from the stored hashes.
func RootAt(ctx context.Context, s Store, ws id.Workspace, size uint64) (Hash, error) {
	return tlog.TreeHash(int64(size), Reader(ctx, s, ws))
}

// ProveInclusion makes the proof of the event at a place under a signed checkpoint, and checks it before it is returned.
func ProveInclusion(r tlog.HashReader, seq uint64, hash event.Digest, signed []byte, key PublicKey) (Inclusion, error) {
	c, err := Open(signed, key)
	if err != nil {
		return Inclusion{}, err
	}
	if seq == 0 || seq > c.Size {
		return Inclusion{}, errUncovered
	}
	path, err := tlog.ProveRecord(int64(c.Size), int64(seq-1), r)
	if err != nil {
		return Inclusion{}, fmt.Errorf("prove event %d: %w", seq, err)
	}
	p := Inclusion{Seq: seq, EventHash: hash, Record: string(LeafOf(seq, hash)), Index: seq - 1, Hashes: textOf(path),
		Checkpoint: string(signed), PublicKey: key}
	_, err = p.Check(key)
	return p, err
}

// Check verifies the proof with a key that was got elsewhere, and returns the checkpoint.
func (p Inclusion) Check(key PublicKey) (Checkpoint, error) {
	c, err := Open([]byte(p.Checkpoint), key)
	if err != nil {
		return c, err
	}
	path, err := hashesOf(p.Hashes)
	if err != nil {
		return c, err
	}
	if p.Seq == 0 || p.Seq > c.Size || p.Index != p.Seq-1 || p.Record != string(LeafOf(p.Seq, p.EventHash)) {
		return c, ErrProof
	}
	if err := tlog.CheckRecord(path, int64(c.Size), c.Root, int64(p.Index), tlog.RecordHash([]byte(p.Record))); err != nil {
		return c, ErrProof
	}
	return c, nil
}

// ProveConsistency makes the proof that a signed checkpoint continues the log of an earlier size.
func ProveConsistency(r tlog.HashReader, old uint64, signed []byte, key PublicKey) (Consistency, error) {
	c, err := Open(signed, key)
	if err != nil {
		return Consistency{}, err
	}
	if old > c.Size || c.Size > 1<<62 {
		return Consistency{}, fault.New(fault.Invalid, "size_invalid", "the earlier size is at most that of the last checkpoint, which is %d",
			c.Size)
	}
	oldRoot, err := tlog.TreeHash(int64(old), r)
	if err != nil {
		return Consistency{}, err
	}
	p := Consistency{Old: old, OldRoot: oldRoot.String(), New: c.Size, NewRoot: c.Root.String(), Hashes: []string{},
		Checkpoint: string(signed), PublicKey: key}
	if old > 0 {
		path, err := tlog.ProveTree(int64(c.Size), int64(old), r)
		if err != nil {
			return p, fmt.Errorf("prove that %d events begin with %d: %w", c.Size, old, err)
		}
		p.Hashes = textOf(path)
	}
	return p, p.Check(key)
}

// Check verifies the proof with a key that the reader got elsewhere. The reader compares OldRoot with the checkpoint that they hold.
func (p Consistency) Check(key PublicKey) error {
	c, err := Open([]byte(p.Checkpoint), key)
	if err != nil {
		return err
	}
	path, err := hashesOf(p.Hashes)
	if err != nil {
		return err
	}
	root, err := tlog.ParseHash(p.OldRoot)
	if err != nil || p.New != c.Size || p.NewRoot != c.Root.String() || p.Old > c.Size {
		return ErrProof
	}
	return CheckConsistency(p.Old, root, c, path)
}

// CheckConsistency verifies that a checkpoint continues a tree of an earlier size and root.
func CheckConsistency(old uint64, oldRoot Hash, c Checkpoint, path []Hash) error {
	if old == 0 && len(path) == 0 && oldRoot == emptyRoot() {
		return nil // everything continues nothing
	}
	if old == 0 || old > c.Size || tlog.CheckTree(path, int64(c.Size), c.Root, int64(old), oldRoot) != nil {
		return ErrProof
	}
	return nil
}

func textOf(hashes []Hash) []string {
	out := make([]string, len(hashes))
	for i, h := range hashes {
		out[i] = h.String()
	}
	return out
}

func hashesOf(text []string) ([]Hash, error) {
	const most = 64 + 64 // a tree of 2^64 leaves has no longer path, nor a longer consistency proof
	if len(text) > most {
		return nil, ErrProof
	}
	out := make([]Hash, len(text))
	for i, one := range text {
		raw, err := base64.StdEncoding.Strict().DecodeString(one)
		if err != nil || len(raw) != len(out[i]) {
			return nil, ErrProof
		}
		copy(out[i][:], raw)
	}
	return out, nil
}

// Text returns the proof as a C2SP tlog-proof: one text of lines that holds everything but the event's own hash.
func (p Inclusion) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "c2sp.org/tlog-proof@v1\nindex %d\n", p.Index)
	for _, h := range p.Hashes {
		b.WriteString(h + "\n")
	}
	b.WriteString("\n" + p.Checkpoint)
	return b.String()
}

// Path returns the hashes of the proof.
func (p Consistency) Path() ([]Hash, error) { return hashesOf(p.Hashes) }
