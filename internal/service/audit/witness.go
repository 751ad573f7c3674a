package audit

import (
	"context"
	"errors"

	"golang.org/x/mod/sumdb/tlog"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/merkle"
)

// Visit is the result of bringing a checkpoint to a witness.
type Visit struct {
	Workspace id.Workspace
	Old       uint64 // size of what the witness held; 0 for nothing
	New       uint64 // size of its present checkpoint
	Note      string // the checkpoint with the witness's signature, if it signs
}

// refused is the fault of a log that a witness has seen otherwise.
func refused(ws id.Workspace, by string, f Finding) error {
	return fault.New(fault.Conflict, "witness_disagrees", "%s: %s", ws, f.Detail).With(
		"the log that the witness saw is not this one: somebody changed it, or restored an older copy. Keep both and compare; the first bad " +
			"event is number " +
			decimal(f.Seq) + "; agentbox audit verify --against " + by + " says the same")
}

// VisitStore brings the last checkpoint of a workspace to a witness that is a folder, on another host or on a stick. It also brings the
// proof that the checkpoint continues the one that the witness holds, and the hashes below it. With them, the first wrong event can be
// named later.
func (p *Prover) VisitStore(ctx context.Context, ws id.Workspace, by string, witness merkle.Store) (Visit, error) {
	own, err := p.Checkpoint(ctx, ws)
	if err != nil {
		return Visit{}, err
	}
	visit := Visit{Workspace: ws, New: own.Checkpoint.Size, Note: own.Note}
	held, err := witness.Checkpoint(ctx, ws)
	if err != nil && !errors.Is(err, merkle.ErrNone) {
		return Visit{}, err
	}
	if err == nil {
		if visit.Old, err = p.continues(ctx, ws, own, HeldNote(by, held, ws, p.key, witness)); err != nil {
			return visit, err
		}
	}
	if visit.Old == visit.New {
		return visit, nil
	}
	if err := p.copyTree(ctx, ws, own, visit.Old, witness); err != nil {
		return visit, err
	}
	return visit, witness.Keep(ctx, ws, []byte(own.Note))
}

// continues proves that the own checkpoint continues the one that is held, and returns the size of that.
func (p *Prover) continues(ctx context.Context, ws id.Workspace, own Signed, held Held) (uint64, error) {
	if held.Err != nil {
		return 0, held.Err
	}
	old := held.Checkpoint
	if old.Size <= own.Checkpoint.Size {
		proof, err := p.Consistency(ctx, ws, old.Size)
		if err == nil && proof.OldRoot == old.Root.String() {
			return old.Size, nil
		}
		if err != nil && fault.CodeOf(err) != "log_replaced" {
			return old.Size, err
		}
	}
	w := newWalk(p.log, ws)
	w.report.Head = own.Checkpoint.Size // the log's own statement; Verify tells whether it is true
	f, err := w.differing(ctx, held)
	if err != nil {
		return old.Size, err
	}
	return old.Size, refused(ws, held.By, f)
}

// copyTree brings the hashes of a tree, from a size on, to a witness, and sees that they are those of the checkpoint.
func (p *Prover) copyTree(ctx context.Context, ws id.Workspace, own Signed, from uint64, witness merkle.Store) error {
	return p.with(ctx, ws, own, func(hashes tlog.HashReader) error {
		at, end := tlog.StoredHashCount(int64(from)), tlog.StoredHashCount(int64(own.Checkpoint.Size))
		if stored, err := witness.Stored(ctx, ws); err != nil || stored < at {
			at = 0 // it has lost some
		}
		for at < end {
			indexes := make([]int64, min(end-at, leavesAtOnce))
			for i := range indexes {
				indexes[i] = at + int64(i)
			}
			part, err := hashes.ReadHashes(indexes)
			if err != nil {
				return err
			}
			if err := witness.WriteHashes(ctx, ws, at, part); err != nil {
				return err
			}
			at += int64(len(part))
		}
		root, err := merkle.RootAt(ctx, witness, ws, own.Checkpoint.Size)
		if err == nil && root != own.Checkpoint.Root {
			err = fault.New(fault.Internal, "tree_damaged", "the hashes that were copied for %s are not those of its checkpoint", ws)
		}
		return err
	})
}

// VisitWitness brings the last checkpoint of a workspace to a witness that speaks tlog-witness, and returns it with the witness's
// signature.
func (p *Prover) VisitWitness(ctx context.Context, ws id.Workspace, by string, witness merkle.Witness) (Visit, error) {
	own, err := p.Checkpoint(ctx, ws)
	if err != nil {
		return Visit{}, err
	}
	visit := Visit{Workspace: ws, New: own.Checkpoint.Size}
	// The first attempt assumes that the witness has seen everything. If it has not, its answer says how much it has seen.
	lines, err := witness.Add(ctx, own.Checkpoint.Size, nil, []byte(own.Note))
	visit.Old = own.Checkpoint.Size
	if stale, ok := errors.AsType[*merkle.Stale](err); ok && stale.Size == own.Checkpoint.Size {
		return visit, refused(ws, by, Finding{Seq: 1,
			Detail: "the witness has seen another log of the same length; it differs at an event from 1 to " + decimal(stale.Size)})
	} else if ok && stale.Size > own.Checkpoint.Size {
		return visit, refused(ws, by, Finding{Seq: own.Checkpoint.Size + 1, Detail: "the witness has seen " + decimal(stale.Size) +
			" events and the log ends at " + decimal(own.Checkpoint.Size) + ": the others are missing"})
	} else if ok {
		visit.Old = stale.Size
		proof, err := p.Consistency(ctx, ws, stale.Size)
		if err != nil {
			return visit, err
		}
		path, err := proof.Path()
		if err != nil {
			return visit, err
		}
		lines, err = witness.Add(ctx, stale.Size, path, []byte(own.Note))
		if fault.CodeOf(err) == "witness_refuses_proof" {
			return visit, refused(ws, by, Finding{Seq: 1, Detail: "the witness has seen another log; it differs at an event from 1 to " +
				decimal(stale.Size)})
		}
		if err != nil {
			return visit, err
		}
		visit.Note = own.Note + string(lines)
		return visit, nil
	}
	visit.Note = own.Note + string(lines)
	return visit, err
}
