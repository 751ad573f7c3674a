package engines

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/kernel/projection"
)

// Look finds steps, tool calls, artifacts and attempts.
type Look struct{ service *Service }

// Definitions fold the documents of what engines do.
func Definitions() []projection.Definition {
	return []projection.Definition{
		evidenceDefinition(),
		projection.Define(run.AttemptProjection, 1, func(e event.Event) []string {
			if !run.Tried(e) {
				return nil
			}
			return []string{string(e.Run)}
		}, func(t run.Tries, _ string, e event.Event) (run.Tries, error) { return t.Evolve(e) }, nil),
		projection.Define(step.Projection, 3, stepOf, func(s step.Step, _ string, e event.Event) (step.Step, error) { return s.Evolve(e) },
			func(s step.Step) []projection.Index {
				return []projection.Index{{Name: "run", Value: string(s.Run)}}
			}).Leads(step.EntityType, func(e event.Event) bool { return e.EntityType != step.EntityType }),
		projection.Define(step.CallProjection, 3, func(e event.Event) []string {
			if parent := step.Parent(e); parent != "" {
				return []string{string(parent)}
			}
			return about(step.CallEntity)(e)
		}, func(c step.Call, _ string, e event.Event) (step.Call, error) { return c.Evolve(e) }, func(c step.Call) []projection.Index {
			found := []projection.Index{{Name: "run", Value: string(c.Run)}, {Name: "step", Value: string(c.Step)}}
			if c.Status == step.Running {
				found = append(found, projection.Index{Name: indexOpen, Value: string(c.Run)})
			}
			return found
		}).Leads(step.CallEntity, func(e event.Event) bool { return e.EntityType != step.CallEntity }),
		projection.Define(step.ArtifactProjection, 3, about(step.ArtifactEntity), func(a step.Artifact, _ string, e event.Event) (step.Artifact,
			error) {
			return a.Evolve(e)
		}, func(a step.Artifact) []projection.Index {
			return []projection.Index{{Name: "run", Value: string(a.Run)}, {Name: "step", Value: string(a.Step)}}
		}).Leads(step.ArtifactEntity, nil),
	}
}

// stepOf returns the step that an event changes: one about it, or about a tool call in it.
func stepOf(e event.Event) []string {
	if e.EntityType == step.CallEntity && e.Step != "" {
		return []string{string(e.Step)}
	}
	return about(step.EntityType)(e)
}

// indexOpen finds the tool calls of a run without an outcome.
const indexOpen = "open"

// about selects the events about an entity type; its id is the document's key.
func about(entity string) func(event.Event) []string {
	return func(e event.Event) []string {
		if e.EntityType != entity || e.EntityID == "" {
			return nil
		}
		return []string{e.EntityID}
	}
}

// Of selects the records of a run, or of one of its steps. The zero Of selects all of the workspace.
type Of struct {
	Run  id.Run
	Step id.Step
}

// Steps returns steps, the newest first. After is the one behind which to go on.
func (lo *Look) Steps(ctx context.Context, ws id.Workspace, of Of, after string, limit int) ([]step.Step, error) {
	return list[step.Step](ctx, lo.service, ws, step.Projection, of, after, limit)
}

// Calls returns tool calls, the newest first. After is the one behind which to go on.
func (lo *Look) Calls(ctx context.Context, ws id.Workspace, of Of, after string, limit int) ([]step.Call, error) {
	return list[step.Call](ctx, lo.service, ws, step.CallProjection, of, after, limit)
}

// Artifacts returns artifacts, the newest first. After is the one behind which to go on.
func (lo *Look) Artifacts(ctx context.Context, ws id.Workspace, of Of, after string, limit int) ([]step.Artifact, error) {
	return list[step.Artifact](ctx, lo.service, ws, step.ArtifactProjection, of, after, limit)
}

func list[T any](ctx context.Context, d *Service, ws id.Workspace, name string, of Of, after string, limit int) ([]T, error) {
	q := projection.Query{Workspace: ws, Name: name, After: after, Newest: true, Limit: limit}
	switch {
	case of.Step != "":
		q.Index = projection.Index{Name: "step", Value: string(of.Step)}
	case of.Run != "":
		if _, err := d.Find(ctx, ws, of.Run); err != nil {
			return nil, err
		}
		q.Index = projection.Index{Name: "run", Value: string(of.Run)}
	}
	return projection.List[T](ctx, d.Docs, q)
}

// Step returns a step of the workspace.
func (lo *Look) Step(ctx context.Context, ws id.Workspace, s id.Step) (step.Step, error) {
	doc, _, err := found[step.Step](ctx, lo.service.Docs, ws, step.Projection, string(s), step.ErrNotFound)
	return doc, err
}

// Call returns a tool call of the workspace.
func (lo *Look) Call(ctx context.Context, ws id.Workspace, c id.ToolCall) (step.Call, error) {
	doc, _, err := found[step.Call](ctx, lo.service.Docs, ws, step.CallProjection, string(c), step.ErrCallNotFound)
	return doc, err
}

// Artifact returns an artifact of the workspace.
func (lo *Look) Artifact(ctx context.Context, ws id.Workspace, a id.Artifact) (step.Artifact, error) {
	doc, _, err := found[step.Artifact](ctx, lo.service.Docs, ws, step.ArtifactProjection, string(a), step.ErrArtifactNotFound)
	return doc, err
}

func found[T any](ctx context.Context, docs projection.Reader, ws id.Workspace, name, key string, none error) (T, uint64, error) {
	doc, version, err := projection.Load[T](ctx, docs, ws, name, key)
	if errors.Is(err, projection.ErrNotFound) {
		err = none
	}
	return doc, version, err
}

// Attempts returns the attempts of engines to execute a run, in order.
func (lo *Look) Attempts(ctx context.Context, ws id.Workspace, r id.Run) ([]run.Attempt, error) {
	if _, err := lo.service.Find(ctx, ws, r); err != nil {
		return nil, err
	}
	tries, _, err := projection.Load[run.Tries](ctx, lo.service.Docs, ws, run.AttemptProjection, string(r))
	if errors.Is(err, projection.ErrNotFound) {
		return []run.Attempt{}, nil
	}
	return tries.Attempts, err
}
