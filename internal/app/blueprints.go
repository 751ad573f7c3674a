package app

import (
	"context"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/service/agents"
	"agentbox/internal/service/blueprints"
	"agentbox/internal/service/tools"
)

// references are the ways in which the daemon finds the content hash of what a blueprint refers to.
func (a *App) references() map[blueprint.Kind]blueprints.Resolve {
	return map[blueprint.Kind]blueprints.Resolve{
		blueprint.ToModel: func(ctx context.Context, ws id.Workspace, name string, _ blueprint.Blueprint) (event.Digest, error) {
			held, err := a.Models.Get(ctx, ws, name)
			return held.Hash, err
		},
		blueprint.ToPolicy: func(_ context.Context, _ id.Workspace, preset string, b blueprint.Blueprint) (event.Digest, error) {
			bundle, _, err := a.Gate.Bundles.Adjust(preset, b.Adjustment())
			return bundle.Hash, err
		},
		blueprint.ToTools: func(_ context.Context, _ id.Workspace, _ string, b blueprint.Blueprint) (event.Digest, error) {
			_, hash, err := tools.Offered(tools.OfferOf(b))
			return hash, err
		},
		blueprint.ToMCP: func(ctx context.Context, ws id.Workspace, name string, _ blueprint.Blueprint) (event.Digest, error) {
			return a.Servers.Hash(ctx, ws, name)
		},
		blueprint.ToLoop: func(context.Context, id.Workspace, string, blueprint.Blueprint) (event.Digest, error) {
			return agents.Hash(), nil
		},
	}
}
