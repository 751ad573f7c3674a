package gc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
)

var _ vault.Forgetter = (*Service)(nil)

// brought is the content that redacted events have brought, and its fate.
type brought struct {
	ws      id.Workspace
	events  map[id.Event]bool
	frames  map[id.Run][]string       // operations whose output goes
	content map[event.Digest]id.Event // candidates, each with the first of the events that brought it
	shared  map[event.Digest]string   // those that something else names, and what
	spaces  map[id.Space]bool         // in which it was brought
	missed  []string
}

// ForgetContent implements vault.Forgetter. It forgets content that the events name, the output of their operations, and files that first
// appeared in the snapshots of these operations. It keeps content that a remaining event names too, that an earlier snapshot holds, or
// that a space holds which is not a fork of theirs. It does not touch files of living spaces.
func (s *Service) ForgetContent(ctx context.Context, events []event.Event) (vault.Remains, error) {
	byWorkspace := map[id.Workspace][]event.Event{}
	for _, e := range events {
		byWorkspace[e.Workspace] = append(byWorkspace[e.Workspace], e)
	}
	var remains vault.Remains
	for ws, events := range byWorkspace {
		if err := s.forgetIn(ctx, ws, events, &remains); err != nil {
			return remains, err
		}
	}
	return remains, nil
}

func (s *Service) forgetIn(ctx context.Context, ws id.Workspace, events []event.Event, remains *vault.Remains) error {
	b := &brought{
		ws: ws, events: map[id.Event]bool{}, frames: map[id.Run][]string{}, content: map[event.Digest]id.Event{},
		shared: map[event.Digest]string{},
		spaces: map[id.Space]bool{},
	}
	for _, e := range events {
		b.events[e.ID] = true
		if e.Withheld != "" {
			continue // its content was forgotten before its data were
		}
		if err := s.of(ctx, b, e); err != nil {
			return err
		}
	}
	for run, operations := range b.frames {
		if err := s.Live.Forget(run, operations...); err != nil {
			return err
		}
		remains.Forgotten += len(operations)
	}
	if len(b.content) > 0 {
		if err := s.named(ctx, b); err != nil {
			return err
		}
		if err := s.held(ctx, b, remains); err != nil {
			return err
		}
	}
	var gone []event.Digest
	for d := range b.content {
		if why, ok := b.shared[d]; ok {
			remains.Shared = append(remains.Shared, d.String()+": "+why)
			continue
		}
		gone = append(gone, d)
	}
	slices.Sort(remains.Shared)
	remains.Forgotten += len(gone)
	remains.Missed = append(remains.Missed, b.missed...)
	if len(gone) == 0 {
		return nil
	}
	if err := s.Blobs.Forget(ctx, gone...); err != nil {
		return err
	}
	return s.purge(ctx, gone)
}

// add adds a candidate; content of no bytes says nothing.
func (b *brought) add(d event.Digest, by event.Event) {
	if d.IsZero() || d == event.DigestOf(nil) {
		return
	}
	if first, ok := b.content[d]; !ok || by.ID < first {
		b.content[d] = by.ID
	}
}

// of finds the content that an event has brought.
func (s *Service) of(ctx context.Context, b *brought, e event.Event) error {
	contents, err := run.ContentsOf(e)
	if err != nil {
		return err
	}
	for _, c := range contents {
		b.add(c.Digest, e)
	}
	switch e.Type {
	case run.EventCreated:
		b.frames[e.Run] = append(b.frames[e.Run], "") // the end of the run
	case run.EventInvoked, run.EventSucceeded, run.EventErred, run.EventUnknown:
		d, err := event.Decode[struct {
			Operation string `json:"operation_id"`
		}](e)
		if err != nil {
			return err
		}
		if !slices.Contains(b.frames[e.Run], d.Operation) {
			b.frames[e.Run] = append(b.frames[e.Run], d.Operation)
		}
	}
	if e.Type == model.EventAnswered || e.Type == model.EventFailed { // its pieces stand under its name
		b.frames[e.Run] = append(b.frames[e.Run], e.EntityID)
	}
	b.add(written(e), e)
	if e.EntityType == space.EntityType {
		b.spaces[id.Space(e.EntityID)] = true
	}
	if e.Type != run.EventSucceeded && e.Type != run.EventErred {
		return nil
	}
	made, ok, err := space.RecordedIn(e)
	if err != nil || !ok {
		return err
	}
	return s.files(ctx, b, e, made)
}

// written returns the content of a file that an event says is to be written, zero for none.
func written(e event.Event) event.Digest {
	switch e.Type {
	case space.EventFileBegun:
		if d, err := event.Decode[space.FileBegun](e); err == nil {
			return d.Content
		}
	case run.EventInvoked:
		if d, err := event.Decode[run.Invoked](e); err == nil {
			if a, err := policy.ParseAction(d.Input); err == nil && a.Type == policy.FileCreate {
				return a.Content
			}
		}
	}
	return event.Digest{}
}

