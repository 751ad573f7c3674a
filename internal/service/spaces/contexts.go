package spaces

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// Contexts are the interpreter contexts of spaces.
type Contexts struct {
	catalog *Catalog
	files   *Files
	gate    policy.Gate
	store   space.Store
	tiers   Tiers
	living  *Living
}

// List returns the interpreter contexts of a space, in the order of their files. Contexts are files of the space: a caller who may list
// the files sees them, and a caller who may read a context sees how many cells it has.
func (cs *Contexts) List(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space) ([]space.Context, error) {
	entries, err := cs.files.List(ctx, origin, ws, s, space.ContextFolder, false)
	if err != nil && !errors.Is(err, space.ErrFileNotFound) {
		return nil, err
	}
	all := []space.Context{}
	for _, e := range entries {
		if c, ok := space.ContextOf(e); ok {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return all, nil
	}
	doc, err := cs.catalog.alive(ctx, ws, s)
	if err != nil {
		return nil, err
	}
	files, _, err := cs.store.Open(doc.ID, doc.UID, doc.Limits)
	if err != nil {
		return nil, err
	}
	for i := range all[:min(len(all), maxCounted)] {
		if head, err := read(ctx, cs.gate, origin, doc, files, all[i].Path, int64(space.ContextHead)); err == nil {
			all[i].Cells = space.ContextCells(head)
		}
	}
	return all, ctx.Err()
}

// maxCounted is how many contexts of a space are listed with their number of cells.
const maxCounted = 100

// Delete removes an interpreter context of a space: its file. Without a language it is the one that there is of the name.
func (cs *Contexts) Delete(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, name, language string) error {
	if err := space.ContextName(name); err != nil {
		return err
	}
	if language == "" {
		all, err := cs.List(ctx, origin, ws, s)
		if err != nil {
			return err
		}
		for _, c := range all {
			if c.Name != name {
				continue
			}
			if language != "" {
				return space.ErrContextTwice
			}
			language = c.Language
		}
		if language == "" {
			language = space.Python // an earlier request with the same key may have removed it
		}
	}
	path, err := space.ContextPath(name, language)
	if err != nil {
		return err
	}
	if err = cs.files.Delete(ctx, origin, ws, s, path, Seen); errors.Is(err, space.ErrFileNotFound) {
		return space.ErrContextNotFound
	}
	if err == nil {
		cs.end(s, name, language)
	}
	return err
}

// end ends the process of a context, in a tier whose contexts have one.
func (cs *Contexts) end(s id.Space, name, language string) {
	l := cs.living.of(s)
	l.mu.Lock()
	instance := l.instance
	l.mu.Unlock()
	space.EndContext(instance, name, language)
}

// Has refuses a space whose tier has no interpreter contexts.
func (cs *Contexts) Has(doc space.Space) error {
	if doc.Tier == space.Nano {
		return nil
	}
	if t, err := cs.tiers.tier(doc.Tier); err == nil && space.RunsCells(t) {
		return nil
	}
	err := fault.New(fault.Conflict, "contexts_not_here",
		"the space runs in the tier %s, which has no interpreter contexts; those of nano keep their variables", doc.Tier)
	if doc.Runtime == space.RuntimeAuto {
		return err.With("the files of its contexts are still there: fork the space as it was in nano, or make one with the runtime nano, and " +
			"keep packages that nano has not out of its cells")
	}
	return err.With("make a space with the runtime nano: agentbox space create --runtime nano")
}
