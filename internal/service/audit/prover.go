package audit

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/merkle"
)

// Prover makes proofs that a stranger checks without this log.
type Prover struct {
	log   journal.Journal
	trees merkle.Store
	key   merkle.PublicKey
}

// NewProver returns a prover for the logs that the key signs.
func NewProver(log journal.Journal, trees merkle.Store, key merkle.PublicKey) *Prover {
	return &Prover{log, trees, key}
}

// Signed is a checkpoint in its signed form, and its contents.
type Signed struct {
	Checkpoint merkle.Checkpoint
	Note       string // the C2SP note, byte for byte
	PublicKey  merkle.PublicKey
}

// PublicKey returns the key that verifies the checkpoints.
func (p *Prover) PublicKey() merkle.PublicKey { return p.key }

// Checkpoint returns the last checkpoint of a workspace.
func (p *Prover) Checkpoint(ctx context.Context, ws id.Workspace) (Signed, error) {
	signed, err := p.trees.Checkpoint(ctx, ws)
	if err != nil {
		return Signed{}, err
	}
	c, err := merkle.Open(signed, p.key)
	if of, _ := c.Workspace(); err == nil && of != ws {
		err = fault.New(fault.Internal, "checkpoint_invalid", "the checkpoint is not valid: it is one of %s", of)
	}
	return Signed{c, string(signed), p.key}, err
}

// Evidence is an event with the proof that it is in the log.
type Evidence struct {
	Header string           `json:"header"`         // the canonical JSON whose SHA-256 is the event_hash: everything of the event but its data
	Salt   []byte           `json:"salt,omitempty"` // with Data: the SHA-256 of both together is the data_commitment in Header
	Data   []byte           `json:"data,omitempty"` // none where it was redacted
	Proof  merkle.Inclusion `json:"proof"`
}

// evidenceOf makes the evidence of an event without the proof.
func evidenceOf(e *event.Event) Evidence {
	evidence := Evidence{Header: string(journal.AppendHeader(nil, e))}
	if e.Withheld == "" {
		evidence.Salt, evidence.Data = e.Chain.Salt, e.Data
	}
	return evidence
}

// Evidence proves an event under the last checkpoint.
func (p *Prover) Evidence(ctx context.Context, ws id.Workspace, which id.Event) (Evidence, error) {
	signed, err := p.Checkpoint(ctx, ws)
	if err != nil {
		return Evidence{}, err
	}
	e, err := p.log.Get(ctx, ws, which)
	if err != nil {
		return Evidence{}, err
	}
	return p.evidence(ctx, ws, signed, &e)
}

// EvidenceAt proves the event at a place under the last checkpoint.
func (p *Prover) EvidenceAt(ctx context.Context, ws id.Workspace, seq uint64) (Evidence, error) {
	signed, err := p.Checkpoint(ctx, ws)
	if err != nil {
		return Evidence{}, err
	}
	events, err := p.log.Read(ctx, journal.Query{Workspace: ws, From: seq, Before: seq + 1, Limit: 1})
	if err != nil {
		return Evidence{}, err
	}
	if seq == 0 || len(events) == 0 {
		return Evidence{}, journal.ErrNotFound
	}
	return p.evidence(ctx, ws, signed, &events[0])
}

func (p *Prover) evidence(ctx context.Context, ws id.Workspace, signed Signed, e *event.Event) (Evidence, error) {
	evidence := evidenceOf(e)
	err := p.with(ctx, ws, signed, func(hashes tlog.HashReader) (err error) {
		evidence.Proof, err = merkle.ProveInclusion(hashes, e.Seq, e.Chain.Hash, []byte(signed.Note), p.key)
		return err
	})
	return evidence, err
}

