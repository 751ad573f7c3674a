package engines

import (
	"context"
	"errors"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/projection"
)

// mostCounted is the highest count of runs that an answer reports.
const mostCounted = 1000

// Tasks returns how many runs of a workspace are under way, and how many of them have engines that were silent for longer than their claims
// last.
func (d *Service) Tasks(ctx context.Context, ws id.Workspace) (run.Tasks, error) {
	load, _, err := projection.Load[run.Load](ctx, d.Docs, ws, run.LoadProjection, string(ws))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return run.Tasks{}, err
	}
	tenant, _, err := projection.Load[workspace.Workspace](ctx, d.Docs, ws, workspace.Workspaces, string(ws))
	if errors.Is(err, projection.ErrNotFound) {
		tenant, err = workspace.Unsaid(ws), nil
	}
	if err != nil {
		return run.Tasks{}, err
	}
	t := run.Tasks{Running: len(load.Running), Most: tenant.Tasks}
	claimed, err := projection.List[run.Run](ctx, d.Docs, projection.Query{Workspace: ws, Name: run.Projection,
		Index: Wanted{}.index(run.WithEngine), Limit: mostCounted})
	for _, doc := range claimed {
		if load.Has(doc.ID) && doc.Claimable(d.left(doc)) {
			t.Silent++
		}
	}
	return t, err
}

// Behind returns how many runs an engine wants that wait because as many run in the workspace as may; none where there is room.
func (d *Service) Behind(ctx context.Context, ws id.Workspace, want Wanted, t run.Tasks) (int, error) {
	if t.Running < t.Most {
		return 0, nil
	}
	waiting, err := projection.List[run.Run](ctx, d.Docs, projection.Query{Workspace: ws, Name: run.Projection,
		Index: want.index(run.ForEngine), Limit: mostCounted})
	if err != nil {
		return 0, err
	}
	n := 0
	for _, doc := range waiting {
		if want.Shows != nil {
			if may, err := want.Shows(doc.ID); err != nil || !may {
				if err != nil {
					return n, err
				}
				continue
			}
		}
		n++
	}
	return n, nil
}
