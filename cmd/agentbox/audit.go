package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"os"

	"agentbox/internal/app"
	"agentbox/internal/surface/cli/cmdline"
)

// audit verifies a log from its files.
func audit() cmdline.Audit {
	return cmdline.Audit{
		Verify: verify, Key: publicKey, Checkpoint: checkpoint, Prove: prove, Check: check, Export: export,
		Visit: visit, Witness: witness, Abandon: abandon,
	}
}

func proofs(q cmdline.AuditQuery) (*app.Proofs, error) {
	return app.OpenProofs(at(q.Place), q.PublicKey)
}

// verify proves the log of a data directory.
func verify(ctx context.Context, q cmdline.AuditQuery) ([]cmdline.Proof, error) {
	p, err := proofs(q)
	if err != nil {
		return nil, err
	}
	holders, err := p.Holders(ctx, q.Against)
	if err != nil {
		return nil, err
	}
	p.Reads.Bytes, p.Reads.Progress = q.SnapshotBytes, q.Progress
	audits, err := p.Verify(ctx, holders...)
	return found(audits), err
}

// found is the result of a verification, for the command line.
func found(audits []app.Audit) []cmdline.Proof {
	var proofs []cmdline.Proof
	for _, a := range audits {
		proof := cmdline.Proof{
			Workspace: a.Log.Workspace, Valid: a.OK() && len(a.Unchecked()) == 0,
			Checked: a.Log.Checked, Redacted: a.Log.Redacted, Sealed: a.Log.Sealed, Streams: len(a.Log.Streams),
			Documents: a.Documents.Documents, Contents: a.Contents.Contents, Snapshots: a.Snapshots.Snapshots, SnapshotBytes: a.Snapshots.Bytes,
			SealedContents: a.Contents.Sealed, Unchecked: a.Unchecked(), Notes: a.Notes(), Checkpoints: []cmdline.Held{}, Flaws: []cmdline.Flaw{},
		}
		for _, h := range a.Log.Held {
			proof.Checkpoints = append(proof.Checkpoints, cmdline.Held(h))
		}
		for _, f := range a.Findings() {
			proof.Flaws = append(proof.Flaws, cmdline.Flaw{
				Kind: f.Kind, Seq: f.Seq, Stream: f.Stream.ID, Place: f.StreamSeq, Event: f.Event, Document: f.Document, Detail: f.Detail,
			})
		}
		proofs = append(proofs, proof)
	}
	return proofs
}

func publicKey(_ context.Context, q cmdline.AuditQuery) (cmdline.PublicKey, error) {
	key, err := app.PublicKey(at(q.Place))
	if err != nil {
		return cmdline.PublicKey{}, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Raw())
	if err != nil {
		return cmdline.PublicKey{}, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return cmdline.PublicKey{Name: key.Name(), Key: string(key), PEM: string(text)}, nil
}

func checkpoint(ctx context.Context, q cmdline.AuditQuery) (cmdline.Checkpoint, error) {
	p, err := proofs(q)
	if err != nil {
		return cmdline.Checkpoint{}, err
	}
	signed, err := p.Checkpoint(ctx, q.Workspace)
	if err != nil {
		return cmdline.Checkpoint{}, err
	}
	c := signed.Checkpoint
	return cmdline.Checkpoint{Origin: c.Origin, Size: c.Size, Root: c.Root.String(), Note: signed.Note, PublicKey: string(signed.PublicKey)},
		nil
}

func prove(ctx context.Context, q cmdline.AuditQuery) (document json.RawMessage, text string, err error) {
	p, err := proofs(q)
	if err != nil {
		return nil, "", err
	}
	if q.Since != nil {
		proof, err := p.Consistency(ctx, q.Workspace, *q.Since)
		if err != nil {
			return nil, "", err
		}
		document, err = json.Marshal(proof)
		return document, "", err
	}
	evidence, err := p.Evidence(ctx, q.Workspace, q.Event, q.Seq)
	if err != nil {
		return nil, "", err
	}
	document, err = json.Marshal(evidence)
	return document, evidence.Proof.Text(), err
}

func check(_ context.Context, q cmdline.AuditQuery, document io.Reader) (cmdline.Checked, error) {
	c, err := app.CheckProof(document, q.PublicKey)
	if err != nil {
		return cmdline.Checked{}, err
	}
	return cmdline.Checked{
		Kind: c.Kind, Origin: c.Checkpoint.Origin, Size: c.Checkpoint.Size, Events: c.Events, Complete: c.Complete, Old: c.Old,
		OldRoot: c.OldRoot,
		Seq:     c.Event.Seq, Event: c.Event.Event, Type: c.Event.Type, Occurred: c.Event.OccurredAt, HasData: c.Event.HasData,
		Hash: c.Event.Hash,
	}, nil
}

func export(ctx context.Context, q cmdline.AuditQuery, to io.Writer) (int, error) {
	p, err := proofs(q)
	if err != nil {
		return 0, err
	}
	return p.Export(ctx, q.Workspace, app.Selection{Run: q.Run, First: q.First, Last: q.Last}, to)
}

func visit(ctx context.Context, q cmdline.AuditQuery, where string) ([]cmdline.Visit, error) {
	p, err := proofs(q)
	if err != nil {
		return nil, err
	}
	visits, err := p.Visit(ctx, where)
	came := []cmdline.Visit{}
	for _, v := range visits {
		came = append(came, cmdline.Visit(v))
	}
	return came, err
}

func witness(ctx context.Context, w cmdline.Witness, ready func(address, publicKey string)) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	return app.ServeWitness(ctx, w.Dir, w.Listen, w.Keys, logger, ready)
}

func abandon(ctx context.Context, q cmdline.AuditQuery, reason string) (int, error) {
	given, err := app.Abandon(ctx, at(q.Place), reason)
	return len(given), err
}
