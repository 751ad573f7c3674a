package runs

import (
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/projection"
)

// Definition folds the documents of runs.
func Definition() projection.Definition {
	keys := func(e event.Event) []string {
		if !run.Touches(e) {
			return nil
		}
		return []string{string(e.Run)}
	}
	fold := func(r run.Run, _ string, e event.Event) (run.Run, error) { return run.Evolve(r, e) }
	return projection.Define(run.Projection, 4, keys, fold, indexes).Leads(run.EntityType, run.IsHeartbeat)
}

// LoadDefinition folds what runs in each workspace.
func LoadDefinition() projection.Definition {
	return projection.Define(run.LoadProjection, 1, func(e event.Event) []string {
		if !run.Loads(e) {
			return nil
		}
		return []string{string(e.Workspace)}
	}, func(l run.Load, _ string, e event.Event) (run.Load, error) { return l.Evolve(e) }, nil)
}