// Consistency proves that the last checkpoint continues the log as it was at an earlier size.
func (p *Prover) Consistency(ctx context.Context, ws id.Workspace, old uint64) (proof merkle.Consistency, err error) {
	signed, err := p.Checkpoint(ctx, ws)
	if err != nil {
		return merkle.Consistency{}, err
	}
	if old > signed.Checkpoint.Size {
		return merkle.Consistency{}, fault.New(fault.Invalid, "size_invalid",
			"the earlier size is at most that of the last checkpoint, which is %d", signed.Checkpoint.Size)
	}
	err = p.with(ctx, ws, signed, func(hashes tlog.HashReader) (err error) {
		proof, err = merkle.ProveConsistency(hashes, old, []byte(signed.Note), p.key)
		return err
	})
	return proof, err
}

// with lets make read the hashes of the tree: the stored ones, or, where no proof comes out of them, those that the log has.
func (p *Prover) with(ctx context.Context, ws id.Workspace, signed Signed, make func(tlog.HashReader) error) error {
	err := make(merkle.Reader(ctx, p.trees, ws))
	if err == nil || fault.KindOf(err) == fault.NotFound {
		return err
	}
	hashes, err := p.made(ctx, ws, signed.Checkpoint)
	if err != nil {
		return err
	}
	return make(hashes)
}

// made makes the tree of a checkpoint from the log, in memory.
func (p *Prover) made(ctx context.Context, ws id.Workspace, c merkle.Checkpoint) (tlog.HashReader, error) {
	var edge merkle.Edge
	all := []merkle.Hash{}
	for edge.Size() < c.Size {
		from := edge.Size()
		hashes, err := journal.Hashes(ctx, p.log, ws, from+1, int(min(c.Size-from, journal.MaxHashes)))
		if err != nil {
			return nil, err
		}
		if len(hashes) == 0 {
			break
		}
		for i, hash := range hashes {
			all = edge.Add(merkle.LeafHash(from+uint64(i)+1, hash), all)
		}
	}
	if edge.Size() != c.Size || edge.Root() != c.Root {
		return nil, fault.New(fault.Conflict, "log_replaced",
			"the log of %s is not the one that its last checkpoint was signed for; run agentbox audit verify", ws)
	}
	return tlog.HashReaderFunc(func(indexes []int64) ([]merkle.Hash, error) {
		out := make([]merkle.Hash, len(indexes))
		for i, n := range indexes {
			if n < 0 || n >= int64(len(all)) {
				return nil, fmt.Errorf("the tree has no hash %d", n)
			}
			out[i] = all[n]
		}
		return out, nil
	}), nil
}

// Proven is the proved part of an event: the fields that its hash covers.
type Proven struct {
	Workspace  id.Workspace      `json:"workspace_id"`
	Seq        uint64            `json:"seq"`
	Event      id.Event          `json:"event_id"`
	Type       string            `json:"event_type"`
	OccurredAt string            `json:"occurred_at"`
	Commitment event.Digest      `json:"data_commitment"`
	Hash       event.Digest      `json:"-"`
	HasData    bool              `json:"-"` // and its data were held against the commitment
	Checkpoint merkle.Checkpoint `json:"-"`
}

// Check verifies an evidence with a key that was got elsewhere, and needs nothing else.
func (e Evidence) Check(key merkle.PublicKey) (Proven, error) {
	proven, err := e.proven()
	if err != nil {
		return proven, err
	}
	c, err := e.Proof.Check(key)
	if err != nil {
		return proven, err
	}
	proven.Checkpoint = c
	if ws, _ := c.Workspace(); ws != proven.Workspace || e.Proof.Seq != proven.Seq || e.Proof.EventHash != proven.Hash {
		return proven, merkle.ErrProof
	}
	return proven, nil
}

// proven reads the header and holds the data against it.
func (e Evidence) proven() (Proven, error) {
	var p Proven
	if err := json.Unmarshal([]byte(e.Header), &p); err != nil {
		return p, fault.Wrap(err, fault.Invalid, merkle.ErrProof.Code, "the proof cannot be read: its header is not JSON")
	}
	p.Hash, p.HasData = event.DigestOf([]byte(e.Header)), len(e.Data) > 0
	if p.HasData && journal.Commit(e.Salt, e.Data) != p.Commitment {
		return p, fault.New(fault.Invalid, merkle.ErrProof.Code, "the proof does not hold: the data are not those that event %d committed to",
			p.Seq)
	}
	return p, nil
}
