package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentbox/internal/app/datadir"
	"agentbox/internal/domain/engine"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/disk/trees"
	"agentbox/internal/driver/keyring"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/audit"
	"agentbox/internal/service/gate"
)

// Audit is the verification of one workspace.
type Audit struct {
	Log       audit.Report
	Documents audit.DocumentsReport
	Contents  audit.ContentsReport
	Snapshots audit.SnapshotsReport
	Unsigned  bool            // there was a checkpoint of this workspace, as directory.json says, and it is gone
	Keyless   bool            // the file of the public key is gone, so that the signature of the checkpoint was not checked
	Filed     []audit.Finding // what events are filed under beside their records, where it is something else; at most audit.MaxFindings
	Schema    []audit.Finding // tables, indexes, triggers and views of the database that are not the log's
	Noted     []audit.Finding // what the data directory says of the log that the log does not hold
}

// OK reports whether nothing was found.
func (a Audit) OK() bool {
	return a.Log.OK && a.Documents.OK && a.Contents.OK && a.Snapshots.OK && len(a.Filed)+len(a.Schema)+len(a.Noted) == 0
}

// Findings returns everything that is wrong: first of the log, where the first finding is where to look.
func (a Audit) Findings() []audit.Finding {
	return slices.Concat(a.Schema, a.Log.Findings, a.Noted, a.Documents.Findings, a.Contents.Findings, a.Snapshots.Findings, a.Filed)
}

// Unchecked says what could not be checked, each as a sentence. Where it says anything, nobody knows whether the log is intact.
func (a Audit) Unchecked() []string {
	var said []string
	if a.Log.Sealed > 0 {
		said = append(said, fmt.Sprintf("the data of %d events cannot be opened, for their keys are not here: these data were not checked",
			a.Log.Sealed))
	}
	if a.Documents.Unchecked {
		said = append(said, "no document was compared with the log: without the data of its events nobody can tell what the documents should be")
	}
	if len(a.Documents.Skipped) > 0 && !a.Documents.Unchecked { // else none was compared, of any version
		said = append(said, fmt.Sprintf(
			"the documents %s were made by another version of Agentbox and were not compared: start the daemon once, then verify again",
			strings.Join(a.Documents.Skipped, ", ")))
	}
	if a.Contents.Sealed > 0 {
		said = append(said, fmt.Sprintf("%d contents that events name cannot be opened, for their keys are not here: they were not checked",
			a.Contents.Sealed))
	}
	if a.Unsigned {
		said = append(said, "this installation signs checkpoints, and there is none of this workspace: an end of the log that is missing would "+
			"not be noticed")
	}
	if a.Keyless {
		said = append(said, "the file "+publicFile+" is missing from the data directory, so that the signature of its checkpoint was not "+
			"checked: put it back, start the daemon, which writes it again, or name the public key with --public-key")
	}
	s := a.Snapshots
	for _, one := range []struct {
		n    int
		what string
	}{
		{s.Unread, "%d snapshots that events name were not read in full: name a larger bound with --snapshots, or all"},
		{s.Sealed, "%d folders and files of snapshots cannot be opened, for their keys are not here: they were not checked"},
		{s.Gone, "the folders of %d living spaces are gone from this data directory: put them back from a backup, or remove these spaces"},
	} {
		if one.n > 0 {
			said = append(said, fmt.Sprintf(one.what, one.n))
		}
	}
	return said
}

// Notes lists missing things that may be missing. A copy of a log has no files of spaces, other daemons have their own, and a power cut can
// take an unused snapshot. The log is intact without them.
func (a Audit) Notes() []string {
	var said []string
	if n := a.Snapshots.Lost; n > 0 {
		said = append(said, fmt.Sprintf("the newest snapshots of %d spaces are not here: they were not checked", n))
	}
	if n := a.Snapshots.Elsewhere; n > 0 {
		said = append(said, fmt.Sprintf("the files of %d spaces are not on this host: their snapshots were not checked", n))
	}
	return said
}

// SnapshotBytes is how much of the snapshots of a workspace a verification reads where nobody says otherwise: a few seconds' worth.
const SnapshotBytes = 1 << 30

// node returns the node whose spaces have their files in the data directory. It returns "" for a copy without a folder of spaces.
func (p *Proofs) node() (id.Node, error) {
	if _, err := os.Stat(filepath.Join(p.dir, spacesDir)); errors.Is(err, os.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	return readNode(filepath.Join(p.dir, nodeFile))
}

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
	Reads audit.SnapshotsBound // how much of the snapshots of each workspace is read
	dir   string
	c     Config
}

