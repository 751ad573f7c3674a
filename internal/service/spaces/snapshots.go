package spaces

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Snapshots compares, carries and restores the snapshots of spaces.
type Snapshots struct {
	catalog  *Catalog
	living   *Living
	withheld *withheld
	acts     policy.Client
	gate     policy.Gate
	log      journal.Journal
	docs     projection.Reader
	store    space.Store
	logger   *slog.Logger
	system   id.Principal
}

// ErrBusy refuses to touch the files of a space as a whole while a run or an operation of it is under way.
var ErrBusy = fault.New(fault.Conflict, "space_busy", "a run of the space is under way or waits for a person").
	With("wait for it, or end it: agentbox runs cancel")

// ErrBackground refuses to touch the files of a space as a whole while a background run of it is under way.
var ErrBackground = fault.New(ErrBusy.Kind, ErrBusy.Code, "a background run of the space is under way").
	With("wait for it, or end it: agentbox runs cancel")

// minShortSnapshot is how many digits of a snapshot's hash name it at least.
const minShortSnapshot = 8

// kept returns the statement for an event about a snapshot that was made, or was not.
func kept(s space.Snapshot, err error) space.Kept {
	if err != nil {
		return space.Kept{Error: code(err)}
	}
	return space.Kept{Snapshot: &s}
}

func code(err error) string {
	if c := fault.CodeOf(err); c != "" {
		return c
	}
	return "internal_error"
}

// Past is the past of a space: its records, and the snapshots to which it can return.
type Past struct {
	Recorded []space.Recorded
	Kept     map[event.Digest]bool
	Bytes    int64 // that the kept ones take
}

// List returns the records of a space's snapshots, the newest first. After is the event to continue from.
func (sn *Snapshots) List(ctx context.Context, ws id.Workspace, s id.Space, after id.Event, limit int) (Past, error) {
	doc, err := sn.catalog.Space(ctx, ws, s)
	if err != nil {
		return Past{}, err
	}
	found, err := projection.List[space.Recorded](ctx, sn.docs, projection.Query{
		Workspace: ws, Name: space.SnapshotProjection, Index: projection.Index{Name: "space", Value: string(s)}, After: string(after),
		Newest: true, Limit: limit,
	})
	past := Past{Recorded: found, Kept: map[event.Digest]bool{}}
	if err != nil || doc.Status == space.Destroyed || doc.Status == space.Creating {
		return past, err
	}
	history, err := sn.store.History(doc.ID, doc.UID, doc.Limits)
	if err != nil {
		return past, err
	}
	all, bytes, err := history.Kept(ctx)
	for _, snapshot := range all {
		past.Kept[snapshot.Root] = true
	}
	past.Bytes = bytes
	return past, err
}

