package spaces

import (
	"context"
	"slices"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
)

// Ownership says which of several daemons on one log a space belongs to.
type Ownership struct {
	catalog  *Catalog
	store    space.Store
	node     id.Node
	together Together
}

// Mine reports whether a space belongs to this daemon. If several daemons work on one log, each repairs, ends and uses only its own spaces.
// If the log does not name the owner, the space belongs to the daemon that has its files, or to the leader when it is destroyed.
func (o *Ownership) Mine(ctx context.Context, doc space.Space) (bool, error) {
	switch {
	case o.together.Leads == nil || doc.Node == o.node:
		return true, nil
	case doc.Node != "":
		return false, nil
	case doc.Status == space.Destroyed:
		return o.together.Leads(), nil
	}
	kept, err := o.store.List(ctx)
	return slices.Contains(kept, doc.ID), err
}

// expires reports whether this daemon has to end a space whose time is over. The leader ends a space without an owner.
func (o *Ownership) expires(ctx context.Context, doc space.Space) (bool, error) {
	mine, err := o.Mine(ctx, doc)
	return mine || err == nil && doc.Node == "" && o.together.Leads(), err
}

// exclusive ensures that only one daemon counts at a time.
func (o *Ownership) exclusive(ctx context.Context, ws id.Workspace) (release func(), err error) {
	if o.together.Exclusive == nil {
		return func() {}, nil
	}
	return o.together.Exclusive(ctx, "spaces of "+string(ws))
}

// mineNow is Mine of a space by its name.
func (o *Ownership) mineNow(ctx context.Context, ws id.Workspace, s id.Space) (bool, error) {
	if o.together.Leads == nil {
		return true, nil
	}
	doc, err := o.catalog.Space(ctx, ws, s)
	if err != nil {
		return false, err
	}
	return o.Mine(ctx, doc)
}
