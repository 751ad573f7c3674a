package runs

import (
	"context"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
)

// requeueAll puts every run that has not ended into its queue, in the order in which they were asked for.
func (x *Service) requeueAll(ctx context.Context) error {
	if err := x.History.EachOpen(ctx, "", x.requeue(ctx)); err != nil {
		return err
	}
	late, err := x.endOpening(ctx)
	for _, e := range late {
		x.endOrphan(ctx, e)
	}
	return err
}

// Recover puts the runs of a workspace that have not ended into their queues: of one whose log came from elsewhere.
func (x *Service) Recover(ctx context.Context, ws id.Workspace) error {
	x.mu.Lock()
	running := x.base != nil
	x.mu.Unlock()
	if !running {
		return nil // Run will, of every workspace
	}
	return x.History.EachOpenIn(ctx, ws, "", x.requeue(ctx))
}

func (x *Service) requeue(ctx context.Context) func(run.Run) error {
	return func(doc run.Run) error {
		if doc.Engine {
			return nil // no worker of a space has it
		}
		if mine, err := x.mine(ctx, doc); err != nil || !mine {
			return err // another daemon drives it, or will when it comes back
		}
		e := newEntry(doc, true)
		if err := x.enqueue(ctx, e); err != nil {
			return err
		}
		x.endOrphan(ctx, e)
		return nil
	}
}

// mine reports whether the space of a run is this daemon's.
func (x *Service) mine(ctx context.Context, doc run.Run) (bool, error) {
	if x.Mine == nil {
		return true, nil
	}
	s, err := x.Spaces.Space(ctx, doc.Workspace, doc.Space)
	if err != nil {
		return false, err
	}
	return x.Mine(ctx, s)
}
