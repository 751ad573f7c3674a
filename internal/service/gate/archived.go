package gate

import (
	"context"
	"errors"
	"slices"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/projection"
)

// endures are the actions that an archived workspace permits beside reading: what ends something, and what forgets.
var endures = []string{policy.SpaceDestroy, policy.RunCancel, policy.AuditRedact, policy.ContentSweep, policy.KillSwitchSet, policy.KeyRevoke, policy.CapabilityRevoke, policy.StandingRevoke}

// workspace refuses what would be done or recorded in a workspace that is archived. That of the installation never is, and is not looked up.
func (g *Gate) workspace(ctx context.Context, c *consideration) (done bool, err error) {
	a := c.ruling.Action
	if a.Workspace == id.DefaultWorkspace {
		return false, nil
	}
	doc, version, err := g.tenants.load(ctx, g.Docs, a.Workspace, workspace.Workspaces, string(a.Workspace))
	if errors.Is(err, projection.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	c.ruling.Basis.Workspace = version
	if doc.Archived() && c.kind.SideEffect != policy.Pure && c.kind.SideEffect != policy.Read && !slices.Contains(endures, a.Type) {
		c.deny(policy.ReasonArchived, "the workspace is archived: nothing is done or said in it any more, and everything in it can be read", "Work in another workspace.")
		return true, nil
	}
	return false, nil
}
