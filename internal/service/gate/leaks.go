package gate

import (
	"context"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
)

// ErrSecretInHeader refuses a record that has a secret where nothing can be taken out.
var ErrSecretInHeader = fault.New(fault.Invalid, "secret_in_header", "an id or a key of the request holds a secret, and those are recorded as they are; choose another one")

// cleaned returns a batch without the secrets in its data, and the events that say what was taken out.
func (g *Gate) cleaned(b event.Batch) (event.Batch, []event.Draft, error) {
	var said []event.Draft
	for i, d := range b.Drafts {
		if leak.InHeader(d) {
			return b, nil, ErrSecretInHeader
		}
		clean, about, leaked := leak.Clean(d, g.System, func() id.Event { return id.NewEvent(g.IDs) })
		if !leaked {
			continue
		}
		if said == nil {
			b.Drafts = slices.Clone(b.Drafts)
		}
		b.Drafts[i], said = clean, append(said, about)
	}
	return b, said, nil
}

// tell records what was taken out of a batch that is recorded. It is a batch of its own, so that whoever recorded finds in the receipt what he
// recorded; the header of the other event says that it held a secret, whatever becomes of this one.
func (g *Gate) tell(ctx context.Context, b event.Batch, said []event.Draft) error {
	if len(said) == 0 {
		return nil
	}
	_, err := g.Log.Append(context.WithoutCancel(ctx), event.Batch{Workspace: b.Workspace, Drafts: said})
	return err
}
