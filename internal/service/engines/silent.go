package engines

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// silentAtOnce is how many runs of silent engines are released at a time.
const silentAtOnce = 100

// releaseSilentRuns releases the runs of a full workspace whose engines are silent for twice as long as a claim lasts. It returns whether
// there was one. Until then only an engine for the same kind of run can take the run over. After that, the run would keep its place from
// all other runs. The run waits again, and the engine that claims it continues it.
func (d *Service) releaseSilentRuns(ctx context.Context, ws id.Workspace) (gave bool) {
	lull := "silent " + string(ws)
	if d.lulls.last(lull, d.passed()) {
		return false
	}
	d.lulls.until(lull, d.passed()+d.ClaimTime/4)
	held, err := projection.List[run.Run](ctx, d.Docs, projection.Query{
		Workspace: ws, Name: run.Projection, Index: Wanted{}.index(run.WithEngine), Limit: silentAtOnce,
	})
	if err != nil {
		d.Logger.Warn("look for runs of silent engines", "code", "silent_runs_unread", "error", err)
		return false
	}
	for _, doc := range held {
		if doc.Claim == nil || !doc.Claimable(d.left(doc)) || d.Clock.Now().Sub(doc.Claim.Until) < d.ClaimTime {
			continue
		}
		if err := d.releaseSilent(ctx, doc.Workspace, doc.ID, doc.Claim.Fence); err != nil {
			if !errors.Is(err, journal.ErrConflict) {
				d.Logger.Warn("give back the run of a silent engine", "code", "silent_run_kept", "run", doc.ID, "error", err)
			}
			continue
		}
		gave = true
	}
	return gave
}

// releaseSilent records that a run waits again, unless its claim has changed.
func (d *Service) releaseSilent(ctx context.Context, ws id.Workspace, r id.Run, fence uint64) error {
	doc, version, err := d.load(ctx, ws, r)
	if err != nil || doc.Claim == nil || doc.Claim.Fence != fence {
		return errors.Join(err, journal.ErrConflict)
	}
	released := run.Released{Run: doc.ID, Attempt: doc.Claim.Attempt, Fence: doc.Claim.Fence, Reason: run.ReleasedSilent}
	receipt, err := d.Log.Append(context.WithoutCancel(ctx), event.Batch{
		Workspace: ws, Drafts: []event.Draft{draft(run.EventReleased, event.Origin{Principal: doc.Claim.Engine}, doc, released)},
		Documents: []event.DocumentVersion{{Projection: run.Projection, Key: string(doc.ID), Version: version}},
	})
	if err != nil {
		return err
	}
	d.terms.Forget(doc.ID)
	if doc, err = after(doc, receipt); err == nil {
		d.bells.offer(doc)
		d.bells.hasRoom(ws)
	}
	return err
}
