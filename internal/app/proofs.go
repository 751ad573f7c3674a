package app

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"time"

	"agentbox/internal/app/datadir"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/driver/disk/trees"
	"agentbox/internal/driver/keyring"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/service/audit"
)

// prove wires what signs checkpoints and makes proofs, and refuses a log that is not the one that was signed.
func (up *upkeep) prove(ctx context.Context) error {
	up.proofs = trees.Open(up.app.Config.shared(proofsDir), up.app.clock)
	signed, err := up.proofs.Workspaces(ctx)
	if err != nil {
		return err
	}
	key, err := signingKey(up.app.Config, len(signed) > 0, rand.Reader)
	if err != nil {
		return err
	}
	if up.app.Signer, err = audit.NewSigner(up.app.Log, up.proofs, key); err != nil {
		return err
	}
	if up.app.together.member == nil { // else the leader does
		if err := up.app.Signer.Recover(ctx); err != nil {
			return err
		}
	}
	up.app.Prover = audit.NewProver(up.app.Log, up.proofs, up.app.Signer.PublicKey())
	return publish(filepath.Dir(up.app.Config.shared(publicFile)), up.app.Signer.PublicKey())
}

// sign signs checkpoints about once a second while the log grows, beside everything else.
func (up *upkeep) sign(ctx context.Context) error {
	every(up.app.clock, ctx.Done(), stepPeriod, func(now time.Time) {
		if err := up.app.Signer.Step(ctx); err == nil {
			up.app.metrics.Signed(now)
		} else if ctx.Err() == nil {
			up.app.logger.Error("sign checkpoints", "code", "checkpoint_not_signed", "error", err)
		}
	})
	return nil
}

// prover opens the log to look at and lets do make proofs of it.
func (p *Proofs) prover(ctx context.Context, do func(*audit.Prover) error) (err error) {
	if p.Key == "" {
		return merkle.ErrNone
	}
	log, err := p.Log(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return do(audit.NewProver(log, p.Trees, p.Key))
}

// workspaces returns the workspaces of the log, and those that only a checkpoint still names.
func (p *Proofs) workspaces(ctx context.Context) ([]id.Workspace, error) {
	found, err := p.Trees.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	log, err := p.Log(ctx)
	if err != nil {
		return nil, err
	}
	recorded, err := log.Workspaces(ctx)
	found = append(found, recorded...)
	slices.Sort(found)
	return slices.Compact(found), errors.Join(err, log.Close())
}

// Checkpoint returns the last checkpoint of a workspace.
func (p *Proofs) Checkpoint(ctx context.Context, ws id.Workspace) (audit.Signed, error) {
	if p.Key == "" {
		return audit.Signed{}, merkle.ErrNone
	}
	return audit.NewProver(nil, p.Trees, p.Key).Checkpoint(ctx, ws)
}

// Evidence proves an event under the last checkpoint. It is named by its id, or by its place.
func (p *Proofs) Evidence(ctx context.Context, ws id.Workspace, which id.Event, seq uint64) (evidence audit.Evidence, err error) {
	err = p.prover(ctx, func(prover *audit.Prover) (err error) {
		if which == "" {
			evidence, err = prover.EvidenceAt(ctx, ws, seq)
		} else {
			evidence, err = prover.Evidence(ctx, ws, which)
		}
		return err
	})
	return evidence, err
}

// Consistency proves that the last checkpoint of a workspace continues its log of an earlier size.
func (p *Proofs) Consistency(ctx context.Context, ws id.Workspace, old uint64) (proof merkle.Consistency, err error) {
	err = p.prover(ctx, func(prover *audit.Prover) (err error) {
		proof, err = prover.Consistency(ctx, ws, old)
		return err
	})
	return proof, err
}

// Selection says which events are exported.
type Selection = audit.Selection

// CheckProof verifies a document of proof with nothing but a public key.
func CheckProof(document io.Reader, key string) (audit.Checked, error) {
	public, err := merkle.ParsePublicKey(key)
	if err != nil {
		return audit.Checked{}, err
	}
	return audit.Check(document, public)
}

// Export writes events with what proves them.
func (p *Proofs) Export(ctx context.Context, ws id.Workspace, s Selection, to io.Writer) (n int, err error) {
	err = p.prover(ctx, func(prover *audit.Prover) (err error) {
		n, err = prover.Export(ctx, ws, s, to)
		return err
	})
	return n, err
}

// Abandoned is a checkpoint that was given up.
type Abandoned struct {
	Workspace id.Workspace
	Size      uint64 // of the checkpoint, as far as it could be read
	Head      uint64 // of the log
}

// Abandon gives up the checkpoints of a data directory on which no daemon runs. It records the abandoned checkpoint and the reason in each
// log, and moves the checkpoints aside as evidence. The next start signs again.
func Abandon(ctx context.Context, c Config, reason string) (given []Abandoned, err error) {
	p, err := OpenProofs(c, "")
	if err != nil {
		return nil, err
	}
	held, err := datadir.AcquireAll(c.DataDir, c.Shared)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	given, err = p.abandon(ctx, reason)
	if err == nil && len(given) == 0 {
		err = merkle.ErrNone
	}
	return given, err
}

// abandon gives up every checkpoint of a data directory that the caller holds.
func (p *Proofs) abandon(ctx context.Context, reason string) (given []Abandoned, err error) {
	workspaces, err := p.Trees.Workspaces(ctx)
	if err != nil || len(workspaces) == 0 {
		return nil, err
	}
	keys, err := keyring.Open(p.c.keys(), rand.Reader)
	if err != nil {
		return nil, err
	}
	log, err := writeStore(ctx, p.c, true, keys)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for _, ws := range workspaces {
		one, err := abandon(ctx, log, p.Trees, ws, reason)
		if err != nil {
			return given, err
		}
		given = append(given, one)
	}
	return given, (&directory{path: p.dir, proofs: p.c.shared(proofsDir)}).unsign()
}

// abandon records it first: a checkpoint that vanished without a word would be what an attacker does.
func abandon(ctx context.Context, log journal.Journal, store merkle.Store, ws id.Workspace, reason string) (Abandoned, error) {
	signed, err := store.Checkpoint(ctx, ws)
	if err != nil {
		return Abandoned{}, err
	}
	head, err := log.Head(ctx, ws)
	if err != nil {
		return Abandoned{}, err
	}
	one := Abandoned{Workspace: ws, Head: head}
	if c, err := merkle.Peek(signed); err == nil {
		one.Size = c.Size
	}
	data := audit.CheckpointAbandoned{Size: one.Size, Head: head, Checkpoint: string(signed), Reason: reason}
	_, err = log.Append(ctx, event.Batch{Workspace: ws, Drafts: []event.Draft{
		event.New(audit.EventAbandoned, event.Origin{Principal: principal.System}, ws, "", data),
	}})
	if err != nil {
		return one, fault.Wrap(err, fault.Unavailable, "log_unavailable", "the end of what is given up could not be recorded")
	}
	return one, store.Abandon(ctx, ws, reason)
}
