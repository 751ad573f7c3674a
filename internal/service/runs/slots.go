package runs

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// enterTries bounds how often a run tries to take its place while other runs take and leave places.
const enterTries = 64

// slot returns the document versions that the log must expect so that the run takes one of its workspace's slots. It returns run.ErrFull if
// no slot is free, or if other runs of this daemon have waited longer. A child uses the slot of its parent while the parent has not ended.
func (r *record) slot(ctx context.Context) ([]event.DocumentVersion, error) {
	if r.doc.Parent != nil {
		return r.alive(ctx)
	}
	if r.doc.Background {
		return nil, nil
	}
	ws := r.doc.Workspace
	load, version, err := projection.Load[run.Load](ctx, r.x.Docs, ws, run.LoadProjection, string(ws))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return nil, err
	}
	tenant, _, err := projection.Load[workspace.Workspace](ctx, r.x.Docs, ws, workspace.Workspaces, string(ws))
	if errors.Is(err, projection.ErrNotFound) {
		tenant, err = workspace.Unsaid(ws), nil
	}
	if err == nil && load.Room(tenant.Tasks) <= r.x.ahead(r.entry) {
		err = run.ErrFull
	}
	if err == nil && load.Ample(tenant.Tasks, int(r.x.entering.Load())) {
		return nil, nil
	}
	return []event.DocumentVersion{{Projection: run.LoadProjection, Key: string(ws), Version: version}}, err
}

// appendInSlot records an event with which the run takes its place.
func (r *record) appendInSlot(ctx context.Context, draft event.Draft) error {
	receipt, err := r.inSlot(ctx, func(place []event.DocumentVersion) (event.Receipt, error) {
		batch := r.batch(draft)
		batch.Documents = append(batch.Documents, place...)
		return r.x.Log.Append(context.WithoutCancel(ctx), batch)
	})
	if err != nil {
		return err
	}
	return r.fold(receipt)
}

// inSlot calls record with the document versions of a free slot. It repeats that if another run was first.
func (r *record) inSlot(ctx context.Context, record func(place []event.DocumentVersion) (event.Receipt, error)) (event.Receipt, error) {
	r.x.entering.Add(1)
	defer r.x.entering.Add(-1)
	for try := 1; ; try++ {
		place, err := r.slot(ctx)
		if err != nil {
			return event.Receipt{}, err
		}
		receipt, err := record(place)
		if err == nil {
			r.x.setFull(r.x.queueOf(r.entry), false)
		}
		if !errors.Is(err, journal.ErrConflict) || len(place) == 0 || try == enterTries || ctx.Err() != nil {
			return receipt, err
		}
		doc, err := r.x.Docs.Document(ctx, r.doc.Workspace, run.Projection, string(r.doc.ID))
		if err != nil || doc.Version != r.version {
			return event.Receipt{}, errors.Join(journal.ErrConflict, err) // it is not the place that was taken
		}
	}
}
