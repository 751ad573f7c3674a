package gate

import (
	"context"
	"errors"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// endures are the actions that an archived workspace permits besides reads: they end or redact something.
var endures = []string{policy.SpaceDestroy, policy.RunCancel, policy.AuditRedact, policy.ContentSweep, policy.KillSwitchSet,
	policy.KeyRevoke, policy.CapabilityRevoke, policy.StandingRevoke}

// workspace refuses an action or a record in an archived workspace. The workspace of the installation is never archived, so it is not read.
func (g *Gate) workspace(ctx context.Context, c *consideration) (done bool, err error) {
	a := c.ruling.Action
	if a.Workspace == id.DefaultWorkspace {
		return false, nil
	}
	doc, version, err := g.authority.Workspace(ctx, a.Workspace)
	if errors.Is(err, projection.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	c.ruling.Basis.Workspace = version
	if doc.Archived() && (c.kind.Outside || c.kind.SideEffect != policy.Pure && c.kind.SideEffect != policy.Read) && !slices.Contains(endures,
		a.Type) {
		c.deny(workspace.ErrArchived.Code, workspace.ErrArchived.Msg, workspace.ErrArchived.Suggestion)
		return true, nil
	}
	return false, nil
}

// recordRefusal records a refusal, except in an archived workspace, because attempts must not make that grow.
func (g *Gate) recordRefusal(ctx context.Context, b event.Batch) (event.Receipt, error) {
	expect, err := g.authority.Living(ctx, b.Workspace)
	if errors.Is(err, workspace.ErrArchived) {
		return event.Receipt{}, nil
	}
	if err != nil {
		return event.Receipt{}, err
	}
	b.Documents = expect
	receipt, err := g.Log.Append(ctx, b)
	if errors.Is(err, journal.ErrConflict) {
		return g.recordRefusal(ctx, b) // the workspace has changed meanwhile
	}
	return receipt, err
}
