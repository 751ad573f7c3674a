// Package nodes knows the daemons that work on the log, and gives up one that never comes back.
package nodes

import (
	"context"
	"slices"
	"unicode/utf8"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/node"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
)

// Parts are the dependencies of the service.
type Parts struct {
	Members node.Members
	Gate    policy.Gate
	System  id.Principal                                                    // ends the rest of a node that was removed
	GiveUp  func(ctx context.Context, origin event.Origin, n id.Node) error // ends its spaces
}

// Service knows the nodes. Its methods are safe for concurrent use.
type Service struct{ Parts }

// New returns a service of the given parts.
func New(p Parts) *Service { return &Service{p} }

// List returns the nodes in the order in which they joined first.
func (c *Service) List(ctx context.Context) ([]node.Member, error) { return c.Members.Members(ctx) }

// find returns one node.
func (c *Service) find(ctx context.Context, n id.Node) (node.Member, error) {
	all, err := c.Members.Members(ctx)
	if err != nil {
		return node.Member{}, err
	}
	i := slices.IndexFunc(all, func(m node.Member) bool { return m.Node == n })
	if i < 0 {
		return node.Member{}, node.ErrNone
	}
	return all[i], nil
}

// Remove removes a node that does not live. It records that first. From then on the log refuses the node's writes. Then its spaces end with
// their runs. If some of that is unfinished, the next call continues it, also for a node that was removed before. Only the owner of the
// installation may do this.
func (c *Service) Remove(ctx context.Context, origin event.Origin, who principal.Caller, n id.Node, reason string) (node.Member, error) {
	if len(reason) > node.MaxReason || !utf8.ValidString(reason) {
		return node.Member{}, node.ErrReason
	}
	if who.Workspace != id.DefaultWorkspace {
		return node.Member{}, node.ErrNone // the nodes are those of the installation
	}
	action := policy.Action{Type: policy.NodeRemove, Workspace: who.Workspace, Principal: origin.Principal, Token: origin.Token,
		Subject: string(n)}
	record := event.Batch{Workspace: who.Workspace, Drafts: []event.Draft{
		event.New(node.EventRemoved, origin, who.Workspace, "", node.Removed{Node: n, Reason: reason}).About(node.EntityType, string(n)),
	}}
	if ruling, err := c.Gate.Judge(ctx, action); err != nil || !ruling.Decision.Allowed() {
		if err == nil { // a caller without the right does not learn which nodes exist
			_, err = c.Gate.Record(ctx, origin, action, record)
		}
		return node.Member{}, err
	}
	m, err := c.find(ctx, n)
	switch {
	case err != nil:
		return m, err
	case m.Alive:
		return m, node.ErrAlive
	}
	if !m.Removed {
		if _, err := c.Gate.Record(ctx, origin, action, origin.Once(record)); err != nil {
			return m, err
		}
		if err := c.Members.Remove(ctx, n); err != nil {
			return m, err
		}
	}
	origin.Key = ""
	if err := c.GiveUp(ctx, origin, n); err != nil {
		return m, err
	}
	return c.find(ctx, n)
}

// Recover finishes the removal of nodes that an earlier call did not finish.
func (c *Service) Recover(ctx context.Context) error {
	all, err := c.Members.Members(ctx)
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.Removed {
			if err := c.GiveUp(ctx, event.Origin{Principal: c.System}, m.Node); err != nil {
				return err
			}
		}
	}
	return nil
}
