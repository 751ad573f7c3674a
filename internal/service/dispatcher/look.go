package dispatcher

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/projection"
)

// Definitions fold the documents of what engines do.
func Definitions() []projection.Definition {
	return []projection.Definition{
		projection.Define(run.AttemptProjection, 1, func(e event.Event) []string {
			if !run.Tried(e) {
				return nil
			}
			return []string{string(e.Run)}
		}, func(t run.Tries, _ string, e event.Event) (run.Tries, error) { return t.Evolve(e) }, nil),
	}
}

// Attempts returns the attempts of engines to execute a run, in order.
func (d *Dispatcher) Attempts(ctx context.Context, ws id.Workspace, r id.Run) ([]run.Attempt, error) {
	if _, err := d.Find(ctx, ws, r); err != nil {
		return nil, err
	}
	tries, _, err := projection.Load[run.Tries](ctx, d.Docs, ws, run.AttemptProjection, string(r))
	if errors.Is(err, projection.ErrNotFound) {
		return []run.Attempt{}, nil
	}
	return tries.Attempts, err
}
