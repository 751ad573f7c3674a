package query

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Subject names a document that is folded from the events about one entity, or of one run: its id is the document's key.
type Subject struct {
	Projection string
	EntityType string // "" for a run
	Key        string
}

// Past returns a document as it was after the event at a place of the workspace, folded from the log. So a repeated request gets the same
// answer, even after others have changed the document.
func Past[T any](ctx context.Context, r *Service, ws id.Workspace, s Subject, place uint64) (T, error) {
	var doc T
	i := slices.IndexFunc(r.definitions, func(d projection.Definition) bool { return d.Name == s.Projection })
	if i < 0 {
		return doc, fault.New(fault.Internal, "unknown_projection", "the reader knows no projection %.64q", s.Projection)
	}
	def := r.definitions[i]
	state, err := def.Restore(s.Key, nil, 0, 0)
	if err != nil {
		return doc, err
	}
	q := journal.Query{Workspace: ws, Before: place + 1, Limit: journal.MaxRead}
	if s.EntityType == "" {
		q.Run = id.Run(s.Key)
	} else {
		q.EntityType, q.EntityID = s.EntityType, s.Key
	}
	for {
		events, err := r.log.Read(ctx, q)
		if err != nil {
			return doc, err
		}
		for _, e := range events {
			if slices.Contains(def.Keys(e), s.Key) {
				if state, err = state.Fold(e); err != nil {
					return doc, err
				}
			}
			q.From = e.Seq + 1
		}
		if len(events) < q.Limit {
			break
		}
	}
	if state.Version == 0 {
		return doc, fault.New(fault.NotFound, "not_found", "there was no such thing in this workspace")
	}
	body, _, err := state.Encode()
	if err != nil {
		return doc, err
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return doc, fmt.Errorf("read a document of the past: %w", err)
	}
	return doc, nil
}