// OpenProofs looks at the proofs of a data directory. An empty key means the one that lies there.
func OpenProofs(c Config, key string) (*Proofs, error) {
	p := &Proofs{Trees: trees.Open(c.shared(proofsDir), Clock{}), Reads: audit.SnapshotsBound{Bytes: SnapshotBytes}, dir: c.DataDir, c: c}
	if err := c.inFile(); err != nil {
		return nil, err
	}
	if info, err := datadir.Regular(p.path()); err != nil {
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

// Log opens the log for reading. It shows the events recorded by now; the checkpoints to compare it with are read before.
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
	held := map[id.Workspace][]audit.Held{}
	signed, err := p.Trees.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	for _, ws := range signed {
		own, err := audit.OwnCheckpoint(ctx, p.Trees, ws, p.Key)
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
	d := &directory{path: p.dir}
	if err := d.read(); err != nil { // before the log, which a daemon may go on writing
		return nil, err
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
	schema, err := foreign(ctx, log)
	if err != nil {
		return nil, err
	}
	for ws := range d.note.Heads {
		if !slices.Contains(workspaces, ws) {
			workspaces = append(workspaces, ws)
		}
	}
	slices.Sort(workspaces)
	keys, err := keyring.OpenReadOnly(p.c.keys())
	if err != nil {
		return nil, err
	}
	blobs, shelves := disk.LookAtBlobs(p.c.blobs(), keys), disk.LookAtSnapshots(filepath.Join(p.dir, spacesDir), keys)
	reads := p.Reads
	if reads.Node, err = p.node(); err != nil {
		return nil, err
	}
	for _, ws := range workspaces {
		report, documents, err := audit.Audit(ctx, log, log, current, ws, held[ws]...)
		if err != nil {
			return audits, err
		}
		contents, err := audit.VerifyContents(ctx, log, blobs, ws)
		if err != nil && (report.OK || ctx.Err() != nil) {
			return audits, err
		}
		kept, err := audit.VerifySnapshots(ctx, log, shelves, ws, reads)
		if err != nil && (report.OK || ctx.Err() != nil) {
			return audits, err
		}
		filed, err := misfiled(ctx, log, ws)
		if err != nil {
			return audits, err
		}
		noted, err := p.noted(ctx, log, ws, d.note.Heads[ws])
		if err != nil {
			return audits, err
		}
		documents.Skipped = skipped(current)
		audits = append(audits, Audit{
			Log: report, Documents: documents, Contents: contents, Snapshots: kept, Filed: filed, Schema: schema, Noted: noted,
			Unsigned: !slices.Contains(signed, ws) && slices.Contains(d.note.Signed, ws), Keyless: p.Key == "" && slices.Contains(signed, ws),
		})
		schema = nil // it is that of all workspaces, and told once
	}
	return audits, nil
}

// roots are the projections whose documents say who may do what, with the entity types of their events. Approvals are not among them: there
// may be very many, and an approval gives nothing without its principal and its action.
var roots = map[string]audit.Root{
	principal.Projection:        {Entity: principal.Entity},
	principal.KeyProjection:     {Entity: principal.KeyEntity},
	principal.LoginProjection:   {Entity: principal.LoginEntity},
	principal.SessionProjection: {Entity: principal.SessionEntity},
	engine.Projection:           {Entity: engine.Entity},
	engine.TokenProjection:      {Entity: engine.TokenEntity},
	token.Projection:            {Entity: token.Entity},
	policy.StandingProjection:   {Entity: policy.StandingEntity},
	policy.KillSwitchProjection: {Entity: policy.KillSwitchEntity, Single: true},
	policy.BundleProjection:     {Entity: policy.BundleEntity},
	policy.ActionTypeProjection: {Entity: policy.ActionTypeEntity},
}

// holdRoots refuses a log beside which lie other documents of authority than those that it makes.
func holdRoots(ctx context.Context, log Store) error {
	var held []audit.Root
	for _, def := range gate.Definitions() {
		if root, ok := roots[def.Name]; ok {
			root.Definition = def
			held = append(held, root)
		}
	}
	workspaces, err := log.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, ws := range workspaces {
		if err := audit.HoldRoots(ctx, log, log, held, ws); err != nil {
			return err
		}
	}
	return nil
}

// foreign tells what of the database's schema is not the log's.
func foreign(ctx context.Context, log Store) ([]audit.Finding, error) {
	said, err := log.Foreign(ctx)
	var findings []audit.Finding
	for _, s := range said {
		findings = append(findings, audit.Finding{Kind: audit.SchemaMismatch, Detail: s})
	}
	return findings[:min(len(findings), audit.MaxFindings)], err
}

// skipped names the projections whose documents are not in their version.
func skipped(current []projection.Definition) []string {
	var names []string
	for _, def := range Definitions() {
		if !slices.ContainsFunc(current, func(c projection.Definition) bool { return c.Name == def.Name }) {
			names = append(names, def.Name)
		}
	}
	return names
}

// noted holds what the data directory says of a workspace against the log: how far it had come, and that it was signed.
func (p *Proofs) noted(ctx context.Context, log Store, ws id.Workspace, reached uint64) ([]audit.Finding, error) {
	head, err := log.Head(ctx, ws)
	if err != nil || head >= reached {
		return nil, err
	}
	return []audit.Finding{{
		Kind: audit.Truncated, Seq: head + 1,
		Detail: fmt.Sprintf("the log ends at event %d, and %s says that it had reached event %d: the last events are missing", head, noteFile,
			reached),
	}}, nil
}

// misfiled says of which events the columns beside their records say something else.
func misfiled(ctx context.Context, log Store, ws id.Workspace) ([]audit.Finding, error) {
	found, err := log.Misfiled(ctx, ws, audit.MaxFindings)
	var findings []audit.Finding
	for _, m := range found {
		kind := audit.KeyMismatch
		if m.Stream {
			kind = audit.StreamMismatch
		}
		findings = append(findings, audit.Finding{Kind: kind, Seq: m.Seq, Detail: m.Detail})
	}
	return findings, err
}

// Holder is a holder of checkpoints of the data directory's workspaces.
type Holder struct {
	Name        string
	Checkpoints map[id.Workspace]audit.Held
}
