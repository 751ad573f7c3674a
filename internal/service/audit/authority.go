package audit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Root is a projection whose documents give authority, and the entity type of the events that make them. The key of a document is the id
// of its entity.
type Root struct {
	Definition projection.Definition
	Entity     string
	Single     bool // each workspace has one such entity, whose id is the workspace
}

// rootTries is how often documents are compared that others change meanwhile.
const rootTries = 3

// HoldRoots compares the documents that give authority in a workspace with the log, and returns fault authority_changed if one differs. It
// reads only the events of these documents, so the rest of the log costs nothing. VerifyProjections makes the full comparison.
func HoldRoots(ctx context.Context, log journal.Journal, docs projection.Reader, roots []Root, ws id.Workspace) error {
	for try := 1; ; try++ {
		before, err := log.Head(ctx, ws)
		if err != nil {
			return err
		}
		wrong, err := holdRoots(ctx, log, docs, roots, ws)
		if err != nil || wrong == nil {
			return err
		}
		after, err := log.Head(ctx, ws)
		if err != nil {
			return err
		}
		if after == before || try == rootTries {
			return wrong
		}
	}
}

// holdRoots compares the roots once. The first result lists the errors.
func holdRoots(ctx context.Context, log journal.Journal, docs projection.Reader, roots []Root, ws id.Workspace) (wrong *fault.Error,
	err error) {
	defs := make([]projection.Definition, len(roots))
	for i, root := range roots {
		defs[i] = root.Definition
	}
	c, err := newComparison(log, docs, defs, ws)
	if err != nil {
		return nil, err
	}
	stored, entities := map[projection.Ref]projection.Document{}, map[[2]string]bool{}
	for _, root := range roots {
		if root.Single {
			entities[[2]string{root.Entity, string(ws)}] = true
		}
		q := projection.Query{Workspace: ws, Name: root.Definition.Name, Limit: projection.MaxDocuments}
		for {
			found, err := docs.Documents(ctx, q)
			if err != nil {
				return nil, err
			}
			for _, doc := range found {
				stored[projection.Ref{Workspace: ws, Name: q.Name, Key: doc.Key}] = doc
				entities[[2]string{root.Entity, doc.Key}] = true
				q.After = doc.Key
			}
			if len(found) < q.Limit {
				break
			}
		}
	}
	events, err := eventsAbout(ctx, log, ws, entities)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		if e.Withheld == event.Sealed || e.Withheld == event.Destroyed {
			return authorityChanged(ws, "event %d (%s) cannot be opened: its key is not here, and no redaction explains that", e.Seq, e.Type), nil
		}
		if err := c.set.Fold(e, c.load, c.store); err != nil {
			return authorityChanged(ws, "event %d (%s) cannot be folded: %v", e.Seq, e.Type, err), nil
		}
	}
	return c.held(stored)
}

// held compares the folded documents with the stored ones.
func (c *comparison) held(stored map[projection.Ref]projection.Document) (*fault.Error, error) {
	refs := slices.SortedFunc(maps.Keys(stored), func(a, b projection.Ref) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Key, b.Key))
	})
	for _, ref := range refs {
		state, ok := c.states[ref]
		if !ok {
			return authorityChanged(ref.Workspace, "the document %s/%s is there, and no event made it", ref.Name, ref.Key), nil
		}
		body, _, err := state.Encode()
		if err != nil {
			return nil, err
		}
		if doc := stored[ref]; doc.Version != state.Version || doc.Seq != state.Seq || !bytes.Equal(doc.Body, body) {
			return authorityChanged(ref.Workspace, "the document %s/%s is not what the log says", ref.Name, ref.Key), nil
		}
	}
	for ref := range c.states {
		if _, ok := stored[ref]; !ok {
			return authorityChanged(ref.Workspace, "the document %s/%s is missing", ref.Name, ref.Key), nil
		}
	}
	return nil, nil
}

func authorityChanged(ws id.Workspace, format string, args ...any) *fault.Error {
	return fault.New(fault.Conflict, "authority_changed", "somebody changed who may do what in %s, past the log: %s", ws, fmt.Sprintf(format,
		args...)).
		With("run `agentbox audit verify`, and keep a copy of the data directory; `agentbox backup` and `agentbox restore` into another " +
			"directory make the documents anew from the log")
}

// eventsAbout returns the events about entities, in the order of the log, each once.
func eventsAbout(ctx context.Context, log journal.Journal, ws id.Workspace, entities map[[2]string]bool) ([]event.Event, error) {
	var all []event.Event
	for entity := range entities {
		q := journal.Query{Workspace: ws, From: 1, EntityType: entity[0], EntityID: entity[1], Limit: journal.MaxRead}
		for {
			events, err := log.Read(ctx, q)
			if damage, ok := errors.AsType[*journal.Damage](err); ok {
				return nil, authorityChanged(ws, "event %d cannot be read: %s", damage.Seq, damage.Detail)
			}
			if err != nil {
				return nil, err
			}
			all = append(all, events...)
			if len(events) < q.Limit {
				break
			}
			q.From = events[len(events)-1].Seq + 1
		}
	}
	slices.SortFunc(all, func(a, b event.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	return all, nil
}
