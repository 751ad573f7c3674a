// Package workspaces makes workspaces, changes them and archives them.
package workspaces

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Parts are the dependencies of the service.
type Parts struct {
	Log  journal.Journal
	Docs projection.Reader
	Gate policy.Gate
	IDs  *id.Source

	// Owner returns the owner of a workspace and makes one, with the given name, where there is none.
	Owner func(ctx context.Context, ws id.Workspace, name string) (id.Principal, error)
	// IssueKey makes an API key for a principal and returns its text, which is stored nowhere.
	IssueKey func(ctx context.Context, origin event.Origin, ws id.Workspace, p id.Principal, name string) (string, principal.Key, error)
}

// Service keeps workspaces. Its methods are safe for concurrent use.
type Service struct{ Parts }

// New returns a service of the given parts.
func New(p Parts) *Service { return &Service{Parts: p} }

// Definition keeps the documents of workspaces.
func Definition() projection.Definition {
	return projection.Define(workspace.Workspaces, 1, func(e event.Event) []string {
		if !workspace.Tells(e) {
			return nil
		}
		return []string{e.EntityID}
	}, func(w workspace.Workspace, _ string, e event.Event) (workspace.Workspace, error) { return w.Evolve(e) }, nil)
}

// Request asks for a workspace. Empty fields take their defaults.
type Request struct {
	workspace.Created        // a private one with DefaultTasks, of a new id, unless said otherwise
	Owner             string // the display name of its owner
}

// Made is a workspace that was made, and how its owner gets in.
type Made struct {
	workspace.Workspace
	Owner id.Principal
	Key   principal.Key
	Text  string // of the key; shown once, so that a repeat has none
}

// Create makes a workspace with an owner and the owner's first key. It records the order in the installation's own workspace, where the
// caller needs the right, and then the creation in the new workspace. If two callers ask for one name, one gets it. A repeat finishes what
// a crash cut off.
func (s *Service) Create(ctx context.Context, origin event.Origin, by id.Workspace, q Request) (Made, error) {
	if by != id.DefaultWorkspace {
		return Made{}, workspace.ErrNotHere
	}
	ordered, known, err := s.recall(ctx, origin, by, workspace.EventCreateOrdered)
	if err != nil {
		return Made{}, err
	}
	if known {
		q.Created, err = event.Decode[workspace.Created](ordered)
	} else {
		ordered, err = s.order(ctx, origin, by, &q)
	}
	if err != nil {
		return Made{}, err
	}
	origin.Key, origin.Causation = "", ordered.ID
	_, err = s.Log.Append(ctx, event.Batch{
		Workspace: q.Workspace, Drafts: []event.Draft{event.New(workspace.EventCreated, origin, q.Workspace, "",
			q.Created).About(workspace.EntityType, string(q.Workspace))},
		Streams:   []event.StreamVersion{{Stream: event.WorkspaceStream(q.Workspace)}},
		Documents: []event.DocumentVersion{{Projection: workspace.Workspaces, Key: string(q.Workspace)}},
	})
	if errors.Is(err, journal.ErrConflict) {
		if err = workspace.ErrExists; known {
			err = s.own(ctx, q.Workspace, ordered.ID)
		}
	}
	if err != nil {
		return Made{}, err
	}
	return s.admit(ctx, q)
}

// order checks a request, fills it in and records it where it was made.
func (s *Service) order(ctx context.Context, origin event.Origin, by id.Workspace, q *Request) (event.Event, error) {
	if q.Workspace == "" {
		q.Workspace = id.NewWorkspace(s.IDs)
	}
	if q.Kind == "" {
		q.Kind = workspace.Private
	}
	if q.Tasks == 0 {
		q.Tasks = workspace.DefaultTasks
	}
	if q.Name == "" {
		q.Name = string(q.Workspace)
	}
	if err := q.Check(); err != nil {
		return event.Event{}, err
	}
	if err := principal.CheckName(q.Name); err != nil {
		return event.Event{}, err
	}
	if q.Owner != "" {
		if err := principal.CheckName(q.Owner); err != nil {
			return event.Event{}, err
		}
	}
	draft := event.New(workspace.EventCreateOrdered, origin, by, "", q.Created).About(workspace.EntityType, string(q.Workspace))
	a := policy.Action{Type: policy.WorkspaceCreate, Workspace: by, Principal: origin.Principal, Token: origin.Token,
		Subject: string(q.Workspace)}
	if ruling, err := s.Gate.Judge(ctx, a); err == nil && ruling.Decision.Allowed() { // others do not learn which exist
		if head, err := s.Log.Head(ctx, q.Workspace); err != nil || head > 0 {
			return event.Event{}, errors.Join(err, orNil(head > 0, workspace.ErrExists))
		}
	}
	receipt, err := s.Gate.Record(ctx, origin, a, origin.Once(event.Batch{Workspace: by, Drafts: []event.Draft{draft}}))
	if err != nil {
		return event.Event{}, err
	}
	return receipt.Events[0], nil
}