// resolve finds the snapshot of a space that a person or a program names. The name is its hash or the first digits of it, the step after
// which it was made, or the run before whose first step it was made.
func (sn *Snapshots) resolve(ctx context.Context, doc space.Space, history space.History, name string) (event.Digest, error) {
	for _, prefix := range []string{"step_", "run_"} {
		if strings.HasPrefix(name, prefix) {
			return sn.recordedAt(ctx, doc, name)
		}
	}
	digits := strings.TrimPrefix(name, "sha256:")
	if len(digits) < minShortSnapshot || strings.Trim(digits, "0123456789abcdef") != "" {
		return event.Digest{}, fault.New(fault.Invalid, "invalid_snapshot",
			"%.80q names no snapshot; give its hash, at least %d digits of it, a step or a run", name, minShortSnapshot)
	}
	all, _, err := history.Kept(ctx)
	if err != nil {
		return event.Digest{}, err
	}
	var found []event.Digest
	for _, s := range all {
		if strings.HasPrefix(s.Root.Hex(), digits) {
			found = append(found, s.Root)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return event.Digest{}, fault.New(fault.NotFound, space.ErrSnapshotNotFound.Code, "the space keeps no snapshot %.80s", name).
			With("agentbox space snapshots lists those that are kept")
	}
	return event.Digest{}, fault.New(fault.Invalid, "invalid_snapshot", "%d snapshots of the space begin with %.80s; give more digits",
		len(found), name)
}

// recordedAt returns the snapshot that was made after a step or before a run.
func (sn *Snapshots) recordedAt(ctx context.Context, doc space.Space, at string) (event.Digest, error) {
	found, err := projection.List[space.Recorded](ctx, sn.docs, projection.Query{
		Workspace: doc.Workspace, Name: space.SnapshotProjection, Index: projection.Index{Name: "at", Value: at}, Limit: 1,
	})
	if err != nil {
		return event.Digest{}, err
	}
	if len(found) == 0 || found[0].Space != doc.ID {
		return event.Digest{}, fault.New(fault.NotFound, space.ErrSnapshotNotFound.Code, "no snapshot of the space was made at %.80s", at).
			With("agentbox space snapshots lists those that were made")
	}
	return found[0].Root, nil
}

// Rewind sets the files of a space to a snapshot. No run of the space may be under way. It also keeps a snapshot of the files before, so
// that a rewind can be rewound.
func (sn *Snapshots) Rewind(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, to string) (space.Rewound, error) {
	leave, err := sn.living.alone(s)
	if err != nil {
		return space.Rewound{}, err
	}
	defer leave()
	doc, version, err := sn.catalog.load(ctx, ws, s)
	if err != nil {
		return space.Rewound{}, err
	}
	switch doc.Status {
	case space.Destroyed:
		return space.Rewound{}, ErrDestroyed
	case space.Ready:
	default:
		return space.Rewound{}, ErrBusy
	}
	history, err := sn.store.History(doc.ID, doc.UID, doc.Limits)
	if err != nil {
		return space.Rewound{}, err
	}
	root, err := sn.resolve(ctx, doc, history, to)
	if err != nil {
		return space.Rewound{}, err
	}
	return sn.rewind(ctx, origin, doc, version, history, root)
}

// rewind takes the rewind through the gate, records its intent, does it and records how it went.
func (sn *Snapshots) rewind(ctx context.Context, origin event.Origin, doc space.Space, version uint64, history space.History,
	root event.Digest) (space.Rewound, error) {
	action := actionOn(policy.SpaceRewind, origin, doc)
	action.Content = root
	ruling, approval, err := sn.acts.Ask(ctx, origin, action)
	if err != nil {
		return space.Rewound{}, err
	}
	begun := space.RewindBegun{Space: doc.ID, To: root, Hash: ruling.Decision.Action}
	permit, _, err := sn.gate.Begin(ctx, ruling, approval, origin.Once(event.Batch{
		Workspace: doc.Workspace,
		Drafts:    []event.Draft{draftOf(space.EventRewindBegun, origin, doc, begun)},
		Documents: []event.DocumentVersion{{Projection: space.Projection, Key: string(doc.ID), Version: version}},
	}))
	if errors.Is(err, journal.ErrConflict) {
		return space.Rewound{}, ErrBusy // a run began a moment ago
	}
	if err != nil {
		return space.Rewound{}, err
	}
	from, now, failed := history.Rewind(ctx, permit)
	done := space.Rewound{Space: doc.ID, From: from.Root, Kept: kept(now, nil)}
	draft := draftOf(space.EventRewound, origin, doc, done)
	if failed != nil {
		draft = draftOf(space.EventRewindFailed, origin, doc, space.RewindFailed{Space: doc.ID, Error: code(failed)})
	}
	_, err = sn.log.Append(context.WithoutCancel(ctx), event.Batch{Workspace: doc.Workspace, Drafts: []event.Draft{draft}})
	return done, errors.Join(failed, err)
}

// Rewinding returns the outcome of the rewind whose intent is at a place of the log.
func (sn *Snapshots) Rewinding(ctx context.Context, ws id.Workspace, s id.Space, place uint64) (space.Rewound, error) {
	found, err := sn.log.Read(ctx, journal.Query{
		Workspace: ws, From: place, EntityType: space.EntityType, EntityID: string(s), Types: []string{space.EventRewound,
			space.EventRewindFailed}, Limit: 1,
	})
	switch {
	case err != nil:
		return space.Rewound{}, err
	case len(found) == 0:
		return space.Rewound{}, ErrBusy
	case found[0].Type == space.EventRewound:
		return event.Decode[space.Rewound](found[0])
	}
	failed, err := event.Decode[space.RewindFailed](found[0])
	if err != nil {
		return space.Rewound{}, err
	}
	return space.Rewound{}, fault.New(fault.Conflict, failed.Error,
		"the files were not rewound").With("rewind again, under another idempotency key")
}

// settle records how a rewind went that an earlier daemon began: opening the space's history finishes it, or finds that it never began.
func (sn *Snapshots) settle(ctx context.Context, doc space.Space) error {
	if doc.Rewinding.IsZero() {
		return nil
	}
	origin := event.Origin{Principal: sn.system}
	now, err := sn.living.Keep(ctx, doc)
	draft := draftOf(space.EventRewound, origin, doc, space.Rewound{Space: doc.ID, Recovered: true, Kept: kept(now, err)})
	if err != nil || now.Root != doc.Rewinding {
		why := "daemon_stopped"
		if err != nil {
			why = code(err)
			sn.logger.Error("finish a rewind", "code", "rewind_not_finished", "space", doc.ID, "error", err)
		}
		draft = draftOf(space.EventRewindFailed, origin, doc, space.RewindFailed{Space: doc.ID, Error: why, Kept: kept(now, err)})
	}
	_, err = sn.log.Append(ctx, event.Batch{Workspace: doc.Workspace, Drafts: []event.Draft{draft}})
	return err
}

// Comparison lists the differences between two snapshots of a space.
type Comparison struct {
	From        event.Digest
	To          event.Digest
	Differences []space.Difference
}

// Diff compares two snapshots of a space. An empty from means the files before the last run, an empty to the files now.
func (sn *Snapshots) Diff(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, from, to string, limit int) (Comparison,
	error) {
	doc, err := sn.catalog.alive(ctx, ws, s)
	if err != nil {
		return Comparison{}, err
	}
	history, err := sn.store.History(doc.ID, doc.UID, doc.Limits)
	if err != nil {
		return Comparison{}, err
	}
	var c Comparison
	if c.To, err = sn.state(ctx, doc, history, to); err != nil {
		return c, err
	}
	if from == "" {
		c.From, err = sn.beforeLastRun(ctx, doc)
	} else {
		c.From, err = sn.resolve(ctx, doc, history, from)
	}
	if err != nil {
		return c, err
	}
	action := policy.Action{
		Type: policy.SpaceDiff, Workspace: ws, Room: doc.Room, Principal: origin.Principal, Token: origin.Token, Space: s, Content: c.To,
		Target: c.From.String(), Bundle: doc.Bundle,
	}
	permit, hash, err := sn.glance(ctx, origin, action)
	if err != nil {
		return c, err
	}
	if c.Differences, err = history.Diff(ctx, permit, limit); err != nil {
		return c, err
	}
	for i := range c.Differences {
		sn.veil(ctx, origin, doc, &c.Differences[i])
	}
	_, err = sn.log.Append(ctx, event.Batch{Workspace: ws, Drafts: []event.Draft{
		fileDraft(space.EventFileRead, origin, doc, space.FileRead{Space: s, Action: action.Type, Path: ".", Hash: hash}, event.Beginning),
	}})
	return c, err
}

// Carry writes a snapshot of a space as a tar.gz file with at most most bytes of content. It leaves out files that the caller may
// not read one by one, and returns how many.
func (sn *Snapshots) Carry(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, root event.Digest, most int64,
	w io.Writer) (omitted int, err error) {
	doc, err := sn.catalog.alive(ctx, ws, s)
	if err != nil {
		return 0, err
	}
	history, err := sn.store.History(doc.ID, doc.UID, doc.Limits)
	if err != nil {
		return 0, err
	}
	action := policy.Action{
		Type: policy.FileArchive, Workspace: ws, Room: doc.Room, Principal: origin.Principal, Token: origin.Token, Space: s, Path: ".",
		Content: root, MaxBytes: most,
		Bundle: doc.Bundle,
	}
	permit, hash, err := sn.glance(ctx, origin, action)
	if err != nil {
		return 0, err
	}
	omitted, err = history.Archive(ctx, permit, w, func(path string) bool { return sn.mayRead(ctx, origin, doc, path) })
	if err != nil {
		return omitted, err
	}
	origin.Key = "" // looking changes nothing; a key is that of a change
	_, err = sn.log.Append(ctx, event.Batch{Workspace: ws, Drafts: []event.Draft{
		fileDraft(space.EventFileRead, origin, doc, space.FileRead{Space: s, Action: action.Type, Path: ".", Hash: hash}, event.Beginning),
	}})
	return omitted, err
}

// mayRead reports whether policy lets the caller read a file of a space.
func (sn *Snapshots) mayRead(ctx context.Context, origin event.Origin, doc space.Space, path string) bool {
	if !person(origin) { // a snapshot may be older than the policy
		held, err := sn.withheld.rules(ctx, doc)
		if _, match := held.Match(path); err != nil || match {
			return false
		}
	}
	ruling, err := sn.gate.Judge(ctx, policy.Action{Type: policy.FileRead, Workspace: doc.Workspace, Principal: origin.Principal,
		Token: origin.Token, Space: doc.ID, Path: path})
	return err == nil && ruling.Decision.Allowed()
}

// veil takes the hashes of content out of a difference in a file that the caller may not read: short content could be found by trying.
func (sn *Snapshots) veil(ctx context.Context, origin event.Origin, doc space.Space, d *space.Difference) {
	if sn.mayRead(ctx, origin, doc, d.Path) {
		return
	}
	for _, v := range []*space.Version{d.Before, d.After} {
		if v != nil {
			v.Digest = event.Digest{}
		}
	}
}

// glance takes a reading action through the gate and returns its permit and its hash.
func (sn *Snapshots) glance(ctx context.Context, origin event.Origin, a policy.Action) (policy.Permit, event.Digest, error) {
	ruling, err := sn.acts.Allow(ctx, origin, a)
	if err != nil {
		return policy.Permit{}, event.Digest{}, err
	}
	permit, err := sn.gate.Glance(ruling)
	return permit, ruling.Decision.Action, err
}

// state returns the snapshot that is named, or makes one of the files as they are now.
func (sn *Snapshots) state(ctx context.Context, doc space.Space, history space.History, name string) (event.Digest, error) {
	if name != "" {
		return sn.resolve(ctx, doc, history, name)
	}
	leave, err := sn.living.Seize(doc.ID)
	if err != nil {
		return event.Digest{}, ErrBusy.With("wait for it, or name one of the snapshots of: agentbox space snapshots SPACE")
	}
	defer leave()
	now, err := history.Keep(ctx)
	return now.Root, err
}

// beforeLastRun returns the snapshot before the last run of a space, or that of its creation.
func (sn *Snapshots) beforeLastRun(ctx context.Context, doc space.Space) (event.Digest, error) {
	q := projection.Query{
		Workspace: doc.Workspace, Name: space.SnapshotProjection, Index: projection.Index{Name: "start", Value: string(doc.ID)}, Newest: true,
		Limit: 1,
	}
	found, err := projection.List[space.Recorded](ctx, sn.docs, q)
	if err != nil {
		return event.Digest{}, err
	}
	if len(found) == 0 {
		return event.Digest{}, fault.New(fault.NotFound, space.ErrSnapshotNotFound.Code, "no snapshot of the space was recorded yet")
	}
	return found[0].Root, nil
}

// Sync makes the snapshots of all spaces outlive a power cut.
func (sn *Snapshots) Sync(ctx context.Context) error { return sn.store.Sync(ctx) }

// SnapshotDefinition keeps the documents of snapshots.
func SnapshotDefinition() projection.Definition {
	keys := func(e event.Event) []string {
		if _, ok, err := space.RecordedIn(e); err != nil || !ok {
			return nil
		}
		return []string{string(e.ID)}
	}
	fold := func(_ space.Recorded, _ string, e event.Event) (space.Recorded, error) {
		r, _, err := space.RecordedIn(e)
		return r, err
	}
	return projection.Define(space.SnapshotProjection, 1, keys, fold, func(r space.Recorded) []projection.Index {
		found := []projection.Index{{Name: "space", Value: string(r.Space)}}
		switch {
		case r.Step != "":
			found = append(found, projection.Index{Name: "at", Value: string(r.Step)})
		case r.Run != "":
			found = append(found, projection.Index{Name: "at", Value: string(r.Run)}, projection.Index{Name: "start", Value: string(r.Space)})
		case r.Cause == space.EventReady:
			found = append(found, projection.Index{Name: "start", Value: string(r.Space)})
		}
		return found
	})
}
