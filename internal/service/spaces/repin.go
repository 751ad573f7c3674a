package spaces

import (
	"context"
	"errors"
	"fmt"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// Settings changes a living space: its name, its variables, the end of its life, its policy.
type Settings struct {
	catalog   *Catalog
	names     *names
	living    *Living
	withheld  *withheld
	variables *Variables
	tiers     Tiers
	acts      policy.Client
	gate      policy.Gate
	library   policy.Library
	clock     event.Clock
}

// Repin pins another policy to a living space. From then on the new policy judges actions in it. Repin refuses a space with a run that is
// under way or waits for a person (ErrBusy), because a question is about an action under the old policy. The new policy must accept the
// tier of the space. Repin moves the files that the new policy withholds out of the view of code. If it withholds other files
// than the old policy, the interpreter contexts of the space end.
func (st *Settings) Repin(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, b policy.Bundle) (space.Space, error) {
	leave, err := st.living.alone(s)
	if err != nil {
		return space.Space{}, err
	}
	defer leave()
	doc, err := st.catalog.alive(ctx, ws, s)
	if err != nil {
		return doc, err
	}
	if doc.ActiveRun != "" {
		return doc, ErrBusy
	}
	if err := st.tiers.accepts(b.Limits.Weakest, doc.Tier); err != nil {
		return doc, err
	}
	action := actionOn(policy.SpacePolicy, origin, doc)
	action.Target = b.Hash.String()
	changed := space.PolicyChanged{Space: s, Policy: b.Name, Bundle: b.Hash, Was: doc.Bundle}
	if err := st.acts.Early(ctx, origin, action); err != nil { // nothing is pinned for a caller who may not
		return doc, err
	}
	if err := st.library.PinBundle(ctx, origin, ws, b); err != nil {
		return doc, err
	}
	// Files leave the view of code before the new policy judges anything. A crash in between withholds more than is recorded, never less.
	swept, err := st.withheld.sweep(ctx, doc, b)
	if err != nil {
		return doc, st.unmoved(ctx, doc, err)
	}
	changed.Withheld, changed.Contexts = len(swept.Withheld), swept.Contexts
	batch := origin.Once(event.Batch{Workspace: ws, Drafts: []event.Draft{draftOf(space.EventPolicy, origin, doc, changed)}})
	if _, err := st.gate.Record(ctx, origin, action, batch); err != nil {
		return doc, st.unmoved(ctx, doc, err)
	}
	doc, err = st.catalog.Space(ctx, ws, s)
	doc.Warnings = append(doc.Warnings, RepinWarnings(changed)...)
	return doc, err
}

// RepinWarnings says what a change of the policy has ended that its requester may want to know of.
func RepinWarnings(c space.PolicyChanged) []string {
	if c.Contexts == 0 {
		return nil
	}
	return []string{fmt.Sprintf("interpreter contexts that ended: %d. Their cells may have read files that are withheld now. "+
		"The next cell of each begins a new context", c.Contexts)}
}

// unmoved applies the withholding of the space's present policy again, because another policy was not pinned. Moved files stay withheld.
func (st *Settings) unmoved(ctx context.Context, doc space.Space, why error) error {
	ctx = context.WithoutCancel(ctx)
	present, err := st.library.Bundle(ctx, doc.Workspace, doc.Bundle)
	if err == nil {
		_, err = st.withheld.sweep(ctx, doc, present)
	}
	return errors.Join(why, err)
}