func orNil(holds bool, err error) error {
	if holds {
		return err
	}
	return nil
}

// own returns nil for a workspace that an order has made, and ErrExists for another one's.
func (s *Service) own(ctx context.Context, ws id.Workspace, order id.Event) error {
	first, err := s.Log.Read(ctx, journal.Query{Workspace: ws, Limit: 1})
	if err == nil && (len(first) == 0 || first[0].Causation != order) {
		err = workspace.ErrExists
	}
	return err
}

// admit makes the owner of a new workspace and the owner's first key, if they do not exist yet.
func (s *Service) admit(ctx context.Context, q Request) (Made, error) {
	name := q.Owner
	if name == "" {
		name = "owner"
	}
	owner, err := s.Parts.Owner(ctx, q.Workspace, name)
	if err != nil {
		return Made{}, err
	}
	made := Made{Owner: owner}
	keys, err := projection.List[principal.Key](ctx, s.Docs, projection.Query{
		Workspace: q.Workspace, Name: principal.KeyProjection, Index: projection.Index{Name: "principal", Value: string(owner)}, Limit: 1,
	})
	if err == nil && len(keys) > 0 {
		made.Key = keys[0]
	} else if err == nil {
		made.Text, made.Key, err = s.IssueKey(ctx, event.Origin{Principal: owner}, q.Workspace, owner, "first key")
	}
	if err != nil {
		return Made{}, err
	}
	made.Workspace, err = s.load(ctx, q.Workspace)
	return made, err
}

// recall returns the order of the first request with the key of an origin, and whether there was one.
func (s *Service) recall(ctx context.Context, origin event.Origin, by id.Workspace, typ string) (event.Event, bool, error) {
	if origin.Key == "" {
		return event.Event{}, false, nil
	}
	events, known, err := journal.Recall(ctx, s.Log, by, origin.Key, origin.Command)
	for _, e := range events {
		if e.Type == typ {
			return e, true, err
		}
	}
	return event.Event{}, known, err
}

// Workspace returns a workspace. Callers see their own one; owners and admins of the installation see every one.
func (s *Service) Workspace(ctx context.Context, who principal.Caller, ws id.Workspace) (workspace.Workspace, error) {
	if ws != who.Workspace && !seesAll(who) {
		return workspace.Workspace{}, workspace.ErrNone
	}
	if _, err := id.ParseWorkspace(string(ws)); err != nil {
		return workspace.Workspace{}, workspace.ErrNone
	}
	if head, err := s.Log.Head(ctx, ws); err != nil || head == 0 {
		return workspace.Workspace{}, errors.Join(err, orNil(err == nil, workspace.ErrNone))
	}
	return s.load(ctx, ws)
}

func seesAll(who principal.Caller) bool {
	return who.Workspace == id.DefaultWorkspace && who.Role.AtLeast(principal.Admin)
}

// List returns the workspaces that somebody sees, by name, behind one of them.
func (s *Service) List(ctx context.Context, who principal.Caller, after id.Workspace, limit int) ([]workspace.Workspace, error) {
	names := []id.Workspace{who.Workspace}
	if seesAll(who) {
		var err error
		if names, err = s.Log.Workspaces(ctx); err != nil {
			return nil, err
		}
	}
	found := []workspace.Workspace{}
	for _, ws := range names {
		if ws <= after || len(found) == limit {
			continue
		}
		doc, err := s.load(ctx, ws)
		if err != nil {
			return nil, err
		}
		found = append(found, doc)
	}
	return found, nil
}

func (s *Service) load(ctx context.Context, ws id.Workspace) (workspace.Workspace, error) {
	doc, _, err := s.find(ctx, ws)
	return doc, err
}
