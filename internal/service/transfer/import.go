package transfer

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"iter"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/kernel/projection"
)

// MaxWhole is how many bytes a file that is sent to a daemon may have when it is unpacked.
const MaxWhole = 64 << 30

// The refusals of an import by a daemon.
var (
	// ErrNotHere refuses to import for a workspace other than the daemon's own: its owners own nothing of the installation.
	ErrNotHere = fault.New(fault.Denied, "import_not_permitted",
		"workspaces are imported by the owners of %s, to whom the installation belongs", id.DefaultWorkspace)
	// ErrUnderWay means that another import is not done yet.
	ErrUnderWay = fault.New(fault.Unavailable, "busy", "another workspace is being imported; send it again in a moment")
)

// Parts are the dependencies of the importer.
type Parts struct {
	Log      journal.Journal // records the import
	Into     journal.Adopter // of the same log
	Docs     projection.Reader
	Contents blob.Store
	Gate     policy.Gate
	System   id.Principal                                     // ends spaces that stayed on the old host
	TakeUp   func(ctx context.Context, ws id.Workspace) error // takes up the runs of a workspace that have not ended
}

// Importer takes workspaces into the log of a daemon that works. Its methods are safe for concurrent use.
type Importer struct {
	Parts
	busy sync.Mutex // held while a workspace is imported
}

// NewImporter returns an importer.
func NewImporter(p Parts) *Importer { return &Importer{Parts: p} }

// Definition keeps the documents of imports.
func Definition() projection.Definition {
	keys := func(e event.Event) []string {
		if !workspace.Touches(e) {
			return nil
		}
		return []string{e.EntityID}
	}
	fold := func(i workspace.Import, _ string, e event.Event) (workspace.Import, error) {
		return workspace.Evolve(i, e)
	}
	return projection.Define(workspace.Projection, 1, keys, fold, func(i workspace.Import) []projection.Index {
		if i.Status != workspace.Begun {
			return nil
		}
		return []projection.Index{{Name: workspace.IndexPending, Value: "true"}}
	})
}

// File is a file of a workspace that was sent.
type File struct {
	blob.Ref
	Content io.ReadSeeker
	Key     merkle.PublicKey // that must have signed the checkpoint; "" for the one that came with the file
}

// Import adopts a workspace from a file, in the name of a principal of the workspace by. It first checks the file against its own hashes.
// Then it records the intent, with the idempotency key if there is one, and adopts the log in one step. A repeat of a finished request
// returns the same answer; a repeat of one that a crash cut off continues it. Other appends wait while the log is adopted.
func (m *Importer) Import(ctx context.Context, origin event.Origin, by id.Workspace, file File, key string) (workspace.Import, error) {
	if by != id.DefaultWorkspace {
		return workspace.Import{}, ErrNotHere
	}
	if !m.busy.TryLock() {
		return workspace.Import{}, ErrUnderWay
	}
	defer m.busy.Unlock()
	known, done, err := m.again(ctx, origin, by, file, key)
	if err != nil || done {
		return known, err
	}
	if _, err := file.Content.Seek(0, io.SeekStart); err != nil {
		return workspace.Import{}, err
	}
	found, err := Look(ctx, file.Content, file.Key)
	if err != nil {
		return workspace.Import{}, err
	}
	if head, err := m.Log.Head(ctx, found.Workspace); err != nil || head > 0 {
		return workspace.Import{}, errors.Join(err, occupied(head))
	}
	ruling, err := m.Gate.Judge(ctx, policy.Action{
		Type: policy.WorkspaceImport, Workspace: by, Principal: origin.Principal, Token: origin.Token, Target: string(found.Workspace),
		Content: file.Digest, Size: file.Size,
	})
	if err != nil {
		return workspace.Import{}, err
	}
	if d := ruling.Decision; !d.Allowed() {
		_, err := m.Log.Append(ctx, event.Batch{Workspace: by, Drafts: []event.Draft{policy.RefusedDraft(origin, ruling)}})
		return workspace.Import{}, errors.Join(err, fault.New(fault.Denied, d.ReasonCode, "%s", d.Reason).With(d.Suggestion))
	}
	ctx = context.WithoutCancel(ctx) // it is recorded now, and done
	batch := event.Batch{Workspace: by, Drafts: []event.Draft{draft(workspace.EventImportBegun, origin, by, found.Workspace,
		begun(found, file.Ref))}}
	if key != "" && known.Status == "" { // the first request bears it
		batch.Key, batch.Digest = keyOf(key), file.digest()
	}
	permit, _, err := m.Gate.Begin(ctx, ruling, "", batch)
	if err != nil {
		return workspace.Import{}, err
	}
	return m.importFile(ctx, permit, origin, by, file)
}

