package gc

import (
	"context"
	"slices"
	"time"

	"agentbox/internal/domain/content"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/projection"
)

// past is the snapshots of a space, and those among them that the rule does not keep.
type past struct {
	space   space.Space
	history space.History
	gone    []event.Digest
}

// each calls free for every living space of the workspace, and adds up the results. An error in one space does not stop the others.
func (s *Service) each(ctx context.Context, ws id.Workspace, swept *content.Swept, free func(past) (int64, error)) error {
	return s.living(ctx, ws, func(doc space.Space) error {
		if s.Mine != nil {
			if mine, err := s.Mine(ctx, doc); err != nil || !mine {
				return err
			}
		}
		counted, err := s.one(ctx, doc, free)
		if err != nil {
			swept.Failed = append(swept.Failed, content.Miss{Space: string(doc.ID), Error: fault.CodeOf(err)})
			s.Logger.Warn("sweep the snapshots of a space", "code", "snapshots_not_swept", "space", doc.ID, "error", err)
			return nil
		}
		swept.Snapshots.Add(counted)
		return nil
	})
}

// living calls do for every space of a workspace that has files.
func (s *Service) living(ctx context.Context, ws id.Workspace, do func(space.Space) error) error {
	q := projection.Query{Workspace: ws, Name: space.Projection, Index: projection.Index{Name: "living", Value: "true"}, Limit: 1000}
	for {
		docs, err := projection.List[space.Space](ctx, s.Docs, q)
		if err != nil {
			return err
		}
		for _, doc := range docs {
			q.After = string(doc.ID)
			if err := ctx.Err(); err != nil {
				return err
			}
			if doc.Status == space.Creating {
				continue
			}
			if err := do(doc); err != nil {
				return err
			}
		}
		if len(docs) < q.Limit {
			return nil
		}
	}
}

// one lets free do its work on one space.
func (s *Service) one(ctx context.Context, doc space.Space, free func(past) (int64, error)) (content.Freed, error) {
	history, err := s.Spaces.History(doc.ID, doc.UID, doc.Limits)
	if err != nil {
		return content.Freed{}, err
	}
	kept, bytes, err := history.Kept(ctx)
	if err != nil {
		return content.Freed{}, err
	}
	p := past{space: doc, history: history}
	if p.gone, err = s.gone(ctx, doc, kept); err != nil {
		return content.Freed{}, err
	}
	freed, err := free(p)
	return content.Freed{
		Kept: int64(len(kept) - len(p.gone)), KeptBytes: bytes - freed, Freed: int64(len(p.gone)), FreedBytes: freed,
	}, err
}

// gone returns the snapshots that the rule lets go, the oldest first. The newest always stays.
func (s *Service) gone(ctx context.Context, doc space.Space, kept []space.Snapshot) ([]event.Digest, error) {
	first := 0 // of those that stay
	if n := s.Rule.Snapshots; n > 0 {
		first = max(first, len(kept)-n)
	}
	if s.Rule.Seconds > 0 {
		young, err := s.since(ctx, doc, s.Clock.Now().Add(-time.Duration(s.Rule.Seconds)*time.Second))
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(kept, func(k space.Snapshot) bool { return young[k.Root] })
		if i < 0 {
			i = len(kept)
		}
		first = max(first, i)
	}
	var gone []event.Digest
	for _, k := range kept[:max(min(first, len(kept)-1), 0)] {
		gone = append(gone, k.Root)
	}
	return gone, nil
}

// since returns the snapshots of a space that were recorded at or after a time.
func (s *Service) since(ctx context.Context, doc space.Space, from time.Time) (map[event.Digest]bool, error) {
	young := map[event.Digest]bool{}
	q := projection.Query{
		Workspace: doc.Workspace, Name: space.SnapshotProjection, Index: projection.Index{Name: "space", Value: string(doc.ID)}, Newest: true,
		Limit: 100,
	}
	for {
		found, err := projection.List[space.Recorded](ctx, s.Docs, q)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			if r.At.Before(from) {
				return young, nil
			}
			young[r.Root], q.After = true, string(r.Event)
		}
		if len(found) < q.Limit {
			return young, nil
		}
	}
}

// Definition keeps the documents of what workspaces use.
func Definition() projection.Definition {
	keys := func(e event.Event) []string {
		if named, err := run.ContentsOf(e); err != nil || len(named) == 0 {
			return nil
		}
		return []string{string(e.Workspace)}
	}
	fold := func(u content.Usage, key string, e event.Event) (content.Usage, error) {
		named, err := run.ContentsOf(e)
		u.Workspace = id.Workspace(key)
		for _, c := range named {
			u.Contents, u.Bytes = u.Contents+1, u.Bytes+c.Size
		}
		return u, err
	}
	return projection.Define(content.Projection, 1, keys, fold, nil)
}

// Usage returns how much content the log of a workspace names.
func Usage(ctx context.Context, docs projection.Reader, ws id.Workspace) (content.Usage, error) {
	u, _, err := projection.Load[content.Usage](ctx, docs, ws, content.Projection, string(ws))
	if fault.KindOf(err) == fault.NotFound {
		return content.Usage{Workspace: ws}, nil
	}
	return u, err
}
