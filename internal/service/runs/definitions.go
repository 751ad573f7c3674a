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
	return projection.Define(run.Projection, 5, keys, fold, indexes).Leads(run.EntityType, run.IsHeartbeat)
}

// LoadDefinition folds the runs under way in each workspace.
func LoadDefinition() projection.Definition {
	return projection.Define(run.LoadProjection, 1, func(e event.Event) []string {
		if !run.Loads(e) {
			return nil
		}
		return []string{string(e.Workspace)}
	}, func(l run.Load, _ string, e event.Event) (run.Load, error) { return l.Evolve(e) }, nil)
}

func indexes(r run.Run) []projection.Index {
	found := []projection.Index{{Name: "status", Value: string(r.Status)}}
	by := func(name, value string) {
		if value != "" {
			found = append(found, projection.Index{Name: name, Value: value}, projection.Index{Name: name + "_status", Value: value + " " +
				string(r.Status)})
		}
	}
	by("room", string(r.Room))
	if r.Imported != nil { // its space is another installation's
		return append(found, projection.Index{Name: "transcript", Value: r.Imported.Transcript.Digest.String()})
	}
	by("space", string(r.Space))
	if r.Background {
		by("background", "true")
		by("space_background", string(r.Space))
	}
	by("experiment", string(r.Experiment))
	by("work", r.Work)
	by("blueprint", r.Blueprint)
	if state := r.Offered(); state != "" {
		found = append(found, projection.Index{Name: "engine", Value: state}, projection.Index{Name: "engine_room", Value: string(r.Room) + " " +
			state})
		if r.Work != "" {
			found = append(found, projection.Index{Name: "engine_work", Value: r.Work + " " + state}, projection.Index{Name: "engine_room_work",
				Value: string(r.Room) + " " + r.Work + " " + state})
		}
	}
	return found
}
