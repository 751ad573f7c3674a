package redaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/step"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// ErrForgotten refuses to keep data that are gone.
var ErrForgotten = fault.New(fault.Conflict, "run_forgotten",
	"the retention time of this run's data is over; they were redacted and cannot be restored")

// ErrImported refuses a retention time for an imported run, whose one event is never redacted.
var ErrImported = fault.New(fault.Invalid, "not_redactable", "the run was imported; what it brought is not redacted")

// ofRuns are the events of a run of which something is redacted.
var ofRuns = []string{
	run.EventCreated, run.EventStarted, run.EventInvoked, run.EventSucceeded, run.EventErred, run.EventUnknown, run.EventSuspended,
	run.EventResumed, run.EventInput,
	run.EventCompleted, run.EventFailed, run.EventCancelled, run.EventClaimed, run.EventRenewed, run.EventReleased,
	step.EventCreated, step.EventArtifactCreated, step.EventArtifactStored,
	policy.ApprovalRequestedType, policy.ApprovalAssentedType, policy.ApprovalDecidedType, policy.ApprovalUsedType, policy.ApprovalExpiredType,
	policy.ApprovalWithdrawnType, policy.DeniedType, policy.RequiresApprovalType, policy.BegunType,
}

// OfRuns returns the longest time for which the rules keep everything of a run, 0 for however long.
func (r Retention) OfRuns() (shortest time.Duration) {
	for pattern, keep := range r {
		if slices.ContainsFunc(ofRuns, func(typ string) bool { return fits(pattern, typ) }) && (shortest == 0 || keep < shortest) {
			shortest = keep
		}
	}
	return shortest
}

// Definition keeps the documents of when the time of runs' data is over.
func Definition() projection.Definition {
	keys := func(e event.Event) (keys []string) {
		said, err := run.RetentionsOf(e)
		if err != nil {
			return nil
		}
		for _, r := range said {
			keys = append(keys, r.Key())
		}
		return keys
	}
	fold := func(r run.Retention, key string, e event.Event) (run.Retention, error) {
		said, err := run.RetentionsOf(e)
		for _, s := range said { // one that is set to the moment that it had is not over
			if s.Key() == key {
				r = s
			}
		}
		return r, err
	}
	return projection.Define(run.RetentionProjection, 1, keys, fold, func(r run.Retention) []projection.Index {
		if r.Over {
			return nil
		}
		return []projection.Index{{Name: run.RetentionPending, Value: "true"}}
	})
}

// Retain sets how long the data of a run that has ended are kept, counted from its end: whole seconds, or 0 for as long as those of other
// runs. It takes the right to redact. A run whose time is over then is redacted by the next step.
func (r *Service) Retain(ctx context.Context, origin event.Origin, ws id.Workspace, of id.Run, keep time.Duration) (run.Run, error) {
	r.busy.Lock()
	defer r.busy.Unlock()
	doc, version, err := r.run(ctx, ws, of)
	if err != nil {
		return doc, err
	}
	most := r.Retention.OfRuns()
	switch {
	case keep != 0 && (keep < run.MinRetention || keep > run.MaxRetention || keep%time.Second != 0):
		return doc, fault.New(fault.Invalid, "retention_invalid", "the data of a run are kept from %s to %s, in whole seconds", run.MinRetention,
			run.MaxRetention)
	case most > 0 && keep > most:
		return doc, run.TooLong(most)
	case doc.Imported != nil:
		return doc, ErrImported
	case !doc.Status.Ended():
		return doc, ErrActive
	case !doc.Forgotten.IsZero():
		return doc, ErrForgotten
	}
	ruling, err := r.through().Allow(ctx, origin, policy.Action{Type: policy.AuditRedact, Workspace: ws, Principal: origin.Principal,
		Token: origin.Token, Run: of})
	if err != nil {
		return doc, err
	}
	retained := run.Retained{Run: of, Retention: int64(keep / time.Second), Was: doc.KeptUntil}
	if keep > 0 {
		retained.Until = doc.EndedAt.UTC().Add(keep)
	}
	batch := retention(origin, doc, run.EventRetained, retained)
	batch.Documents = []event.DocumentVersion{{Projection: run.Projection, Key: string(of), Version: version}}
	if _, _, err := r.Gate.Begin(ctx, ruling, "", origin.Once(batch)); err != nil {
		return doc, err
	}
	doc, _, err = r.run(ctx, ws, of)
	return doc, err
}

// retention is the batch of an event about how long the data of a run are kept.
func retention(origin event.Origin, doc run.Run, typ string, data any) event.Batch {
	draft := event.New(typ, origin, doc.Workspace, doc.Room, data).In(doc.ID, "")
	if doc.Space != "" { // a run of which nothing is known any more does not know its space
		draft = draft.About(space.EntityType, string(doc.Space))
	}
	return event.Batch{Workspace: doc.Workspace, Drafts: []event.Draft{draft}}
}

