package runs

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// A run that an engine has asked for under one of its tool calls ends with the run of that engine: nobody waits for its further results. A
// child begins in a commit that expects the state of its parent from before the parent's end. So of the parent's end and a beginning one
// comes first. Who follows the log ends the children of a run that has just ended; those whose parent ended before they were taken up are
// ended when they are.

// errOrphaned means that a run begins nothing more, because its parent has ended.
var errOrphaned = errors.New("the run for which this one is executed has ended")

// whyOrphaned is the reason with which the children of a run that has ended are cancelled.
const whyOrphaned = "the run that asked for it has ended"

// endings are the types of the events that end a run.
var endings = []string{run.EventCompleted, run.EventFailed, run.EventCancelled}

// alive returns what the log has to expect so that the parent of the run has not ended, or errOrphaned.
func (r *record) alive(ctx context.Context) ([]event.DocumentVersion, error) {
	parent, version, err := r.x.History.Load(ctx, r.doc.Workspace, r.doc.Parent.Run)
	if err == nil && parent.Status.Ended() {
		err = errOrphaned
	}
	return []event.DocumentVersion{{Projection: run.Projection, Key: string(r.doc.Parent.Run), Version: version}}, err
}

// orphaned returns the cancellation of the children of a run if it has ended; nil where it goes on, or is none.
func (x *Service) orphaned(ctx context.Context, ws id.Workspace, of id.Run) (*cancellation, error) {
	if of == "" {
		return nil, nil
	}
	parent, _, err := x.History.Load(ctx, ws, of)
	if errors.Is(err, projection.ErrNotFound) {
		return nil, nil // its next operation will be refused
	}
	if err != nil || !parent.Status.Ended() {
		return nil, err
	}
	found, err := x.Log.Read(ctx, journal.Query{Workspace: ws, Run: of, Types: endings, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 { // its document says that it has ended, so that its log does
		return &cancellation{origin: event.Origin{Principal: parent.CreatedBy}, reason: whyOrphaned}, nil
	}
	return orphans(found[0]), nil
}

// orphans is the cancellation of the children of a run by the event that ended it.
func orphans(end event.Event) *cancellation {
	return &cancellation{origin: event.Origin{Principal: end.Principal, Causation: end.ID}, reason: whyOrphaned}
}

// endOrphan ends a run that has just come into its queue if its parent has ended meanwhile: a follower of the log may have heard of the end
// before. If the parent cannot be read, the run ends when its turn comes.
func (x *Service) endOrphan(ctx context.Context, e *entry) {
	c, err := x.orphaned(ctx, e.workspace, e.parent)
	if err != nil {
		x.Logger.Warn("look at the parent of a run", "code", "parent_not_read", "run", e.run, "error", err)
	}
	if c != nil {
		x.endChildren(ctx, e.workspace, e.parent, c)
	}
}

// endChildren cancels the runs in queues that are executed for a run that has ended.
func (x *Service) endChildren(ctx context.Context, ws id.Workspace, parent id.Run, c *cancellation) {
	for _, e := range x.mark(func(e *entry) bool { return e.workspace == ws && e.parent == parent }, c.origin, c.reason) {
		if !x.dequeue(e) {
			continue // its worker ends it
		}
		err := x.end(context.WithoutCancel(ctx), e.workspace, e.run, c.origin, c.reason)
		if err == nil {
			continue
		}
		x.Logger.Warn("end a run whose parent has ended; its worker does", "code", "child_not_ended", "run", e.run, "error", err)
		x.mu.Lock()
		if x.base != nil { // the workspace is followed already
			x.insert(&entry{workspace: e.workspace, space: e.space, run: e.run, parent: e.parent, recovered: true, done: make(chan struct{})}, 0)
		}
		x.mu.Unlock()
	}
}

// parentOf returns the run for which another one is executed, "" for none.
func parentOf(doc run.Run) id.Run {
	if doc.Parent == nil {
		return ""
	}
	return doc.Parent.Run
}
