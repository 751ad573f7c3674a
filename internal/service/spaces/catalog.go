package spaces

import (
	"context"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Catalog finds spaces: by their identifier, their name or their status.
type Catalog struct {
	log  journal.Journal
	docs projection.Reader
}

// Space returns a space of the workspace, also one that was destroyed.
func (c *Catalog) Space(ctx context.Context, ws id.Workspace, s id.Space) (space.Space, error) {
	doc, _, err := c.load(ctx, ws, s)
	return doc, err
}

func (c *Catalog) load(ctx context.Context, ws id.Workspace, s id.Space) (space.Space, uint64, error) {
	doc, version, err := projection.Load[space.Space](ctx, c.docs, ws, space.Projection, string(s))
	if fault.KindOf(err) == fault.NotFound {
		return doc, 0, fault.New(fault.NotFound, "space_not_found", "there is no space %.64s in this workspace", s)
	}
	return doc, version, err
}

// List returns spaces of the workspace by their status, newest first; an empty status returns those that are not destroyed.
func (c *Catalog) List(ctx context.Context, ws id.Workspace, status space.Status, after id.Space, limit int) ([]space.Space, error) {
	index := projection.Index{Name: "status", Value: string(status)}
	if status == "" {
		index = projection.Index{Name: "living", Value: "true"}
	}
	return projection.List[space.Space](ctx, c.docs, projection.Query{
		Workspace: ws, Name: space.Projection, Index: index, After: string(after), Newest: true, Limit: limit,
	})
}

func (c *Catalog) alive(ctx context.Context, ws id.Workspace, s id.Space) (space.Space, error) {
	doc, err := c.Space(ctx, ws, s)
	if err == nil {
		err = inUse(doc)
	}
	return doc, err
}

func inUse(doc space.Space) error {
	if doc.Status == space.Destroyed {
		return ErrDestroyed
	}
	return nil
}

// ErrDestroyed refuses to use a space whose time is over.
var ErrDestroyed = fault.New(fault.Conflict, "space_destroyed", "the space was destroyed; make a new one")

// each calls f for every space of every workspace that is not destroyed.
func (c *Catalog) each(ctx context.Context, f func(space.Space) error) error {
	workspaces, err := c.log.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, ws := range workspaces {
		if err := c.eachOf(ctx, ws, f); err != nil {
			return err
		}
	}
	return nil
}

// eachOf calls f for every space of a workspace that is not destroyed.
func (c *Catalog) eachOf(ctx context.Context, ws id.Workspace, f func(space.Space) error) error {
	q := projection.Query{Workspace: ws, Name: space.Projection, Index: projection.Index{Name: "living", Value: "true"}, Limit: 1000}
	for {
		docs, err := projection.List[space.Space](ctx, c.docs, q)
		if err != nil {
			return err
		}
		for _, doc := range docs {
			if err := f(doc); err != nil {
				return err
			}
			q.After = string(doc.ID)
		}
		if len(docs) < q.Limit {
			return nil
		}
	}
}

// bearers returns the living spaces that have a name, the oldest first.
func (c *Catalog) bearers(ctx context.Context, ws id.Workspace, name string) ([]space.Space, error) {
	return projection.List[space.Space](ctx, c.docs, projection.Query{Workspace: ws, Name: space.Projection, Index: nameIndex(name),
		Limit: maxNamed})
}

// Named returns the identifier of the space that a text names. An identifier names itself; a name means the living space with it. An
// unknown name is not found. A name of several spaces is space.ErrNameAmbiguous, which lists their identifiers.
func (c *Catalog) Named(ctx context.Context, ws id.Workspace, text string) (id.Space, error) {
	if text == "" || space.IsID(text) {
		return id.Space(text), nil
	}
	found, err := c.bearers(ctx, ws, text)
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", fault.New(fault.NotFound, "space_not_found", "there is no space %.64q in this workspace", text).
			With("a space is named by its id, or while it lives by its name")
	case len(found) > 1:
		ids := make([]string, len(found))
		for i, s := range found {
			ids[i] = string(s.ID)
		}
		return "", fault.New(space.ErrNameAmbiguous.Kind, space.ErrNameAmbiguous.Code, "%d living spaces have the name %.64q; name one by its id",
			len(found), text).
			With("name one by its id: " + strings.Join(ids, ", "))
	}
	return found[0].ID, nil
}
