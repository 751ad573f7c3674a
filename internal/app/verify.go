package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/disk/trees"
	"agentbox/internal/driver/keyring"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/service/auditor"
)

// Audit is the verification of one workspace.
type Audit struct {
	Log       auditor.Report
	Documents auditor.DocumentsReport
	Contents  auditor.ContentsReport
	Filed     []auditor.Finding // what events are filed under beside their records, where it is something else; at most auditor.MaxFindings
}

// OK reports whether nothing was found.
func (a Audit) OK() bool { return a.Log.OK && a.Documents.OK && a.Contents.OK && len(a.Filed) == 0 }

// Verify proves the log of a data directory with nothing but its files.
func Verify(ctx context.Context, c Config) ([]Audit, error) {
	p, err := OpenProofs(c, "")
	if err != nil {
		return nil, err
	}
	return p.Verify(ctx)
}

// Proofs is a data directory as it is audited: with nothing but its files, whether or not a daemon runs on it. It writes nothing there.
type Proofs struct {
	Key   merkle.PublicKey // "" where none was named and the data directory has none: nothing was signed yet
	Trees *trees.Store
	dir   string
	c     Config
}

// OpenProofs looks at the proofs of a data directory. An empty key means the one that lies there.
func OpenProofs(c Config, key string) (*Proofs, error) {
	p := &Proofs{Trees: trees.Open(c.shared(proofsDir), Clock{}), dir: c.DataDir, c: c}
	if err := c.inFile(); err != nil {
		return nil, err
	}
	if info, err := regular(p.path()); err != nil {
		return nil, err
	} else if info == nil && !c.inDatabase() {
		return nil, fault.New(fault.NotFound, "log_not_found", "there is no log in %s; name the data directory with --data", c.DataDir)
	}
	var err error
	if key != "" {
		p.Key, err = merkle.ParsePublicKey(key)
		return p, err
	}
	if p.Key, err = PublicKey(c); fault.KindOf(err) == fault.NotFound {
		err = nil
	}
	return p, err
}

func (p *Proofs) path() string { return filepath.Join(p.dir, logFile) }

// Log opens the log to look at. What it shows is what was recorded by now; checkpoints that it is held against are read before.
func (p *Proofs) Log(ctx context.Context) (Store, error) {
	log, err := lookAtStore(ctx, p.c)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return log, nil
}

// Verify verifies every workspace, also one that only a checkpoint still tells of, against the data directory's own checkpoints and those
// that others hold.
func (p *Proofs) Verify(ctx context.Context, others ...Holder) (audits []Audit, err error) {
	held := map[id.Workspace][]auditor.Held{}
	signed, err := p.Trees.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	for _, ws := range signed {
		own, err := auditor.OwnCheckpoint(ctx, p.Trees, ws, p.Key)
		if err != nil {
			return nil, err
		}
		held[ws] = append(held[ws], own...)
	}
	for _, other := range others {
		for ws, one := range other.Checkpoints {
			held[ws] = append(held[ws], one)
		}
	}
	log, err := p.Log(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	workspaces, err := log.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	for ws := range held {
		if !slices.Contains(workspaces, ws) {
			workspaces = append(workspaces, ws)
		}
	}
	slices.Sort(workspaces)
	current, err := log.Current(ctx) // the next daemon makes the others
	if err != nil {
		return nil, err
	}
	keys, err := keyring.OpenReadOnly(p.c.keys())
	if err != nil {
		return nil, err
	}
	blobs := disk.LookAtBlobs(p.c.blobs(), keys)
	for _, ws := range workspaces {
		report, documents, err := auditor.Audit(ctx, log, log, current, ws, held[ws]...)
		if err != nil {
			return audits, err
		}
		contents, err := auditor.VerifyContents(ctx, log, blobs, ws)
		if err != nil && (report.OK || ctx.Err() != nil) {
			return audits, err
		}
		filed, err := misfiled(ctx, log, ws)
		if err != nil {
			return audits, err
		}
		audits = append(audits, Audit{Log: report, Documents: documents, Contents: contents, Filed: filed})
	}
	return audits, nil
}

// misfiled says of which events the columns beside their records say something else.
func misfiled(ctx context.Context, log Store, ws id.Workspace) ([]auditor.Finding, error) {
	found, err := log.Misfiled(ctx, ws, auditor.MaxFindings)
	var findings []auditor.Finding
	for _, m := range found {
		kind := auditor.KeyMismatch
		if m.Stream {
			kind = auditor.StreamMismatch
		}
		findings = append(findings, auditor.Finding{Kind: kind, Seq: m.Seq, Detail: m.Detail})
	}
	return findings, err
}

// Holder is who holds checkpoints of the data directory's workspaces.
type Holder struct {
	Name        string
	Checkpoints map[id.Workspace]auditor.Held
}