func (r *Service) run(ctx context.Context, ws id.Workspace, of id.Run) (run.Run, uint64, error) {
	doc, version, err := projection.Load[run.Run](ctx, r.Docs, ws, run.Projection, string(of))
	if errors.Is(err, projection.ErrNotFound) {
		err = fault.New(fault.NotFound, "run_not_found", "there is no run %.64s in this workspace", of)
	}
	return doc, version, err
}

// maxRuns is how many runs one step redacts, so that a person's redaction need not wait for all of them.
const maxRuns = 20

// runs redacts the runs whose own time is over, the rest with the next step. The clock was set back, or may have been before a start:
// then what ended in its future is counted from now.
func (r *Service) runs(ctx context.Context, ws id.Workspace, now time.Time, back bool) error {
	if back || !r.counted[ws] {
		if err := r.recount(ctx, ws, now); err != nil {
			return err
		}
		r.counted[ws] = true
	}
	due, err := r.pending(ctx, ws, "", maxRuns)
	if err != nil {
		return err
	}
	over := slices.IndexFunc(due, func(one run.Retention) bool { return one.Until.After(now) })
	if over >= 0 {
		due = due[:over]
	}
	return r.end(ctx, ws, due)
}

// pending lists retentions that have not come to their end, those that come to it first, behind a key.
func (r *Service) pending(ctx context.Context, ws id.Workspace, after string, limit int) ([]run.Retention, error) {
	return projection.List[run.Retention](ctx, r.Docs, projection.Query{
		Workspace: ws, Name: run.RetentionProjection, Index: projection.Index{Name: run.RetentionPending, Value: "true"}, After: after,
		Limit: limit,
	})
}

// recount sets the retention times of runs again whose end lies in the future of the present clock. Otherwise they would be kept longer, by
// as much as the clock was set back.
func (r *Service) recount(ctx context.Context, ws id.Workspace, now time.Time) error {
	for after := ""; ; {
		page, err := r.pending(ctx, ws, after, projection.MaxDocuments)
		if err != nil {
			return err
		}
		for _, one := range page {
			after = one.Key()
			keep := time.Duration(one.Seconds) * time.Second
			if keep == 0 || !one.Until.After(now.Add(keep)) {
				continue
			}
			doc, _, err := r.run(ctx, ws, one.Run)
			if err != nil {
				return err
			}
			again := run.Retained{Run: one.Run, Retention: one.Seconds, Until: now.UTC().Add(keep), Was: one.Until}
			if _, err := r.Log.Append(ctx, retention(event.Origin{Principal: r.System}, doc, run.EventRetained, again)); err != nil {
				return err
			}
		}
		if len(page) < projection.MaxDocuments {
			return nil
		}
	}
}

// end redacts everything of runs whose time is over; the runs of one step together. Then it records for each that it is done. The next step
// finishes it after a crash.
func (r *Service) end(ctx context.Context, ws id.Workspace, over []run.Retention) error {
	if len(over) == 0 {
		return nil
	}
	head, err := r.Log.Head(ctx, ws)
	if err != nil {
		return err
	}
	kept := map[id.Run]int64{}
	reason := func(e event.Event) string {
		return fmt.Sprintf("retention: the data of the run are kept for %s", time.Duration(kept[e.Run])*time.Second)
	}
	var some []event.Event
	flush := func() error {
		open, err := r.open(ctx, ws, some)
		some = nil
		if err != nil {
			return err
		}
		return r.overdue(ctx, ws, open, reason)
	}
	for _, one := range over {
		kept[one.Run] = one.Seconds
		for from := uint64(1); ; {
			page, err := r.Log.Read(ctx, journal.Query{Workspace: ws, Run: one.Run, From: from, Before: head + 1, Limit: journal.MaxBatch})
			if err != nil {
				return err
			}
			for _, e := range page {
				from = e.Seq + 1
				if _, err := Remains(e); err != nil {
					continue
				}
				if some = append(some, e); len(some) < journal.MaxBatch {
					continue
				}
				if err := flush(); err != nil {
					return err
				}
			}
			if len(page) < journal.MaxBatch {
				break
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	for _, one := range over {
		doc, _, err := r.run(ctx, ws, one.Run)
		if err != nil {
			return err
		}
		if _, err := r.Log.Append(ctx, retention(event.Origin{Principal: r.System}, doc, run.EventForgotten, run.Forgotten{Run: one.Run,
			Until: one.Until})); err != nil {
			return err
		}
	}
	return nil
}