// May returns an error if the caller may not import workspaces, before they send one. It records nothing.
func (m *Importer) May(ctx context.Context, origin event.Origin, by id.Workspace) error {
	if by != id.DefaultWorkspace {
		return ErrNotHere
	}
	ruling, err := m.Gate.Judge(ctx, policy.Action{Type: policy.WorkspaceImport, Workspace: by, Principal: origin.Principal,
		Token: origin.Token})
	if err == nil && !ruling.Decision.Allowed() {
		err = fault.New(fault.Denied, ruling.Decision.ReasonCode, "%s", ruling.Decision.Reason).With(ruling.Decision.Suggestion)
	}
	return err
}

// occupied refuses a workspace that has events.
func occupied(head uint64) error {
	if head == 0 {
		return nil
	}
	return journal.ErrOccupied
}

func begun(m Moved, file blob.Ref) workspace.ImportBegun {
	return workspace.ImportBegun{
		Workspace: m.Workspace, File: file.Digest, Size: file.Size, Made: m.Made, Events: m.Events, Contents: m.Contents, Missing: m.Missing,
		Root:   m.Root,
		Signed: m.Size, PublicKey: string(m.PublicKey),
	}
}

func draft(typ string, origin event.Origin, by, of id.Workspace, data any) event.Draft {
	return event.New(typ, origin, by, "", data).About(workspace.EntityType, string(of))
}

func keyOf(key string) string { return "workspace-import:" + key }

// digest is the hash that a repeat under the same key has to match.
func (f File) digest() event.Digest {
	return event.DigestOf([]byte(f.Digest.String() + " " + string(f.Key)))
}

// again returns the import that a request under the same key began, and whether it has come to its end well.
func (m *Importer) again(ctx context.Context, origin event.Origin, by id.Workspace, file File, key string) (workspace.Import, bool, error) {
	if key == "" {
		return workspace.Import{}, false, nil
	}
	events, known, err := journal.Recall(ctx, m.Log, by, keyOf(key), file.digest())
	if err != nil || !known {
		return workspace.Import{}, false, err
	}
	for _, e := range events {
		if e.Type != workspace.EventImportBegun {
			continue
		}
		if err := m.finish(context.WithoutCancel(ctx), by, id.Workspace(e.EntityID)); err != nil {
			return workspace.Import{}, false, err
		}
		doc, _, err := projection.Load[workspace.Import](ctx, m.Docs, by, workspace.Projection, e.EntityID)
		return doc, err == nil && doc.Status == workspace.Imported, err
	}
	return workspace.Import{}, false, fault.New(fault.Internal, "event_missing", "the log did not return the beginning of the import")
}

// importFile does the permitted action, and records the outcome.
func (m *Importer) importFile(ctx context.Context, permit policy.Permit, origin event.Origin, by id.Workspace, file File) (workspace.Import,
	error) {
	allowed, err := permit.Redeem(policy.WorkspaceImport)
	if err == nil && allowed.Content != file.Digest {
		err = policy.ErrPermitMismatch
	}
	ws := id.Workspace(allowed.Target)
	if err == nil {
		_, err = file.Content.Seek(0, io.SeekStart)
	}
	if err == nil {
		defer m.Contents.Hold()() // until the events that name them are there
		_, err = Read(ctx, file.Content, Target{Log: m.Into, Contents: m.Contents, Key: file.Key, Only: ws, Most: MaxWhole})
	}
	if err != nil && ws != "" {
		origin.Key = ""
		_, failed := m.Log.Append(ctx, event.Batch{Workspace: by, Drafts: []event.Draft{
			draft(workspace.EventImportFailed, origin, by, ws, workspace.ImportEnded{Workspace: ws, Error: fault.CodeOf(err)}),
		}})
		return workspace.Import{}, errors.Join(err, failed)
	}
	if err != nil {
		return workspace.Import{}, err
	}
	if err := m.finish(ctx, by, ws); err != nil {
		return workspace.Import{}, err
	}
	doc, _, err := projection.Load[workspace.Import](ctx, m.Docs, by, workspace.Projection, string(ws))
	return doc, err
}

