package workspaces

import (
	"context"
	"errors"
	"unicode/utf8"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// change is something that becomes of a workspace. It is ordered where it was asked for and recorded in the workspace itself; where those
// are the same, it is recorded once.
type change struct {
	action        string // of policy
	ordered, done string // the types of the two events
	data          any
	own           bool // the workspace's own admins may, too

	// needed refuses the change of a workspace as it stands, or says that it is as it should be.
	needed func(workspace.Workspace) (bool, error)
}

// changeTries bounds how often a change is repeated because another one came first.
const changeTries = 16

// Archive stops the work in a workspace until it is unarchived. Its own owners and admins may do so, and those of the installation. A
// repeat changes nothing.
func (s *Service) Archive(ctx context.Context, origin event.Origin, who principal.Caller, ws id.Workspace,
	reason string) (workspace.Workspace, error) {
	if err := checkReason(reason); err != nil {
		return workspace.Workspace{}, err
	}
	return s.change(ctx, origin, who, ws, change{
		action: policy.WorkspaceArchive, ordered: workspace.EventArchiveOrdered, done: workspace.EventArchived,
		data: workspace.Archiving{Workspace: ws, Reason: reason}, own: true,
		needed: func(w workspace.Workspace) (bool, error) {
			if w.ID == id.DefaultWorkspace {
				return false, workspace.ErrKeep
			}
			return !w.Archived(), nil
		},
	})
}

// Unarchive lets work continue in an archived workspace. Only owners and admins of the installation's own workspace may do so, because they
// may have archived it against the will of its people. A repeat changes nothing.
func (s *Service) Unarchive(ctx context.Context, origin event.Origin, who principal.Caller, ws id.Workspace,
	reason string) (workspace.Workspace, error) {
	if err := checkReason(reason); err != nil {
		return workspace.Workspace{}, err
	}
	return s.change(ctx, origin, who, ws, change{
		action: policy.WorkspaceUnarchive, ordered: workspace.EventUnarchiveOrdered, done: workspace.EventUnarchived,
		data:   workspace.Archiving{Workspace: ws, Reason: reason},
		needed: func(w workspace.Workspace) (bool, error) { return w.Archived(), nil },
	})
}

// Update changes the name of a workspace and how many of its tasks run at the same time; zero fields stay as they are. Only owners and
// admins of the installation's own workspace may do so, because the shares are of their machine.
func (s *Service) Update(ctx context.Context, origin event.Origin, who principal.Caller, u workspace.Updated) (workspace.Workspace, error) {
	if err := u.Check(); err != nil {
		return workspace.Workspace{}, err
	}
	if u.Name != "" {
		if err := principal.CheckName(u.Name); err != nil {
			return workspace.Workspace{}, err
		}
	}
	return s.change(ctx, origin, who, u.Workspace, change{
		action: policy.WorkspaceUpdate, ordered: workspace.EventUpdateOrdered, done: workspace.EventUpdated, data: u,
		needed: func(w workspace.Workspace) (bool, error) {
			return u.Name != "" && u.Name != w.Name || u.Tasks != 0 && u.Tasks != w.Tasks, nil
		},
	})
}

func checkReason(reason string) error {
	if len(reason) > workspace.MaxReason || !utf8.ValidString(reason) {
		return fault.New(fault.Invalid, "invalid_reason", "a reason has at most %d bytes of UTF-8", workspace.MaxReason)
	}
	return nil
}

// change orders a change and records its outcome in the workspace. A repeat finishes a change that a crash cut off, and does nothing twice.
func (s *Service) change(ctx context.Context, origin event.Origin, who principal.Caller, ws id.Workspace, c change) (workspace.Workspace,
	error) {
	by := who.Workspace
	a := policy.Action{Type: c.action, Workspace: by, Principal: origin.Principal, Token: origin.Token, Subject: string(ws)}
	ordering := event.Batch{Workspace: by, Drafts: []event.Draft{event.New(c.ordered, origin, by, "", c.data).About(workspace.EntityType,
		string(ws))}}
	if ruling, err := s.Gate.Judge(ctx, a); err != nil || !ruling.Decision.Allowed() && ruling.Decision.ReasonCode != policy.ReasonArchived {
		if err == nil { // a caller without the right does not learn which workspaces exist
			_, err = s.Gate.Record(ctx, origin, a, ordering)
		}
		return workspace.Workspace{}, err
	}
	if _, err := s.Workspace(ctx, who, ws); err != nil {
		return workspace.Workspace{}, err
	}
	if !c.own && by != id.DefaultWorkspace {
		return workspace.Workspace{}, workspace.ErrNotHere
	}
	typ := c.ordered
	if by == ws {
		typ = c.done
	}
	ordered, known, err := s.recall(ctx, origin, by, typ)
	for try := 1; err == nil; try++ {
		doc, version, err := s.find(ctx, ws)
		if err != nil || known && by == ws {
			return doc, err
		}
		if needed, err := c.needed(doc); err != nil || !needed {
			return doc, err
		}
		expect := []event.DocumentVersion{{Projection: workspace.Workspaces, Key: string(ws), Version: version}}
		draft := event.New(c.done, origin, ws, "", c.data).About(workspace.EntityType, string(ws))
		if by == ws {
			_, err = s.Gate.Record(ctx, origin, a, origin.Once(event.Batch{Workspace: ws, Drafts: []event.Draft{draft}, Documents: expect}))
		} else {
			if !known {
				var receipt event.Receipt
				if receipt, err = s.Gate.Record(ctx, origin, a, origin.Once(ordering)); err != nil {
					return doc, err
				}
				ordered, known = receipt.Events[0], true
			}
			draft.Causation = ordered.ID
			_, err = s.Log.Append(ctx, event.Batch{ // one order changes it once, however often it is repeated
				Workspace: ws, Drafts: []event.Draft{draft}, Documents: expect, Key: "workspace_order:" + string(ordered.ID),
				Digest: event.DigestOf([]byte(ordered.ID)),
			})
		}
		if errors.Is(err, journal.ErrConflict) && try < changeTries {
			continue // something else became of it meanwhile
		}
		if err != nil {
			return doc, err
		}
		doc, _, err = s.find(ctx, ws)
		return doc, err
	}
	return workspace.Workspace{}, err
}

// find returns the document of a workspace and its version, 0 if no event is about it.
func (s *Service) find(ctx context.Context, ws id.Workspace) (workspace.Workspace, uint64, error) {
	doc, version, err := projection.Load[workspace.Workspace](ctx, s.Docs, ws, workspace.Workspaces, string(ws))
	if errors.Is(err, projection.ErrNotFound) {
		return workspace.Unsaid(ws), 0, nil
	}
	return doc, version, err
}
