package memory

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

var (
	_ journal.Adopter = (*Journal)(nil)
	_ journal.Keyed   = (*Journal)(nil)
)

// Keys implements journal.Keyed.
func (j *Journal) Keys(ctx context.Context, ws id.Workspace, after string, limit int) ([]journal.KeyUse, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	var keys []journal.KeyUse
	if t := j.workspaces[ws]; t != nil {
		for _, key := range slices.Sorted(maps.Keys(t.uses)) {
			if key > after && len(keys) < min(limit, journal.MaxBatch) {
				keys = append(keys, journal.KeyUse{Key: key, Use: t.uses[key]})
			}
		}
	}
	return keys, ctx.Err()
}

// Adopt implements journal.Adopter.
func (j *Journal) Adopt(ctx context.Context, ws id.Workspace, chunks iter.Seq2[[]event.Event, error], keys iter.Seq2[[]journal.KeyUse,
	error]) (uint64, error) {
	if _, err := id.ParseWorkspace(string(ws)); err != nil {
		return 0, fault.Wrap(err, fault.Invalid, "workspace_invalid", "that is not a workspace")
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return 0, journal.ErrClosed
	}
	if t := j.workspaces[ws]; t != nil && len(t.events) > 0 {
		return 0, journal.ErrOccupied
	}
	var log journal.Continuity
	var all []event.Event
	named := map[id.Event]bool{}
	for events, err := range chunks {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return 0, err
		}
		if err := log.Next(ws, events); err != nil {
			return 0, err
		}
		for _, e := range events {
			if j.ids[e.ID] || named[e.ID] {
				return 0, fault.New(fault.Conflict, "event_exists", "the log holds an event %s already, in another workspace", e.ID)
			}
			named[e.ID] = true
		}
		all = append(all, cloneAll(events)...)
	}
	if err := log.End(); err != nil {
		return 0, err
	}
	uses := map[string]journal.Use{}
	if keys != nil {
		for some, err := range keys {
			if err == nil {
				err = log.Keys(some)
			}
			if err := errors.Join(err, ctx.Err()); err != nil {
				return 0, err
			}
			for _, k := range some {
				uses[k.Key] = k.Use
			}
		}
	}
	changed, err := j.fold(all)
	if err != nil {
		return 0, err
	}
	j.record(event.Batch{Workspace: ws}, all, changed)
	maps.Copy(j.workspaces[ws].uses, uses)
	return log.Head(), nil
}