// files adds the files that a snapshot holds and the one before it does not.
func (s *Service) files(ctx context.Context, b *brought, e event.Event, made space.Recorded) error {
	missed := func(why string) {
		b.missed = append(b.missed, fmt.Sprintf("the files that %s brought: %s", made.Event, why))
	}
	doc, _, err := projection.Load[space.Space](ctx, s.Docs, b.ws, space.Projection, string(made.Space))
	if err != nil {
		return err
	}
	if doc.Status == space.Destroyed || doc.Status == space.Creating {
		missed("the space was destroyed, and with it what its files were; a copy of it that was made before may hold them")
		return nil
	}
	before, err := projection.List[space.Recorded](ctx, s.Docs, projection.Query{
		Workspace: b.ws, Name: space.SnapshotProjection, Index: projection.Index{Name: "space", Value: string(made.Space)},
		After: string(made.Event), Newest: true, Limit: 1,
	})
	if err != nil {
		return err
	}
	var from event.Digest
	if len(before) > 0 {
		from = before[0].Root
	}
	if from == made.Root {
		return nil
	}
	history, err := s.Spaces.History(doc.ID, doc.UID, doc.Limits)
	if errors.Is(err, space.ErrFilesMissing) {
		missed("the files of " + string(doc.ID) + " are on another host")
		return nil
	}
	if err != nil {
		return err
	}
	found, err := history.Brought(ctx, from, made.Root)
	if fault.CodeOf(err) == space.ErrSnapshotDamaged.Code {
		missed("a snapshot is not kept any more")
		return nil
	}
	for d := range found {
		b.add(d, e)
	}
	return err
}

// held finds the content that snapshots hold which have it from elsewhere, and the files that hold it now.
func (s *Service) held(ctx context.Context, b *brought, remains *vault.Remains) error {
	wanted := map[event.Digest]bool{}
	for d := range b.content {
		wanted[d] = true
	}
	err := s.living(ctx, b.ws, func(doc space.Space) error {
		history, err := s.Spaces.History(doc.ID, doc.UID, doc.Limits)
		if errors.Is(err, space.ErrFilesMissing) {
			b.missed = append(b.missed, "the files of "+string(doc.ID)+" are on another host, and may hold it")
			return nil
		}
		if err != nil {
			return err
		}
		kept, err := history.Bearing(ctx, wanted)
		if err != nil {
			return err
		}
		from, err := s.origin(ctx, b, doc, kept)
		if err != nil {
			return err
		}
		for i, k := range kept {
			for d, path := range k.Files {
				if !from(k.Root, d) {
					b.shared[d] = fmt.Sprintf("the snapshot %s of %s holds it", k.Root, doc.ID)
				}
				if i == len(kept)-1 {
					remains.Live = append(remains.Live, string(doc.ID)+": "+path)
				}
			}
		}
		return nil
	})
	slices.Sort(remains.Live)
	return err
}

// origin returns a function that reports whether a snapshot of a space has content from the events that are redacted: it was made after
// them in their own space, or it is one of a fork that began with the content.
func (s *Service) origin(ctx context.Context, b *brought, doc space.Space, kept []space.Bearing) (func(root, d event.Digest) bool, error) {
	if b.spaces[doc.ID] {
		made, err := s.made(ctx, doc)
		return func(root, d event.Digest) bool {
			first, recorded := made[root]
			return !recorded || first >= b.content[d]
		}, err
	}
	heir, err := s.heir(ctx, b, doc)
	var began *space.Bearing // nil where it is not kept any more
	for i := range kept {
		if kept[i].Root == doc.ForkedAt {
			began = &kept[i]
		}
	}
	return func(_, d event.Digest) bool {
		if !heir || began == nil {
			return heir
		}
		_, had := began.Files[d]
		return had
	}, err
}

// made returns the first event of each snapshot that was recorded of a space.
func (s *Service) made(ctx context.Context, doc space.Space) (map[event.Digest]id.Event, error) {
	first := map[event.Digest]id.Event{}
	q := projection.Query{
		Workspace: doc.Workspace, Name: space.SnapshotProjection, Index: projection.Index{Name: "space", Value: string(doc.ID)}, Limit: 1000,
	}
	for {
		found, err := projection.List[space.Recorded](ctx, s.Docs, q)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			if _, known := first[r.Root]; !known {
				first[r.Root] = r.Event
			}
			q.After = string(r.Event)
		}
		if len(found) < q.Limit {
			return first, nil
		}
	}
}

// heir reports whether a space is a fork, or a fork of a fork, of one in which the content was brought.
func (s *Service) heir(ctx context.Context, b *brought, doc space.Space) (bool, error) {
	for range 1000 {
		if doc.ForkedFrom == "" {
			return false, nil
		}
		if b.spaces[doc.ForkedFrom] {
			return true, nil
		}
		parent, _, err := projection.Load[space.Space](ctx, s.Docs, b.ws, space.Projection, string(doc.ForkedFrom))
		if errors.Is(err, projection.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		doc = parent
	}
	return false, nil
}

// purge removes unsealed copies that an earlier version stored.
func (s *Service) purge(ctx context.Context, gone []event.Digest) error {
	contents := map[event.Digest]bool{}
	for _, d := range gone {
		contents[d] = true
	}
	workspaces, err := s.Log.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, ws := range workspaces {
		err := s.living(ctx, ws, func(doc space.Space) error {
			history, err := s.Spaces.History(doc.ID, doc.UID, doc.Limits)
			if errors.Is(err, space.ErrFilesMissing) {
				return nil // its host has it, sealed under keys that are destroyed
			}
			if err != nil {
				return err
			}
			return history.Purge(ctx, contents)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
