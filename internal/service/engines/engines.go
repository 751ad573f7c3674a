// Package engines hands runs out to engines, which execute them, and keeps what engines record: claims, steps, tool calls, artifacts.
//
// An engine owns a run as long as its claim lasts. Each of its records expects the run to be unchanged since its claim token was checked.
// So an engine that has lost its claim changes nothing, however late it wakes.
package engines

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"time"

	"agentbox/internal/domain/content"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/claim"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Parts are the dependencies of the service.
type Parts struct {
	Log        journal.Journal
	Docs       projection.Reader
	Blobs      blob.Store
	MaxContent int64 // bytes of content that the log of a workspace may name; 0 for without limit
	Gate       policy.Gate
	Tokens     claim.Tokens
	ClaimTime  time.Duration // how long an engine owns a run without being heard of; 0 for run.ClaimTime
	Seal       policy.Seal   // signs the permits of engines; the zero Seal signs none
	Place      Place
	Clock      event.Clock
	IDs        *id.Source
	Logger     *slog.Logger

	Together bool // other daemons record claims too

	// Keep stores the files of a space that a run keeps as artifacts when it ends, and returns their events and what its end says of them; nil
	// for a run that keeps none. The field may be nil, for a daemon without spaces.
	Keep func(ctx context.Context, origin event.Origin, doc run.Run) ([]event.Draft, *run.Gathered)
}

// Place refuses a room that the workspace does not have, and a thread that the room does not have; an empty thread is none.
type Place func(ctx context.Context, ws id.Workspace, room id.Room, thread id.Thread) error

// Service hands out runs. Make it with New; every method may be called from any goroutine.
type Service struct {
	Parts

	begun time.Time
	terms *claim.Terms
	hands hands
	lulls lulls
	bells bells

	denials lulls // of claims, which are not recorded again so soon

	Steps     *Steps
	Artifacts *Artifacts
	Evidence  *Evidence
	Permits   *Permits
	Look      *Look
}

// New returns a service of the given parts.
func New(parts Parts) *Service {
	if parts.ClaimTime == 0 {
		parts.ClaimTime = run.ClaimTime
	}
	now := parts.Clock.Now()
	terms := claim.NewTerms(now)
	if parts.Together {
		terms = claim.NewTermsTogether(now)
	}
	d := &Service{Parts: parts, begun: now, terms: terms}
	d.Steps, d.Artifacts, d.Permits, d.Look = &Steps{d}, &Artifacts{d}, &Permits{d}, &Look{d}
	d.Evidence = &Evidence{service: d, settling: newSettling()}
	return d
}

// Hold names a run, and the token that shows that an engine holds it; "" if nobody has claimed it.
type Hold struct {
	Workspace id.Workspace
	Run       id.Run
	Token     string
	Permit    string // the text of the permit that was in the answer to the claim, "" for none; of what ends the run
}

// Shown is what an engine shows with the outcome of a tool call: the token of its claim, and the permit of the call, "" for none.
type Shown struct{ Token, Permit string }

// tries bounds how often an event is recorded again because the run has changed meanwhile.
const tries = 16

// Find returns a run of the workspace.
func (d *Service) Find(ctx context.Context, ws id.Workspace, r id.Run) (run.Run, error) {
	doc, _, err := d.load(ctx, ws, r)
	return doc, err
}

func (d *Service) load(ctx context.Context, ws id.Workspace, r id.Run) (run.Run, uint64, error) {
	doc, version, err := projection.Load[run.Run](ctx, d.Docs, ws, run.Projection, string(r))
	if errors.Is(err, projection.ErrNotFound) {
		err = run.ErrNotFound
	}
	return doc, version, err
}

// left returns what remains of the claim of a run.
func (d *Service) left(doc run.Run) time.Duration {
	if doc.Claim == nil {
		return 0
	}
	return d.terms.Left(held(doc), d.Clock.Now())
}

func held(doc run.Run) claim.Held {
	return claim.Held{Run: doc.ID, Fence: doc.Claim.Fence, Renewed: doc.Claim.Renewed, Until: doc.Claim.Until}
}

// saw notes a claim, or its renewal, that was recorded just now.
func (d *Service) saw(doc run.Run) {
	if doc.Claim != nil {
		d.terms.Saw(held(doc), d.Clock.Now())
	}
}

// entry is a record about a run, and its action.
type entry struct {
	action policy.Action // its workspace, room, principal, run and fence are filled in
	drafts []event.Draft
	expect []event.DocumentVersion // beside the run's own
}

