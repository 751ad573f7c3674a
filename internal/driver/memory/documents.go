package memory

import (
	"context"
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/projection"
)

// Document implements projection.Reader.
func (j *Journal) Document(ctx context.Context, ws id.Workspace, name, key string) (projection.Document, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if err := ctx.Err(); err != nil {
		return projection.Document{}, err
	}
	if _, err := j.set.Lookup(name); err != nil {
		return projection.Document{}, err
	}
	if t := j.workspaces[ws]; t != nil {
		if d, ok := t.documents[name][key]; ok {
			return d.shown(), nil
		}
	}
	return projection.Document{}, projection.ErrNotFound
}

// Documents implements projection.Reader.
func (j *Journal) Documents(ctx context.Context, q projection.Query) ([]projection.Document, error) {
	q, err := q.Check()
	if err != nil {
		return nil, err
	}
	j.mu.RLock()
	defer j.mu.RUnlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := j.set.Lookup(q.Name); err != nil {
		return nil, err
	}
	found := []projection.Document{}
	t := j.workspaces[q.Workspace]
	if t == nil {
		return found, nil
	}
	for _, d := range t.documents[q.Name] {
		if q.Index != (projection.Index{}) && !slices.Contains(d.indexes, q.Index) {
			continue
		}
		if q.After != "" && (!q.Newest && d.Key <= q.After || q.Newest && d.Key >= q.After) {
			continue
		}
		found = append(found, d.shown())
	}
	slices.SortFunc(found, func(a, b projection.Document) int {
		if q.Newest {
			a, b = b, a
		}
		return strings.Compare(a.Key, b.Key)
	})
	return found[:min(len(found), q.Limit)], nil
}

// Rebuild implements projection.Store.
func (j *Journal) Rebuild(ctx context.Context, name string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	def, err := j.set.Lookup(name)
	if err != nil {
		return err
	}
	only, err := projection.NewSet([]projection.Definition{def})
	if err != nil {
		return err
	}
	states := map[projection.Ref]projection.State{}
	load := func(ref projection.Ref) (projection.State, error) {
		if s, ok := states[ref]; ok {
			return s, nil
		}
		return def.Restore(ref.Key, nil, 0, 0)
	}
	for _, t := range j.workspaces {
		for _, e := range t.events {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := only.Fold(event.Clone(e), load, func(ref projection.Ref, s projection.State) { states[ref] = s }); err != nil {
				return err
			}
		}
	}
	changed, err := encode(states)
	if err != nil {
		return err
	}
	for _, t := range j.workspaces {
		delete(t.documents, name)
	}
	for ref, d := range changed {
		j.workspaces[ref.Workspace].keep(name, d)
	}
	return nil
}

func (d stored) shown() projection.Document {
	d.Body = slices.Clone(d.Body)
	return d.Document
}