// finish finishes an import that has begun and not ended. If its log was adopted, its spaces end and its runs are taken up. Otherwise
// nothing of it is here.
func (m *Importer) finish(ctx context.Context, by, ws id.Workspace) error {
	doc, version, err := projection.Load[workspace.Import](ctx, m.Docs, by, workspace.Projection, string(ws))
	if err != nil || doc.Status != workspace.Begun {
		return err
	}
	ended, typ := workspace.ImportEnded{Workspace: ws}, workspace.EventImported
	head, err := m.Log.Head(ctx, ws)
	if err != nil {
		return err
	}
	if head == 0 {
		ended.Error, typ = "interrupted", workspace.EventImportFailed
	} else {
		if ended.Spaces, err = LeaveSpaces(ctx, m.Log, m.Docs, ws, m.System); err != nil {
			return err
		}
		if err := m.TakeUp(ctx, ws); err != nil {
			return err
		}
	}
	_, err = m.Log.Append(ctx, event.Batch{
		Workspace: by, Drafts: []event.Draft{draft(typ, event.Origin{Principal: m.System, Causation: doc.By}, by, ws, ended)},
		Documents: []event.DocumentVersion{{Projection: workspace.Projection, Key: string(ws), Version: version}},
	})
	return err
}

// Recover ends the imports that an earlier daemon began.
func (m *Importer) Recover(ctx context.Context) error {
	m.busy.Lock()
	defer m.busy.Unlock()
	for {
		open, err := projection.List[workspace.Import](ctx, m.Docs, projection.Query{
			Workspace: id.DefaultWorkspace, Name: workspace.Projection, Index: projection.Index{Name: workspace.IndexPending, Value: "true"},
		})
		if err != nil || len(open) == 0 {
			return err
		}
		for _, one := range open {
			if err := m.finish(ctx, id.DefaultWorkspace, one.Workspace); err != nil {
				return err
			}
		}
	}
}

// LeaveSpaces ends the spaces of a workspace that came without their files, and says how many have.
func LeaveSpaces(ctx context.Context, log journal.Journal, docs projection.Reader, ws id.Workspace, system id.Principal) (n int,
	err error) {
	for {
		living, err := projection.List[space.Space](ctx, docs, projection.Query{
			Workspace: ws, Name: space.Projection, Index: projection.Index{Name: "living", Value: "true"}, Limit: journal.MaxBatch,
		})
		if err != nil || len(living) == 0 {
			return n, err
		}
		b := event.Batch{Workspace: ws}
		for _, s := range living {
			ended := space.Ended{Space: s.ID, Reason: "moved"}
			b.Drafts = append(b.Drafts, event.New(space.EventDestroyed, event.Origin{Principal: system}, ws, s.Room, ended).About(space.EntityType,
				string(s.ID)))
		}
		if _, err := log.Append(ctx, b); err != nil {
			return n, err
		}
		n += len(living)
	}
}

// Look checks a file against its own hashes, as Read does, and describes its contents. It stores nothing.
func Look(ctx context.Context, from io.Reader, key merkle.PublicKey) (Moved, error) {
	return Read(ctx, from, Target{Log: looking{}, Contents: looking{}, Key: key, Most: MaxWhole})
}

// looking takes everything and keeps nothing.
type looking struct{}

// Adopt implements journal.Adopter.
func (looking) Adopt(ctx context.Context, ws id.Workspace, chunks iter.Seq2[[]event.Event, error], keys iter.Seq2[[]journal.KeyUse,
	error]) (uint64, error) {
	var log journal.Continuity
	for events, err := range chunks {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return 0, err
		}
		if err := log.Next(ws, events); err != nil {
			return 0, err
		}
	}
	if err := log.End(); err != nil {
		return 0, err
	}
	for some, err := range keys {
		if err == nil {
			err = log.Keys(some)
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return 0, err
		}
	}
	return log.Head(), nil
}

// Put implements Keeper.
func (looking) Put(ctx context.Context, r io.Reader, most int64) (blob.Ref, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return blob.Ref{}, err
	case n > most:
		return blob.Ref{}, blob.ErrTooLarge
	}
	return blob.Ref{Digest: event.Digest(sum.Sum(nil)), Size: n}, ctx.Err()
}