// record records an event of a run for the principal who holds it. It calls make with the current run, again each time the run has changed.
func (d *Service) record(ctx context.Context, origin event.Origin, h Hold, make func(run.Run) (entry, error)) (run.Run, event.Receipt,
	error) {
	for try := 1; ; try++ {
		doc, version, err := d.load(ctx, h.Workspace, h.Run)
		if err != nil {
			return doc, event.Receipt{}, err
		}
		if err := doc.MayWrite(h.Token, d.left(doc)); err != nil {
			return doc, event.Receipt{}, err
		}
		e, err := make(doc)
		if err != nil {
			return doc, event.Receipt{}, err
		}
		receipt, err := d.append(ctx, origin, doc, version, e)
		if errors.Is(err, journal.ErrConflict) && try < tries {
			continue
		}
		return doc, receipt, err
	}
}

// append takes an entry through the gate, under the expectation that the run has not changed.
func (d *Service) append(ctx context.Context, origin event.Origin, doc run.Run, version uint64, e entry) (event.Receipt, error) {
	a := e.action
	a.Workspace, a.Room, a.Run, a.Fence = doc.Workspace, doc.Room, doc.ID, max(a.Fence, doc.Fence)
	if a.Principal == "" {
		a.Principal = origin.Principal
	}
	if a.Token == "" {
		a.Token = origin.Token
	}
	return d.Gate.Record(ctx, origin, a, origin.Once(event.Batch{
		Workspace: doc.Workspace, Drafts: e.drafts,
		Documents: append(e.expect, event.DocumentVersion{Projection: run.Projection, Key: string(doc.ID), Version: version}),
	}))
}

// draft drafts an event about a run itself.
func draft(typ string, origin event.Origin, doc run.Run, data any) event.Draft {
	if origin.Correlation == "" {
		origin.Correlation = doc.Correlation
	}
	d := event.New(typ, origin, doc.Workspace, doc.Room, data).About(run.EntityType, string(doc.ID)).In(doc.ID, "")
	d.Thread = doc.Thread
	return d
}

// after returns the run as the events of a receipt leave it.
func after(doc run.Run, receipt event.Receipt) (run.Run, error) {
	for _, e := range receipt.Events {
		if !run.Touches(e) || e.Run != doc.ID {
			continue
		}
		var err error
		if doc, err = run.Evolve(doc, e); err != nil {
			return doc, err
		}
	}
	return doc, nil
}

// slot returns the document versions that the log must expect for one more running run of a workspace, or run.ErrFull.
func (d *Service) slot(ctx context.Context, ws id.Workspace) ([]event.DocumentVersion, error) {
	freed := d.bells.freed(ws)
	load, version, err := projection.Load[run.Load](ctx, d.Docs, ws, run.LoadProjection, string(ws))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return nil, err
	}
	tenant, _, err := projection.Load[workspace.Workspace](ctx, d.Docs, ws, workspace.Workspaces, string(ws))
	if errors.Is(err, projection.ErrNotFound) {
		tenant, err = workspace.Unsaid(ws), nil
	}
	if err == nil && load.Room(tenant.Tasks) == 0 {
		d.bells.isFull(ws, freed)
		err = run.ErrFull
	}
	if err == nil && !d.Together && load.Ample(tenant.Tasks, d.hands.count()) {
		return nil, nil
	}
	return []event.DocumentVersion{{Projection: run.LoadProjection, Key: string(ws), Version: version}}, err
}

// contentRoom refuses content that the workspace's quota has no room for. It returns the document versions that the log must expect, so
// that two concurrent writers do not take the same room.
func (d *Service) contentRoom(ctx context.Context, ws id.Workspace, size int64) ([]event.DocumentVersion, error) {
	used, version, err := projection.Load[content.Usage](ctx, d.Docs, ws, content.Projection, string(ws))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return nil, err
	}
	if err := used.Room(size, d.MaxContent); err != nil || used.Ample(size, d.MaxContent) {
		return nil, err
	}
	return []event.DocumentVersion{{Projection: content.Projection, Key: string(ws), Version: version}}, nil
}

// digest returns the hash that an action contains for the JSON that is recorded with it.
func digest(values ...any) event.Digest {
	raw, _ := json.Marshal(values) // the values were decoded from JSON
	return event.DigestOf(raw)
}

// inEvent reads content that is stored in an event.
func inEvent(raw []byte) io.ReadSeekCloser { return unclosed{bytes.NewReader(raw)} }

type unclosed struct{ *bytes.Reader }

// Close implements io.Closer.
func (unclosed) Close() error { return nil }

func asAsked(err error) (*policy.Asked, bool) { return errors.AsType[*policy.Asked](err) }

// message returns the text of an error for people.
func message(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Msg
	}
	return err.Error()
}
