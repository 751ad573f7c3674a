package spaces

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
)

// Mine reports whether a space belongs to this daemon. If several daemons work on one log, each repairs, ends and uses only its own spaces.
// If the log does not name the owner, the space belongs to the daemon that has its files, or to the leader when it is destroyed.
func (k *Service) Mine(ctx context.Context, doc space.Space) (bool, error) {
	switch {
	case k.Together.Leads == nil || doc.Node == k.Node:
		return true, nil
	case doc.Node != "":
		return false, nil
	case doc.Status == space.Destroyed:
		return k.Together.Leads(), nil
	}
	kept, err := k.Store.List(ctx)
	return slices.Contains(kept, doc.ID), err
}

// expires reports whether this daemon has to end a space whose time is over. The leader ends a space without an owner.
func (k *Service) expires(ctx context.Context, doc space.Space) (bool, error) {
	mine, err := k.Mine(ctx, doc)
	return mine || err == nil && doc.Node == "" && k.Together.Leads(), err
}

// nodeRemoved is why a space was destroyed whose daemon was given up.
const nodeRemoved = "node_removed"

// GiveUp ends every space of a removed daemon, with its runs. Nobody can reach the files.
func (k *Service) GiveUp(ctx context.Context, origin event.Origin, node id.Node) error {
	var failed []error
	err := k.each(ctx, func(doc space.Space) error {
		if doc.Node != node {
			return nil
		}
		if err := k.end(ctx, origin, doc, nodeRemoved); err != nil {
			failed = append(failed, fmt.Errorf("end space %s: %w", doc.ID, err))
		}
		return ctx.Err()
	})
	return errors.Join(append(failed, err)...)
}

// exclusive ensures that only one daemon counts at a time.
func (k *Service) exclusive(ctx context.Context, ws id.Workspace) (giveBack func(), err error) {
	if k.Together.Exclusive == nil {
		return func() {}, nil
	}
	return k.Together.Exclusive(ctx, "spaces of "+string(ws))
}

// mineNow is Mine of a space by its name.
func (k *Service) mineNow(ctx context.Context, ws id.Workspace, s id.Space) (bool, error) {
	if k.Together.Leads == nil {
		return true, nil
	}
	doc, err := k.Space(ctx, ws, s)
	if err != nil {
		return false, err
	}
	return k.Mine(ctx, doc)
}
